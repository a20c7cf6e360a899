"""What a backward pass gives: GradientValue, ValueGuard and Gradients."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from .errors import RuntimeStateError
from .ids import id_of
from .tensor import Tensor, TensorRead, as_slice, described, read_only

__all__ = ["GradientValue", "Gradients", "ValueGuard"]


class Alive(Protocol):
    """Whatever says that the values made under it may no longer be read: a runtime."""

    closed: bool


def check_open(alive: Alive | None) -> None:
    """Refuse to read what a closed runtime left behind."""
    if alive is not None and alive.closed:
        raise RuntimeStateError(
            given="a value of a closed runtime",
            expected="an open runtime",
            remedy="read values, or copy them with to_tensor(), before close()",
        )


class ValueGuard:
    """A context manager over a read-only view of a tensor's or gradient's values.

    ``value()`` makes it, open; the end of its with block releases it (and so does dropping it), after
    which any use is `RuntimeStateError`.  While it is open nothing writes the buffer.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> x = tn.tensor([2.0, 3.0], requires_grad=True)
    >>> _ = (x * x).sum().backward()
    >>> with x.grad.value() as view:
    ...     view.as_slice(np.float64).tolist()
    [4.0, 6.0]
    """

    __slots__ = ("__weakref__", "_alive", "_array")

    def __init__(self, array: np.ndarray, alive: Alive | None = None) -> None:
        self._array: np.ndarray | None = array
        self._alive = alive

    def __enter__(self) -> ValueGuard:
        self._open()
        return self

    def __exit__(self, *exc: object) -> None:
        self._array = None

    def _open(self) -> np.ndarray:
        array = self._array
        if array is None:
            raise RuntimeStateError(
                given="a guard that was released",
                expected="a guard within its with block",
                remedy="call value() again, or keep a copy with to_tensor()",
            )
        check_open(self._alive)
        return array

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self._open().dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._open().shape

    def as_array(self) -> np.ndarray:
        """The values as a read-only array, without a copy."""
        return read_only(self._open())

    def as_slice(self, dtype: DTypeLike) -> np.ndarray:
        """The elements as a flat read-only array in memory order: see `GradientValue.as_slice`."""
        return as_slice(self._open(), dtype, "to_tensor()")

    def __repr__(self) -> str:
        array = self._array
        if array is None:
            return "ValueGuard(released)"
        return f"ValueGuard(shape={array.shape}, dtype={array.dtype})"

    def __reduce__(self) -> Any:
        raise TypeError("a ValueGuard cannot be copied or pickled: it is a loan; use to_tensor() for a copy")


def _operator(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """``self op other``, as NumPy computes it on the plain values."""

    def method(self: Any, other: Any) -> Any:
        if getattr(type(other), "__array_ufunc__", method) is None:
            return NotImplemented
        return ufunc(self.numpy(), other)

    return method


def _reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """``other op self``."""

    def method(self: Any, other: Any) -> Any:
        return ufunc(other, self.numpy())

    return method


class GradientValue:
    """A retained gradient: a read-only snapshot that no later pass changes.

    It is the value of a tensor's ``grad`` and of `Gradients`.  NumPy functions take it as an array, and
    arithmetic gives plain arrays.  After its runtime was closed the values cannot be read any more.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> x = tn.tensor([2.0, 3.0], requires_grad=True)
    >>> _ = (x * x).sum().backward()
    >>> x.grad
    GradientValue([4., 6.], shape=(2,), dtype=float64)
    >>> x.grad / 2
    array([2., 3.])
    """

    __slots__ = ("__weakref__", "_alive", "_array", "_guards")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray, alive: Alive | None = None) -> None:
        # the engine hands over arrays that it never writes again; a rank-0 sum comes as a scalar
        self._array: np.ndarray = array if type(array) is np.ndarray else np.asarray(array)
        self._alive = alive
        self._guards: weakref.WeakSet[ValueGuard] | None = None

    # -------------------------------------------------------------- inspecting

    @property
    def dtype(self) -> np.dtype:
        """The dtype: that of the tensor whose gradient it is."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape: that of the tensor whose gradient it is."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        if self._alive is not None and self._alive.closed:
            return f"GradientValue(closed, shape={self.shape}, dtype={self.dtype})"
        return described("GradientValue", self._array)

    # ----------------------------------------------------------------- reading

    def value(self) -> ValueGuard:
        """A context manager over a read-only view of the values.

        Raises
        ------
        RuntimeStateError
            The runtime was closed.
        """
        check_open(self._alive)
        guard = ValueGuard(self._array, self._alive)
        with _loans_lock:
            self._loans().add(guard)
        return guard

    def tensor_read(self) -> TensorRead:
        """A read target that does not fix the dtype: buffer protocol, ``__array__``, DLPack; read-only.

        Raises
        ------
        RuntimeStateError
            The runtime was closed.
        """
        check_open(self._alive)
        return TensorRead(self._array, self._alive)

    def numpy(self) -> np.ndarray:
        """The values as a read-only array, without a copy."""
        check_open(self._alive)
        return read_only(self._array)

    def as_slice(self, dtype: DTypeLike) -> np.ndarray:
        """The elements as a flat read-only array in memory order, without a copy.

        Parameters
        ----------
        dtype : dtype_like
            The gradient's dtype: a check, not a conversion.

        Returns
        -------
        numpy.ndarray, shape (size,)

        Raises
        ------
        DTypeMismatchError
            ``dtype`` is not the gradient's.
        HostAccessError
            The elements are not one compact block of memory.
        RuntimeStateError
            The runtime was closed.
        """
        check_open(self._alive)
        return as_slice(self._array, dtype, "to_tensor()")

    def to_tensor(self) -> Tensor:
        """An independent copy, compact and writable, in the same memory order.

        Raises
        ------
        RuntimeStateError
            The runtime was closed.
        """
        check_open(self._alive)
        return Tensor.from_numpy(self._array)

    def item(self) -> Any:
        """The only element as a Python number."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        return self.numpy().tolist()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    # -------------------------------------------------------------- arithmetic
    # no in-place operators: Python then binds the name to the plain result

    __add__, __radd__ = _operator(np.add), _reflected(np.add)
    __sub__, __rsub__ = _operator(np.subtract), _reflected(np.subtract)
    __mul__, __rmul__ = _operator(np.multiply), _reflected(np.multiply)
    __truediv__, __rtruediv__ = _operator(np.true_divide), _reflected(np.true_divide)
    __floordiv__, __rfloordiv__ = _operator(np.floor_divide), _reflected(np.floor_divide)
    __mod__, __rmod__ = _operator(np.remainder), _reflected(np.remainder)
    __pow__, __rpow__ = _operator(np.power), _reflected(np.power)
    __matmul__, __rmatmul__ = _operator(np.matmul), _reflected(np.matmul)
    __eq__, __ne__ = _operator(np.equal), _operator(np.not_equal)
    __lt__, __le__ = _operator(np.less), _operator(np.less_equal)
    __gt__, __ge__ = _operator(np.greater), _operator(np.greater_equal)

    def __neg__(self) -> Any:
        return -self.numpy()

    def __pos__(self) -> Any:
        return +self.numpy()

    def __abs__(self) -> Any:
        return abs(self.numpy())

    # ----------------------------------------------------------------- copying

    def clone(self) -> GradientValue:
        """Another handle on the same values; no copy is needed, as they never change."""
        twin = type(self)(self._array, self._alive)
        twin._guards = self._loans()
        return twin

    def __copy__(self) -> GradientValue:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> GradientValue:
        return self.clone()

    def __reduce__(self) -> Any:
        # a runtime does not travel: the copy in another process belongs to none
        check_open(self._alive)
        return type(self), (self._array,)

    # ---------------------------------------------------------------- internals

    def _loans(self) -> weakref.WeakSet[ValueGuard]:
        """The guards that were made over these values and still exist, shared by all clones."""
        with _loans_lock:
            if self._guards is None:
                self._guards = weakref.WeakSet()
            return self._guards

    def _borrowed(self) -> bool:
        """Whether a guard over these values is open."""
        if self._guards is None:
            return False
        with _loans_lock:
            return any(guard._array is not None for guard in self._guards)


# re-entrant, as a finalizer may come back while it is held
_loans_lock = threading.RLock()


class Gradients(Mapping[Any, GradientValue]):
    """The gradients of one backward pass: a read-only mapping from tensor (or id) to GradientValue.

    Examples
    --------
    >>> import tenferro as tn
    >>> x = tn.tensor([2.0, 3.0], requires_grad=True)
    >>> gradients = (x * x).sum().backward()
    >>> gradients[x].tolist(), x.id in gradients, len(gradients)
    ([4.0, 6.0], True, 1)
    """

    __slots__ = ("__weakref__", "_values")

    def __init__(self, values: dict[Any, GradientValue]) -> None:
        # taken over, not copied
        self._values = values

    def __getitem__(self, tensor: Any) -> GradientValue:
        key = id_of(tensor)
        try:
            return self._values[key]
        except KeyError:
            raise KeyError(
                f"no gradient for {key!r}: the result does not depend on it, it is neither a leaf nor under "
                "retain_grad(), or it was taken out; grad(tensor) gives None there"
            ) from None

    def get(self, tensor: Any, default: Any = None) -> Any:
        """The gradient of a tensor or id; None (or ``default``) where there is none."""
        return self._values.get(id_of(tensor), default)

    def grad(self, tensor: Any) -> GradientValue | None:
        """The gradient of a tensor or id; None where there is none."""
        return self._values.get(id_of(tensor))

    def take_grad(self, tensor: Any) -> GradientValue | None:
        """Move a gradient out: it is returned, and no longer here.

        Parameters
        ----------
        tensor : EagerTensor or hashable

        Returns
        -------
        GradientValue or None
            None where there is none.

        Raises
        ------
        RuntimeStateError
            It is borrowed: a guard that its ``value()`` made is open.
        """
        key = id_of(tensor)
        found = self._values.get(key)
        if found is not None and found._borrowed():
            raise RuntimeStateError(
                given=f"the gradient of {key!r}, which an open value() guard borrows",
                expected="a gradient that nobody borrows",
                op="take_grad",
                remedy="leave the guard's with block first, or read it with grad(tensor)",
            )
        return self._values.pop(key, None)

    def is_empty(self) -> bool:
        """Whether there is no gradient at all."""
        return not self._values

    def __contains__(self, tensor: object) -> bool:
        return id_of(tensor) in self._values

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __copy__(self) -> Gradients:
        return type(self)(dict(self._values))

    # equality of all gradients would be ambiguous, as that of arrays is
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Gradients({self._values!r})"
