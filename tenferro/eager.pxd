cimport cython

from tenferro.primitive cimport Primitive
from tenferro.recording cimport Tracked, binary, box, check_open, read, unary

cdef class EagerTensor(Tracked):
    cdef object __weakref__
    cpdef Tracked blank(self)

cdef object operator(Primitive prim, object x, object y)
@cython.locals(made=Tracked)
cdef object in_place(Tracked t, str name, object other)
cdef object become(Tracked t, Tracked made)
cdef object rebind(Tracked t, Primitive prim, tuple operands, dict params)
