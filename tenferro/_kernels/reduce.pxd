cdef class Reduce:
    cpdef object sum(self, object x, object axis=*, bint keepdims=*)
