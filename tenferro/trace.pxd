cimport cython

from tenferro._kernels.layout cimport Layout
from tenferro.passes cimport Acc, Pass, new_pass
from tenferro.recording cimport Tracked, box
from tenferro.tape cimport GradMode, Node, leaf

cdef GradMode grad_mode
cdef Layout layout

cdef class Trace:
    cdef public long level
    cdef public list leaves
    cdef public object aux
    cdef public object out
    cpdef Trace run(self, object f, tuple args, dict kwargs, object argnums, bint has_aux)
    @cython.locals(t=Tracked, handle=Tracked)
    cpdef Tracked lift_leaf(self, object x, object k)
    @cython.locals(t=Tracked)
    cpdef bint depends(self, object out)
    @cython.locals(t=Tracked)
    cpdef object outside(self, object out)
    @cython.locals(t=Tracked)
    cpdef bint records(self, Tracked out, object start)
    @cython.locals(t=Tracked, run=Pass, nodes=list, results=list, i=cython.int)
    cpdef list pull(self, list outs, list seeds, bint consume)
    @cython.locals(run=Pass)
    cpdef list push(self, list outs, list tangents)
    cpdef object gradient(self, Tracked t, Acc acc)

@cython.locals(trace=Trace, t=Tracked, gradients=list)
cpdef tuple value_and_gradient(object f, tuple args, dict kwargs, object argnums, bint has_aux, bint holomorphic)
