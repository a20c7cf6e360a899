"""How NumPy's two dispatch protocols reach the registry.

A function with a rule is in `primitive.functions`; a constant one, listed here, is called on the
plain values; anything else that meets a tracked value is refused, never silently converted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import operators, ops
from .errors import InvalidArgumentError, NoRuleError, TracedConversionError
from .primitive import functions
from .recording import Tracked
from .tree import map_leaves

#: Functions whose result does not depend differentiably on an argument: plain in, plain out.
CONSTANT = """
    all allclose any argmax argmin argpartition argsort argwhere around array2string array_equal array_equiv
    array_repr array_str can_cast ceil common_type count_nonzero digitize empty_like equal fix flatnonzero
    floor floor_divide greater greater_equal isclose iscomplex iscomplexobj isfinite isfortran isin isinf
    isnan isneginf isposinf isreal isrealobj isscalar iterable less less_equal lexsort logical_and
    logical_not logical_or logical_xor may_share_memory min_scalar_type nanargmax nanargmin ndim nonzero
    not_equal ones_like result_type rint round searchsorted shape shares_memory signbit size spacing trunc
    zeros_like
""".split()

constants = {getattr(np, name) for name in CONSTANT}


def values(x: Any) -> Any:
    """Arguments with every tracked value replaced by its array."""
    return map_leaves(lambda a: a._value if isinstance(a, Tracked) else a, x)


def no_rule(name: str) -> NoRuleError:
    return NoRuleError(op=name)


def ufunc(self: Tracked, uf: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
    """``__array_ufunc__`` of a tracked value."""
    if any(operators.defers(x) for x in inputs):
        return NotImplemented
    out = kwargs.pop("out", None)
    if out is not None and any(o is not None for o in out):
        raise TracedConversionError(
            given=f"out= with a tracked operand of numpy.{uf.__name__}", op=f"numpy.{uf.__name__}",
            remedy="an array cannot hold a tracked value: use the result, or t.detach() for its values",
        )  # fmt: skip
    if uf in constants:
        return getattr(uf, method)(*values(inputs), **values(kwargs))
    if method == "reduce" and uf is np.add:
        kwargs.setdefault("axis", 0)
        return functions[np.sum](*inputs, **{k: v for k, v in kwargs.items() if v is not np._NoValue})
    function = functions.get(uf)
    if function is None or method != "__call__":
        raise no_rule(f"numpy.{uf.__name__}" + ("" if method == "__call__" else f".{method}"))
    if kwargs:
        inputs = cast_inputs(uf, inputs, kwargs)
    return function(*inputs)


def cast_inputs(uf: np.ufunc, inputs: tuple, kwargs: dict) -> tuple:
    """A ufunc's inputs under its keywords: ``dtype`` casts them, ``where`` is refused."""
    for keyword in ("where", "signature", "sig", "extobj", "axes", "axis", "axis"):
        if keyword in kwargs and kwargs[keyword] is not True:
            raise InvalidArgumentError(
                given=f"{keyword}= with a tracked operand of numpy.{uf.__name__}", expected=f"no {keyword}=",
                op=f"numpy.{uf.__name__}", remedy="use numpy.where(mask, a, b) on the result",
            )  # fmt: skip
    dtype = kwargs.get("dtype")
    if dtype is None:
        return inputs
    casting = kwargs.get("casting", "same_kind")
    for x in inputs:
        if hasattr(x, "dtype") and not np.can_cast(x.dtype, dtype, casting):
            uf(
                *[np.empty(0, x.dtype) for x in values(inputs)], dtype=dtype, casting=casting
            )  # NumPy's refusal
    return tuple(functions[np.astype](x, dtype) if hasattr(x, "dtype") else x for x in inputs)


def function(func: Any, types: tuple, args: tuple, kwargs: dict) -> Any:
    """``__array_function__`` of a tracked value."""
    ours = functions.get(func)
    if ours is not None:
        for cls in types:
            if foreign(cls):
                return NotImplemented
        return ours(*args, **kwargs)
    if func in constants:
        return func(*values(args), **values(kwargs))
    raise no_rule(f"{getattr(func, '__module__', 'numpy')}.{getattr(func, '__name__', func)}")


def foreign(cls: type) -> bool:
    """Whether a class among the arguments has its own ``__array_function__``."""
    return not issubclass(cls, Tracked) and cls.__array_function__ is not np.ndarray.__array_function__


def is_function(original: Any) -> bool:
    """Whether a NumPy attribute is a function that has a rule."""
    return callable(original) and original.__hash__ is not None and original in functions


operators.protocols.ufunc = ufunc
operators.protocols.function = function
operators.protocols.methods = {
    "abs": functions[np.abs],
    **{name: functions[original] for name, original in vars(np).items() if is_function(original)},
}
_ = ops  # imported for what it registers
