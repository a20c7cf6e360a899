cimport cython

from tenferro.passes cimport Acc, Pass, compact
from tenferro.recording cimport Tracked, box
from tenferro.tape cimport GradMode, Node, leaf

cdef GradMode grad_mode

cdef class Trace:
    cdef public long level
    cdef public list leaves
    cdef public object aux
    cdef public object out
    @cython.locals(t=Tracked)
    cpdef Tracked lift_leaf(self, object x, object k)
    @cython.locals(t=Tracked)
    cpdef bint depends(self, object out)
    @cython.locals(t=Tracked)
    cpdef object outside(self, object out)
    cpdef object gradient(self, Tracked t, Acc acc)

cpdef object result(object value)
