"""Check derivative rules against finite differences and against each other.

`check_grads` is what tenferro's own operations are tested with; use it on yours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .transforms import jvp, vjp
from .tree import leaves_of, map_leaves

__all__ = ["GradientCheckError", "check_grads", "check_jvp", "check_vjp"]

#: By the precision of the coarsest argument: relative and absolute tolerance.
TOLERANCE = {np.dtype(np.float32): (2e-3, 2e-3), np.dtype(np.float64): (2e-6, 2e-6)}


class GradientCheckError(AssertionError):
    """A derivative differs from what it is compared with, or has another shape or dtype."""


def check_jvp(
    f: Callable, args: Sequence, *, rtol: float | None = None, atol: float | None = None,
    eps: float = 1e-6, seed: int = 0,
) -> None:  # fmt: skip
    """Check the forward derivative of a function against central differences.

    Parameters
    ----------
    f : callable
        From arrays (or containers of them) to arrays.
    args : sequence
        Where to check; every leaf is an array or number of a floating or complex dtype.
    rtol, atol : float, optional
        By default 2e-6, or 2e-3 where an argument is of single precision.
    eps : float, default 1e-6
        The half step, relative to an argument of size 1.
    seed : int, default 0
        Of the random direction.

    Raises
    ------
    GradientCheckError
        The two differ, or the tangent's shape or dtype is not the value's.

    Examples
    --------
    >>> import numpy as np
    >>> from tenferro.testing import check_jvp
    >>> check_jvp(np.sin, (np.array([0.5, 1.0]),))
    """
    args = tuple(args)
    rng = np.random.default_rng(seed)
    v = map_leaves(lambda x: direction(rng, x), args)
    value, tangent = jvp(f, args, v)
    compare_kind(value, tangent, "tangent", "value")
    expected = difference(f, args, v, eps)
    compare(tangent, expected, "jvp and finite differences", *tolerance(args, rtol, atol))


def check_vjp(
    f: Callable, args: Sequence, *, rtol: float | None = None, atol: float | None = None,
    eps: float = 1e-6, seed: int = 0,
) -> None:  # fmt: skip
    """Check the reverse derivative of a function: <u, J v> by differences equals <Jᵀ u, v>.

    Parameters
    ----------
    f, args, rtol, atol, eps, seed
        As for `check_jvp`.

    Raises
    ------
    GradientCheckError
        The two differ, or a gradient's shape or dtype is not its argument's.

    Examples
    --------
    >>> import numpy as np
    >>> from tenferro.testing import check_vjp
    >>> check_vjp(np.sin, (np.array([0.5, 1.0]),))
    """
    args = tuple(args)
    rng = np.random.default_rng(seed)
    v = map_leaves(lambda x: direction(rng, x), args)
    value, pullback = vjp(f, *args)
    u = map_leaves(lambda y: direction(rng, y), value)
    gradients = pullback(u)
    compare_kind(args, gradients, "gradient", "argument")
    left = inner(u, difference(f, args, v, eps))
    right = inner(gradients, v)
    compare(right, left, "<vjp(u), v> and <u, finite differences>", *tolerance(args, rtol, atol))


def check_grads(
    f: Callable, args: Sequence, *, order: int = 2, modes: Sequence[str] = ("forward", "reverse"),
    rtol: float | None = None, atol: float | None = None, eps: float = 1e-6, seed: int = 0,
) -> None:  # fmt: skip
    """Check a function's derivatives in both modes, and theirs in turn, up to an order.

    Parameters
    ----------
    f : callable
        From arrays (or containers of them) to arrays.
    args : sequence
        Where to check.
    order : int, default 2
    modes : sequence of {"forward", "reverse"}
    rtol, atol, eps, seed
        As for `check_jvp`.

    Raises
    ------
    GradientCheckError
        Some derivative is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from tenferro.testing import check_grads
    >>> check_grads(lambda x, y: x * np.sin(y), (np.array([0.5, 1.0]), 2.0))
    """
    if order < 1 or not set(modes) <= {"forward", "reverse"} or not modes:
        raise ValueError(
            f"order must be at least 1 and modes among 'forward', 'reverse'; given {order}, {modes}"
        )
    args = tuple(args)
    rng = np.random.default_rng(seed + 1)
    more: dict[str, Any] = {"rtol": rtol, "atol": atol, "eps": eps, "seed": seed}
    if "forward" in modes:
        check_jvp(f, args, **more)
        if order > 1:
            v = map_leaves(lambda x: direction(rng, x), args)
            check_grads(lambda *a: jvp(f, a, alike(v, a))[1], args, order=order - 1, modes=modes, **more)
    if "reverse" in modes:
        check_vjp(f, args, **more)
        if order > 1:
            u = map_leaves(lambda y: direction(rng, y), f(*args))

            def pulled(*a):
                value, pullback = vjp(f, *a)
                return pullback(alike(u, value))

            check_grads(pulled, args, order=order - 1, modes=modes, **more)


def direction(rng: np.random.Generator, x: Any) -> Any:
    """A random tangent (or cotangent) of x's shape and dtype."""
    x = as_float(x)
    v = rng.uniform(0.5, 1.0, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    if x.dtype.kind == "c":
        v = v + 1j * rng.uniform(-1.0, 1.0, x.shape)
    return v.astype(x.dtype)[()] if x.ndim == 0 else v.astype(x.dtype)


def alike(v: Any, x: Any) -> Any:
    """v's leaves in the dtypes of x's: the differences evaluate in double precision."""
    dtypes = iter([leaf.dtype if hasattr(leaf, "dtype") else as_float(leaf).dtype for leaf in leaves_of(x)])
    return map_leaves(lambda leaf: np.asarray(leaf).astype(next(dtypes))[()], v)


def as_float(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(float) if x.dtype.kind in "iub" else x


def difference(f: Callable, args: tuple, v: tuple, eps: float) -> Any:
    """The derivative of f along v by central differences in double precision, extrapolated once."""

    def along(h):
        moved = [double(x) + h * double(t) for x, t in zip(leaves_of(args), leaves_of(v), strict=True)]
        rest = iter(moved)
        return [double(y) for y in leaves_of(f(*map_leaves(lambda _: next(rest), args)))]

    def central(h):
        with np.errstate(all="ignore"):
            return [(a - b) / (2 * h) for a, b in zip(along(h), along(-h), strict=True)]

    # Richardson: the h² term cancels between steps h and 2h, so the steps may be larger
    h = 100 * eps
    fine, coarse = central(h), central(2 * h)
    with np.errstate(all="ignore"):
        return [(4 * a - b) / 3 for a, b in zip(fine, coarse, strict=True)]


def double(x: Any) -> Any:
    x = as_float(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)[()]


def inner(a: Any, b: Any) -> float:
    """The real inner product Re Σ conj(a) b, over all leaves."""
    pairs = zip(leaves_of(a), leaves_of(b), strict=True)
    return float(sum(np.sum((np.conj(double(x)) * double(y)).real) for x, y in pairs))


def tolerance(args: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    coarse = any(as_float(x).dtype in (np.float32, np.complex64) for x in leaves_of(args))
    default = TOLERANCE[np.dtype(np.float32 if coarse else np.float64)]
    return (default[0] if rtol is None else rtol), (default[1] if atol is None else atol)


def compare_kind(like: Any, given: Any, what: str, of: str) -> None:
    """Shapes and dtypes of two nests agree."""
    a, b = leaves_of(like), leaves_of(given)
    if len(a) != len(b):
        raise GradientCheckError(f"{len(b)} {what}s for {len(a)} {of}s")
    for x, y in zip(a, b, strict=True):
        x, y = as_float(x), np.asarray(y)
        if x.shape != y.shape or x.dtype != y.dtype:
            raise GradientCheckError(
                f"the {what} has shape {y.shape} and dtype {y.dtype}, its {of} {x.shape} and {x.dtype}"
            )


def compare(given: Any, expected: Any, what: str, rtol: float, atol: float) -> None:
    for x, y in zip(leaves_of(given), leaves_of(expected), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        scale = max(1.0, float(np.max(np.abs(y), initial=0.0))) if np.all(np.isfinite(y)) else 1.0
        if not np.allclose(x, y, rtol=rtol, atol=atol * scale, equal_nan=False):
            worst = np.max(np.abs(x - y), initial=0.0)
            raise GradientCheckError(f"{what} differ by up to {worst:.3g}:\n{x}\nagainst\n{y}")
