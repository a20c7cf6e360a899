cimport cython

from tenferro.passes cimport Pass, as_array, twin
from tenferro.primitive cimport Factor, Like, Primitive, Rule
from tenferro.tape cimport Node, kept_value

cpdef list push(Pass run, list outs, dict tangents)
@cython.locals(node=Node, p=Node, i=cython.int)
cdef list sweep(Pass run, list outs, dict tangents)
@cython.locals(prim=Primitive, ts=list, like=Like, i=cython.int)
cdef object step(Pass run, Node node, dict tangents)
@cython.locals(prim=Primitive, k=cython.int)
cdef object tangent(Pass run, Node node, int i, object t)
cdef dict params(Node node)
