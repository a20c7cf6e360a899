"""Array construction and comparison that the tape does once per operation, without Python calls."""

cimport cython

from libc.string cimport memcpy

import numpy as np

cimport numpy as cnp

cnp.import_array()

cdef enum:
    MAX_DIMS = 64


cdef inline bint is_number(cnp.ndarray x) noexcept:
    """Whether x has a native bool, integer, floating or complex dtype."""
    return cnp.PyTypeNum_ISNUMBER(cnp.PyArray_TYPE(x)) and cnp.PyArray_ISNOTSWAPPED(x)


@cython.final
@cython.auto_pickle(False)
cdef class Layout:
    """One instance, ``layout``."""

    cpdef object stretch(self, object g, tuple shape):
        """Return ``g`` broadcast to ``shape`` without a copy: `numpy.broadcast_to`, quick for rank 0.

        Parameters
        ----------
        g : numpy.ndarray
        shape : tuple of int

        Returns
        -------
        numpy.ndarray
            A read-only view.

        Raises
        ------
        ValueError
            ``g`` does not broadcast to ``shape``.
        """
        cdef cnp.npy_intp dims[MAX_DIMS]
        cdef cnp.npy_intp strides[MAX_DIMS]
        cdef int ndim = <int>len(shape), axis
        cdef cnp.ndarray a, view
        if not cnp.PyArray_CheckExact(g) or ndim > MAX_DIMS:
            return np.broadcast_to(g, shape)
        a = <cnp.ndarray>g
        if cnp.PyArray_NDIM(a) or not is_number(a):
            return np.broadcast_to(g, shape)
        for axis in range(ndim):
            dims[axis] = shape[axis]
            strides[axis] = 0
            if dims[axis] < 0:
                raise ValueError(f"a shape has no negative entry, given {shape}")
        view = cnp.PyArray_New(np.ndarray, ndim, dims, cnp.PyArray_TYPE(a), strides, cnp.PyArray_DATA(a),
                               0, cnp.NPY_ARRAY_ALIGNED, None)
        cnp.set_array_base(view, a)
        return view

    cpdef bint same(self, object a, object b) noexcept:
        """Whether both are arrays of one native dtype and one shape."""
        return (cnp.PyArray_CheckExact(a) and cnp.PyArray_CheckExact(b)
                and cnp.PyArray_TYPE(<cnp.ndarray>a) == cnp.PyArray_TYPE(<cnp.ndarray>b)
                and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray>a) and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray>b)
                and cnp.PyArray_SAMESHAPE(<cnp.ndarray>a, <cnp.ndarray>b))

    cpdef object item(self, object x, object index):
        """Return a copy of ``x[index]`` as an array of rank 0.

        Parameters
        ----------
        x : numpy.ndarray, rank 1
        index : int
            Negative counts from the end.

        Returns
        -------
        numpy.ndarray
            Rank 0; ``x`` itself is not kept alive.

        Raises
        ------
        IndexError
            ``index`` is out of bounds, or ``x`` has no such axis.
        """
        cdef cnp.ndarray a, out
        cdef cnp.npy_intp i
        if cnp.PyArray_CheckExact(x) and cnp.PyArray_NDIM(<cnp.ndarray>x) == 1:
            a = <cnp.ndarray>x
            i = index
            if i < 0:
                i += cnp.PyArray_DIM(a, 0)
            if 0 <= i < cnp.PyArray_DIM(a, 0) and is_number(a):
                out = cnp.PyArray_EMPTY(0, NULL, cnp.PyArray_TYPE(a), 0)
                memcpy(cnp.PyArray_DATA(out), <char *>cnp.PyArray_DATA(a) + i * cnp.PyArray_STRIDE(a, 0),
                       cnp.PyArray_ITEMSIZE(a))
                return out
        return np.asarray(x[index])

    cpdef object zeros(self, tuple shape, object dtype):
        """Return a new array of zeros."""
        return np.zeros(shape, dtype)

    cpdef bint differentiable(self, object x) noexcept:
        """Whether ``x`` is an array itself, of a native differentiable dtype, that loops can read."""
        cdef int type_num
        if not cnp.PyArray_CheckExact(x):
            return False
        type_num = cnp.PyArray_TYPE(<cnp.ndarray>x)
        return ((type_num == cnp.NPY_FLOAT64 or type_num == cnp.NPY_FLOAT32 or type_num == cnp.NPY_COMPLEX128
                 or type_num == cnp.NPY_COMPLEX64) and cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>x))

    cpdef object copy(self, object x):
        """Return a writable copy of an array, in its memory order."""
        return cnp.PyArray_NewCopy(x, cnp.NPY_KEEPORDER)

    cpdef object scalar(self, object x):
        """Return an array as NumPy's own functions would: the scalar for rank 0."""
        if cnp.PyArray_NDIM(x):
            return x
        return cnp.PyArray_ToScalar(cnp.PyArray_DATA(x), x)

    cpdef object dense(self, object total, object like, bint owned):
        """Return a cotangent as a compact array of ``like``'s dtype and memory order.

        Parameters
        ----------
        total : numpy.ndarray
            Of ``like``'s shape; strided or stretched as it may be.
        like : numpy.ndarray
        owned : bool
            Nobody else holds ``total``: where it is compact already it is the result.

        Returns
        -------
        numpy.ndarray
            Writable, and shared with nobody.
        """
        cdef cnp.ndarray t = total, x = like
        cdef bint fortran = cnp.PyArray_IS_F_CONTIGUOUS(x) and not cnp.PyArray_IS_C_CONTIGUOUS(x)
        if (owned and cnp.PyArray_TYPE(t) == cnp.PyArray_TYPE(x) and cnp.PyArray_ISBEHAVED(t)
                and (cnp.PyArray_IS_F_CONTIGUOUS(t) if fortran else cnp.PyArray_IS_C_CONTIGUOUS(t))):
            return t
        return np.array(t, x.dtype.newbyteorder("="), order="F" if fortran else "C")


layout = Layout()
