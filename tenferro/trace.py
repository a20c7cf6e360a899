"""Trace: a function run once on leaves of its own level, and passes over what it recorded.

This module runs interpreted or compiled (`trace.pxd` has the types).
"""

from __future__ import annotations

import functools

import numpy as np

from ._kernels import layout
from .dtypes import check_differentiable
from .errors import InvalidArgumentError, NonScalarGradError, UnsupportedDTypeError
from .modes import enable_grad
from .passes import new_pass
from .primitive import registry
from .recording import Tracked, box
from .sweep import push
from .tape import COPY_LIMIT, grad_mode, leaf, new_level
from .tree import map_leaves

_ONE = np.ones((), np.float64)
_FLOAT64 = _ONE.dtype
ndarray = np.ndarray


class Trace:
    """A function's outputs and the leaves it was called on, recorded at one level."""

    __slots__ = ("aux", "leaves", "level", "out")

    def run(self, f, args, kwargs, argnums, has_aux):
        """Call ``f`` with leaves of a new level in place of the arguments in ``argnums``."""
        self.level = new_level()
        self.leaves = []
        lifted = list(args)
        for k in argnums:
            x = args[k]
            # an array is by far the usual argument
            if type(x) is ndarray or isinstance(x, Tracked):
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
        return self

    def lift_leaf(self, x, k):
        if type(x) is ndarray and layout.differentiable(x):
            if x.nbytes > COPY_LIMIT:
                # a view: the user may still assign to the shape, strides or dtype of theirs
                t = box(x.view(), leaf(self.level, None))
                t._borrowed = True
            else:
                t = box(layout.copy(x), leaf(self.level, None))
        elif isinstance(x, Tracked):
            value = x._value
            check_differentiable(value.dtype, argument=f"argument {k}")
            t = box(value, leaf(self.level, x._node), x._runtime)
            t._borrowed = x._borrowed
        else:
            value, borrowed = primal(x, k)
            t = box(value, leaf(self.level, None))
            t._borrowed = borrowed
        self.leaves.append(t)
        # another handle, as the function may rebind the one that it gets (``x += 1``)
        handle = box(t._value, t._node, t._runtime)
        handle._borrowed = t._borrowed
        return handle

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
        t = out
        if t._node is None:
            if t._runtime is not None:
                return t
        elif t._node.level < self.level:
            return t
        # a copy: what is recorded outside of this level may keep the array, and the caller may write it
        value = t._value
        return layout.copy(value) if value.ndim else layout.scalar(value)

    def records(self, out, start):
        """Whether a pass from ``out``, started with a cotangent or tangent, must be recorded."""
        if out._node.level < self.level:
            return True
        if isinstance(start, Tracked):
            t = start
            return t._node is not None
        return False

    def pull(self, outs, seeds, consume):
        """Cotangents of all leaves; None where not reached."""
        record = False
        nodes = []
        for i in range(len(outs)):
            t = outs[i]
            nodes.append(t._node)
            if self.records(t, seeds[i]):
                record = True
            elif isinstance(seeds[i], Tracked):
                seeds[i] = seeds[i]._value
        wanted = {t._node for t in self.leaves} if record else None
        run = new_pass(self.level, self.level, record, consume and not record, wanted)
        found = run.pull(nodes, seeds)
        results = []
        for t in self.leaves:
            results.append(self.gradient(t, found.pop(t._node, None)))
        return results

    def gradient(self, t, acc):
        value = t._value
        if acc is None or acc.total is None:
            return layout.scalar(np.zeros_like(value))
        if isinstance(acc.total, Tracked):
            return acc.total
        return layout.scalar(layout.dense(acc.total, value, acc.owned))

    def push(self, outs, tangents):
        """Tangents of the outputs, one for each leaf given."""
        record = any([self.records(out, t) for out in outs for t in tangents])
        given = {t._node: v for t, v in zip(self.leaves, tangents, strict=True)}
        run = new_pass(self.level, self.level, record, False, set(given))
        found = push(run, [out._node for out in outs], given)
        return [
            layout.scalar(np.zeros_like(out._value))
            if t is None
            else t
            if isinstance(t, Tracked)
            else layout.scalar(np.array(t))
            for out, t in zip(outs, found, strict=True)
        ]


def primal(x, k):
    """An argument's values as an array, and whether somebody else may write its memory."""
    if isinstance(x, np.ndarray):
        value = np.asarray(x)
        check_differentiable(value.dtype, argument=f"argument {k}")
        if value.nbytes > COPY_LIMIT and value.dtype.isnative:
            return value.view(), True
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
        given=f"argument {k} of type {type(x).__name__}", expected="arrays, numbers, or containers of them",
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
            given=f"argnums={argnums!r}",
            expected="an int or a tuple of ints",
            remedy="for example argnums=(0, 1)",
        )
    fixed = []
    for k in positions:
        if not -count <= k < count:
            raise InvalidArgumentError(
                given=f"argnums={argnums!r} and {count} positional arguments",
                expected="a position among them",
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
    if type(argnums) is int and 0 <= argnums < len(args):
        positions = (argnums,)
        single = True
    else:
        positions, single = normalize(argnums, len(args))
    trace = Trace.__new__(Trace)
    trace.run(f, args, kwargs, positions, has_aux)
    out = trace.out
    if trace.depends(out):
        t = out
        value = t._value
        if value.ndim == 0 and value.dtype is _FLOAT64:
            seed = _ONE
        else:
            check_loss(out, holomorphic)
            seed = np.ones(value.shape, value.dtype)
        gradients = trace.pull([out], [seed], True)
    else:
        check_loss(out, holomorphic)
        gradients = [trace.gradient(t, None) for t in trace.leaves]
    if holomorphic:
        gradients = [conjugated(g) for g in gradients]
    if single and type(args[positions[0]]) is ndarray:
        gradient = gradients[0]
    else:
        gradient = structured(gradients, args, positions, single)
    result = trace.outside(out)
    return ((result, trace.aux) if has_aux else result), gradient
