cdef class Accumulate:
    cpdef object add_into(self, object out, object g)
    cpdef object add_at(self, object out, object index, object g)
    cpdef object add_item(self, object out, object index, object g)
