"""Transforms: derivatives of functions that are written with plain NumPy.

Each runs the function once on leaves of a level of its own and then makes passes over what was
recorded.  What does not depend on an enclosing transform's values comes out as plain arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._kernels import layout
from .errors import DTypeMismatchError, InvalidArgumentError, ShapeMismatchError
from .passes import twin
from .primitive import functions
from .recording import Tracked
from .trace import Trace, conjugated, normalize, structured, value_and_gradient
from .tree import leaves_of, map_leaves, same_structure


def check_function(f):
    if not callable(f):
        raise InvalidArgumentError(
            given=f"a {type(f).__name__}",
            expected="a function",
            remedy="pass the function itself: grad(f)(x)",
        )


def value_and_grad(
    f: Callable, argnums: int | Sequence[int] = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """Make a function that returns ``f``'s value and its gradient.

    Parameters
    ----------
    f : callable
        Returns one number; written with NumPy functions and operators.
    argnums : int or sequence of int, default 0
        The positional arguments to differentiate by.
    has_aux : bool, default False
        ``f`` returns (value, aux), and the result is ((value, aux), gradient).
    holomorphic : bool, default False
        ``f`` is holomorphic: return f' instead of refusing a complex value.

    Returns
    -------
    callable
        Takes ``f``'s arguments and returns (value, gradient); the gradient has the argument's
        structure, shapes and dtypes, a tuple of them for a sequence of ``argnums``.

    Raises
    ------
    NonScalarGradError
        The value has more or less than one element.
    UnsupportedDTypeError
        An argument is an integer or bool array, or the value is complex and not ``holomorphic``.

    Notes
    -----
    For complex arguments the gradient of a real loss points uphill: that of Σ|z|² is 2z.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> tn.value_and_grad(lambda x: np.sum(x * x))(np.array([2.0, 3.0]))
    (np.float64(13.0), array([4., 6.]))
    """
    check_function(f)

    @functools.wraps(f, updated=())
    def wrapped(*args, **kwargs):
        return value_and_gradient(f, args, kwargs, argnums, has_aux, holomorphic)

    return wrapped


def grad(
    f: Callable, argnums: int | Sequence[int] = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """Make a function that returns ``f``'s gradient.

    Parameters
    ----------
    f, argnums, has_aux, holomorphic
        As for `value_and_grad`.

    Returns
    -------
    callable
        Takes ``f``'s arguments and returns the gradient, or (gradient, aux) with ``has_aux``.

    Raises
    ------
    NonScalarGradError, UnsupportedDTypeError
        As for `value_and_grad`.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> tn.grad(lambda x: np.sum(np.sin(x)))(np.array([0.0, np.pi]))
    array([ 1., -1.])
    >>> tn.grad(tn.grad(lambda x: x**3))(2.0)
    np.float64(12.0)
    """
    both = value_and_grad(f, argnums, has_aux=has_aux, holomorphic=holomorphic)

    @functools.wraps(f, updated=())
    def wrapped(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def vjp(f: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """``f``'s value and its pullback: the product of a cotangent with the Jacobian.

    Parameters
    ----------
    f : callable
    *primals : array_like
        Where to differentiate; containers of arrays are fine.
    has_aux : bool, default False
        ``f`` returns (value, aux), and the result is (value, pullback, aux).

    Returns
    -------
    value : array
    pullback : callable
        Takes a cotangent of the value's structure, shapes and dtypes, any number of times, and
        returns a tuple with one gradient per primal.

    Raises
    ------
    ShapeMismatchError, DTypeMismatchError, InvalidArgumentError
        By the pullback, for a cotangent that does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> value, pullback = tn.vjp(lambda x: x * x, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    check_function(f)
    trace = Trace().run(f, tuple(primals), {}, range(len(primals)), has_aux)
    value = map_leaves(trace.outside, trace.out)
    aux = trace.aux
    # the function may have kept its handles, and rebind them before the pullback is called
    trace.out = map_leaves(own_handle, trace.out)

    def pullback(cotangent):
        outs, seeds = paired(trace.out, cotangent, "the cotangent")
        kept = [(out, seed) for out, seed in zip(outs, seeds, strict=True) if trace.depends(out)]
        if kept:
            gradients = trace.pull([out for out, _ in kept], [seed for _, seed in kept], False)
        else:
            gradients = [trace.gradient(t, None) for t in trace.leaves]
        return structured(gradients, primals, range(len(primals)), False)

    return (value, pullback, aux) if has_aux else (value, pullback)


def own_handle(out):
    return twin(out) if isinstance(out, Tracked) else out


def jvp(f: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False) -> tuple:
    """``f``'s value and the product of its Jacobian with tangents.

    Parameters
    ----------
    f : callable
    primals : tuple
        The arguments.
    tangents : tuple
        One for each primal, of its structure, shapes and dtypes.
    has_aux : bool, default False
        ``f`` returns (value, aux), and the result is (value, tangent, aux).

    Returns
    -------
    value, tangent : array
        Of ``f``'s result's structure.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> tn.jvp(np.sin, (0.0,), (2.0,))
    (np.float64(0.0), np.float64(2.0))
    """
    check_function(f)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise InvalidArgumentError(
                given=f"{name} of type {type(given).__name__}", expected="a tuple, one entry per argument",
                remedy=f"write ({name[:-1]},) for a single one",
            )  # fmt: skip
    if len(primals) != len(tangents):
        raise InvalidArgumentError(
            given=f"{len(primals)} primals and {len(tangents)} tangents", expected="as many of each",
            remedy="pass zeros for an argument that does not move",
        )  # fmt: skip
    trace = Trace().run(f, tuple(primals), {}, range(len(primals)), has_aux)
    flat: list = []
    lifted = iter(trace.leaves)
    for p, t in zip(primals, tangents, strict=True):
        mine = map_leaves(lambda _: next(lifted), p)
        flat += paired(mine, t, "a tangent")[1]

    outs = leaves_of(trace.out)
    live = [out for out in outs if trace.depends(out)]
    pushed = iter(trace.push(live, flat)) if live else iter(())

    def tangent_of(out):
        if trace.depends(out):
            return next(pushed)
        return layout.scalar(np.zeros_like(out._value if isinstance(out, Tracked) else np.asarray(out)))

    tangent = map_leaves(tangent_of, trace.out)
    value = map_leaves(trace.outside, trace.out)
    return (value, tangent, trace.aux) if has_aux else (value, tangent)


def paired(outs, given, what):
    """Two nests' leaves side by side, with the given ones checked against the others."""
    if not same_structure(outs, given):
        raise InvalidArgumentError(
            given=f"{what} whose structure is that of {given!r:.60}",
            expected="the structure of the value it belongs to",
            remedy="use the same tuples, lists and dicts",
        )  # fmt: skip
    flat_outs, flat_given = leaves_of(outs), leaves_of(given)
    return flat_outs, [check_cotangent(c, out, what) for out, c in zip(flat_outs, flat_given, strict=True)]


def check_cotangent(c, out, what):
    value = out._value if isinstance(out, Tracked) else np.asarray(out)
    if not isinstance(c, Tracked):
        weak = isinstance(c, (int, float)) and not isinstance(c, (bool, np.generic))
        c = np.array(c, value.dtype if weak else None)
    if c.shape != value.shape:
        raise ShapeMismatchError(given=c.shape, expected=value.shape, argument=what)
    if c.dtype != value.dtype:
        raise DTypeMismatchError(given=c.dtype, expected=value.dtype, argument=what)
    return c


def jacobian(f: Callable, argnums: int | Sequence[int] = 0, *, mode: str = "auto") -> Callable:
    """Make a function that returns ``f``'s Jacobian.

    Parameters
    ----------
    f : callable
        Returns one array.
    argnums : int or sequence of int, default 0
    mode : {"auto", "forward", "reverse"}
        Forward takes a sweep per input element, reverse one per output element; "auto" takes
        whichever are fewer.

    Returns
    -------
    callable
        Takes ``f``'s arguments and returns an array of the value's shape followed by the
        argument's, in the argument's structure.

    Raises
    ------
    InvalidArgumentError
        ``mode`` is none of the three, or ``f`` returns no array.

    Notes
    -----
    For complex arguments the derivative is taken as for a holomorphic function in forward mode;
    reverse mode conjugates its rows, so that both give ∂f/∂z of a holomorphic ``f``.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> tn.jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_function(f)
    if mode not in ("auto", "forward", "reverse"):
        raise InvalidArgumentError(
            given=f"mode={mode!r}",
            expected="'auto', 'forward' or 'reverse'",
            remedy="leave it out for 'auto'",
        )

    @functools.wraps(f, updated=())
    def wrapped(*args, **kwargs):
        positions, single = normalize(argnums, len(args))
        trace = Trace().run(f, args, kwargs, positions, False)
        out = trace.out
        if not isinstance(out, (Tracked, np.ndarray, np.generic, float, int, complex)):
            raise InvalidArgumentError(
                given=f"a function that returns a {type(out).__name__}", expected="one array",
                remedy="return one array (concatenate or stack several)",
            )  # fmt: skip
        shape = np.shape(out._value) if isinstance(out, Tracked) else np.shape(out)
        sizes = [t._value.size for t in trace.leaves]
        if not trace.depends(out):
            blocks = [np.zeros(shape + t._value.shape, t._value.dtype) for t in trace.leaves]
        elif mode == "forward" or (mode == "auto" and sum(sizes) <= out._value.size):
            blocks = forward_blocks(trace, out)
        else:
            blocks = reverse_blocks(trace, out)
        blocks = [b if isinstance(b, Tracked) else layout.scalar(b) for b in blocks]
        return structured(blocks, args, positions, single)

    return wrapped


def forward_blocks(trace, out):
    """A Jacobian by columns: one sweep per element of each leaf."""
    blocks = []
    zeros = [np.zeros_like(t._value) for t in trace.leaves]
    for k, t in enumerate(trace.leaves):
        columns = []
        for i in range(t._value.size):
            basis = np.zeros(t._value.shape, t._value.dtype)
            basis.flat[i] = 1
            columns.append(trace.push([out], [*zeros[:k], basis, *zeros[k + 1 :]])[0])
        blocks.append(assembled(columns, -1, out._value.shape + t._value.shape, t._value.dtype))
    return blocks


def reverse_blocks(trace, out):
    """A Jacobian by rows: one pass per element of the value."""
    rows: list[list] = [[] for _ in trace.leaves]
    for i in range(out._value.size):
        basis = np.zeros(out._value.shape, out._value.dtype)
        basis.flat[i] = 1
        for k, g in enumerate(trace.pull([out], [basis], False)):
            rows[k].append(conjugated(g) if out._value.dtype.kind == "c" else g)
    return [
        assembled(r, 0, out._value.shape + t._value.shape, t._value.dtype)
        for r, t in zip(rows, trace.leaves, strict=True)
    ]


def assembled(parts, axis, shape, dtype):
    if not parts:
        return np.zeros(shape, dtype)
    if any(isinstance(p, Tracked) for p in parts):
        return functions[np.reshape](functions[np.stack](parts, axis), shape)
    return np.stack(parts, axis).reshape(shape)


def hessian(f: Callable, argnums: int | Sequence[int] = 0) -> Callable:
    """Make a function that returns ``f``'s Hessian, by forward over reverse mode.

    Parameters
    ----------
    f : callable
        Returns one number.
    argnums : int or sequence of int, default 0

    Returns
    -------
    callable
        Takes ``f``'s arguments and returns an array of the argument's shape twice; a tuple of
        tuples of them for a sequence of ``argnums``.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> tn.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    check_function(f)

    @functools.wraps(f, updated=())
    def wrapped(*args, **kwargs):
        positions, single = normalize(argnums, len(args))
        if single:
            return jacobian(grad(f, positions[0]), positions[0], mode="forward")(*args, **kwargs)
        return tuple(jacobian(grad(f, row), positions, mode="forward")(*args, **kwargs) for row in positions)

    return wrapped


def hvp(f: Callable, argnums: int | Sequence[int] = 0) -> Callable:
    """Make a function that returns the product of ``f``'s Hessian with a vector.

    Parameters
    ----------
    f : callable
        Returns one number.
    argnums : int or sequence of int, default 0

    Returns
    -------
    callable
        Takes ``f``'s arguments and then the vector, of the argument's structure (a tuple for a
        sequence of ``argnums``); returns the product in the same structure.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> tn.hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    check_function(f)

    @functools.wraps(f, updated=())
    def wrapped(*args, **kwargs):
        if len(args) < 2:
            raise InvalidArgumentError(
                given=f"{len(args)} positional arguments", expected="the function's arguments and the vector",
                remedy="call hvp(f)(x, v)",
            )  # fmt: skip
        *primals, v = args
        positions, single = normalize(argnums, len(primals))
        gradient = grad(f, positions[0] if single else positions)

        def along(*moving):
            full = list(primals)
            for k, value in zip(positions, moving, strict=True):
                full[k] = value
            return gradient(*full, **kwargs)

        return jvp(along, tuple(primals[k] for k in positions), (v,) if single else tuple(v))[1]

    return wrapped
