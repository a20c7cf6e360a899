"""Recording: how an operation over tracked values becomes a value and a node.

`apply` serves every primitive; the elementwise ones (`unary`, `binary`) and indexing (`read`) have
shorter ways to the same result.

This module runs interpreted or compiled (`recording.pxd` has the types).
"""

from __future__ import annotations

import copy
import operator

import numpy as np

from . import passes, primitive
from ._kernels import layout
from .errors import ContextMismatchError, RuntimeStateError, TracedConversionError
from .primitive import new_like, registry
from .tape import grad_mode, keep_value, new_node

#: A level above every transform's, for "no tracked operand yet".
NO_LEVEL = 1 << 60

ndarray = np.ndarray


class Tracked:
    """What the engine sees of an EagerTensor: an array, the node that made it and its runtime.

    ``_borrowed`` says that somebody else may write the array's memory.
    """

    __slots__ = ("_borrowed", "_id", "_like", "_node", "_runtime", "_slot", "_value")

    def blank(self):
        """A new object of the class that users see."""
        return Tracked.__new__(Tracked)


_prototype = Tracked.__new__(Tracked)


def install(prototype):
    """Tell the engine which class users see (once, by `eager`)."""
    global _prototype
    _prototype = prototype
    primitive.install(Tracked, apply)
    passes.install(box)


def box(value, node, runtime=None):
    """A tracked value around an array that nobody else writes."""
    t = _prototype.blank()
    t._value = value
    t._node = node
    t._runtime = runtime
    t._borrowed = False
    t._like = None
    t._id = None
    t._slot = None
    return t


def like_of(t):
    """The shape and dtype of a tracked value, made once."""
    if t._like is None:
        t._like = new_like(t._value.shape, t._value.dtype)
    return t._like


def join(a, b):
    """The runtime of an operation over tensors of ``a`` and ``b`` (None: a transform's value)."""
    if a is None or a is b:
        return b
    if b is None:
        return a
    raise ContextMismatchError(lhs=a.id, rhs=b.id)


def check_open(runtime):
    if runtime is not None and runtime.closed:
        raise RuntimeStateError(
            given="a tensor of a closed runtime", expected="an open runtime", remedy="make a new EagerRuntime"
        )


def unary(prim, x):
    """Apply an elementwise primitive of one operand."""
    node = x._node
    if x._runtime is not None and x._runtime.closed:
        check_open(x._runtime)
    loop = prim.loop
    ans = loop.call1(x._value)
    if node is None or (grad_mode.off and not grad_mode.enabled()):
        return box(ans, None, x._runtime)
    made = new_node(prim, 1, node, None, node.level, node.top)
    keep = prim.keep_x
    if keep & 1:
        made.kept_first = keep_value(x._value, True) if x._borrowed else x._value
    if keep & 4:
        made.ans = ans
    if layout.same(ans, x._value):
        made.plain = True
    else:
        made.like_first = like_of(x)
        made.like = new_like(ans.shape, ans.dtype)
    return box(ans, made, x._runtime)


def binary(prim, x, y):
    """Apply an elementwise primitive of two operands, at least one of them tracked."""
    if x is y and prim.same_operand is not None:
        return unary(prim.same_operand, x)
    runtime = None
    xn = yn = None
    x_borrowed = y_borrowed = True
    if isinstance(x, Tracked):
        tx = x
        xv = tx._value
        xn = tx._node
        runtime = tx._runtime
        x_borrowed = tx._borrowed
    else:
        xv = x
    if isinstance(y, Tracked):
        ty = y
        yv = ty._value
        yn = ty._node
        y_borrowed = ty._borrowed
        if ty._runtime is not runtime:
            runtime = join(runtime, ty._runtime)
    else:
        yv = y
    if runtime is not None and runtime.closed:
        check_open(runtime)
    loop = prim.loop
    ans = loop.call2(xv, yv)
    if (xn is None and yn is None) or (grad_mode.off and not grad_mode.enabled()):
        return box(ans, None, runtime)
    if yn is None:
        keep = prim.keep_x
        made = new_node(prim, 2, xn, None, xn.level, xn.top)
        made.plain = layout.same(ans, xv)
    elif xn is None:
        keep = prim.keep_y
        made = new_node(prim, 2, None, yn, yn.level, yn.top)
        made.plain = layout.same(ans, yv)
    else:
        keep = prim.keep_both
        made = new_node(prim, 2, xn, yn, min(xn.level, yn.level), max(xn.top, yn.top))
        made.plain = layout.same(ans, xv) and layout.same(ans, yv)
    if keep & 1:
        made.kept_first = keep_value(xv, True) if x_borrowed else xv
    if keep & 2:
        made.kept_second = keep_value(yv, True) if y_borrowed else yv
    if keep & 4:
        made.ans = ans
    if not made.plain:
        made.like_first = None if xn is None else like_of(x)
        made.like_second = None if yn is None else like_of(y)
        made.like = new_like(ans.shape, ans.dtype)
    return box(ans, made, runtime)


def apply(prim, args, params):
    """Apply any primitive; records it where an operand is tracked and grad mode is on.

    Operands that are neither tracked nor Python numbers become arrays here, so that what a node
    keeps can be protected.
    """
    if prim.defaults:
        params = {**prim.defaults, **params}
    if prim.scatter:
        return read(args[0], params["index"])
    if prim.loop is not None and prim.partials is not None:
        if len(args) == 1:
            return unary(prim, args[0])
        return binary(prim, as_operand(args[0]), as_operand(args[1]))
    if len(args) == 1:
        return apply_one(prim, args[0], params)
    runtime = None
    values = []
    parents = []
    borrowed = []
    likes = []
    level = NO_LEVEL
    top = 0
    for a in args:
        if isinstance(a, Tracked):
            x = a
            values.append(x._value)
            borrowed.append(x._borrowed)
            likes.append(like_of(x))
            node = x._node
            parents.append(node)
            if node is not None:
                level = min(level, node.level)
                top = max(top, node.top)
            if x._runtime is not runtime:
                runtime = join(runtime, x._runtime)
        else:
            a = as_operand(a)
            values.append(a)
            borrowed.append(True)
            likes.append(new_like(np.shape(a), getattr(a, "dtype", None)))
            parents.append(None)
    check_open(runtime)
    ans = as_ndarray(prim.forward(*values, **params))
    if level == NO_LEVEL or (grad_mode.off and not grad_mode.enabled()):
        return box(ans, None, runtime)
    made = new_node(prim, len(parents), parents[0], parents[1], level, top)
    made.like_first = likes[0]
    made.like_second = likes[1]
    if len(parents) > 2:
        made.rest = tuple(parents[2:])
        made.like_rest = tuple(likes[2:])
    if prim.variadic is None:
        keep_operands(prim, made, values, borrowed, ans)
    elif prim.keeps_all():
        keep_places(made, range(len(values)), values, borrowed)
    if prim.partials is not None:
        made.like = new_like(ans.shape, ans.dtype)
    made.params = keep_params(params)
    t = box(ans, made, runtime)
    t._borrowed = prim.view and borrowed[0]
    return t


def apply_one(prim, x, params):
    """`apply` to a single operand."""
    if x._runtime is not None and x._runtime.closed:
        check_open(x._runtime)
    ans = prim.forward(x._value, **params) if params else prim.forward(x._value)
    if type(ans) is not ndarray:
        ans = as_ndarray(ans)
    node = x._node
    if node is None or (grad_mode.off and not grad_mode.enabled()):
        t = box(ans, None, x._runtime)
    else:
        made = new_node(prim, 1, node, None, node.level, node.top)
        needs = prim.cached_needs.get(0) or prim.needs(0)
        if needs[0]:
            made.kept_first = keep_value(x._value, x._borrowed)
        if needs[1]:
            made.ans = ans
        made.like_first = like_of(x)
        if params:
            made.params = keep_params(params)
        if prim.partials is not None:
            made.like = new_like(ans.shape, ans.dtype)
        t = box(ans, made, x._runtime)
    # a forward may give its operand back without being declared a view, as conjugate does a real one
    t._borrowed = x._borrowed and (prim.view or np.may_share_memory(ans, x._value))
    return t


def as_ndarray(ans):
    """What a forward returned, as an array: NumPy gives a scalar for rank 0."""
    return ans if type(ans) is ndarray else np.asarray(ans)


def keep_params(params):
    """Parameters that later writes to the user's arrays do not change."""
    for value in params.values():
        if isinstance(value, (np.ndarray, list)):
            return {name: frozen_param(value) for name, value in params.items()}
    return params


def frozen_param(value):
    return copy.deepcopy(value) if isinstance(value, list) else keep_value(value, True)


def keep_operands(prim, node, values, borrowed, ans):
    """Keep what the rules of the tracked operands use."""
    used = set()
    for i in range(node.count):
        if node.parent(i) is None:
            continue
        places, needs_ans = prim.needs(i)
        if needs_ans:
            node.ans = ans
        used.update(places)
    keep_places(node, used, values, borrowed)


def keep_places(node, places, values, borrowed):
    kept = [None] * len(values)
    for place in places:
        kept[place] = keep_value(values[place], borrowed[place])
    node.kept_first = kept[0]
    node.kept_second = kept[1]
    if len(kept) > 2:
        node.kept_rest = tuple(kept[2:])


def as_operand(a):
    """A plain operand as a Python number or an array."""
    if isinstance(a, (Tracked, np.ndarray, float, int, complex, np.generic)):
        return a
    if type(a).__module__ == "builtins":
        reject_nested(a)
        return np.asarray(a)
    if hasattr(a, "__array__"):
        return np.asarray(a)
    raise TypeError(f"an operand of type {type(a).__name__} is neither a number, an array nor an EagerTensor")


def reject_nested(a):
    """A list with tracked values in it is the namespace's business, never silently converted."""
    if isinstance(a, (list, tuple)):
        for item in a:
            if isinstance(item, Tracked):
                raise TracedConversionError(
                    given="a list that holds tracked values", op="array conversion",
                    remedy="build it with tenferro.numpy.array(...) or stack(...)",
                )  # fmt: skip
            reject_nested(item)


def read(x, index):
    """Apply indexing, with a short way for one integer into a vector."""
    if type(index) is int and x._value.ndim == 1:
        if x._runtime is not None and x._runtime.closed:
            check_open(x._runtime)
        ans = layout.item(x._value, index)
        node = x._node
        if node is None or (grad_mode.off and not grad_mode.enabled()):
            return box(ans, None, x._runtime)
        made = new_node(registry["index"], 1, node, None, node.level, node.top)
        made.params = index
        made.like_first = like_of(x)
        return box(ans, made, x._runtime)
    if type(index) is not slice or not plain_slice(index):
        index = frozen_index(index)
    if x._runtime is not None and x._runtime.closed:
        check_open(x._runtime)
    ans = x._value[index]
    if type(ans) is not ndarray:
        ans = np.asarray(ans)
    node = x._node
    if node is None or (grad_mode.off and not grad_mode.enabled()):
        t = box(ans, None, x._runtime)
    else:
        made = new_node(registry["index"], 1, node, None, node.level, node.top)
        made.params = index
        made.like_first = like_of(x)
        t = box(ans, made, x._runtime)
    t._borrowed = x._borrowed
    return t


def frozen_index(index):
    """An index that later writes to the user's arrays do not change."""
    if isinstance(index, tuple):
        return tuple([frozen_index(i) for i in index])
    if isinstance(index, Tracked):
        index = index._value
    if isinstance(index, np.ndarray):
        return index.copy()
    if isinstance(index, list):
        reject_nested(index)
        return np.array(index, dtype=None if index else np.intp)
    if isinstance(index, slice):
        return slice(*[None if i is None else operator.index(i) for i in slice_parts(index)])
    if index is None or index is Ellipsis or isinstance(index, (int, np.generic)):
        return index
    # an integer or an array in the eyes of NumPy, whose values the object may change
    return operator.index(index) if hasattr(index, "__index__") else np.array(index)


def plain_slice(index):
    """Whether a slice consists of Python integers, which nobody can change."""
    for i in slice_parts(index):
        if i is not None and type(i) is not int:
            return False
    return True


def slice_parts(index):
    return index.start, index.stop, index.step
