cimport cython

from tenferro._kernels.fingerprint cimport Fingerprint
from tenferro.primitive cimport Like, Primitive

cdef Fingerprint fingerprint
cdef bint COMPILED
cdef int _depth
cdef list _waiting

cdef class Guarded:
    cdef public object array
    cdef public object mark

cdef class Node:
    cdef public Primitive prim
    cdef public int count
    cdef public Node first
    cdef public Node second
    cdef public tuple rest
    cdef public object kept_first
    cdef public object kept_second
    cdef public tuple kept_rest
    cdef public Like like_first
    cdef public Like like_second
    cdef public tuple like_rest
    cdef public object ans
    cdef public object params
    cdef public Like like
    cdef public bint plain
    cdef public bint freed
    cdef public long level
    cdef public long top
    cdef public object slot
    cdef public list hooks
    cdef public object acc
    cpdef Node parent(self, int i)
    cpdef object kept(self, int i)
    cpdef Like like_of(self, int i)

cdef class Context:
    cdef public object id
    cdef public bint closed

cdef class GradMode:
    cdef public long off
    cdef object lock
    cdef object local
    cpdef bint enabled(self)

@cython.locals(node=Node)
cpdef Node new_node(Primitive prim, int count, Node first, Node second, long level, long top)
cpdef Node leaf(long level, Node parent)
cpdef object keep_value(object value, bint borrowed)
cpdef object kept_value(object kept, Node node, object place)
cpdef void release(Node node)
