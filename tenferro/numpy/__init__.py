"""NumPy's names, for tracked and plain values alike.

A function with a rule takes tracked values anywhere NumPy takes arrays; every other name is NumPy's
own.  Plain arguments give NumPy's own results.  `array` and `asarray` also build tracked arrays out
of nested lists of tracked values.

Examples
--------
>>> import tenferro as tn
>>> import tenferro.numpy as tnp
>>> tn.grad(lambda x: tnp.sum(tnp.array([x[1], x[0] * 3.0])))(tnp.array([1.0, 2.0]))
array([3., 1.])
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as _np

from ..primitive import functions as _functions
from ..protocols import is_function as _is_function
from ..recording import Tracked as _Tracked
from ..tree import leaves_of as _leaves_of


def _dispatching(original, ours):
    """A function that is NumPy's on plain arguments and ours where one is tracked."""

    @functools.wraps(original, updated=())
    def fn(*args, **kwargs):
        for a in args:
            if isinstance(a, _Tracked) or (
                isinstance(a, (list, tuple)) and any(isinstance(x, _Tracked) for x in _leaves_of(a))
            ):
                return ours(*args, **kwargs)
        return original(*args, **kwargs)

    return fn


def array(object: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """`numpy.array`, of nested lists that hold tracked values too."""
    if isinstance(object, _Tracked):
        return object if dtype is None else _functions[_np.astype](object, dtype)
    if not isinstance(object, (list, tuple)) or not any(isinstance(x, _Tracked) for x in _leaves_of(object)):
        return _np.array(object, dtype=dtype, **kwargs)
    parts = [array(x) for x in object]
    return _functions[_np.stack](parts, dtype=dtype)


def asarray(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """`numpy.asarray`, of nested lists that hold tracked values too."""
    if isinstance(a, _Tracked) or (
        isinstance(a, (list, tuple)) and any(isinstance(x, _Tracked) for x in _leaves_of(a))
    ):
        return array(a, dtype)
    return _np.asarray(a, dtype=dtype, **kwargs)


# vars() and not dir(): the latter's names include submodules that would be imported for nothing
for _name, _original in list(vars(_np).items()):
    if _is_function(_original):
        globals()[_name] = _dispatching(_original, _functions[_original])


def __getattr__(name: str) -> Any:
    return getattr(_np, name)


def __dir__() -> list[str]:
    return sorted({*dir(_np), "array", "asarray"})
