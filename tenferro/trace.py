"""Trace: a function run once on leaves of its own level, and passes over what it recorded.

This module runs interpreted or compiled (`trace.pxd` has the types).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from .dtypes import check_differentiable
from .errors import InvalidArgumentError, NonScalarGradError, UnsupportedDTypeError
from .passes import Pass, compact
from .primitive import registry
from .recording import Tracked, box
from .runtime import enable_grad
from .tape import COPY_LIMIT, grad_mode, leaf, new_level
from .tree import map_leaves

_ONE = np.ones((), np.float64)
_NATIVE = frozenset(np.dtype(c) for c in "dfDF")


class Trace:
    """A function's outputs and the leaves it was called on, recorded at one level."""

    def __init__(self, f: Callable, args: Sequence, kwargs: dict, argnums: Sequence[int], has_aux: bool = False):
        self.level = new_level()
        self.leaves: list = []
        lifted = list(args)
        for k in argnums:
            x = args[k]
            # an array is by far the usual argument
            if type(x) is np.ndarray or isinstance(x, Tracked):
                lifted[k] = self.lift_leaf(x, k)
            else:
                lifted[k] = map_leaves(functools.partial(self.lift_leaf, k=k), x)
        if grad_mode.off and not grad_mode.enabled():
            with enable_grad():
                out = f(*lifted, **kwargs)
        else:
            out = f(*lifted, **kwargs)
        self.aux = None
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise InvalidArgumentError(
                    given=f"a function that returns a {type(out).__name__}", expected="a pair (value, aux)",
                    remedy="return (value, aux), or leave has_aux out",
                )  # fmt: skip
            out, aux = out
            self.aux = map_leaves(self.outside, aux)
        self.out = out

    def lift_leaf(self, x, k):
        if isinstance(x, Tracked):
            value = x._value
            check_differentiable(value.dtype, argument=f"argument {k}")
            t = box(value, leaf(self.level, x._node), x._runtime)
            t._borrowed = x._borrowed
        else:
            value, borrowed = primal(x, k)
            t = box(value, leaf(self.level, None))
            t._borrowed = borrowed
        self.leaves.append(t)
        return t

    def depends(self, out):
        """Whether an output depends on this level's leaves."""
        if not isinstance(out, Tracked):
            return False
        t = out
        return t._node is not None and t._node.top >= self.level

    def outside(self, out):
        """An output as the caller sees it: plain, unless it depends on an enclosing level."""
        if not isinstance(out, Tracked):
            return out
        if out._node is None:
            return result(out._value) if out._runtime is None else out
        if out._node.level < self.level:
            return out
        return result(out._value)

    def records(self, out, *more):
        """Whether a pass from ``out`` must itself be recorded."""
        if out._node.level < self.level:
            return True
        for m in more:
            if isinstance(m, Tracked) and m._node is not None:
                return True
        return False

    def pull(self, outs, seeds, consume):
        """Cotangents of all leaves; None where not reached."""
        record = False
        for i in range(len(outs)):
            if self.records(outs[i], seeds[i]):
                record = True
            elif isinstance(seeds[i], Tracked):
                seeds[i] = seeds[i]._value
        nodes = [t._node for t in self.leaves]
        run = Pass(self.level, self.level, record, consume and not record, set(nodes))
        found = run.pull([out._node for out in outs], seeds)
        return [self.gradient(t, found.get(t._node)) for t in self.leaves]

    def gradient(self, t, acc):
        value = t._value
        if acc is None or acc.total is None:
            return result(np.zeros_like(value))
        if isinstance(acc.total, Tracked):
            return acc.total
        return result(compact(acc, value.dtype, "F" if value.flags.fnc else "C"))

    def push(self, outs, tangents):
        """Tangents of the outputs, one for each leaf given."""
        record = any([self.records(out, *tangents) for out in outs])
        given = {t._node: v for t, v in zip(self.leaves, tangents, strict=True)}
        run = Pass(self.level, self.level, record, False, set(given))
        found = run.push([out._node for out in outs], given)
        return [
            result(np.zeros_like(out._value)) if t is None else t if isinstance(t, Tracked) else result(np.array(t))
            for out, t in zip(outs, found, strict=True)
        ]


def result(value):
    """An array as NumPy would give it: a scalar for rank 0."""
    return value if value.ndim else value[()]


def primal(x, k):
    """An argument's values as an array, and whether somebody else may write its memory."""
    if type(x) is np.ndarray and x.dtype in _NATIVE:
        return (x, True) if x.nbytes > COPY_LIMIT else (x.copy("K"), False)
    if isinstance(x, np.ndarray):
        value = np.asarray(x)
        check_differentiable(value.dtype, argument=f"argument {k}")
        if value.nbytes > COPY_LIMIT and value.dtype.isnative:
            return value, True
        return value.astype(value.dtype.newbyteorder("="), order="K"), False
    if isinstance(x, (bool, np.bool_)):
        raise UnsupportedDTypeError(dtype=np.dtype(bool), argument=f"argument {k}")
    if isinstance(x, (int, np.integer)):
        return np.array(x, np.float64), False
    if hasattr(x, "__array__") or isinstance(x, (float, complex, np.generic)):
        value = np.array(x)
        check_differentiable(value.dtype, argument=f"argument {k}")
        return value, False
    raise InvalidArgumentError(
        given=f"argument {k} of type {type(x).__name__}", expected="an array, a number, or containers of them",
        remedy="pass what is not differentiated at another position, or register_container its type",
    )  # fmt: skip


def normalize(argnums, count):
    """argnums as a tuple of positions, and whether it was a single one."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,), True
    single = isinstance(argnums, (int, np.integer)) and not isinstance(argnums, bool)
    positions = (argnums,) if single else tuple(argnums) if isinstance(argnums, (tuple, list)) else None
    if positions is None or not all(isinstance(k, (int, np.integer)) for k in positions):
        raise InvalidArgumentError(
            given=f"argnums={argnums!r}", expected="an int or a tuple of ints", remedy="for example argnums=(0, 1)"
        )
    fixed = []
    for k in positions:
        if not -count <= k < count:
            raise InvalidArgumentError(
                given=f"argnums={argnums!r} and {count} positional arguments", expected="a position among them",
                remedy="pass the arguments that are differentiated by position, not by keyword",
            )  # fmt: skip
        fixed.append(int(k) % count)
    if len(set(fixed)) != len(fixed):
        raise InvalidArgumentError(
            given=f"argnums={argnums!r}", expected="each position once", remedy="leave the repetition out"
        )
    return tuple(fixed), single


def structured(gradients, args, positions, single):
    """Gradients in the structure of the arguments that they belong to."""
    rest = iter(gradients)
    results = [map_leaves(lambda _: next(rest), args[k]) for k in positions]
    return results[0] if single else tuple(results)


def conjugated(g):
    return registry["conjugate"](g) if isinstance(g, Tracked) else np.conj(g)


def check_loss(out, holomorphic):
    value = out._value if isinstance(out, Tracked) else out
    if type(value) is np.ndarray and value.dtype is _ONE.dtype and value.size == 1:
        return
    if not isinstance(value, (np.ndarray, np.generic, float, int, complex)):
        raise NonScalarGradError(shape=None, given=f"a {type(out).__name__}")
    if np.size(value) != 1:
        raise NonScalarGradError(shape=np.shape(value))
    if np.iscomplexobj(value) and not holomorphic:
        raise UnsupportedDTypeError(
            dtype=np.asarray(value).dtype, argument="the loss",
            remedy="return a real number, use vjp with a seed, or pass holomorphic=True for f'",
        )  # fmt: skip


def value_and_gradient(f, args, kwargs, argnums, has_aux, holomorphic):
    """`transforms.value_and_grad` of one call."""
    positions, single = normalize(argnums, len(args))
    trace = Trace(f, args, kwargs, positions, has_aux)
    out = trace.out
    check_loss(out, holomorphic)
    if trace.depends(out):
        value = out._value
        if value.ndim == 0 and value.dtype is _ONE.dtype:
            seed = _ONE
        else:
            seed = np.ones(value.shape, value.dtype)
        gradients = trace.pull([out], [seed], True)
    else:
        gradients = [trace.gradient(t, None) for t in trace.leaves]
    if holomorphic:
        gradients = [conjugated(g) for g in gradients]
    if single and type(args[positions[0]]) is np.ndarray:
        gradient = gradients[0]
    else:
        gradient = structured(gradients, args, positions, single)
    value = trace.outside(out)
    return ((value, trace.aux) if has_aux else value), gradient
