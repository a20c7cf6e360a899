cdef class Product:
    cpdef object times(self, object g, object d, double scale=*, bint conj=*)
    cpdef bint times_into(self, object out, object g, object d, double scale=*, bint conj=*) except -1
