"""Sums, as accurate as NumPy's and with its bits."""

cimport cython

import numpy as np

cimport numpy as cnp

cnp.import_array()

cdef enum:
    # Below this many elements a thread switch costs more than it gives.
    NOGIL_SIZE = 20000

ctypedef fused real:
    float
    double


cdef real pairwise(const real *x, cnp.npy_intp n) noexcept nogil:
    """NumPy's summation tree: halves down to 128 elements, there eight running sums.

    The eight are independent, so the compiler keeps them in vector registers, and the bits are
    those of ``numpy.add.reduce``.
    """
    cdef cnp.npy_intp i, half
    cdef real r[8]
    cdef real total
    cdef int k
    if n < 8:
        # -0.0 is what leaves a sum of negative zeros as it is
        total = -0.0
        for i in range(n):
            total += x[i]
        return total
    if n <= 128:
        for k in range(8):
            r[k] = x[k]
        i = 8
        while i < n - (n % 8):
            for k in range(8):
                r[k] += x[i + k]
            i += 8
        total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
        while i < n:
            total += x[i]
            i += 1
        return total
    half = n // 2
    half -= half % 8
    return pairwise(x, half) + pairwise(x + half, n - half)


cdef real total_of(const real *x, cnp.npy_intp n) noexcept:
    cdef real total
    if n < NOGIL_SIZE:
        return pairwise(x, n)
    with nogil:
        total = pairwise(x, n)
    return total


@cython.final
@cython.auto_pickle(False)
cdef class Reduce:
    """Sums; one instance, ``reduce``."""

    cpdef object sum(self, object x, object axis=None, bint keepdims=False):
        """Return the sum over axes, as `numpy.sum` has it, but always as an array.

        Parameters
        ----------
        x : array_like
        axis : None, int or tuple of int
            None for all axes, () for none.
        keepdims : bool, default False

        Returns
        -------
        numpy.ndarray
            Of rank 0 for a full sum; never ``x`` itself or a view of it.
        """
        cdef cnp.ndarray a, out
        cdef double wide
        cdef float narrow
        if axis is None and not keepdims and cnp.PyArray_CheckExact(x):
            a = <cnp.ndarray>x
            if cnp.PyArray_ISCARRAY_RO(a) and cnp.PyArray_SIZE(a):
                # a sum that is not finite is left to NumPy, for its warnings and errors
                if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT64:
                    wide = total_of[double](<const double *>cnp.PyArray_DATA(a), cnp.PyArray_SIZE(a))
                    if wide - wide == 0:
                        out = cnp.PyArray_EMPTY(0, NULL, cnp.NPY_FLOAT64, 0)
                        (<double *>cnp.PyArray_DATA(out))[0] = 0.0 + wide  # NumPy adds to its identity
                        return out
                elif cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT32:
                    narrow = total_of[float](<const float *>cnp.PyArray_DATA(a), cnp.PyArray_SIZE(a))
                    if narrow - narrow == 0:
                        out = cnp.PyArray_EMPTY(0, NULL, cnp.NPY_FLOAT32, 0)
                        (<float *>cnp.PyArray_DATA(out))[0] = <float>0.0 + narrow
                        return out
        return np.asarray(np.sum(x, axis=axis, keepdims=keepdims))


reduce = Reduce()
