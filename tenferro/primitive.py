"""Primitives: an operation's forward together with its derivative rules, and their registry.

Two forms cover every operation.  An elementwise one is a ufunc with one partial derivative per
operand, from which both modes follow::

    multiply = elementwise(np.multiply, Y, X)

Anything else is a forward function with a VJP and a JVP rule per operand::

    @primitive(linear=True)
    def reduce_sum(x, *, axis, keepdims): ...

    @reduce_sum.vjp
    def reduce_sum_vjp(g, x_like, axis, keepdims): ...

A rule's parameters say what it uses, and the tape saves nothing else: ``g`` or ``t`` (the cotangent
or tangent), ``ans``, an operand by its name, ``<operand>_like`` for its shape and dtype alone, and
the forward's keyword parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ._kernels import Loop

#: Every primitive by name.  Operators and the tape look their primitives up here.
registry: dict[str, Primitive] = {}

#: What a NumPy function becomes when an argument is tracked; dispatch and namespace derive from it.
functions: dict[Any, Callable] = {}

#: The primitives that NumPy functions are when they are called with one operand and nothing else.
direct: dict[Any, Primitive] = {}


class Like:
    """The shape and dtype of an operand, without its values."""

    __slots__ = ("dtype", "shape")


def new_like(shape, dtype):
    like = Like.__new__(Like)
    like.shape = shape
    like.dtype = dtype
    return like


#: The place of the result among what a rule may use; the operands have 0, 1, ...
ANS_PLACE = -1

# What a rule's parameter stands for.
GIVEN = 0  # the cotangent or tangent
VALUE = 1  # an operand's value, or the result's
LIKE = 2  # an operand's shape and dtype
PARAM = 3  # a keyword parameter of the operation
ALL_VALUES = 4  # of variadic operands
ALL_LIKES = 5
WANTED = 6  # which operands want a cotangent


class Factor:
    """A partial derivative that is a number times an operand or the result."""

    __slots__ = ("place", "scale")

    def __init__(self, scale, place):
        self.scale = scale
        self.place = place

    def __rmul__(self, number):
        return Factor(number * self.scale, self.place)


X = Factor(1.0, 0)
Y = Factor(1.0, 1)
ANS = Factor(1.0, ANS_PLACE)


class Rule:
    """A rule function and, for each of its parameters, where the tape finds it."""

    __slots__ = ("fn", "kinds", "names", "needs_all", "places")

    def __init__(self, fn, operands, variadic=None, params=()):
        self.fn = fn
        self.kinds = []
        self.names = list(inspect.signature(fn).parameters)
        self.places = []
        self.needs_all = False
        for name in self.names:
            place = 0
            if name in ("g", "t"):
                kind = GIVEN
            elif name == "ans":
                kind, place = VALUE, ANS_PLACE
            elif name == "wanted":
                kind = WANTED
            elif variadic and name == variadic:
                kind = ALL_VALUES
                self.needs_all = True
            elif variadic and name == variadic + "_like":
                kind = ALL_LIKES
            elif name in operands:
                kind, place = VALUE, operands.index(name)
            elif name.endswith("_like") and name[:-5] in operands:
                kind, place = LIKE, operands.index(name[:-5])
            elif name in params:
                kind = PARAM
            else:
                known = ["g", "t", "ans", *operands, *[o + "_like" for o in operands], *params]
                if variadic:
                    known += [variadic, variadic + "_like", "wanted"]
                raise TypeError(
                    f"{fn.__name__}: unknown parameter {name!r}; it may be one of {', '.join(known)}"
                )
            self.kinds.append(kind)
            self.places.append(place)


class Primitive:
    """An operation with its forward and its rules.

    Parameters
    ----------
    name : str
        Unique in the registry.
    forward : callable
        From plain operands and keyword parameters to a plain array.
    operands : sequence of str
        The names of the differentiable positional parameters.
    variadic : str or None
        The name of ``*operands``, where there are any number of them.
    linear : bool
        The operation is linear in all its operands taken together: its JVP is its forward.
    multilinear : bool
        The operation is linear in each operand alone.
    view : bool
        The result may share memory with the first operand.
    broadcasts : bool
        Operands are broadcast, so that a VJP rule may return a cotangent of the result's shape.
        Otherwise a rule's result must have exactly the operand's shape.
    """

    def __init__(
        self,
        name,
        forward,
        operands,
        variadic=None,
        linear=False,
        multilinear=False,
        view=False,
        broadcasts=False,
    ):
        if name in registry:
            raise ValueError(f"a primitive named {name!r} exists already; give this one another name")
        self.name = name
        self.forward = forward
        self.operands = list(operands)
        self.variadic = variadic
        self.params = {}
        if forward is not None:
            for parameter in inspect.signature(forward).parameters.values():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    self.params[parameter.name] = parameter.default
        self.defaults = {k: v for k, v in self.params.items() if v is not inspect.Parameter.empty}
        self.linear = linear
        self.multilinear = multilinear
        self.view = view
        self.broadcasts = broadcasts
        self.loop = None
        self.partials = None
        self.cached_needs = {}
        self.vjps = {}
        self.jvps = {}
        self.vjp_all = None
        self.scatter = False
        self.spread = False
        self.same_operand = None
        self.keep_x = self.keep_y = self.keep_both = 0
        registry[name] = self

    def __repr__(self):
        return f"<primitive {self.name}>"

    def __call__(self, *args, **params):
        """Apply the operation to plain or tracked operands."""
        for a in args:
            if isinstance(a, _tracked):
                return _apply(self, args, params)
        return self.forward(*args, **params)

    def vjp(self, fn_or_argnum):
        """Declare the VJP rule of one operand (of the first, as a bare decorator)."""
        return self._declare(self.vjps, fn_or_argnum)

    def jvp(self, fn_or_argnum):
        """Declare the JVP rule of one operand (of the first, as a bare decorator)."""
        return self._declare(self.jvps, fn_or_argnum)

    def vjp_of_all(self, fn):
        """Declare one VJP rule that returns the contributions to all operands."""
        self.vjp_all = Rule(fn, self.operands, self.variadic, self.params)
        return fn

    def partial(self, argnum):
        """Declare an elementwise operation's partial derivative in one operand, for both modes.

        The other way to an elementwise primitive, for a forward with parameters, with more than two
        operands, or that is no ufunc; an operand without a partial is refused in a pass.
        """

        def declare(fn):
            partials = list(self.partials or [None] * len(self.operands))
            partials[argnum] = Rule(fn, self.operands, self.variadic, self.params)
            self.partials = tuple(partials)
            return fn

        return declare

    def keeps_all(self):
        """Whether variadic operands are kept: some rule, or the multilinear JVP, uses their values."""
        return self.multilinear or (self.vjp_all is not None and self.vjp_all.needs_all)

    def _declare(self, table, fn_or_argnum):
        if callable(fn_or_argnum):
            table[0] = Rule(fn_or_argnum, self.operands, self.variadic, self.params)
            return fn_or_argnum

        def declare(fn):
            table[fn_or_argnum] = Rule(fn, self.operands, self.variadic, self.params)
            return fn

        return declare

    def rules_for(self, argnum):
        """The rules that a tracked operand ``argnum`` may run, in either mode."""
        if self.partials is not None:
            rule = self.partials[argnum]
            return [rule] if type(rule) is Rule else []
        rules = [self.vjp_all or self.vjps.get(argnum), self.jvps.get(argnum)]
        return [rule for rule in rules if rule is not None]

    def needs(self, argnum):
        """What the tape has to keep for a tracked operand.

        Returns
        -------
        tuple
            (places whose values are kept, whether ``ans`` is kept)
        """
        if argnum in self.cached_needs:
            return self.cached_needs[argnum]
        places: set[int] = set()
        ans = False
        if self.partials is not None and type(self.partials[argnum]) is Factor:
            place = self.partials[argnum].place
            if place == ANS_PLACE:
                ans = True
            else:
                places.add(place)
        if self.multilinear:
            places.update(k for k in range(len(self.operands)) if k != argnum)
        for rule in self.rules_for(argnum):
            used = {place for kind, place in zip(rule.kinds, rule.places, strict=True) if kind == VALUE}
            places |= used - {ANS_PLACE}
            ans = ans or ANS_PLACE in used
        self.cached_needs[argnum] = (tuple(sorted(places)), ans)
        return self.cached_needs[argnum]


_tracked: Any = ()
_apply: Any = None


def install(tracked, apply):
    """Tell the primitives what a tracked operand is and how it is recorded (once, by `eager`)."""
    global _tracked, _apply
    _tracked = tracked
    _apply = apply


def primitive(
    fn=None, *, name=None, linear=False, multilinear=False, view=False, broadcasts=False
) -> Any:  # fmt: skip
    """Make a primitive of a forward function; its positional parameters are the operands.

    A keyword-only parameter is not differentiated: it is part of the operation.
    """
    if fn is None:
        return lambda f: primitive(
            f, name=name, linear=linear, multilinear=multilinear, view=view, broadcasts=broadcasts
        )
    operands = []
    variadic = None
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            variadic = parameter.name
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            if parameter.default is not parameter.empty:
                raise TypeError(
                    f"{fn.__name__}: the operand {parameter.name!r} has a default; make it keyword-only "
                    "(after a *) if it is a parameter, or leave the default out"
                )
            operands.append(parameter.name)
    return Primitive(name or fn.__name__, fn, operands, variadic, linear, multilinear, view, broadcasts)


def elementwise(ufunc: np.ufunc, *partials: float | Factor | Callable | None, name=None) -> Primitive:
    """Make a primitive of a ufunc and its partial derivatives, one per operand.

    Parameters
    ----------
    ufunc : numpy.ufunc
    *partials : float, Factor, callable or None
        A number where the derivative is constant; ``X``, ``Y`` or ``ANS``, or a number times one of
        them; a function of any of ``x``, ``y``, ``ans``; None where no rule is known, so that a
        tracked operand there is a `NoRuleError` in a pass.
    name : str, optional
        Where it is not the ufunc's.
    """
    operands = ["x", "y"][: ufunc.nin]
    if len(partials) != ufunc.nin:
        raise TypeError(
            f"{ufunc.__name__} has {ufunc.nin} operands; given {len(partials)} partial derivatives"
        )
    loop = Loop(ufunc)
    forward = loop.call1 if ufunc.nin == 1 else loop.call2
    op = Primitive(name or ufunc.__name__, forward, operands)
    op.loop = loop
    op.partials = tuple(
        Rule(p, operands) if callable(p) else float(p) if isinstance(p, int) else p for p in partials
    )
    functions[ufunc] = op
    op.keep_x = _keep(op, 0)
    if ufunc.nin == 2:
        op.keep_y = _keep(op, 1)
    op.keep_both = op.keep_x | op.keep_y
    return op


def implements(*originals: Callable):
    """Declare that a function, composed of primitives, is what these NumPy functions become."""

    def declare(fn):
        for original in originals:
            functions[original] = fn
        return fn

    return declare


def _keep(op, argnum):
    """`Primitive.needs` of an elementwise operand as bits: 1 for x, 2 for y, 4 for ans."""
    places, ans = op.needs(argnum)
    return sum(1 << place for place in places) | (4 if ans else 0)
