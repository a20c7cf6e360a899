cdef class Layout:
    cpdef object stretch(self, object g, tuple shape)
    cpdef bint same(self, object a, object b) noexcept
    cpdef object item(self, object x, object index)
    cpdef object zeros(self, tuple shape, object dtype)
