"""The forward sweep: tangents carried over recorded nodes, by the same rules and bookkeeping as a pass.

This module runs interpreted or compiled (`sweep.pxd` has the types).
"""

from __future__ import annotations

import numpy as np

from .errors import NoRuleError
from .passes import as_array, as_dtype, twin
from .primitive import Factor, registry
from .tape import freed_error, kept_value


def push(run, outs, tangents):
    """Carry tangents from the wanted nodes to ``outs``.

    Parameters
    ----------
    outs : list of Node
    tangents : dict
        Node -> tangent, for each node in ``wanted``.

    Returns
    -------
    list
        A tangent for each of ``outs``, None where it is not reached.
    """
    try:
        return sweep(run, outs, tangents)
    finally:
        run.finish()


def sweep(run, outs, tangents):
    order = run.mark(run.order(outs))
    uses = {}
    for node in order:
        for i in range(node.count):
            p = node.parent(i)
            if p in run.marks:
                uses[p] = uses.get(p, 0) + 1
    for node in outs:
        uses[node] = uses.get(node, 0) + 1
    for node in order:
        if node in run.wanted:
            continue
        tangents[node] = step(run, node, tangents)
        if node.freed:
            # in the middle of this sweep, by another thread
            raise freed_error()
        for i in range(node.count):
            p = node.parent(i)
            if p in run.marks:
                uses[p] -= 1
                if not uses[p] and p not in run.wanted:
                    del tangents[p]
    found = [tangents.get(node) for node in outs]
    return [twin(t) if hasattr(t, "_node") else t for t in found]


def step(run, node, tangents):
    """The tangent of one node's result."""
    prim = node.prim
    ts = [tangents.get(node.parent(i)) for i in range(node.count)]
    if prim is None:
        return ts[0]
    if prim.linear and len(ts) > 1:
        for i in range(node.count):
            if ts[i] is None:
                like = node.like_of(i)
                # a Python number has no dtype of its own, nor has the zero in its place
                ts[i] = 0.0 if like.dtype is None else np.zeros(like.shape, like.dtype)
        return prim(*ts, **params(node))
    total = None
    for i, t in enumerate(ts):
        if t is None:
            continue
        value = tangent(run, node, i, t)
        if value is None:
            continue
        if prim.partials is not None and not node.plain:
            if value.shape != node.like.shape:
                value = registry["broadcast_to"](value, shape=node.like.shape)
            if value.dtype != node.like.dtype:
                value = registry["cast"](value, dtype=node.like.dtype)
        total = value if total is None else registry["add"](total, value)
    return total


def tangent(run, node, i, t):
    """The tangent of the result that operand i's tangent ``t`` causes."""
    prim = node.prim
    if prim.partials is not None:
        part = prim.partials[i]
        if part is None:
            raise NoRuleError(op=prim.name, argument=i)
        if type(part) is float:
            if part == 0.0:
                return None
            return t if part == 1.0 else registry["times"](t, part)
        d = run.partial(node, i)
        value = registry["times"](t, d)
        if type(part) is Factor:
            return value if part.scale == 1.0 else registry["times"](value, part.scale)
        # a rule may widen: constants and masks have dtypes of their own
        return as_dtype(value, t.dtype) if node.plain else value
    rule = prim.jvps.get(i)
    if rule is not None:
        return as_array(run.call_rule(rule, node, t, None))
    if prim.linear:
        return prim(t, **params(node))
    if prim.multilinear:
        operands = [t if k == i else run.saved(node, k) for k in range(node.count)]
        return prim(*operands, **params(node))
    raise NoRuleError(op=prim.name, argument=i)


def params(node):
    if node.prim.scatter:
        return {"index": kept_value(node.params, node, "index")}  # it may be None: x[None]
    if node.params is None:
        return {}
    return {name: kept_value(value, node, name) for name, value in node.params.items()}
