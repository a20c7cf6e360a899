"""The tape: nodes, what they keep, and the levels that keep nested derivatives apart.

Each transform takes a new, higher level for its leaves; a
node's ``level`` is the lowest and its ``top`` the highest level among the leaves it depends on.  So
a node matters to the transform of level L only if ``level <= L <= top``, and a derivative has to be
recorded in turn exactly when its output's ``level`` is below L: it depends on something outside.

This module runs interpreted or compiled (`tape.pxd` has the types); both give the same bits.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from types import FunctionType, SimpleNamespace

import numpy as np

from ._kernels import fingerprint
from .errors import MutatedError, RuntimeStateError, TracedConversionError

#: Arrays up to this many bytes are copied when they are kept; larger ones are fingerprinted.  In the
#: caches one copy is cheaper than two fingerprints, out of them it is dearer.
COPY_LIMIT = 262144

#: A level above every transform's: passes at it record whatever depends on a tracked value.
TOP_LEVEL = 1 << 60

ndarray = np.ndarray

_EMPTY = ("acc", "ans", "hooks", "kept_first", "kept_rest", "kept_second", "like", "like_first", "like_rest",
          "like_second", "params", "rest", "slot")  # fmt: skip


def find_error_state():
    """NumPy's context variable for floating-point errors, and its value under which none is reported.

    `numpy.errstate` is Python code, in which an interrupt could arrive and leave the thread silenced;
    `set` of the variable is one call.
    """
    before = contextvars.copy_context()
    with np.errstate(all="ignore"):
        quiet = contextvars.copy_context()
    changed = [var for var in quiet if before.get(var) is not quiet[var]]
    if len(changed) == 1:
        return changed[0], quiet[changed[0]]
    every = SimpleNamespace(get=np.geterr, set=lambda state: np.seterr(**state))
    return every, dict.fromkeys(np.geterr(), "ignore")


error_state, QUIET = find_error_state()
_next_level = itertools.count(1).__next__


def new_level():
    """A level higher than any before: the next transform's."""
    return _next_level()


#: Whether this module runs compiled.
COMPILED = not isinstance(new_level, FunctionType)


_depth = 0
_waiting: list = []


class Guarded:
    """A user's array that is kept by reference, with the fingerprint it had when it was used."""

    __slots__ = ("array", "mark")

    def __init__(self, array, mark):
        self.array = array
        self.mark = mark


class Node:
    """One recorded operation, or a leaf (``prim`` is None).

    ``first``, ``second`` and ``rest`` are the nodes of the operands (None for a constant); beside
    them lie what the rules use of the operands: their values (``kept_*``) and shapes (``like_*``).
    Two fields instead of a tuple keep the garbage collector's share of a long recording small.

    A leaf of a transform whose primal is itself tracked outside has that value's node as its only
    parent and stands for the identity.
    """

    __slots__ = (
        "acc", "ans", "count", "first", "freed", "hooks", "kept_first", "kept_rest", "kept_second", "level",
        "like", "like_first", "like_rest", "like_second", "params", "plain", "prim",
        "rest", "second", "slot", "top",
    )  # fmt: skip

    def __dealloc__(self):
        # Compiled only (CPython itself does the like for an interpreted class): a long chain must
        # not be taken down by recursion, so beyond some depth the rest waits in a list.
        global _depth
        _depth += 1
        if _depth < 100:
            self.first = None
            self.second = None
            self.rest = None
        else:
            _waiting.append((self.first, self.second, self.rest))
        if _depth == 1:
            # still counted: what these take down waits in turn, and does not come back to this loop
            while _waiting:
                _waiting.pop()
        _depth -= 1

    def parent(self, i):
        """The node of operand ``i``."""
        if i == 0:
            return self.first
        if i == 1:
            return self.second
        return self.rest[i - 2]

    def kept(self, i):
        """What is kept of operand ``i``'s value."""
        if i == 0:
            return self.kept_first
        if i == 1:
            return self.kept_second
        return self.kept_rest[i - 2]

    def like_of(self, i):
        """Operand ``i``'s shape and dtype."""
        if i == 0:
            return self.like_first
        if i == 1:
            return self.like_second
        return self.like_rest[i - 2]


class Context:
    """What the engine needs to know of a runtime: who it is and whether it still runs."""

    __slots__ = ("closed", "id")

    def __init__(self, id):
        self.id = id
        self.closed = False


class Slot:
    """Where a leaf (or an intermediate that asked) retains its gradient.

    The tensor's handles own it and the node only refers to it weakly, so a gradient that nobody
    can read any more is not kept.  ``total`` is never written once it has been handed out.
    """

    __slots__ = ("__weakref__", "id", "like", "runtime", "total")

    def __init__(self, id, like, runtime):
        self.id = id
        self.runtime = runtime
        self.like = like  # the tensor's own array, for its dtype and memory order
        self.total = None


class GradMode:
    """Whether operations are recorded, per thread.

    ``off`` counts the threads' open `no_grad` blocks, so that the usual question costs one look.
    """

    def __init__(self):
        self.off = 0
        self.lock = threading.Lock()
        self.local = threading.local()

    def enabled(self):
        """Whether this thread records."""
        return getattr(self.local, "enabled", True)

    def set(self, enabled):
        """Switch this thread; returns how it was."""
        before = getattr(self.local, "enabled", True)
        self.local.enabled = enabled
        with self.lock:
            self.off += before - enabled
        return before


grad_mode = GradMode()


def new_node(prim, count, first, second, level, top):
    """A node of ``count`` operands; ``rest`` is for the caller to fill in."""
    node = Node.__new__(Node)
    node.prim = prim
    node.count = count
    node.first = first
    node.second = second
    node.level = level
    node.top = top
    node.plain = False
    node.freed = False
    if not COMPILED:
        # a compiled node starts with None in all of these
        for name in _EMPTY:
            setattr(node, name, None)
    return node


def leaf(level, parent):
    """A leaf at ``level``, standing for ``parent``'s value where there is one."""
    if parent is None:
        return new_node(None, 0, None, None, level, level)
    return new_node(None, 1, parent, None, min(level, parent.level), max(level, parent.top))


def keep_value(value, borrowed):
    """What a node keeps of an operand: safe against later writes where its memory is borrowed."""
    if borrowed and isinstance(value, ndarray):
        if value.nbytes <= COPY_LIMIT:
            return value.copy(order="K")
        # a view: the user may still assign to the shape, strides or dtype of theirs
        return Guarded(value.view(), fingerprint.of(value))
    return value


def kept_value(kept, node, place):
    """The operand as it was when the operation ran; MutatedError where it has changed."""
    if type(kept) is Guarded:
        if not fingerprint.same(kept.array, kept.mark):
            raise MutatedError(op=node.prim.name, argument=place, shape=kept.array.shape)
        return kept.array
    return kept


def plain_copy(g):
    """What a hook returned, for a pass that is not itself differentiated."""
    if not hasattr(g, "_node"):
        return np.array(g)
    if g._node is None:
        return g._value
    raise TracedConversionError(
        given="a tracked value from a hook", expected="a plain gradient", op="backward pass",
        remedy="compute with t.numpy(), or return it in a pass that is itself differentiated (runtime.grad)",
    )  # fmt: skip


def freed_error():
    """For a pass that meets a released node."""
    return RuntimeStateError(
        given="a graph whose saved values were freed by another pass", expected="a live graph",
        remedy="pass retain_graph=True to the other backward(), or compute it again",
    )  # fmt: skip


def release(node):
    """Drop what a node keeps; it cannot be walked again."""
    node.freed = True
    node.count = 0
    node.first = None
    node.second = None
    node.rest = None
    node.kept_first = None
    node.kept_second = None
    node.kept_rest = None
    node.ans = None
    node.params = None
