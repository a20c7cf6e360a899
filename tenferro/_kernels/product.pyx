"""The strong-zero product of a cotangent (or tangent) with a local derivative.

``scale * g * d`` as IEEE has it, but a ``g`` that is exactly 0 gives 0 whatever ``d`` is, and a
``d`` that is exactly 0 gives 0 unless ``g`` is nan.  Complex products apply this to each of the
four real products, so that a part that is exactly 0 stays out of the other part's infinity.
"""

cimport cython
import numpy as np

cimport numpy as cnp

from tenferro._kernels.overlap cimport overlaps

cnp.import_array()

cdef extern from *:
    """
    /* A second copy of the row loops for AVX2, chosen when the module is loaded. */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__OPTIMIZE__)
    #define TF_ROW __attribute__((target_clones("avx2", "default"))) void
    #else
    #define TF_ROW void
    #endif
    """
    ctypedef void row "TF_ROW"

# Below this many elements a thread switch costs more than it gives (about 5 us of work).
cdef enum:
    NOGIL_SIZE = 20000
    MAX_DIMS = 64

ctypedef struct Operands:
    # one loop nest over out, g and d: axes sorted by out's stride, neighbours merged
    int ndim
    cnp.npy_intp shape[MAX_DIMS]
    cnp.npy_intp out[MAX_DIMS]
    cnp.npy_intp g[MAX_DIMS]
    cnp.npy_intp d[MAX_DIMS]


ctypedef fused real:
    float
    double


cdef inline real strong(real g, real d) noexcept nogil:
    return <real>0 if (g == 0) | ((d == 0) & (g == g)) else g * d


cdef inline bint is_plain_factor(real c) noexcept nogil:
    """Whether c times anything is the strong-zero product already: c is finite and not 0."""
    return c != 0 and c - c == 0


cdef row scaled_row(real *out, const real *x, cnp.npy_intp n, real c, real scale, bint add) noexcept nogil:
    cdef cnp.npy_intp i
    if add:
        for i in range(n):
            out[i] += scale * (c * x[i])
    else:
        for i in range(n):
            out[i] = scale * (c * x[i])


cdef row real_row(real *out, const real *g, const real *d, cnp.npy_intp n,
                   cnp.npy_intp so, cnp.npy_intp sg, cnp.npy_intp sd,
                   real scale, bint add) noexcept nogil:
    """One row; strides in elements.  The contiguous cases are spelled out to be vectorised."""
    cdef cnp.npy_intp i
    if so == 1 and sg == 1 and sd == 1:
        if add:
            for i in range(n):
                out[i] += scale * strong(g[i], d[i])
        else:
            for i in range(n):
                out[i] = scale * strong(g[i], d[i])
    elif so == 1 and sg == 0 and sd == 1 and is_plain_factor(g[0]):
        scaled_row(out, d, n, g[0], scale, add)
    elif so == 1 and sg == 1 and sd == 0 and is_plain_factor(d[0]):
        scaled_row(out, g, n, d[0], scale, add)
    elif add:
        for i in range(n):
            out[i * so] += scale * strong(g[i * sg], d[i * sd])
    else:
        for i in range(n):
            out[i * so] = scale * strong(g[i * sg], d[i * sd])


cdef row complex_row(real *out, const real *g, const real *d, cnp.npy_intp n,
                      cnp.npy_intp so, cnp.npy_intp sg, cnp.npy_intp sd,
                      real scale, bint add, real sign) noexcept nogil:
    """As real_row, on pairs; ``sign`` is -1 for the conjugate of ``d``."""
    cdef cnp.npy_intp i
    cdef real re, im, gr, gi, dr, di
    for i in range(n):
        gr = g[2 * i * sg]
        gi = g[2 * i * sg + 1]
        dr = d[2 * i * sd]
        di = sign * d[2 * i * sd + 1]
        re = scale * (strong(gr, dr) - strong(gi, di))
        im = scale * (strong(gr, di) + strong(gi, dr))
        if add:
            out[2 * i * so] += re
            out[2 * i * so + 1] += im
        else:
            out[2 * i * so] = re
            out[2 * i * so + 1] = im


cdef void run(char *out, const char *g, const char *d, const Operands *ops, int type_num,
              double scale, bint add, bint conj) noexcept nogil:
    """The loop nest: an odometer over all axes but the last, a row over the last."""
    cdef cnp.npy_intp index[MAX_DIMS]
    cdef int last = ops.ndim - 1, axis
    cdef cnp.npy_intp n = ops.shape[last]
    cdef cnp.npy_intp so = ops.out[last], sg = ops.g[last], sd = ops.d[last]
    for axis in range(last):
        index[axis] = 0
    while True:
        if type_num == cnp.NPY_FLOAT64:
            real_row[double](<double *>out, <const double *>g, <const double *>d, n,
                             so // 8, sg // 8, sd // 8, scale, add)
        elif type_num == cnp.NPY_FLOAT32:
            real_row[float](<float *>out, <const float *>g, <const float *>d, n,
                            so // 4, sg // 4, sd // 4, <float>scale, add)
        elif type_num == cnp.NPY_COMPLEX128:
            complex_row[double](<double *>out, <const double *>g, <const double *>d, n,
                                so // 16, sg // 16, sd // 16, scale, add, -1.0 if conj else 1.0)
        else:
            complex_row[float](<float *>out, <const float *>g, <const float *>d, n,
                               so // 8, sg // 8, sd // 8, <float>scale, add, <float>-1.0 if conj else <float>1.0)
        axis = last - 1
        while axis >= 0:
            index[axis] += 1
            out += ops.out[axis]
            g += ops.g[axis]
            d += ops.d[axis]
            if index[axis] < ops.shape[axis]:
                break
            out -= ops.out[axis] * ops.shape[axis]
            g -= ops.g[axis] * ops.shape[axis]
            d -= ops.d[axis] * ops.shape[axis]
            index[axis] = 0
            axis -= 1
        if axis < 0:
            return


cdef inline cnp.npy_intp magnitude(cnp.npy_intp a) noexcept nogil:
    return -a if a < 0 else a


cdef object shape_error(object x, object out):
    return ValueError(f"an operand of shape {x.shape} does not broadcast to out's shape {out.shape}")


cdef int broadcast_strides(cnp.ndarray x, cnp.ndarray out, cnp.npy_intp *strides) except -1:
    """x's strides as seen from out's shape; ValueError where x does not broadcast to it."""
    cdef int lead = cnp.PyArray_NDIM(out) - cnp.PyArray_NDIM(x), axis
    if lead < 0:
        raise shape_error(x, out)
    for axis in range(cnp.PyArray_NDIM(out)):
        if axis < lead:
            strides[axis] = 0
        elif cnp.PyArray_DIM(x, axis - lead) == cnp.PyArray_DIM(out, axis):
            strides[axis] = cnp.PyArray_STRIDE(x, axis - lead)
        elif cnp.PyArray_DIM(x, axis - lead) == 1:
            strides[axis] = 0
        else:
            raise shape_error(x, out)
    return 0


cdef int prepare(Operands *ops, cnp.ndarray out, cnp.ndarray g, cnp.ndarray d) except -1:
    """Sort the axes by out's stride, drop those of length 1, merge what is contiguous."""
    cdef cnp.npy_intp sg[MAX_DIMS]
    cdef cnp.npy_intp sd[MAX_DIMS]
    cdef int order[MAX_DIMS]
    cdef int n = 0, axis, i, k
    cdef cnp.npy_intp stride
    broadcast_strides(g, out, sg)
    broadcast_strides(d, out, sd)
    for axis in range(cnp.PyArray_NDIM(out)):
        if cnp.PyArray_DIM(out, axis) == 1:
            continue
        stride = magnitude(cnp.PyArray_STRIDE(out, axis))
        i = n
        while i > 0 and magnitude(cnp.PyArray_STRIDE(out, order[i - 1])) < stride:
            order[i] = order[i - 1]
            i -= 1
        order[i] = axis
        n += 1
    k = -1
    for i in range(n):
        axis = order[i]
        if (k >= 0
                and ops.out[k] == cnp.PyArray_DIM(out, axis) * cnp.PyArray_STRIDE(out, axis)
                and ops.g[k] == cnp.PyArray_DIM(out, axis) * sg[axis]
                and ops.d[k] == cnp.PyArray_DIM(out, axis) * sd[axis]):
            ops.shape[k] *= cnp.PyArray_DIM(out, axis)
        else:
            k += 1
            ops.shape[k] = cnp.PyArray_DIM(out, axis)
        ops.out[k] = cnp.PyArray_STRIDE(out, axis)
        ops.g[k] = sg[axis]
        ops.d[k] = sd[axis]
    if k < 0:
        k = 0
        ops.shape[0] = 1
        ops.out[0] = ops.g[0] = ops.d[0] = 0
    ops.ndim = k + 1
    return 0


cdef inline bint is_product_type(int type_num) noexcept nogil:
    return (type_num == cnp.NPY_FLOAT64 or type_num == cnp.NPY_FLOAT32
            or type_num == cnp.NPY_COMPLEX128 or type_num == cnp.NPY_COMPLEX64)


cdef inline bint is_direct(object x, int type_num) noexcept:
    """Whether the loops can read x as it lies in memory."""
    return (cnp.PyArray_Check(x) and cnp.PyArray_TYPE(<cnp.ndarray>x) == type_num
            and cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>x))


cdef cnp.ndarray as_operand(object x, cnp.dtype dtype):
    """x as an aligned array of dtype whose strides are whole elements."""
    return np.require(np.asarray(x, dtype), dtype, ["ALIGNED"])


cdef bint element_strides(cnp.ndarray x):
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(x)):
        if cnp.PyArray_STRIDE(x, axis) % cnp.PyArray_ITEMSIZE(x):
            return False
    return True


cdef object product_dtype(object g, object d):
    dtype = np.result_type(g, d)
    if not is_product_type(dtype.num):
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise TypeError(f"a product of {np.asarray(g).dtype} and {np.asarray(d).dtype} has no kernel; "
                            "cast to float32, float64, complex64 or complex128")
        dtype = np.dtype(np.float32 if dtype == np.float16 else np.float64)
    return dtype


cdef int fill(cnp.ndarray out, cnp.ndarray g, cnp.ndarray d,
              double scale, bint add, bint conj) except -1:
    cdef Operands ops
    cdef int type_num = cnp.PyArray_TYPE(out)
    cdef char *o = <char *>cnp.PyArray_DATA(out)
    cdef const char *a = <const char *>cnp.PyArray_DATA(g)
    cdef const char *b = <const char *>cnp.PyArray_DATA(d)
    prepare(&ops, out, g, d)
    if cnp.PyArray_SIZE(out) == 0:
        return 0
    if cnp.PyArray_SIZE(out) < NOGIL_SIZE:
        run(o, a, b, &ops, type_num, scale, add, conj)
    else:
        with nogil:
            run(o, a, b, &ops, type_num, scale, add, conj)
    return 0


cdef bint small_scalar(object d, int type_num, char *place) noexcept:
    """Write a Python number as one element of type_num; False where NumPy has to decide.

    A numpy.float64 is a float too, and no wider than a float64 array.
    """
    cdef double value
    if type(d) is float or (type_num == cnp.NPY_FLOAT64 and isinstance(d, float)):
        value = <double>d
    elif type(d) is int and -2 ** 53 <= d <= 2 ** 53:
        value = <double>d
    else:
        return False
    if type_num == cnp.NPY_FLOAT64:
        (<double *>place)[0] = value
    elif type_num == cnp.NPY_FLOAT32:
        (<float *>place)[0] = <float>value
    else:
        return False
    return True


@cython.final
@cython.auto_pickle(False)
cdef class Product:
    """The strong-zero product; one instance, ``product``."""

    cpdef object times(self, object g, object d, double scale=1.0, bint conj=False):
        """Return ``scale * g * d`` (``conj(d)`` where asked) with strong zeros.

        Parameters
        ----------
        g, d : array_like of float or complex
            They broadcast and promote as in ``numpy.multiply``; a Python number is weak.
        scale : float, default 1.0
        conj : bool, default False
            Take the conjugate of ``d``.

        Returns
        -------
        numpy.ndarray
            A new array, rank 0 included.

        Raises
        ------
        TypeError
            The product's dtype is none of float32, float64, complex64, complex128.
        ValueError
            The shapes do not broadcast.
        """
        cdef int type_num
        cdef cnp.ndarray a, b, out
        cdef char scalar[16]
        cdef cnp.npy_intp n
        if cnp.PyArray_CheckExact(g):
            type_num = cnp.PyArray_TYPE(<cnp.ndarray>g)
            if is_product_type(type_num) and cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>g):
                a = <cnp.ndarray>g
                n = row_stride(a)
                if n >= 0 and small_scalar(d, type_num, scalar):
                    out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), type_num, 0)
                    one_row(out, cnp.PyArray_DATA(a), scalar, n, 0, type_num, scale, False)
                    return out
                if is_direct(d, type_num):
                    b = <cnp.ndarray>d
                    if cnp.PyArray_IS_C_CONTIGUOUS(b) and is_real(type_num):
                        if is_repeated(a, b):
                            out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(b), cnp.PyArray_DIMS(b), type_num, 0)
                            one_row(out, cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), 0,
                                    cnp.PyArray_ITEMSIZE(b), type_num, scale, False)
                            return out
                        if cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_SAMESHAPE(a, b):
                            out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(b), cnp.PyArray_DIMS(b), type_num, 0)
                            n = cnp.PyArray_ITEMSIZE(b)
                            one_row(out, cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), n, n, type_num, scale, False)
                            return out
        return general_times(g, d, scale, conj)

    cpdef bint times_into(self, object out, object g, object d, double scale=1.0, bint conj=False) except -1:
        """Add ``scale * g * d`` into ``out`` in place.

        Parameters
        ----------
        out : numpy.ndarray
            Writable, of a product dtype; ``g`` and ``d`` broadcast to its shape.
        g, d, scale, conj
            As in `times`; cast to ``out``'s dtype first.

        Returns
        -------
        bool
            Always True.

        Raises
        ------
        TypeError
            ``out`` is not an array of a product dtype, or the product is complex and ``out`` real.
        ValueError
            ``out`` is read-only, or a shape does not broadcast to it.
        """
        cdef int type_num
        cdef cnp.npy_intp size
        cdef char scalar[16]
        cdef cnp.ndarray a, b, target
        if not cnp.PyArray_Check(out) or not is_product_type(cnp.PyArray_TYPE(<cnp.ndarray>out)):
            raise TypeError(f"out must be a float32, float64, complex64 or complex128 array, not {out!r:.60}")
        target = <cnp.ndarray>out
        type_num = cnp.PyArray_TYPE(target)
        if not cnp.PyArray_ISWRITEABLE(target):
            raise ValueError("out is read-only; pass a writable array")
        if is_real(type_num) and cnp.PyArray_ISBEHAVED(target) and cnp.PyArray_IS_C_CONTIGUOUS(target):
            if is_direct(g, type_num) and small_scalar(d, type_num, scalar):
                a = <cnp.ndarray>g
                size = row_stride(a)
                if size >= 0 and cnp.PyArray_SAMESHAPE(target, a) and not overlaps(target, a):
                    one_row(target, cnp.PyArray_DATA(a), scalar, size, 0, type_num, scale, True)
                    return True
            elif is_direct(g, type_num) and is_direct(d, type_num):
                a = <cnp.ndarray>g
                b = <cnp.ndarray>d
                if (cnp.PyArray_IS_C_CONTIGUOUS(b) and cnp.PyArray_SAMESHAPE(target, b)
                        and not overlaps(target, a) and not overlaps(target, b)):
                    size = cnp.PyArray_ITEMSIZE(b)
                    if is_repeated(a, b):
                        one_row(target, cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), 0, size, type_num, scale, True)
                        return True
                    if cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_SAMESHAPE(target, a):
                        one_row(target, cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), size, size, type_num, scale, True)
                        return True
        if not is_direct(g, type_num) or not element_strides(<cnp.ndarray>g):
            g = real_part_refused(g, type_num)
        if not is_direct(d, type_num) or not element_strides(<cnp.ndarray>d):
            d = real_part_refused(d, type_num)
        a = <cnp.ndarray>g
        b = <cnp.ndarray>d
        if (not cnp.PyArray_ISBEHAVED(target) or not element_strides(target) or overlaps(target, a)
                or overlaps(target, b)):
            target += general_times(a, b, scale, conj)
            return True
        fill(target, a, b, scale, True, conj)
        return True


cdef inline cnp.npy_intp row_stride(cnp.ndarray a) noexcept:
    """The step that walks all of a as one row: an item, 0 for a stretched one, -1 for neither."""
    cdef int axis
    if cnp.PyArray_IS_C_CONTIGUOUS(a):
        return cnp.PyArray_ITEMSIZE(a)
    for axis in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_STRIDE(a, axis):
            return -1
    return 0


cdef inline bint is_repeated(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether a is one element, of rank 0 or stretched over b's shape."""
    cdef int axis
    if cnp.PyArray_NDIM(a) == 0:
        return True
    if not cnp.PyArray_SAMESHAPE(a, b):
        return False
    for axis in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_STRIDE(a, axis):
            return False
    return True


cdef inline bint is_real(int type_num) noexcept nogil:
    return type_num == cnp.NPY_FLOAT64 or type_num == cnp.NPY_FLOAT32


cdef object real_part_refused(object x, int type_num):
    x = np.asarray(x)
    if x.dtype.kind == "c" and is_real(type_num):
        raise TypeError(f"a {x.dtype} product cannot be added into a real array; take its real part first")
    return as_operand(x, cnp.PyArray_DescrFromType(type_num))


cdef int one_row(cnp.ndarray out, const void *g, const void *d, cnp.npy_intp sg, cnp.npy_intp sd,
                 int type_num, double scale, bint add) except -1:
    """All of a contiguous real out as one row: the thin entry for small arrays."""
    cdef cnp.npy_intp n = cnp.PyArray_SIZE(out)
    cdef void *o = cnp.PyArray_DATA(out)
    if n >= NOGIL_SIZE:
        with nogil:
            real_bytes(o, g, d, n, sg, sd, type_num, scale, add)
    elif n > 0:
        real_bytes(o, g, d, n, sg, sd, type_num, scale, add)
    return 0


cdef inline void real_bytes(void *o, const void *g, const void *d, cnp.npy_intp n,
                            cnp.npy_intp sg, cnp.npy_intp sd, int type_num, double scale,
                            bint add) noexcept nogil:
    if type_num == cnp.NPY_FLOAT64:
        real_row[double](<double *>o, <const double *>g, <const double *>d, n, 1, sg // 8, sd // 8, scale, add)
    else:
        real_row[float](<float *>o, <const float *>g, <const float *>d, n, 1, sg // 4, sd // 4, <float>scale, add)


cdef object general_times(object g, object d, double scale, bint conj):
    cdef object a, b, out
    dtype = product_dtype(g, d)
    a = as_operand(g, dtype)
    b = as_operand(d, dtype)
    if not element_strides(a):
        a = a.copy()
    if not element_strides(b):
        b = b.copy()
    shape = np.broadcast_shapes(a.shape, b.shape)
    if shape == b.shape:
        out = np.empty_like(b)
    elif shape == a.shape:
        out = np.empty_like(a)
    else:
        out = np.empty(shape, dtype)
    fill(out, a, b, scale, False, conj)
    return out


product = Product()
