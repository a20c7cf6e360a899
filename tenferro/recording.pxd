cimport cython

from tenferro._kernels.layout cimport Layout
from tenferro._kernels.loops cimport Loop
from tenferro.primitive cimport Like, Primitive, Rule, new_like
from tenferro.tape cimport Context, GradMode, Node, keep_value, new_node

cdef Layout layout
cdef GradMode grad_mode

cdef class Tracked:
    cdef public object _value
    cdef public Node _node
    cdef public Context _runtime
    cdef public bint _borrowed
    cdef public Like _like
    cdef public object _id
    cdef public object _slot
    cpdef Tracked blank(self)

cdef Tracked _prototype

@cython.locals(t=Tracked)
cpdef Tracked box(object value, Node node, Context runtime=*)
cpdef Like like_of(Tracked t)
cpdef Context join(Context a, Context b)
cpdef object check_open(Context runtime)
@cython.locals(node=Node, made=Node, keep=cython.int, loop=Loop)
cpdef Tracked unary(Primitive prim, Tracked x)
@cython.locals(runtime=Context, xn=Node, yn=Node, made=Node, tx=Tracked, ty=Tracked, keep=cython.int,
               x_borrowed=cython.bint, y_borrowed=cython.bint, loop=Loop)
cpdef Tracked binary(Primitive prim, object x, object y)
@cython.locals(node=Node, made=Node, t=Tracked, needs=tuple)
cpdef Tracked apply_one(Primitive prim, Tracked x, dict params)
cpdef dict keep_params(dict params)
@cython.locals(runtime=Context, node=Node, made=Node, x=Tracked, t=Tracked, level=cython.long, top=cython.long)
cpdef Tracked apply(Primitive prim, tuple args, dict params)
@cython.locals(node=Node, made=Node, t=Tracked)
cpdef Tracked read(Tracked x, object index)
cdef bint plain_slice(object index) except -1
cdef tuple slice_parts(object index)
