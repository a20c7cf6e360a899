cdef class Fingerprint:
    cpdef object of(self, object x)
    cpdef bint same(self, object x, object mark) except -1
