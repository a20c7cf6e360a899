cimport cython

cdef class Like:
    cdef public tuple shape
    cdef public object dtype

@cython.locals(like=Like)
cpdef Like new_like(tuple shape, object dtype)

cdef class Factor:
    cdef public double scale
    cdef public int place

cdef class Rule:
    cdef public object fn
    cdef public list kinds
    cdef public list names
    cdef public list places
    cdef public bint needs_all

cdef class Primitive:
    cdef public str name
    cdef public object forward
    cdef public list operands
    cdef public object variadic
    cdef public dict defaults
    cdef public dict params
    cdef public bint broadcasts
    cdef public bint linear
    cdef public bint multilinear
    cdef public bint view
    cdef public object loop
    cdef public tuple partials
    cdef public dict cached_needs
    cdef public dict vjps
    cdef public dict jvps
    cdef public object vjp_all
    cdef public bint scatter
    cdef public bint spread
    cdef public Primitive same_operand
    cdef public int keep_x
    cdef public int keep_y
    cdef public int keep_both
