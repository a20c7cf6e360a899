"""NumPy's own inner loops, called on raw pointers.

A ufunc call on a small array spends most of its time on type resolution, casting rules and
iterator set-up.  A `Loop` looks the inner loop of each differentiable dtype up once and, where the
operands are plain contiguous arrays of one dtype, calls it directly; whatever else it meets goes
through the ufunc itself, so the result, its dtype and its errors are always NumPy's.
"""

cimport cython
from libc.math cimport isinf

import numpy as np

cimport numpy as cnp

cnp.import_array()
cnp.import_umath()

cdef extern from *:
    """
    /* Floating-point exception flags.  On x86-64 NumPy's loops raise them in MXCSR alone, and
       reading it takes a few cycles; elsewhere the C library's functions do the same work. */
    #define TF_DIVIDE 1
    #define TF_OVER 2
    #define TF_UNDER 4
    #define TF_INVALID 8
    #if defined(__SSE2__) || defined(_M_X64)
    #include <xmmintrin.h>
    static void tf_clear_flags(void) {
        unsigned int state = _mm_getcsr();
        if (state & 0x3f) _mm_setcsr(state & ~0x3fu);
    }
    static int tf_flags(void) {
        unsigned int state = _mm_getcsr();
        if (!(state & 0x1d)) return 0;
        return ((state & 0x04) ? TF_DIVIDE : 0) | ((state & 0x08) ? TF_OVER : 0)
             | ((state & 0x10) ? TF_UNDER : 0) | ((state & 0x01) ? TF_INVALID : 0);
    }
    #else
    #include <fenv.h>
    static void tf_clear_flags(void) { feclearexcept(FE_ALL_EXCEPT); }
    static int tf_flags(void) {
        int state = fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
        if (!state) return 0;
        return ((state & FE_DIVBYZERO) ? TF_DIVIDE : 0) | ((state & FE_OVERFLOW) ? TF_OVER : 0)
             | ((state & FE_UNDERFLOW) ? TF_UNDER : 0) | ((state & FE_INVALID) ? TF_INVALID : 0);
    }
    #endif
    """
    int TF_DIVIDE, TF_OVER, TF_UNDER, TF_INVALID
    void tf_clear_flags() noexcept nogil
    int tf_flags() noexcept nogil

ctypedef void (*inner_loop)(char **args, const cnp.npy_intp *n, const cnp.npy_intp *steps, void *data) noexcept nogil

cdef enum:
    # Below this many elements a thread switch costs more than it gives.
    NOGIL_SIZE = 20000


cdef inline int slot(int type_num) noexcept nogil:
    """The place of a dtype's loop in a Loop's table, -1 for a dtype that goes through the ufunc."""
    if type_num == cnp.NPY_FLOAT64:
        return 0
    if type_num == cnp.NPY_FLOAT32:
        return 1
    if type_num == cnp.NPY_COMPLEX128:
        return 2
    if type_num == cnp.NPY_COMPLEX64:
        return 3
    return -1


cdef bint flags_matter(int flags):
    """Whether NumPy, as its error state is set, would warn or raise for these flags."""
    state = np.geterr()
    return ((flags & TF_DIVIDE and state["divide"] != "ignore")
            or (flags & TF_OVER and state["over"] != "ignore")
            or (flags & TF_UNDER and state["under"] != "ignore")
            or (flags & TF_INVALID and state["invalid"] != "ignore"))


cdef inline bint is_plain(object x) noexcept:
    return cnp.PyArray_CheckExact(x) and cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>x)


@cython.final
cdef class Loop:
    """The inner loops of one ufunc whose operands and result have the same dtype.

    Parameters
    ----------
    ufunc : numpy.ufunc
        With one or two inputs and one output.

    Raises
    ------
    TypeError
        ``ufunc`` is no such ufunc.
    """

    def __cinit__(self, ufunc):
        cdef cnp.ufunc u
        cdef int i, place
        if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.nin > 2:
            raise TypeError(f"a Loop takes a ufunc with one or two inputs and one output, not {ufunc!r:.60}")
        self.ufunc = u = ufunc
        for i in range(4):
            self.functions[i] = NULL
        # a generalised ufunc's loop also takes core dimensions: never called directly
        if ufunc.signature is not None:
            return
        # the types as Python has them ("dd->d"): the C field is not the same in all NumPy 2
        for i, signature in enumerate(ufunc.types):
            place = "dfDF".find(signature[0])
            if place < 0 or self.functions[place] != NULL or set(signature) - {signature[0], "-", ">"}:
                continue
            self.functions[place] = <void *>u.functions[i]
            self.data[place] = u.data[i] if u.data != NULL else NULL

    def __reduce__(self):
        return Loop, (self.ufunc,)

    cpdef object call1(self, object x):
        """Return ``ufunc(x)`` as an array, rank 0 included.

        Parameters
        ----------
        x : array_like

        Returns
        -------
        numpy.ndarray
        """
        cdef int place
        cdef cnp.ndarray a, out
        cdef char *args[2]
        cdef cnp.npy_intp steps[2]
        if is_plain(x):
            a = <cnp.ndarray>x
            place = slot(cnp.PyArray_TYPE(a))
            if place >= 0 and self.functions[place] != NULL and cnp.PyArray_ISONESEGMENT(a):
                out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.PyArray_TYPE(a),
                                        not cnp.PyArray_IS_C_CONTIGUOUS(a))
                args[0] = <char *>cnp.PyArray_DATA(a)
                args[1] = <char *>cnp.PyArray_DATA(out)
                steps[0] = steps[1] = cnp.PyArray_ITEMSIZE(a)
                if self.run(place, args, cnp.PyArray_SIZE(a), steps):
                    return out
        return np.asarray(self.ufunc(x))

    cpdef object call2(self, object x, object y):
        """Return ``ufunc(x, y)`` as an array, rank 0 included.

        Parameters
        ----------
        x, y : array_like
            A Python number is weak, as for the ufunc.

        Returns
        -------
        numpy.ndarray
        """
        cdef int place, type_num
        cdef cnp.ndarray a, b, like, out
        cdef char *args[3]
        cdef cnp.npy_intp steps[3]
        cdef char scalar[16]
        if is_plain(x):
            a = <cnp.ndarray>x
            type_num = cnp.PyArray_TYPE(a)
            place = slot(type_num)
            if place >= 0 and self.functions[place] != NULL and cnp.PyArray_ISONESEGMENT(a):
                like = a
                args[0] = <char *>cnp.PyArray_DATA(a)
                steps[0] = steps[1] = steps[2] = cnp.PyArray_ITEMSIZE(a)
                if is_plain(y):
                    b = <cnp.ndarray>y
                    if cnp.PyArray_TYPE(b) != type_num:
                        return np.asarray(self.ufunc(x, y))
                    args[1] = <char *>cnp.PyArray_DATA(b)
                    if cnp.PyArray_NDIM(b) == 0:
                        steps[1] = 0
                    elif cnp.PyArray_NDIM(a) == 0 and cnp.PyArray_ISONESEGMENT(b):
                        steps[0] = 0
                        like = b
                    elif not (cnp.PyArray_SAMESHAPE(a, b) and same_order(a, b)):
                        return np.asarray(self.ufunc(x, y))
                elif weak_number(y, type_num, scalar):
                    args[1] = scalar
                    steps[1] = 0
                else:
                    return np.asarray(self.ufunc(x, y))
                out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(like), cnp.PyArray_DIMS(like), type_num,
                                        not cnp.PyArray_IS_C_CONTIGUOUS(like))
                args[2] = <char *>cnp.PyArray_DATA(out)
                if self.run(place, args, cnp.PyArray_SIZE(out), steps):
                    return out
        elif is_plain(y):
            b = <cnp.ndarray>y
            type_num = cnp.PyArray_TYPE(b)
            place = slot(type_num)
            if (place >= 0 and self.functions[place] != NULL and cnp.PyArray_ISONESEGMENT(b)
                    and weak_number(x, type_num, scalar)):
                out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(b), cnp.PyArray_DIMS(b), type_num,
                                        not cnp.PyArray_IS_C_CONTIGUOUS(b))
                args[0] = scalar
                args[1] = <char *>cnp.PyArray_DATA(b)
                args[2] = <char *>cnp.PyArray_DATA(out)
                steps[0] = 0
                steps[1] = steps[2] = cnp.PyArray_ITEMSIZE(b)
                if self.run(place, args, cnp.PyArray_SIZE(b), steps):
                    return out
        return np.asarray(self.ufunc(x, y))

    cdef bint run(self, int place, char **args, cnp.npy_intp n, cnp.npy_intp *steps) except -1:
        """Run the loop; False where NumPy would warn or raise and so has to do it itself."""
        cdef int flags
        cdef inner_loop loop = <inner_loop>self.functions[place]
        cdef void *data = self.data[place]
        if n == 0:
            return True
        if n < NOGIL_SIZE:
            tf_clear_flags()
            loop(args, &n, steps, data)
            flags = tf_flags()
        else:
            with nogil:
                tf_clear_flags()
                loop(args, &n, steps, data)
                flags = tf_flags()
        return flags == 0 or not flags_matter(flags)


cdef inline bint same_order(cnp.ndarray a, cnp.ndarray b) noexcept:
    return ((cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_IS_C_CONTIGUOUS(b))
            or (cnp.PyArray_IS_F_CONTIGUOUS(a) and cnp.PyArray_IS_F_CONTIGUOUS(b)))


cdef bint weak_number(object x, int type_num, char *place) except -1:
    """Write a Python float or int as one element of type_num; False where NumPy must decide."""
    cdef double value, zero = 0.0
    cdef float single
    if type(x) is float or (type_num == cnp.NPY_FLOAT64 and isinstance(x, float)):
        # a numpy.float64 is a float, and no wider than the array
        value = <double>x
    elif type(x) is int and -2 ** 53 <= x <= 2 ** 53:
        value = <double>x
    else:
        return False
    if type_num == cnp.NPY_FLOAT64:
        (<double *>place)[0] = value
        return True
    if type_num == cnp.NPY_FLOAT32:
        single = <float>value
        if isinf(single) and not isinf(value):
            return False  # it overflows: NumPy warns or raises
        (<float *>place)[0] = single
        return True
    if type_num == cnp.NPY_COMPLEX128:
        (<double *>place)[0] = value
        (<double *>place)[1] = zero
        return True
    return False
