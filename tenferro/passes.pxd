cimport cython

from tenferro._kernels.accumulate cimport Accumulate
from tenferro._kernels.layout cimport Layout
from tenferro._kernels.product cimport Product
from tenferro.primitive cimport Factor, Like, Primitive, Rule
from tenferro.tape cimport Guarded, Node, kept_value, release

cdef Accumulate accumulate
cdef Layout layout
cdef Product product

cdef class Acc:
    cdef public object total
    cdef public bint owned
    cdef public bint placed
    cdef public list scattered

cdef bint _busy
cdef bint COMPILED
cdef bint claim()
cdef void yield_claim()
@cython.locals(run=Pass)
cpdef Pass new_pass(long level, long floor, bint record, bint consume, object wanted)
cpdef object fit(object value, Like like)
cpdef object as_array(object value)
cpdef object twin(object t)

cdef class Pass:
    cdef public long level
    cdef public long floor
    cdef public bint record
    cdef public bint consume
    cdef public object wanted
    cdef public object marks
    cdef public dict accs
    cdef public dict results
    cdef public object quiet
    cdef public list stack
    cdef public list pending
    cdef public bint resident

    cdef bint useful(self, Node node) except -1
    @cython.locals(node=Node, p=Node, acc=Acc, order=list, stack=list, i=cython.int)
    cpdef list order(self, list outs)
    @cython.locals(node=Node, p=Node, i=cython.int)
    cpdef list mark(self, list order)
    @cython.locals(order=list, i=cython.int)
    cpdef dict pull(self, list outs, list seeds)
    @cython.locals(acc=Acc, p=Node, target=Acc, like=Like)
    cdef object step(self, Node node)
    cdef Acc acc_of(self, Node node)
    @cython.locals(acc=Acc)
    cdef Acc new_acc(self, Node node)
    @cython.locals(acc=Acc)
    cdef Acc take(self, Node node)
    cpdef object finish(self)
    cdef object report_errors(self)
    cdef object add(self, Acc acc, object value, bint owned)
    @cython.locals(prim=Primitive, lent=Acc, target=Acc, p=Node, i=cython.int, scale=cython.double, factor=Factor)
    cdef object pull_elementwise(self, Node node, Acc acc)
    cdef object contribution(self, Node node, int i, object part, object g)
    cpdef object partial(self, Node node, int i)
    @cython.locals(parent=Node)
    cpdef object saved(self, Node node, int place)
    @cython.locals(args=list, kind=cython.int, j=cython.int, i=cython.int)
    cpdef object call_rule(self, Rule rule, Node node, object g, object wanted)
    @cython.locals(prim=Primitive, p=Node, wanted=list, targets=list, i=cython.int)
    cdef object pull_rules(self, Node node, Acc acc)
    @cython.locals(target=Acc, like=Like)
    cdef object pull_scatter(self, Node node, Acc acc)
    cdef object gather(self, Acc acc)
    cdef object run_hooks(self, Node node, Acc acc)
