cdef class Layout:
    cpdef object stretch(self, object g, tuple shape)
    cpdef bint same(self, object a, object b) noexcept
    cpdef object item(self, object x, object index)
    cpdef object zeros(self, tuple shape, object dtype)
    cpdef bint differentiable(self, object x) noexcept
    cpdef object copy(self, object x)
    cpdef object scalar(self, object x)
    cpdef object dense(self, object total, object like, bint owned)
