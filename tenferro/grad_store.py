"""GradStore: gradients by tensor id."""

from __future__ import annotations

import threading
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._kernels import accumulate
from .dtypes import DIFFERENTIABLE, check_differentiable
from .errors import DTypeMismatchError, InvalidArgumentError, RuntimeStateError, ShapeMismatchError
from .ids import id_of
from .tensor import plain_array, read_only

__all__ = ["GradStore"]

AddFn = Callable[[np.ndarray, np.ndarray], ArrayLike]


class GradStore(Mapping[Any, np.ndarray]):
    """Gradients by tensor id, in the order in which they were first stored.

    A key is an id (a tensor's, or any hashable that you choose); a tensor is accepted for its id.
    What goes in is copied.  What comes out is a read-only array that no later call changes.

    Notes
    -----
    Every method may be called from several threads: each takes effect as a whole, and no contribution
    is lost.  A method that raises leaves the store as it was.  An ``add_fn`` runs while other threads
    wait; it may use the store, but for a write to the gradient that it is adding to, which is a
    `RuntimeStateError`.

    Gradients are float32, float64, complex64 or complex128, of native byte order (a foreign one is
    converted); an integer scalar is taken as float64.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> store = tn.GradStore()
    >>> store.accumulate("w", np.array([1.0, 2.0]))
    >>> store.accumulate("w", np.array([10.0, 20.0]))
    >>> store["w"]
    array([11., 22.])
    >>> store.get("b") is None
    True
    """

    __slots__ = ("__weakref__", "_busy", "_grads", "_lock", "_owned")

    def __init__(self) -> None:
        # re-entrant: an add_fn, a key's __hash__ or a finalizer may come back to the store
        self._lock = threading.RLock()
        self._grads: dict[Any, np.ndarray] = {}
        # ids whose buffer nobody has seen, so that it may be added to in place
        self._owned: set[Any] = set()
        # ids whose add_fn is running
        self._busy: set[Any] = set()

    # ----------------------------------------------------------------- reading

    def get(self, id: Any, default: Any = None) -> Any:
        """The gradient of a tensor or id; None (or ``default``) where there is none."""
        key = id_of(id)
        with self._lock:
            found = self._grads.get(key)
            if found is None:
                return default
            self._owned.discard(key)
            return read_only(found)

    def __getitem__(self, id: Any) -> np.ndarray:
        found = self.get(id)
        if found is None:
            raise KeyError(f"no gradient under {id_of(id)!r}; get(id) gives None where there is none")
        return found

    def contains(self, id: Any) -> bool:
        """Whether there is a gradient for a tensor or id."""
        key = id_of(id)
        with self._lock:
            return key in self._grads

    def __contains__(self, id: object) -> bool:
        return self.contains(id)

    def __len__(self) -> int:
        return len(self._grads)

    def is_empty(self) -> bool:
        """Whether there is no gradient at all."""
        return not self._grads

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def keys(self) -> KeysView[Any]:
        """The ids as they are now, in insertion order."""
        with self._lock:
            return dict.fromkeys(self._grads).keys()

    def items(self) -> ItemsView[Any, np.ndarray]:
        """The ids and gradients as they are now, in insertion order."""
        return self._views().items()

    def values(self) -> ValuesView[np.ndarray]:
        """The gradients as they are now, in insertion order."""
        return self._views().values()

    # equality of all gradients would be ambiguous, as that of arrays is
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        with self._lock:
            shown = ", ".join(f"{id!r}: {g.dtype}{list(g.shape)}" for id, g in self._grads.items())
        return f"GradStore({{{shown}}})"

    # ----------------------------------------------------------------- writing

    def insert(self, id: Any, grad: ArrayLike) -> None:
        """Store a copy of a gradient, in place of any that was there.

        Parameters
        ----------
        id : EagerTensor or hashable
        grad : array_like
            float32, float64, complex64 or complex128, of any shape and memory order.

        Raises
        ------
        UnsupportedDTypeError
            ``grad`` is of another dtype.
        """
        key = id_of(id)
        private = np.array(gradient(grad, "grad"), order="K")
        with self._lock:
            self._check_idle(key)
            self._owned.discard(key)
            self._grads[key] = private
            self._owned.add(key)

    def accumulate_or_insert(self, id: Any, grad: ArrayLike) -> None:
        """Store a gradient, in place of any that was there: `insert` under its original's name."""
        self.insert(id, grad)

    def accumulate(self, id: Any, grad: ArrayLike, add_fn: AddFn | None = None) -> None:
        """Add a contribution to a gradient, or store it where there is none yet.

        Parameters
        ----------
        id : EagerTensor or hashable
        grad : array_like
            float32, float64, complex64 or complex128.
        add_fn : callable, optional
            ``add_fn(existing, grad)`` is stored where a gradient is there; it is called once.  Without
            it the two are added as NumPy adds arrays, in place where that is possible.

        Raises
        ------
        ShapeMismatchError
            The shapes cannot be added.
        UnsupportedDTypeError
            ``grad``, or what ``add_fn`` returned, is of another dtype.
        RuntimeStateError
            An ``add_fn`` of the same gradient is running and called this.

        Examples
        --------
        >>> import numpy as np
        >>> import tenferro as tn
        >>> store = tn.GradStore()
        >>> for g in (3.0, 5.0, 4.0):
        ...     store.accumulate("largest", g, add_fn=np.maximum)
        >>> store["largest"]
        array(5.)
        """
        self._accumulate(id, grad, add_fn, checked=False)

    def try_accumulate(self, id: Any, grad: ArrayLike, add_fn: AddFn | None = None) -> None:
        """`accumulate`, but refuse a sum of another shape or dtype than the gradient that is there.

        Parameters
        ----------
        id, grad, add_fn
            As for `accumulate`.  Without ``add_fn``, ``grad`` must have the gradient's own shape:
            nothing is broadcast.

        Raises
        ------
        ShapeMismatchError, DTypeMismatchError
            The sum would have another shape or dtype.
        UnsupportedDTypeError, RuntimeStateError
            As for `accumulate`.
        """
        self._accumulate(id, grad, add_fn, checked=True)

    def _accumulate(self, id: Any, grad: ArrayLike, add_fn: AddFn | None, checked: bool) -> None:
        key = id_of(id)
        new = gradient(grad, "grad")
        if add_fn is not None and not callable(add_fn):
            raise InvalidArgumentError(
                given=f"add_fn of type {type(add_fn).__name__}",
                expected="a function of the existing gradient and the new one",
                remedy="pass a callable, or nothing for a sum",
            )
        with self._lock:
            self._check_idle(key)
            existing = self._grads.get(key)
            if existing is None:
                total = np.array(new, order="K")
            elif add_fn is not None:
                total = self._combined(key, existing, new, add_fn, checked)
            else:
                if checked:
                    check_like(new, existing)
                total = self._sum(key, existing, new)
            self._grads[key] = total
            self._owned.add(key)

    def _combined(
        self, key: Any, existing: np.ndarray, new: np.ndarray, add_fn: AddFn, checked: bool
    ) -> np.ndarray:
        """A private copy of what a user's function makes of two gradients."""
        self._owned.discard(key)
        self._busy.add(key)
        try:
            total = gradient(add_fn(read_only(existing), new), "the result of add_fn")
        finally:
            self._busy.discard(key)
        if checked:
            check_like(total, existing, "the result of add_fn")
        return np.array(total, order="K")

    def _sum(self, key: Any, existing: np.ndarray, new: np.ndarray) -> np.ndarray:
        """The sum of two gradients, in the first one's buffer where nobody else has seen it."""
        if new.shape == existing.shape and keeps_dtype(existing, new):
            total = existing if key in self._owned else existing.copy(order="K")
            accumulate.add_into(total, new.astype(existing.dtype, copy=False))
            return total
        try:
            return np.asarray(np.add(existing, new))
        except ValueError:
            raise ShapeMismatchError(given=new.shape, expected=existing.shape, argument="grad") from None

    def merge(self, other: GradStore) -> None:
        """Add every gradient of another store to this one's, all of them or, on an error, none.

        Parameters
        ----------
        other : GradStore
            Not changed.

        Raises
        ------
        ShapeMismatchError, DTypeMismatchError
            Two gradients of one id do not go together, as in `try_accumulate`.
        InvalidArgumentError
            ``other`` is not a GradStore.

        Examples
        --------
        >>> import tenferro as tn
        >>> ours, theirs = tn.GradStore(), tn.GradStore()
        >>> ours.insert("w", [1.0, 2.0])
        >>> theirs.insert("w", [10.0, 20.0])
        >>> ours.merge(theirs)
        >>> ours["w"]
        array([11., 22.])
        """
        if not isinstance(other, GradStore):
            raise InvalidArgumentError(
                given=f"a {type(other).__name__}",
                expected="a GradStore",
                op="merge",
                remedy="insert what you have into a GradStore first",
            )
        # not under both locks, or two stores that merge each other could wait for ever
        theirs = other._shared()
        with self._lock:
            sums = {}
            for key, new in theirs.items():
                self._check_idle(key)
                existing = self._grads.get(key)
                if existing is not None:
                    check_like(new, existing)
                    sums[key] = existing.copy(order="K")
                    accumulate.add_into(sums[key], new.astype(existing.dtype, copy=False))
            self._grads.update(theirs | sums)
            self._owned.update(sums)

    def remove(self, id: Any) -> np.ndarray | None:
        """Take a gradient out and return it; None where there is none."""
        key = id_of(id)
        with self._lock:
            self._check_idle(key)
            self._owned.discard(key)
            found = self._grads.pop(key, None)
        return None if found is None else read_only(found)

    def clear(self) -> None:
        """Remove every gradient."""
        with self._lock:
            for key in self._busy:
                self._check_idle(key)
            self._owned.clear()
            self._grads.clear()

    # ----------------------------------------------------------------- copying

    def __copy__(self) -> GradStore:
        """An independent store of the same gradients; their memory is shared until one is added to."""
        twin = type(self)()
        twin._grads = self._shared()
        return twin

    def __deepcopy__(self, memo: dict) -> GradStore:
        # ids stay themselves, or the copy could not be asked by them
        return self.__copy__()

    def __getstate__(self) -> list[tuple[Any, np.ndarray]]:
        return list(self._shared().items())

    def __setstate__(self, state: list[tuple[Any, np.ndarray]]) -> None:
        GradStore.__init__(self)
        # copies, as a buffer that came out of band belongs to whoever sent it
        for key, grad in state:
            self.insert(key, grad)

    # ---------------------------------------------------------------- internals

    def _shared(self) -> dict[Any, np.ndarray]:
        """Ids and buffers; from here on every buffer is copied before it is added to."""
        with self._lock:
            self._owned.clear()
            return dict(self._grads)

    def _views(self) -> dict[Any, np.ndarray]:
        return {key: read_only(grad) for key, grad in self._shared().items()}

    def _check_idle(self, key: Any) -> None:
        # only the thread that runs the add_fn gets here: others wait for the lock
        if key in self._busy:
            raise RuntimeStateError(
                given=f"a write to the gradient of {key!r} within its own add_fn",
                expected="a store that is not adding to it",
                remedy="return the new gradient from add_fn, and do the rest after accumulate",
            )


def gradient(grad: Any, argument: str) -> np.ndarray:
    """A contribution as an array of a differentiable dtype; an integer scalar counts as float64."""
    if isinstance(grad, (int, np.integer)) and not isinstance(grad, bool):
        return np.array(grad, np.float64)
    if type(grad) is np.ndarray and grad.dtype in DIFFERENTIABLE:
        return grad
    array = plain_array(grad, argument)
    check_differentiable(array.dtype, argument=argument)
    return array


def keeps_dtype(existing: np.ndarray, new: np.ndarray) -> bool:
    """Whether the sum of two gradients has the first one's dtype."""
    return new.dtype == existing.dtype or np.result_type(existing, new) == existing.dtype


def check_like(new: np.ndarray, existing: np.ndarray, argument: str = "grad") -> None:
    """Refuse a sum that would not have the existing gradient's shape and dtype."""
    if new.shape != existing.shape:
        raise ShapeMismatchError(given=new.shape, expected=existing.shape, argument=argument)
    if not keeps_dtype(existing, new):
        raise DTypeMismatchError(given=new.dtype, expected=existing.dtype, argument=argument)
