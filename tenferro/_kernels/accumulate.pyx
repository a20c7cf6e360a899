"""Adding gradients in place."""

cimport cython

import numpy as np

cimport numpy as cnp

from tenferro._kernels.overlap cimport overlaps

cnp.import_array()

cdef enum:
    NOGIL_SIZE = 20000


cdef inline bint is_float(int t) noexcept nogil:
    return t == cnp.NPY_FLOAT64 or t == cnp.NPY_FLOAT32 or t == cnp.NPY_COMPLEX128 or t == cnp.NPY_COMPLEX64


ctypedef fused real:
    float
    double


cdef void add_row(real *out, const real *g, cnp.npy_intp n, cnp.npy_intp step) noexcept nogil:
    cdef cnp.npy_intp i
    if step:
        for i in range(n):
            out[i] += g[i]
    else:
        for i in range(n):
            out[i] += g[0]


@cython.final
@cython.auto_pickle(False)
cdef class Accumulate:
    """Additions in place; one instance, ``accumulate``.

    Floating-point exceptions in these additions are not reported: a gradient that overflows shows as
    inf in the gradient.
    """

    cpdef object add_into(self, object out, object g):
        """Add ``g`` into ``out``: ``out += g``.

        Parameters
        ----------
        out : numpy.ndarray
            Writable.
        g : numpy.ndarray
            Broadcasts to ``out``; strided, stretched or overlapping ``out`` as it may be.

        Raises
        ------
        ValueError
            ``out`` is read-only, or the shapes do not fit.
        """
        cdef cnp.ndarray a, b
        cdef cnp.npy_intp n
        cdef char *po
        cdef char *pg
        cdef int t
        if cnp.PyArray_CheckExact(out) and cnp.PyArray_CheckExact(g):
            a = <cnp.ndarray>out
            b = <cnp.ndarray>g
            t = cnp.PyArray_TYPE(a)
            if (is_float(t) and cnp.PyArray_TYPE(b) == t and cnp.PyArray_ISCARRAY(a) and cnp.PyArray_ISCARRAY_RO(b)
                    and cnp.PyArray_SAMESHAPE(a, b)):
                po = <char *>cnp.PyArray_DATA(a)
                pg = <char *>cnp.PyArray_DATA(b)
                n = cnp.PyArray_SIZE(a)
                if pg == po or not overlaps(a, b):
                    if t == cnp.NPY_COMPLEX128 or t == cnp.NPY_COMPLEX64:
                        n *= 2
                    if n < NOGIL_SIZE:
                        if t == cnp.NPY_FLOAT64 or t == cnp.NPY_COMPLEX128:
                            add_row[double](<double *>po, <const double *>pg, n, 1)
                        else:
                            add_row[float](<float *>po, <const float *>pg, n, 1)
                    else:
                        with nogil:
                            if t == cnp.NPY_FLOAT64 or t == cnp.NPY_COMPLEX128:
                                add_row[double](<double *>po, <const double *>pg, n, 1)
                            else:
                                add_row[float](<float *>po, <const float *>pg, n, 1)
                    return None
        np.add(out, g, out=out)

    cpdef object add_at(self, object out, object index, object g):
        """Add ``g`` into ``out[index]``; an element that is indexed twice gets both.

        Parameters
        ----------
        out : numpy.ndarray
            Writable.
        index : int, slice, None, Ellipsis, integer or bool array, or a tuple of them
        g : numpy.ndarray
            Broadcasts to ``out[index]``.

        Raises
        ------
        IndexError
            ``index`` is out of bounds.
        """
        if is_basic(index):
            view = out[index]
            if isinstance(view, np.ndarray):
                self.add_into(view, g)
            else:
                out[index] += g
        else:
            np.add.at(out, index, g)

    cpdef object add_item(self, object out, object index, object g):
        """Add one number into a vector: `add_at` for an integer.

        Parameters
        ----------
        out : numpy.ndarray, rank 1
        index : int
        g : numpy.ndarray, rank 0

        Raises
        ------
        IndexError
            ``index`` is out of bounds.
        """
        cdef cnp.ndarray a, b
        cdef cnp.npy_intp i
        cdef char *place
        if cnp.PyArray_CheckExact(out) and cnp.PyArray_CheckExact(g):
            a = <cnp.ndarray>out
            b = <cnp.ndarray>g
            if (cnp.PyArray_NDIM(a) == 1 and cnp.PyArray_NDIM(b) == 0 and cnp.PyArray_TYPE(a) == cnp.PyArray_TYPE(b)
                    and cnp.PyArray_ISBEHAVED(a) and cnp.PyArray_ISBEHAVED_RO(b)):
                i = index
                if i < 0:
                    i += cnp.PyArray_DIM(a, 0)
                if 0 <= i < cnp.PyArray_DIM(a, 0):
                    place = <char *>cnp.PyArray_DATA(a) + i * cnp.PyArray_STRIDE(a, 0)
                    if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT64:
                        (<double *>place)[0] += (<double *>cnp.PyArray_DATA(b))[0]
                        return None
                    if cnp.PyArray_TYPE(a) == cnp.NPY_FLOAT32:
                        (<float *>place)[0] += (<float *>cnp.PyArray_DATA(b))[0]
                        return None
        out[index] += g


cdef bint is_basic(object index):
    if type(index) is tuple:
        for part in index:
            if not (type(part) is int or type(part) is slice or part is None or part is Ellipsis):
                return False
        return True
    return type(index) is int or type(index) is slice or index is None or index is Ellipsis


accumulate = Accumulate()
