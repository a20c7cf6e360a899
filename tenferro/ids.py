"""Tensor ids: names for tensors that are never used twice, in this process or another."""

from __future__ import annotations

import itertools
import os
from typing import Any, NoReturn

from .errors import InvalidArgumentError


class TensorId:
    """An opaque, hashable, immutable name of one tensor.

    Every process, a forked child included, mints its own, so ids of two processes are never equal;
    a pickled id is still equal to the original.  Get one from `new_tensor_id` or a tensor's ``id``.

    Examples
    --------
    >>> from tenferro.ids import new_tensor_id
    >>> a, b = new_tensor_id(), new_tensor_id()
    >>> a == b, a == a, len({a, b})
    (False, True, 2)
    """

    __slots__ = ("_key",)
    _key: tuple[int, int]

    def __init__(self, process: int, number: int) -> None:
        _set_key(self, (process, number))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorId) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        process, number = self._key
        return f"TensorId({process & 0xFFFFFF:06x}:{number})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a TensorId does not change; {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a TensorId does not change; {name!r} cannot be deleted")

    def __copy__(self) -> TensorId:
        return self

    def __deepcopy__(self, memo: dict) -> TensorId:
        return self

    def __reduce__(self) -> Any:
        return TensorId, self._key


# the slot itself, as the class refuses assignment
_set_key = TensorId._key.__set__  # type: ignore[attr-defined,misc]


class _Mint:
    """A process's source of ids: random, so that a process id that the system reuses is no problem."""

    __slots__ = ("next", "process")

    def __init__(self) -> None:
        self.process = int.from_bytes(os.urandom(12), "little")
        self.next = itertools.count(1).__next__


_mint = _Mint()


def _renew() -> None:
    global _mint
    _mint = _Mint()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def new_tensor_id() -> TensorId:
    """Mint an id that no other tensor has, or had, in any process.

    Returns
    -------
    TensorId
    """
    mint = _mint
    return TensorId(mint.process, mint.next())


def id_of(key: Any) -> Any:
    """The id that a key stands for: a tensor's own id, and otherwise the key itself.

    Parameters
    ----------
    key : EagerTensor, TensorId or hashable

    Returns
    -------
    hashable

    Raises
    ------
    InvalidArgumentError
        ``key`` is neither a tensor with an id nor hashable.
    """
    kind = type(key)
    if kind is TensorId or kind is str:
        return key
    # an id of the user's own may well have an attribute `id`; a tensor has these too
    if hasattr(key, "id") and hasattr(key, "dtype") and hasattr(key, "shape"):
        return key.id
    try:
        hash(key)
    except TypeError:
        raise InvalidArgumentError(
            given=f"a key of type {kind.__name__}, which is not hashable",
            expected="a tensor or an id",
            remedy="pass the EagerTensor, its id, or a name that you chose",
        ) from None
    return key
