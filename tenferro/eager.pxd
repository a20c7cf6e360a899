from tenferro.operators cimport become, in_place, operator
from tenferro.primitive cimport Primitive
from tenferro.recording cimport Tracked, apply_one, box, check_open, read, unary

cdef class EagerTensor(Tracked):
    cdef object __weakref__
    cpdef Tracked blank(self)
