"""Passes: the backward walk over recorded nodes, and what the forward sweep shares with it.

A pass moves cotangents from outputs to inputs (`Pass.pull`) or, in `sweep`, tangents the other way.
It visits only nodes between the two, never recurses, and runs the same rules on
plain arrays and, where the derivative is itself to be differentiated, on tracked values.

This module runs interpreted or compiled (`passes.pxd` has the types); both give the same bits.
"""

from __future__ import annotations

import threading
from types import FunctionType
from typing import Any

import numpy as np

from ._kernels import TensorRead, accumulate, layout, product
from .errors import NoRuleError, ShapeMismatchError
from .primitive import ALL_LIKES, GIVEN, LIKE, PARAM, VALUE, WANTED, Factor, registry
from .tape import QUIET, Guarded, error_state, freed_error, kept_value, plain_copy, release

#: How to make a tracked value of an array and a node; `recording` fills it in.
box: Any = None


def install(function):
    global box
    box = function


class Acc:
    """A node's cotangent while its contributions arrive.

    ``owned`` says that nobody else holds ``total``, so that it may be added to in place;
    ``scattered`` has the indexed contributions of a recording pass, which become one operation;
    ``placed`` says that the node has its place in the order already.
    """

    __slots__ = ("owned", "placed", "scattered", "total")


#: Held by the one pass that keeps its accumulators on the nodes themselves; a pass that runs inside
#: or beside it keeps them in a dict.
_resident = threading.Lock()
_busy = False
COMPILED = not isinstance(install, FunctionType)


def claim():
    """Whether this pass may be the resident one.  Compiled code is not interrupted in between."""
    global _busy
    if not COMPILED:
        return _resident.acquire(False)
    if _busy:
        return False
    _busy = True
    return True


def yield_claim():
    global _busy
    if COMPILED:
        _busy = False
    else:
        _resident.release()


def as_array(value):
    """A rule's result as an array: NumPy gives a scalar for rank 0."""
    return np.asarray(value) if isinstance(value, (np.generic, float, int, complex)) else value


def as_dtype(value, dtype):
    return value if value.dtype == dtype else registry["cast"](value, dtype=dtype)


def fit(value, like):
    """Bring a contribution to its operand's exact shape and dtype."""
    if value.shape != like.shape:
        value = registry["unbroadcast"](value, shape=like.shape)
    if value.dtype != like.dtype:
        value = registry["cast"](value, dtype=like.dtype)
    return value


def twin(t):
    """Another handle on a tracked value: its holder may rebind it (``t += v``), which is theirs alone."""
    other = box(t._value, t._node, t._runtime)
    other._borrowed = t._borrowed
    return other


def new_pass(level, floor, record, consume, wanted):
    """A pass; see `Pass` for the parameters."""
    run = Pass.__new__(Pass)
    run.level = level
    run.floor = floor
    run.record = record
    run.consume = consume
    run.wanted = wanted
    run.marks = None
    run.accs = None
    run.results = {}
    run.quiet = None
    run.stack = None
    run.pending = None
    run.resident = False
    return run


class Pass:
    """One walk over the nodes between outputs and wanted inputs.

    Parameters
    ----------
    level : int
        The level whose leaves are differentiated by.
    floor : int
        Nodes whose ``top`` is below it are outside.
    record : bool
        Rules get tracked operands where those depend on a level below, so that the derivative can
        itself be differentiated.
    consume : bool
        Drop what each node keeps as soon as it has been used.
    wanted : set of Node or None
        A recording pass and a sweep visit only nodes that lead to one of these; any other pass has
        None and visits what depends on ``level``.
    """

    __slots__ = (
        "accs", "consume", "floor", "level", "marks", "pending", "quiet", "record", "resident", "results",
        "stack", "wanted",
    )  # fmt: skip

    def useful(self, node):
        if self.marks is not None:
            return node in self.marks
        return node.level <= self.level and node.top >= self.floor

    def order(self, outs):
        """The useful nodes that ``outs`` depend on, every one after its parents, each with an Acc."""
        order = []
        stack = []
        self.pending = order
        self.stack = stack
        self.resident = claim()
        if not self.resident:
            self.accs = {}
        for node in outs:
            if self.useful(node):
                stack.append(node)
        while stack:
            node = stack[-1]
            acc = self.acc_of(node)
            if acc is None:
                if node.freed:
                    raise freed_error()
                acc = self.new_acc(node)
                if not node.count:
                    acc.placed = True
                    order.append(node)
                    stack.pop()
                    continue
                for i in range(node.count):
                    p = node.parent(i)
                    if p is not None and self.useful(p) and self.acc_of(p) is None:
                        stack.append(p)
            else:
                stack.pop()
                if not acc.placed:
                    acc.placed = True
                    order.append(node)
        return order

    def mark(self, order):
        """Restrict the pass to nodes that lead to a wanted one; returns the order so reduced."""
        marks = set(self.wanted)
        kept = []
        for node in order:
            if node not in marks:
                for i in range(node.count):
                    if node.parent(i) in marks:
                        marks.add(node)
                        break
                else:
                    self.take(node)
                    continue
            kept.append(node)
        self.marks = marks
        self.pending = kept
        return kept

    # ---------------------------------------------------------------- backward

    def pull(self, outs, seeds):
        """Carry cotangents from ``outs`` to the leaves (or to ``wanted``).

        Returns
        -------
        dict
            Node -> Acc, for each wanted node that was reached.
        """
        try:
            order = self.order(outs)
            if self.record:
                order = self.mark(order)
            for i in range(len(outs)):
                if self.useful(outs[i]):
                    self.add(self.acc_of(outs[i]), seeds[i], False)
            while order:
                self.step(order.pop())
        finally:
            self.finish()
        return self.results

    def finish(self):
        """Leave the nodes as they were, also where a rule raised in the middle."""
        if self.resident:
            for node in self.stack + self.pending:
                node.acc = None
            self.resident = False
            yield_claim()
        self.report_errors()

    def report_errors(self):
        """Let NumPy warn as the caller has it, after `call_rule` silenced it."""
        if self.quiet is not None:
            error_state.set(self.quiet)
            self.quiet = None

    def step(self, node):
        """Spend one node's finished cotangent on its parents."""
        acc = self.take(node)
        if acc.total is not None or acc.scattered is not None:
            if acc.scattered is not None:
                self.gather(acc)
            if node.hooks is not None:
                self.run_hooks(node, acc)
            if node.prim is None or node.slot is not None or (self.record and node in self.wanted):
                if self.record and not isinstance(acc.total, np.ndarray):
                    acc.total = twin(acc.total)
                self.results[node] = acc
                if node.count:
                    acc.owned = False
            if node.freed:
                # in the middle of this pass: by one in a hook, or in another thread
                raise freed_error()
            if node.prim is None:
                # a leaf; one that stands for a value of an enclosing level hands it on
                if node.count and self.useful(node.first):
                    self.add(self.acc_of(node.first), acc.total, False)
            elif node.prim.partials is not None:
                self.pull_elementwise(node, acc)
            elif node.prim.scatter:
                self.pull_scatter(node, acc)
            elif node.prim.spread and not self.record:
                # the cotangent of a full sum, stretched over the operand without a copy
                like = node.like_first
                self.add(self.acc_of(node.first), layout.stretch(acc.total, like.shape), False)
            else:
                self.pull_rules(node, acc)
            if node.freed:
                raise freed_error()
        if self.consume and node.prim is not None:
            release(node)

    def acc_of(self, node):
        """A node's accumulator; None where the node has not been met."""
        return node.acc if self.resident else self.accs.get(node)

    def new_acc(self, node):
        acc = Acc.__new__(Acc)
        acc.total = None
        acc.owned = False
        acc.scattered = None
        acc.placed = False
        if self.resident:
            node.acc = acc
        else:
            self.accs[node] = acc
        return acc

    def take(self, node):
        """A node's accumulator, which the node then no longer has."""
        if not self.resident:
            return self.accs.pop(node)
        acc = node.acc
        node.acc = None
        return acc

    def add(self, acc, value, owned):
        """Add a finished contribution; ``owned`` where nobody else holds it."""
        if acc.total is None:
            acc.total = value
            acc.owned = owned
        elif self.record:
            acc.total = registry["add"](acc.total, value)
        elif acc.owned:
            accumulate.add_into(acc.total, value)
        elif owned:
            accumulate.add_into(value, acc.total)
            acc.total = value
            acc.owned = True
        else:
            acc.total = product.times(acc.total, 1.0)
            acc.owned = True
            accumulate.add_into(acc.total, value)

    def pull_elementwise(self, node, acc):
        g = acc.total
        prim = node.prim
        lent = None
        for i in range(node.count):
            p = node.parent(i)
            if p is None or not self.useful(p):
                continue
            part = prim.partials[i]
            if part is None:
                raise NoRuleError(op=prim.name, argument=i)
            if type(part) is float and part == 0.0:
                continue
            target = self.acc_of(p)
            if self.record or not node.plain:
                value = self.contribution(node, i, part, g)
                if not node.plain:
                    value = fit(value, node.like_of(i))
                self.add(target, value, not self.record and value is not g)
            elif type(part) is float:
                if part == 1.0:
                    if target.total is None:
                        # g itself is handed on; it stays owned only with a single taker
                        target.total = g
                        target.owned = acc.owned and lent is None
                        if lent is not None:
                            lent.owned = False
                        lent = target
                    else:
                        self.add(target, g, False)
                elif target.total is not None and target.owned:
                    product.times_into(target.total, g, part)
                else:
                    self.add(target, product.times(g, part), True)
            else:
                scale = 1.0
                if type(part) is Factor:
                    factor = part
                    scale = factor.scale
                    d = self.saved(node, factor.place)
                else:
                    d = self.call_rule(part, node, None, None)
                    if getattr(d, "dtype", None) is not g.dtype and not isinstance(d, (float, int)):
                        # a rule may widen: constants and masks have dtypes of their own
                        self.add(target, as_dtype(product.times(g, d, 1.0, True), g.dtype), True)
                        continue
                if target.total is not None and target.owned:
                    product.times_into(target.total, g, d, scale, True)
                else:
                    self.add(target, product.times(g, d, scale, True), True)

    def contribution(self, node, i, part, g):
        """g times the partial derivative of operand i, at any level and with any broadcasting."""
        if type(part) is float:
            return g if part == 1.0 else registry["times"](g, part)
        d = self.partial(node, i)
        if self.record:
            if np.iscomplexobj(d) if not hasattr(d, "dtype") else d.dtype.kind == "c":
                d = registry["conjugate"](d)
            value = registry["times"](g, d)
            if type(part) is Factor and part.scale != 1.0:
                value = value * part.scale
            return value
        return product.times(g, d, part.scale if type(part) is Factor else 1.0, True)

    def partial(self, node, i):
        """The value of a partial derivative that is not constant, without its scale."""
        part = node.prim.partials[i]
        if type(part) is Factor:
            return self.saved(node, part.place)
        return self.call_rule(part, node, None, None)

    def saved(self, node, place):
        """A kept value, tracked where the pass records and it depends on a level below."""
        if place < 0:  # ANS_PLACE
            if self.record and node.level < self.level:
                return box(node.ans, node)
            return node.ans
        kept = node.kept(place)
        value = kept_value(kept, node, place) if type(kept) is Guarded else kept
        if self.record:
            parent = node.parent(place)
            if parent is not None and parent.level < self.level:
                t = box(value, parent)
                t._borrowed = value is not kept
                return t
        return value

    def call_rule(self, rule, node, g, wanted):
        if self.quiet is None and not node.prim.linear:
            # a local derivative may well be infinite; strong zero or the user sees to it
            self.quiet = error_state.get()
            error_state.set(QUIET)
        args = []
        for j in range(len(rule.names)):
            kind = rule.kinds[j]
            if kind == GIVEN:
                args.append(g)
            elif kind == VALUE:
                args.append(self.saved(node, rule.places[j]))
            elif kind == LIKE:
                args.append(node.like_of(rule.places[j]))
            elif kind == PARAM:
                name = rule.names[j]
                args.append(kept_value(node.params[name], node, name))
            elif kind == WANTED:
                args.append(wanted)
            elif kind == ALL_LIKES:
                args.append([node.like_of(i) for i in range(node.count)])
            else:
                args.append([self.saved(node, i) for i in range(node.count)])
        return rule.fn(*args)

    def pull_rules(self, node, acc):
        """Run the VJP rules of an operation that is not elementwise."""
        prim = node.prim
        targets = []
        for i in range(node.count):
            p = node.parent(i)
            targets.append(None if p is None or not self.useful(p) else self.acc_of(p))
        wanted = [target is not None for target in targets]
        if prim.vjp_all is not None:
            values = self.call_rule(prim.vjp_all, node, acc.total, wanted)
        for i in range(len(targets)):
            if targets[i] is None:
                continue
            if prim.vjp_all is not None:
                value = values[i]
            else:
                rule = prim.vjps.get(i)
                if rule is None:
                    raise NoRuleError(op=prim.name, argument=i)
                value = self.call_rule(rule, node, acc.total, wanted)
            if value is None:
                continue
            value = as_array(value)
            if not prim.broadcasts and value.shape != node.like_of(i).shape:
                raise ShapeMismatchError(
                    given=value.shape, expected=node.like_of(i).shape, op=prim.name, argument=i,
                    remedy="its VJP rule has to return a cotangent of the operand's shape",
                )  # fmt: skip
            self.add(targets[i], fit(value, node.like_of(i)), False)

    def pull_scatter(self, node, acc):
        """An indexed read: its cotangent goes to those places of the parent's, and nowhere else."""
        target = self.acc_of(node.first)
        index = kept_value(node.params, node, "index")
        like = node.like_first
        if self.record:
            if target.scattered is None:
                target.scattered = []
            target.scattered.append((index, acc.total, like))
            return
        if target.total is None or not target.owned:
            if target.total is None:
                target.total = layout.zeros(like.shape, like.dtype)
            else:
                target.total = np.array(target.total)
            target.owned = True
        if type(index) is int and len(like.shape) == 1:
            accumulate.add_item(target.total, index, acc.total)
        else:
            accumulate.add_at(target.total, index, acc.total)

    def gather(self, acc):
        """Turn the indexed contributions of a recording pass into one operation."""
        indices = tuple([index for index, _, _ in acc.scattered])
        values = [value for _, value, _ in acc.scattered]
        like = acc.scattered[0][2]
        acc.scattered = None
        self.add(
            acc, registry["scatter"](*values, indices=indices, shape=like.shape, dtype=like.dtype), False
        )

    def run_hooks(self, node, acc):
        self.report_errors()
        for hook in list(node.hooks):
            # neither what a hook gets nor what it returns stays the cotangent itself: it may write both
            before = acc.total
            before = TensorRead(before).view() if isinstance(before, np.ndarray) else twin(before)
            after = hook(before)
            acc.owned = False
            if after is None:
                continue
            after = twin(after) if self.record and hasattr(after, "_node") else plain_copy(after)
            if after.shape != before.shape:
                raise ShapeMismatchError(
                    given=after.shape, expected=before.shape, op="hook",
                    remedy="return a gradient of the same shape, or None to keep it",
                )  # fmt: skip
            acc.total = after if after.dtype == before.dtype else registry["cast"](after, dtype=before.dtype)
