cimport numpy as cnp


cdef class Loop:
    cdef readonly object ufunc
    cdef void *functions[4]
    cdef void *data[4]
    cpdef object call1(self, object x)
    cpdef object call2(self, object x, object y)
    cdef bint run(self, int place, char **args, cnp.npy_intp n, cnp.npy_intp *steps) except -1
