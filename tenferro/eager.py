"""EagerTensor: operators and methods, no mathematics."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import recording
from ._kernels import TensorRead
from .gradient import Gradients, GradientValue, ValueGuard
from .ids import new_tensor_id
from .operators import become, compare, conversion, in_place, method, operator, protocols
from .primitive import direct, functions, registry
from .recording import Tracked, apply_one, box, check_open, read, unary
from .runtime import EagerRuntime, backward, hook, retain, retained_slot
from .tensor import Tensor


class EagerTensor(Tracked):
    """An immutable array that may carry the history of how it was computed.

    Make one with `tenferro.tensor`, `EagerRuntime.variable_from` or `EagerTensor.requires_grad_in`;
    every operation on it gives another.  NumPy functions take it: ``np.sin(x)`` is an EagerTensor.

    Notes
    -----
    No operation writes a tensor's memory.  ``x[i] = v`` and ``x += v`` bind the handle to a new
    value under a new id; earlier results keep the earlier value, and slices of ``x`` do not see it.

    Examples
    --------
    >>> import tenferro as tn
    >>> x = tn.tensor([2.0, 3.0], requires_grad=True)
    >>> _ = (x * x).sum().backward()
    >>> x.grad
    GradientValue([4., 6.], shape=(2,), dtype=float64)
    """

    __slots__ = ("__weakref__",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "EagerTensor is made by tenferro.tensor(data), EagerTensor.requires_grad_in(tensor, runtime) or "
            "EagerTensor.from_tensor_in(tensor, runtime), not by calling the class"
        )

    def blank(self):
        return EagerTensor.__new__(EagerTensor)

    # ------------------------------------------------------------------ making

    @classmethod
    def requires_grad_in(cls, tensor: Tensor, runtime: EagerRuntime) -> EagerTensor:
        """A leaf of ``runtime`` that gradients are computed for.

        Parameters
        ----------
        tensor : Tensor
            Of a floating or complex dtype; its values are copied.
        runtime : EagerRuntime

        Returns
        -------
        EagerTensor

        Raises
        ------
        UnsupportedDTypeError
            The dtype has no derivative.
        RuntimeStateError
            The runtime is closed.
        """
        return runtime.variable_from(tensor)

    @classmethod
    def from_tensor_in(cls, tensor: Tensor, runtime: EagerRuntime) -> EagerTensor:
        """A constant of ``runtime``, of any dtype."""
        return runtime.constant_from(tensor)

    @classmethod
    def from_vec_col_major_in(cls, shape, data, runtime: EagerRuntime, dtype=None) -> EagerTensor:
        """A constant of ``runtime`` from flat data in column-major order."""
        return runtime.constant_from(Tensor.from_vec_col_major(shape, data, dtype))

    # -------------------------------------------------------------- inspecting

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self._value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._value.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._value.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value.size

    @property
    def id(self):
        """The tensor's id: hashable, never reused, different in every process."""
        if self._id is None:
            self._id = new_tensor_id()
        return self._id

    @property
    def runtime(self) -> EagerRuntime | None:
        """The runtime it belongs to; None for a value inside a transform."""
        return self._runtime

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through it."""
        return self._node is not None

    @property
    def tracks_grad(self) -> bool:
        """The original's name for `requires_grad`."""
        return self._node is not None

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed from another tracked tensor."""
        return self._node is None or (self._node.prim is None and not self._node.count)

    def same_context(self, other: EagerTensor) -> bool:
        """Whether both belong to one runtime."""
        return self._runtime is other._runtime

    def numpy(self) -> np.ndarray:
        """The values as a read-only array, without a copy and without history."""
        check_open(self._runtime)
        return TensorRead(self._value).view()

    def item(self) -> Any:
        """The only element as a Python number."""
        check_open(self._runtime)
        return self._value.item()

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        check_open(self._runtime)
        return self._value.tolist()

    def value(self) -> ValueGuard:
        """A context manager over a read-only view of the values."""
        check_open(self._runtime)
        return ValueGuard(self._value, self._runtime)

    def tensor_read(self) -> TensorRead:
        """A read target that does not fix the dtype: buffer protocol, ``__array__``, DLPack."""
        check_open(self._runtime)
        return TensorRead(self._value, self._runtime)

    def to_tensor(self) -> Tensor:
        """An independent copy without history."""
        check_open(self._runtime)
        return Tensor.from_numpy(self._value)

    def detach(self) -> EagerTensor:
        """The same values without history, in the same runtime."""
        t = box(self._value, None, self._runtime)
        t._borrowed = self._borrowed
        return t

    def detach_into(self, runtime: EagerRuntime) -> EagerTensor:
        """The same values without history, as a constant of another runtime."""
        t = self.detach()
        check_open(runtime)
        t._runtime = runtime
        return t

    # --------------------------------------------------------------- gradients

    @property
    def grad(self) -> GradientValue | None:
        """The retained gradient: the sum over all backward passes since it was cleared."""
        return None if self._slot is None or self._slot.total is None else retain(self._slot, self._runtime)

    def clear_grad(self) -> None:
        """Forget the retained gradient."""
        if self._slot is not None:
            self._slot.total = None

    def retain_grad(self) -> None:
        """Make later backward passes retain this intermediate's gradient too.

        Raises
        ------
        UntrackedError
            Nothing flows through it.
        """
        if self._slot is None:
            self._slot = retained_slot(self)

    def register_hook(self, fn) -> Any:
        """Call ``fn(g)`` with this tensor's cotangent in every pass.

        Parameters
        ----------
        fn : callable
            Takes the cotangent (read-only); returns None, or the cotangent to go on with.

        Returns
        -------
        callable
            Call it to remove the hook.
        """
        return hook(self, fn)

    def backward(self, seed=None, *, retain_graph: bool = True) -> Gradients:
        """Accumulate the gradients of this tensor into the leaves that it depends on.

        Parameters
        ----------
        seed : EagerTensor, Tensor or array_like, optional
            The cotangent to start from, of this tensor's dtype and shape; 1 where the tensor has
            one element.
        retain_graph : bool, default True
            False frees what the graph keeps as the pass goes; a second pass is then an error.

        Returns
        -------
        Gradients
            Those of this pass alone.

        Raises
        ------
        NonScalarGradError
            There is more or less than one element, and no seed.
        UntrackedError
            The tensor depends on nothing that requires a gradient.
        RuntimeStateError
            The runtime is closed, or the graph was freed.
        """
        return backward(self, seed, retain_graph)

    def backward_with(self, seed) -> Gradients:
        """`backward` with a seed."""
        return backward(self, seed, True)

    # --------------------------------------------------------------- operators

    def __add__(self, other):
        return operator(registry["add"], self, other)

    def __radd__(self, other):
        return operator(registry["add"], other, self)

    def __sub__(self, other):
        return operator(registry["subtract"], self, other)

    def __rsub__(self, other):
        return operator(registry["subtract"], other, self)

    def __mul__(self, other):
        return operator(registry["multiply"], self, other)

    def __rmul__(self, other):
        return operator(registry["multiply"], other, self)

    def __truediv__(self, other):
        return operator(registry["divide"], self, other)

    def __rtruediv__(self, other):
        return operator(registry["divide"], other, self)

    def __pow__(self, other, modulo=None):
        if modulo is not None:
            return NotImplemented
        if (type(other) is int or type(other) is float) and other == 2:
            return unary(registry["square"], self)
        return operator(registry["power"], self, other)

    def __rpow__(self, other):
        return operator(registry["power"], other, self)

    def __matmul__(self, other):
        return method("matmul", self, other)

    def __rmatmul__(self, other):
        return method("matmul", other, self)

    def __neg__(self):
        return unary(registry["negative"], self)

    def __pos__(self):
        return self

    def __abs__(self):
        return method("abs", self)

    def __getitem__(self, index):
        return read(self, index)

    def __setitem__(self, index, value):
        become(self, registry["set_item"](self, value, index=recording.frozen_index(index)))

    def __iadd__(self, other):
        return in_place(self, "add", other)

    def __isub__(self, other):
        return in_place(self, "subtract", other)

    def __imul__(self, other):
        return in_place(self, "multiply", other)

    def __itruediv__(self, other):
        return in_place(self, "divide", other)

    def __ipow__(self, other):
        return in_place(self, "power", other)

    def __lt__(self, other):
        return compare(np.less, self, other)

    def __le__(self, other):
        return compare(np.less_equal, self, other)

    def __gt__(self, other):
        return compare(np.greater, self, other)

    def __ge__(self, other):
        return compare(np.greater_equal, self, other)

    def __eq__(self, other):
        return compare(np.equal, self, other)

    def __ne__(self, other):
        return compare(np.not_equal, self, other)

    __hash__ = object.__hash__

    def __len__(self):
        return len(self._value)

    def __iter__(self):
        if not self._value.ndim:
            raise TypeError("iteration over a tensor of rank 0; use item() for its value")
        return iter([read(self, i) for i in range(self._value.shape[0])])

    def __bool__(self):
        return bool(self._value)

    def __repr__(self):
        kind = "" if self._node is None else ", requires_grad=True" if self.is_leaf else ", tracked"
        return f"EagerTensor({np.array2string(self._value, separator=', ', prefix='EagerTensor(')}{kind})"

    def __str__(self):
        return str(self._value)

    def __format__(self, spec):
        return format(self._value[()] if not self._value.ndim else self._value, spec)

    # ------------------------------------------------ conversions that are refused

    def __float__(self):
        raise conversion(self, "float()")

    def __int__(self):
        raise conversion(self, "int()")

    def __complex__(self):
        raise conversion(self, "complex()")

    def __index__(self):
        raise conversion(self, "use as an index")

    def __array__(self, dtype=None, copy=None):
        raise conversion(self, "numpy.asarray()")

    # ------------------------------------------------------------ NumPy protocols

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return protocols.ufunc(self, ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        if len(types) == 1:
            if not kwargs and len(args) == 1:
                prim = direct.get(func)
                if prim is not None:
                    return apply_one(prim, args[0], None)
            ours = functions.get(func)
            if ours is not None:
                return ours(*args, **kwargs)
        return protocols.function(func, types, args, kwargs)

    # -------------------------------------------------- methods named as NumPy's

    @property
    def T(self) -> EagerTensor:
        """The tensor with its axes reversed."""
        return method("transpose", self)

    def transpose(self, *axes) -> EagerTensor:
        """See `numpy.ndarray.transpose`."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            return method("transpose", self, axes[0])
        return method("transpose", self, axes or None)

    def reshape(self, *shape, order="C") -> EagerTensor:
        """See `numpy.ndarray.reshape`."""
        return method("reshape", self, shape[0] if len(shape) == 1 else shape, order=order)

    def ravel(self, order="C") -> EagerTensor:
        """See `numpy.ndarray.ravel`."""
        return method("reshape", self, -1, order=order)

    def flatten(self, order="C") -> EagerTensor:
        """See `numpy.ndarray.flatten`."""
        return method("reshape", self, -1, order=order)

    def squeeze(self, axis=None) -> EagerTensor:
        """See `numpy.ndarray.squeeze`."""
        return method("squeeze", self, axis)

    def sum(self, axis=None, dtype=None, out=None, keepdims=False, **more) -> EagerTensor:
        """See `numpy.ndarray.sum`."""
        return method("sum", self, axis, dtype, out, keepdims, **more)

    def mean(self, axis=None, dtype=None, out=None, keepdims=False, **more) -> EagerTensor:
        """See `numpy.ndarray.mean`."""
        return method("mean", self, axis, dtype, out, keepdims, **more)

    def dot(self, other) -> EagerTensor:
        """See `numpy.ndarray.dot`."""
        return method("dot", self, other)

    def astype(self, dtype) -> EagerTensor:
        """See `numpy.ndarray.astype`; a cast to an integer or bool dtype stops the gradient."""
        return method("astype", self, dtype)

    def copy(self, order="C") -> EagerTensor:
        """The tensor itself: its values never change."""
        return self

    # ------------------------------------------------- methods named as the original's

    def add(self, other) -> EagerTensor:
        """``self + other``."""
        return self + other

    def sub(self, other) -> EagerTensor:
        """``self - other``."""
        return self - other

    def mul(self, other) -> EagerTensor:
        """``self * other``."""
        return self * other

    def div(self, other) -> EagerTensor:
        """``self / other``."""
        return self / other

    def neg(self) -> EagerTensor:
        """``-self``."""
        return -self

    def reduce_sum(self, axes=None) -> EagerTensor:
        """The sum over ``axes``: None for all of them, ``[]`` for none."""
        return method("sum", self, None if axes is None else tuple(axes))


recording.install(EagerTensor.__new__(EagerTensor))
