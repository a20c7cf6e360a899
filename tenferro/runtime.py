"""EagerRuntime and CpuBackend: who tensors belong to, and passes over their graphs."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import numpy as np

from . import passes
from ._kernels import layout
from .dtypes import check_differentiable
from .errors import (
    ContextMismatchError,
    DTypeMismatchError,
    InvalidArgumentError,
    NonScalarGradError,
    RuntimeStateError,
    ShapeMismatchError,
    UntrackedError,
)
from .gradient import Gradients, GradientValue
from .modes import no_grad
from .passes import new_pass
from .sweep import push
from .tape import Context, Slot, leaf
from .tensor import Tensor

#: Above every transform's level: a pass at it records whatever depends on a tracked value.
TOP_LEVEL = 1 << 60

_runtime_ids = itertools.count(1).__next__


class CpuBackend:
    """The CPU: NumPy's loops and tenferro's kernels.

    Parameters
    ----------
    threads : int, optional
        How many threads a kernel may use.  Kernels run on one thread today; the argument is checked
        and kept, so that code written for more goes on working.

    Raises
    ------
    InvalidArgumentError
        ``threads`` is not a positive integer.

    Examples
    --------
    >>> import tenferro as tn
    >>> tn.CpuBackend(threads=1)
    CpuBackend(threads=1)
    """

    __slots__ = ("threads",)

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InvalidArgumentError(
                given=f"threads={threads!r}", expected="a positive integer, or None for the default",
                remedy="pass threads=1 or more",
            )  # fmt: skip
        self.threads = threads

    def __repr__(self) -> str:
        return f"CpuBackend(threads={self.threads})"


class EagerRuntime(Context):
    """Owns tensors, and runs passes over what was computed from them.

    Tensors of two runtimes do not mix.  Dropping a runtime drops nothing that a tensor still holds;
    `close` makes every later use of its tensors and gradients an error.

    Examples
    --------
    >>> import tenferro as tn
    >>> with tn.EagerRuntime() as rt:
    ...     x = rt.variable_from(tn.Tensor.from_vec_row_major([2], [2.0, 3.0]))
    ...     y = (x * x).sum()
    ...     rt.grad(y, x).tolist()
    [4.0, 6.0]
    """

    def __init__(self, backend: CpuBackend | None = None) -> None:
        if backend is not None and not isinstance(backend, CpuBackend):
            raise InvalidArgumentError(
                given=f"a backend of type {type(backend).__name__}", expected="a CpuBackend",
                remedy="pass tenferro.CpuBackend(), or nothing for the default",
            )  # fmt: skip
        self.id = _runtime_ids()
        self.closed = False
        self.backend = backend or CpuBackend()
        # slots that hold a gradient, so that clear_grads() costs what there is to clear
        self.retained: weakref.WeakSet = weakref.WeakSet()
        self.limits: dict[str, int] = {}

    @classmethod
    def with_cpu_backend(cls, backend: CpuBackend) -> EagerRuntime:
        """A runtime on the given CPU backend."""
        return cls(backend)

    def __repr__(self) -> str:
        return f"<EagerRuntime {self.id}{' (closed)' if self.closed else ''}>"

    # ------------------------------------------------------------------ making

    def variable_from(self, tensor: Tensor, *, id: Any = None) -> Any:
        """A leaf that gradients are computed for.

        Parameters
        ----------
        tensor : Tensor or array_like
            Of a floating or complex dtype; its values are copied.
        id : hashable, optional
            An id of your choice, so that gradient stores of several processes merge by name.

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
        self.check_open()
        value = owned_array(tensor)
        check_differentiable(value.dtype, argument="tensor")
        node = leaf(0, None)
        t = passes.box(value, node, self)
        t._id = id
        t._slot = slot_for(t)
        return t

    def constant_from(self, tensor: Tensor) -> Any:
        """A tensor of any dtype that no gradient is computed for; its values are copied."""
        self.check_open()
        return passes.box(owned_array(tensor), None, self)

    # ------------------------------------------------------- functional passes

    def grad(self, output: Any, wrt: Any) -> Any:
        """The gradient of a one-element output, as tensors that can be differentiated again.

        Parameters
        ----------
        output : EagerTensor
            With one element.
        wrt : EagerTensor or sequence of EagerTensor

        Returns
        -------
        EagerTensor or list of EagerTensor
            In ``wrt``'s structure; retained gradients are not touched.

        Raises
        ------
        NonScalarGradError
            ``output`` has more or less than one element.
        UntrackedError
            ``output`` does not depend on one of ``wrt``.
        """
        return required(self.grad_optional(output, wrt), "grad")

    def grad_optional(self, output: Any, wrt: Any) -> Any:
        """`grad`, with None where ``output`` does not depend on an input."""
        one_element(output)
        return self.vjp_optional(output, wrt, None)

    def vjp(self, output: Any, wrt: Any, seed: Any) -> Any:
        """The product of ``seed`` with the Jacobian: `grad` for an output of any shape."""
        return required(self.vjp_optional(output, wrt, seed), "vjp")

    def vjp_optional(self, output: Any, wrt: Any, seed: Any) -> Any:
        """`vjp`, with None where ``output`` does not depend on an input."""
        many, tensors = self._inputs(output, wrt)
        nodes = [t._node for t in tensors]
        found: dict = {}
        if output._node is not None:
            run = new_pass(TOP_LEVEL, 0, True, False, {node for node in nodes if node is not None})
            found = run.pull([output._node], [check_seed(seed, output)])
        results = []
        for _t, node in zip(tensors, nodes, strict=True):
            acc = found.get(node)
            results.append(None if acc is None or acc.total is None else self._adopt(acc.total))
        return results if many else results[0]

    def jvp(self, output: Any, wrt: Any, tangent: Any) -> Any:
        """The product of the Jacobian with ``tangent``, by a forward sweep over the graph.

        Parameters
        ----------
        output : EagerTensor
        wrt : EagerTensor or sequence of EagerTensor
        tangent : array_like or sequence of array_like
            One for each of ``wrt``, of its shape and dtype.

        Returns
        -------
        EagerTensor
        """
        return required(self.jvp_optional(output, wrt, tangent), "jvp")

    def jvp_optional(self, output: Any, wrt: Any, tangent: Any) -> Any:
        """`jvp`, with None where ``output`` does not depend on ``wrt``."""
        many, tensors = self._inputs(output, wrt)
        given = list(tangent) if many else [tangent]
        if len(given) != len(tensors):
            raise InvalidArgumentError(
                given=f"{len(given)} tangents", expected=f"{len(tensors)}, one for each of wrt",
                remedy="pass one tangent per tensor, in the same order",
            )  # fmt: skip
        tangents = {
            t._node: check_seed(v, t, "tangent")
            for t, v in zip(tensors, given, strict=True)
            if t._node is not None
        }
        if output._node is None or not tangents:
            return None
        run = new_pass(TOP_LEVEL, 0, True, False, set(tangents))
        (result,) = push(run, [output._node], tangents)
        return None if result is None else self._adopt(result)

    def _inputs(self, output, wrt):
        self.check_open()
        many = isinstance(wrt, (list, tuple))
        tensors = list(wrt) if many else [wrt]
        for t in [output, *tensors]:
            if not hasattr(t, "_node"):
                raise InvalidArgumentError(
                    given=f"a {type(t).__name__}",
                    expected="an EagerTensor",
                    remedy="use tenferro.tensor(...)",
                )
            if t._runtime is not None and t._runtime is not self:
                raise ContextMismatchError(lhs=self.id, rhs=t._runtime.id)
        return many, tensors

    def _adopt(self, value):
        """A pass's result as a tensor of this runtime."""
        if not hasattr(value, "_node"):
            return passes.box(np.array(value), None, self)
        value._runtime = self
        return value

    # ------------------------------------------------------------- housekeeping

    def clear_grads(self) -> None:
        """Forget every retained gradient of this runtime."""
        for slot in list(self.retained):
            slot.total = None
        self.retained.clear()

    def no_grad(self) -> no_grad:
        """A block in which this thread records nothing."""
        return no_grad()

    def synchronize(self) -> None:
        """Wait for pending work: there is none on a CPU; kept so that code ports."""
        self.check_open()

    def cache_stats(self) -> dict[str, int]:
        """The bytes and entries that the runtime keeps for reuse (none before the memory pool)."""
        return {"bytes": 0, "entries": 0, **self.limits}

    def clear_caches(self) -> None:
        """Return what is kept for reuse to the operating system."""
        self.check_open()

    def set_cache_limit(self, limit: int) -> None:
        """Keep at most ``limit`` bytes for reuse."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise InvalidArgumentError(
                given=f"limit={limit!r}", expected="a number of bytes >= 0", remedy="pass 0 to keep nothing"
            )
        self.limits["limit"] = limit

    def close(self) -> None:
        """Make every later use of this runtime, its tensors and its gradients an error."""
        self.clear_grads()
        self.closed = True

    def __enter__(self) -> EagerRuntime:
        self.check_open()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def check_open(self) -> None:
        """Raise `RuntimeStateError` where the runtime is closed."""
        if self.closed:
            raise RuntimeStateError(
                given=f"the closed runtime {self.id}", expected="an open runtime",
                remedy="make a new EagerRuntime",
            )  # fmt: skip


_default: EagerRuntime | None = None


def default_runtime() -> EagerRuntime:
    """The runtime that `tenferro.tensor` uses; a new one where the last was closed."""
    global _default
    if _default is None or _default.closed:
        _default = EagerRuntime()
    return _default


def owned_array(data):
    """A private copy of a tensor's or array's values, in their memory order."""
    value = data.numpy() if isinstance(data, Tensor) else data
    return np.array(value, order="K", subok=False)


# ------------------------------------------------------------- retained gradients

#: Held while a pass adds its gradients to what is retained: passes of several threads lose nothing.
_retaining = threading.Lock()


def slot_for(t):
    """A slot that a node's cotangent is retained in; the tensor's handle owns it."""
    slot = Slot(t.id, t._value, t._runtime)
    t._node.slot = weakref.ref(slot)
    return slot


def retained_slot(t):
    """`EagerTensor.retain_grad`'s slot."""
    if t._node is None:
        raise UntrackedError(op="retain_grad")
    return slot_for(t)


def hook(t, fn):
    """`EagerTensor.register_hook`."""
    if t._node is None:
        raise UntrackedError(op="register_hook")
    if not callable(fn):
        raise InvalidArgumentError(
            given=f"{fn!r}", expected="a callable", remedy="pass a function of the cotangent"
        )
    node = t._node
    if node.hooks is None:
        node.hooks = []
    node.hooks.append(fn)

    def remove():
        if node.hooks is not None and fn in node.hooks:
            node.hooks.remove(fn)

    return remove


def retain(slot, runtime):
    """The retained gradient as users see it."""
    return GradientValue(slot.total, runtime)


def backward(t, seed, retain_graph):
    """`EagerTensor.backward`: a pass, then, with nothing left that can raise, its results."""
    if t._runtime is not None:
        t._runtime.check_open()
    if t._node is None or t._node.level:
        # a level above 0 depends on a transform's leaves alone, and they retain nothing
        raise UntrackedError(op="backward")
    if seed is None:
        one_element(t)
    seed = check_seed(seed, t)
    run = new_pass(0, 0, False, not retain_graph, None)
    found = run.pull([t._node], [seed._value if hasattr(seed, "_node") else seed])
    fresh = []
    for node, acc in found.items():
        slot = None if node.slot is None else node.slot()
        if slot is not None and acc.total is not None:
            fresh.append((slot, layout.dense(acc.total, slot.like, acc.owned)))
    with _retaining:
        sums = [g if slot.total is None else np.asarray(slot.total + g) for slot, g in fresh]
        for (slot, _), total in zip(fresh, sums, strict=True):
            slot.total = total
            if slot.runtime is not None:
                slot.runtime.retained.add(slot)
    return Gradients({slot.id: GradientValue(g, slot.runtime) for slot, g in fresh})


# ------------------------------------------------------------------------- checks


def one_element(output):
    if output._value.size != 1:
        raise NonScalarGradError(shape=output._value.shape)


def check_seed(seed, output, what="seed"):
    """The cotangent (or tangent) to start from; ones where none is given."""
    value = output._value
    if seed is None:
        return np.ones(value.shape, value.dtype)
    if hasattr(seed, "_node"):
        if seed._runtime is not None and output._runtime is not None and seed._runtime is not output._runtime:
            raise ContextMismatchError(lhs=output._runtime.id, rhs=seed._runtime.id)
        if seed._node is None:
            seed = seed._value
    elif isinstance(seed, Tensor):
        seed = seed.numpy()
    else:
        weak = isinstance(seed, (int, float)) and not isinstance(seed, bool)
        seed = np.array(seed, value.dtype if weak else None)
    if seed.dtype != value.dtype:
        raise DTypeMismatchError(given=seed.dtype, expected=value.dtype, argument=what)
    if seed.shape != value.shape:
        raise ShapeMismatchError(given=seed.shape, expected=value.shape, argument=what)
    return seed


def required(results, op):
    if results is None or (isinstance(results, list) and any(r is None for r in results)):
        raise UntrackedError(op=op)
    return results


def tensor(
    data: Any, dtype: Any = None, *, requires_grad: bool = False, runtime: EagerRuntime | None = None
) -> Any:
    """Make an EagerTensor from data; its values are copied.

    Parameters
    ----------
    data : array_like
    dtype : dtype, optional
        Where it is not the data's own.
    requires_grad : bool, default False
        Make a leaf that gradients are computed for.
    runtime : EagerRuntime, optional
        The default runtime where none is given.

    Returns
    -------
    EagerTensor

    Raises
    ------
    UnsupportedDTypeError
        ``requires_grad`` with integers or bools, or data that are no numbers.

    Examples
    --------
    >>> import tenferro as tn
    >>> tn.tensor([2.0, 3.0], requires_grad=True)
    EagerTensor([2., 3.], requires_grad=True)
    """
    rt = default_runtime() if runtime is None else runtime
    if hasattr(data, "_node"):
        raise InvalidArgumentError(
            given="an EagerTensor", expected="data without history",
            remedy="use t.detach(), or the tensor as it is",
        )  # fmt: skip
    value = owned_array(data) if dtype is None else owned_array(data).astype(dtype)
    return rt.variable_from(value) if requires_grad else rt.constant_from(value)
