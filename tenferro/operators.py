"""What EagerTensor's operators do: dispatch to a primitive, compare, rebind.

This module runs interpreted or compiled (`operators.pxd` has the types).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import TracedConversionError
from .primitive import registry
from .recording import Tracked, as_operand, binary

ndarray = np.ndarray


class Protocols:
    """What `protocols` fills in: how NumPy's two dispatch protocols reach the registry."""

    ufunc: Any = None
    function: Any = None
    methods: dict[str, Any] = {}  # noqa: RUF012


protocols = Protocols()


def method(name, *args, **kwargs):
    """The NumPy function of that name, over tracked operands."""
    return protocols.methods[name](*args, **kwargs)


def operator(prim, x, y):
    """A binary operator; NotImplemented where the other operand's class has its own say."""
    other = y if isinstance(x, Tracked) else x
    if isinstance(other, Tracked) or type(other) is float or type(other) is int or type(other) is ndarray:
        return binary(prim, x, y)
    if defers(other):
        return NotImplemented
    return binary(prim, as_operand(x), as_operand(y))


def defers(other):
    """Whether an operand's class defines the protocols itself, and so decides."""
    if isinstance(other, np.ndarray):
        return type(other).__array_ufunc__ is not np.ndarray.__array_ufunc__
    if isinstance(other, (Tracked, np.generic, int, float, complex, list, tuple)):
        return False
    return hasattr(type(other), "__array_ufunc__") or not hasattr(type(other), "__array__")


def compare(ufunc, x, y):
    """A comparison: a plain array, or a plain bool scalar for rank 0."""
    if isinstance(y, Tracked):
        y = y._value
    elif defers(y):
        return NotImplemented
    return ufunc(x._value, y)


def conversion(t, op):
    return TracedConversionError(
        given=f"a tensor of shape {t._value.shape}", op=op,
        remedy="t.item(), t.numpy() or t.detach() are the explicit ways out, and tenferro.numpy has "
        "functions for tracked values (array, stack, ...)",
    )  # fmt: skip


def in_place(t, name, other):
    """``t += other`` and the like: NumPy's in-place rules, as a rebinding of the handle."""
    made = operator(registry[name], t, other)
    if made is NotImplemented:
        return made
    if made._value.shape != t._value.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {t._value.shape} doesn't match the broadcast shape "
            f"{made._value.shape}"
        )
    if made._value.dtype != t._value.dtype:
        if not np.can_cast(made._value.dtype, t._value.dtype, "same_kind"):
            # NumPy's own casting error, from the same operation on nothing
            nothing = np.empty(0, t._value.dtype)
            getattr(np, name)(nothing, np.empty(0, made._value.dtype), out=nothing)
        made = registry["cast"](made, dtype=t._value.dtype)
    return become(t, made)


def become(t, made):
    """Give the handle another tensor's value and history, under a new id."""
    t._value = made._value
    t._node = made._node
    t._borrowed = made._borrowed
    t._like = None
    t._id = None
    t._slot = None
    return t
