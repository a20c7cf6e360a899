"""Tensor: a host array without history; TensorRead: a read target that does not fix the dtype."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ._kernels import TensorRead
from .dtypes import kind_rank, native_dtype
from .errors import (
    DTypeMismatchError,
    HostAccessError,
    InvalidArgumentError,
    RankMismatchError,
    ShapeDataLengthMismatchError,
    UnsupportedDTypeError,
)

__all__ = ["Tensor", "TensorRead"]


class Tensor:
    """A host array of bools or numbers, without history.

    Make one with `from_vec_col_major`, `from_vec_row_major` or `from_numpy`.  It keeps the memory
    order of what it is made from.  NumPy functions take it as an array; ``==`` is elementwise, and so
    a tensor is not hashable.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> t = tn.Tensor.from_vec_col_major([2, 2], [1.0, 2.0, 3.0, 4.0])
    >>> t
    Tensor([[1., 3.],
            [2., 4.]], shape=(2, 2), dtype=float64)
    >>> t.as_slice(np.float64).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    __slots__ = ("_array",)
    __hash__ = None  # type: ignore[assignment]
    _array: np.ndarray

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "Tensor is made by Tensor.from_numpy(array), Tensor.from_vec_row_major(shape, data) or "
            "Tensor.from_vec_col_major(shape, data), not by calling the class"
        )

    # ------------------------------------------------------------------ making

    @classmethod
    def from_vec_col_major(
        cls, shape: int | Sequence[int], data: ArrayLike, dtype: DTypeLike | None = None
    ) -> Tensor:
        """A tensor of flat data in which the first axis varies fastest.

        Parameters
        ----------
        shape : int or sequence of int
            ``[]`` for rank 0, which holds one element.
        data : array_like, shape (n,)
            Bools or numbers; copied.
        dtype : dtype_like, optional
            Where it is not the data's own; at least as wide a kind (bool, integer, real, complex).

        Returns
        -------
        Tensor
            In column-major order.

        Raises
        ------
        InvalidArgumentError
            ``shape`` is not a shape.
        RankMismatchError
            ``data`` is not flat.
        ShapeDataLengthMismatchError
            The length of ``data`` is not the product of ``shape``.
        DTypeMismatchError
            ``dtype`` is of a narrower kind than the data.
        UnsupportedDTypeError
            The data, or ``dtype``, are not bools or numbers.

        Examples
        --------
        >>> import tenferro as tn
        >>> tn.Tensor.from_vec_col_major([2, 2], [1, 2, 3, 4], dtype=float).numpy()
        array([[1., 3.],
               [2., 4.]])
        """
        return cls._from_vec(shape, data, dtype, "F")

    @classmethod
    def from_vec_row_major(
        cls, shape: int | Sequence[int], data: ArrayLike, dtype: DTypeLike | None = None
    ) -> Tensor:
        """A tensor of flat data in which the last axis varies fastest: `from_vec_col_major` otherwise.

        Examples
        --------
        >>> import tenferro as tn
        >>> tn.Tensor.from_vec_row_major([2, 2], [1.0, 2.0, 3.0, 4.0]).numpy()
        array([[1., 2.],
               [3., 4.]])
        """
        return cls._from_vec(shape, data, dtype, "C")

    @classmethod
    def from_numpy(cls, array: ArrayLike, copy: bool = True) -> Tensor:
        """A tensor of an array's values, in the array's memory order.

        Parameters
        ----------
        array : array_like
            Bools or numbers, of any shape; a foreign byte order is converted to the native one.
        copy : bool, default True
            False shares the array's memory, so that later writes to it show in the tensor.

        Returns
        -------
        Tensor

        Raises
        ------
        UnsupportedDTypeError
            The elements are not bools or numbers, or of foreign byte order and ``copy`` is False.
        InvalidArgumentError
            The array is masked, or ``copy`` is False and ``array`` is not an array.

        Examples
        --------
        >>> import numpy as np
        >>> import tenferro as tn
        >>> tn.Tensor.from_numpy(np.eye(2)).shape
        (2, 2)
        """
        if copy:
            return cls._wrap(np.array(plain_array(array, "array"), order="K"))
        if not isinstance(array, np.ndarray):
            raise InvalidArgumentError(
                given=f"a {type(array).__name__} with copy=False",
                expected="a numpy.ndarray, whose memory can be shared",
                op="from_numpy",
                remedy="leave copy out, or pass an array",
            )
        if not array.dtype.isnative:
            raise UnsupportedDTypeError(
                dtype=array.dtype,
                argument="array",
                expected="native byte order where copy is False",
                remedy="leave copy out, or pass array.astype(array.dtype.newbyteorder('='))",
            )
        # a view, as the caller may still assign to the shape of theirs
        return cls._wrap(plain_array(array, "array").view())

    @classmethod
    def _from_vec(cls, shape: Any, data: Any, dtype: Any, order: Literal["C", "F"]) -> Tensor:
        dims = checked_shape(shape)
        if isinstance(data, Iterator):
            data = list(data)
        values = plain_array(data, "data")
        if values.ndim != 1:
            raise RankMismatchError(
                given=values.ndim,
                expected=1,
                argument="data",
                remedy="pass the elements as one flat sequence, or nested data to Tensor.from_numpy",
            )
        if values.size != math.prod(dims):
            raise ShapeDataLengthMismatchError(given=values.size, expected=math.prod(dims), shape=dims)
        values = np.array(values) if dtype is None else cast(data, values, np.dtype(dtype))
        return cls._wrap(values.reshape(dims, order=order))

    @classmethod
    def _wrap(cls, array: np.ndarray) -> Tensor:
        """A tensor around an array that has been checked."""
        tensor = cls.__new__(cls)
        tensor._array = array
        return tensor

    # -------------------------------------------------------------- inspecting

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements, of native byte order."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
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
        return described("Tensor", self._array)

    # ----------------------------------------------------------------- reading

    def numpy(self) -> np.ndarray:
        """The values as a read-only array, without a copy."""
        return read_only(self._array)

    def as_slice(self, dtype: DTypeLike) -> np.ndarray:
        """The elements as a flat read-only array in memory order, without a copy.

        Parameters
        ----------
        dtype : dtype_like
            The tensor's dtype: a check, not a conversion.

        Returns
        -------
        numpy.ndarray, shape (size,)

        Raises
        ------
        DTypeMismatchError
            ``dtype`` is not the tensor's.
        HostAccessError
            The tensor shares the memory of an array that is not compact.
        """
        return as_slice(self._array, dtype, "duplicate()")

    def duplicate(self) -> Tensor:
        """An independent copy, compact and writable, in the same memory order."""
        return self._wrap(np.array(self._array, order="K"))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(read_only(self._array), dtype=dtype, copy=copy)

    def __getitem__(self, index: Any) -> Any:
        return read_only(self._array)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(read_only(self._array))

    def __eq__(self, other: object) -> Any:
        return self._array == (other._array if isinstance(other, Tensor) else other)

    def __ne__(self, other: object) -> Any:
        return self._array != (other._array if isinstance(other, Tensor) else other)


# ---------------------------------------------------------------- for neighbours


def read_only(array: np.ndarray) -> np.ndarray:
    """A view of an array whose writeable flag cannot be set."""
    return TensorRead(array).view()


def as_slice(array: np.ndarray, dtype: DTypeLike, remedy: str) -> np.ndarray:
    """The elements of a compact array, flat in memory order: see `Tensor.as_slice`."""
    if np.dtype(dtype) != array.dtype:
        raise DTypeMismatchError(
            given=np.dtype(dtype),
            expected=array.dtype,
            op="as_slice",
            argument="dtype",
            remedy=f"ask for dtype {array.dtype}, or convert a copy with numpy.asarray(...).astype",
        )
    flat = in_memory_order(array)
    if flat is None:
        raise HostAccessError(op="as_slice", shape=array.shape, remedy=f"take a copy with {remedy}")
    return read_only(flat)


def in_memory_order(array: np.ndarray) -> np.ndarray | None:
    """A compact array as a flat view in memory order; None where there are gaps or overlaps."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    forward = array[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in array.strides)]
    axes = sorted(range(array.ndim), key=lambda axis: forward.strides[axis], reverse=True)
    forward = forward.transpose(axes)
    return forward.reshape(-1) if forward.flags.c_contiguous else None


def plain_array(data: Any, argument: str) -> np.ndarray:
    """Data as a `numpy.ndarray` proper of bools or numbers, native; not copied where it is one."""
    # the first test spares plain arrays the import of numpy.ma
    if type(data) is not np.ndarray and isinstance(data, np.ndarray) and isinstance(data, np.ma.MaskedArray):
        raise InvalidArgumentError(
            given="a masked array",
            expected="an array without a mask",
            argument=argument,
            remedy="pass its filled(value)",
        )
    array = np.asarray(data)
    check_kind(array.dtype, argument)
    return array if array.dtype.isnative else array.astype(native_dtype(array.dtype))


def cast(data: Any, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Data, which reads as ``values``, in another dtype; refused where that would change a value's kind."""
    check_kind(dtype, "dtype")
    dtype = native_dtype(dtype)
    if not values.size or kind_rank(dtype) >= kind_rank(values.dtype):
        # from the data itself, as NumPy then checks that Python integers fit
        made = np.array(data, dtype, subok=False)
        if dtype.kind not in "iu" or np.array_equal(made, values):
            return made
    raise DTypeMismatchError(
        given=values.dtype,
        expected=dtype,
        argument="data",
        remedy=f"cast it yourself, with numpy.asarray(data).astype(numpy.{dtype})",
    )


def check_kind(dtype: np.dtype, argument: str) -> None:
    """Refuse what is neither bool nor a number."""
    if kind_rank(dtype) < 0:
        raise UnsupportedDTypeError(
            dtype=dtype, argument=argument, expected="a bool, integer, real or complex dtype"
        )


def checked_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python integers."""
    dims: tuple[int, ...]
    try:
        dims = (operator.index(shape),)
    except TypeError:
        try:
            dims = tuple(operator.index(n) for n in shape)
        except TypeError:
            dims = (-1,)
    if any(n < 0 for n in dims):
        raise InvalidArgumentError(
            given=f"shape {shape!r:.60}",
            expected="integers that are not negative",
            argument="shape",
            remedy="pass a length for each axis, or [] for rank 0",
        )
    return dims


def described(name: str, array: np.ndarray) -> str:
    """The repr of a tensor: its values as NumPy shows them, its shape and its dtype."""
    values = np.array2string(array, separator=", ", prefix=f"{name}(")
    return f"{name}({values}, shape={array.shape}, dtype={array.dtype})"
