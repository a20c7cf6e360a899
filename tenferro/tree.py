"""Nested containers: arguments and results as flat lists of leaves, and back.

Tuples, lists, dicts, named tuples, dataclasses and registered types are containers; None stays
None; whatever else is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .errors import InvalidArgumentError

_registered: dict[type, tuple[Callable, Callable]] = {}


def register_container(cls: type, flatten: Callable, unflatten: Callable) -> None:
    """Let arguments and results of the transforms be of a container type of your own.

    Parameters
    ----------
    cls : type
    flatten : callable
        From an object of ``cls`` to (children, aux): a sequence, and whatever else it takes to
        make the object again.
    unflatten : callable
        From (aux, children) to an object of ``cls``.

    Raises
    ------
    InvalidArgumentError
        ``cls`` is not a class, or a container already.

    Examples
    --------
    >>> import tenferro as tn
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> tn.register_container(Pair, lambda p: ((p.a, p.b), None), lambda aux, ab: Pair(*ab))
    >>> g = tn.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0))
    >>> float(g.a), float(g.b)
    (3.0, 2.0)
    """
    if not isinstance(cls, type) or cls in (tuple, list, dict) or cls in _registered:
        raise InvalidArgumentError(
            given=f"{cls!r}",
            expected="a class that is not a container yet",
            remedy="register each class once",
        )
    _registered[cls] = (flatten, unflatten)


def split(x: Any) -> tuple[list, Callable[[list], Any]] | None:
    """A container's children and how to make it again of others; None for a leaf."""
    cls = type(x)
    if cls is tuple:
        return list(x), tuple
    if cls is list:
        return x, list
    if cls is dict:
        keys = list(x)
        return [x[k] for k in keys], lambda values: dict(zip(keys, values, strict=True))
    if isinstance(x, tuple) and hasattr(cls, "_make"):
        return list(x), cls._make
    if cls in _registered:
        flatten, unflatten = _registered[cls]
        children, aux = flatten(x)
        return list(children), lambda values: unflatten(aux, values)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = [field.name for field in dataclasses.fields(x) if field.init]
        return (
            [getattr(x, name) for name in names],
            lambda values: dataclasses.replace(x, **dict(zip(names, values, strict=True))),
        )
    return None


def map_leaves(fn: Callable[[Any], Any], x: Any) -> Any:
    """``fn`` of every leaf, in the same structure."""
    if x is None:
        return None
    parts = split(x)
    if parts is None:
        return fn(x)
    children, rebuild = parts
    return rebuild([map_leaves(fn, child) for child in children])


def leaves_of(x: Any) -> list:
    """The leaves from left to right; None is none."""
    found: list = []
    map_leaves(found.append, x)
    return found


def same_structure(x: Any, y: Any) -> bool:
    """Whether two nests differ in nothing but their leaves."""
    if x is None or y is None:
        return x is y
    a, b = split(x), split(y)
    if a is None or b is None:
        return a is b
    if type(x) is not type(y) or len(a[0]) != len(b[0]) or (type(x) is dict and list(x) != list(y)):
        return False
    return all(same_structure(p, q) for p, q in zip(a[0], b[0], strict=True))
