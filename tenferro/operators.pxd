cimport cython

from tenferro.primitive cimport Primitive
from tenferro.recording cimport Tracked, binary

cpdef object operator(Primitive prim, object x, object y)
@cython.locals(made=Tracked)
cpdef object in_place(Tracked t, str name, object other)
cpdef object become(Tracked t, Tracked made)
