# Whether two arrays may share memory, by the bytes that each can touch.

cimport numpy as cnp


cdef inline void extent(cnp.ndarray x, char **low, char **high) noexcept:
    """The bytes that x may touch, as a half-open range."""
    cdef int axis
    cdef cnp.npy_intp span
    low[0] = <char *>cnp.PyArray_DATA(x)
    high[0] = low[0] + cnp.PyArray_ITEMSIZE(x)
    for axis in range(cnp.PyArray_NDIM(x)):
        span = (cnp.PyArray_DIM(x, axis) - 1) * cnp.PyArray_STRIDE(x, axis)
        if span > 0:
            high[0] += span
        else:
            low[0] += span


cdef inline bint overlaps(cnp.ndarray out, cnp.ndarray x) noexcept:
    """Whether a write to out might change an element of x that is read later."""
    cdef char *out_low
    cdef char *out_high
    cdef char *low
    cdef char *high
    extent(out, &out_low, &out_high)
    extent(x, &low, &high)
    return low < out_high and out_low < high
