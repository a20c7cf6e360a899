"""Nonlinear least squares: a Levenberg-Marquardt solver in NumPy, and SciPy's by choice.

Both take the model and its Jacobian as functions and know nothing of where the Jacobian comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenferro.errors import TenferroError

__all__ = [
    "Fit",
    "MissingExtraError",
    "levenberg_marquardt",
    "require_scipy",
    "scipy_least_squares",
    "standard_deviations",
]

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)


class MissingExtraError(TenferroError, ImportError):
    """A library that one choice needs is not installed; the message says how to install it."""


@dataclass(frozen=True, eq=False)
class Fit:
    """What a solver found.

    Attributes
    ----------
    parameters : ndarray of float64, shape (p,)
        The last accepted point.
    residuals : ndarray of float64, shape (n,)
        Model minus observations there.
    jacobian : ndarray of float64, shape (n, p)
        Derivative of the model there.
    iterations : int
        How many times the Jacobian was evaluated.
    evaluations : int
        How many times the model was evaluated.
    converged : bool
        Whether the solver stopped because it was done.
    message : str
        Why it stopped.
    """

    parameters: Array
    residuals: Array
    jacobian: Array
    iterations: int
    evaluations: int
    converged: bool
    message: str


def levenberg_marquardt(
    model: Callable[[Any], Any],
    jacobian: Callable[[Any], Any],
    y: Array,
    start: Array,
    *,
    max_evaluations: int = 10_000,
) -> Fit:
    """Minimise the sum of squares of ``model(b) - y`` over `b`.

    Parameters
    ----------
    model : callable
        Takes `b`, shape ``(p,)``, and returns shape ``(n,)``.
    jacobian : callable
        Takes `b` and returns the model's derivative, shape ``(n, p)``.
    y : ndarray of float64, shape (n,)
        The observations.
    start : ndarray of float64, shape (p,)
        The first guess.
    max_evaluations : int
        Give up after so many evaluations of the model.

    Returns
    -------
    Fit
        The point where it stopped.

    Notes
    -----
    The damping is chosen as in J. J. Moré, "The Levenberg-Marquardt algorithm: implementation and theory"
    (1978): a step minimises the linear model within a trust region, shaped by the largest norm that each
    column of the Jacobian has had. One singular value decomposition per Jacobian serves every damping tried.

    The search is over when the residuals are orthogonal to the Jacobian's columns (the criterion of D. M.
    Bates and D. G. Watts, 1981) within the rounding of the sum of squares. From there on that sum cannot tell
    a better point from a worse one, so Gauss-Newton steps are taken for as long as they get shorter.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> fit = levenberg_marquardt(
    ...     lambda b: b[0] * np.exp(b[1] * x),
    ...     lambda b: np.stack([np.exp(b[1] * x), b[0] * x * np.exp(b[1] * x)], axis=1),
    ...     y=3.0 * np.exp(-0.5 * x),
    ...     start=np.array([1.0, 0.0]),
    ... )
    >>> fit.converged, fit.parameters.round(12).tolist()
    (True, [3.0, -0.5])
    """
    iterations = evaluations = 1

    def stop(converged: bool, message: str) -> Fit:
        return Fit(b, r, jac, iterations, evaluations, converged, message)

    # A step may leave the model's domain; what is not finite there is rejected, so no warning is due.
    with np.errstate(all="ignore"):
        b = np.array(start, dtype=np.float64)
        r = np.asarray(model(b)) - y
        jac = np.asarray(jacobian(b))
        if not (np.all(np.isfinite(r)) and np.all(np.isfinite(jac))):
            return stop(False, "not finite at the start")
        scale = np.zeros(b.size)
        radius: float | None = None
        shortest = np.inf
        while True:
            scale = np.maximum(scale, np.linalg.norm(jac, axis=0))
            d = np.where(scale > 0, scale, 1.0)
            u, s, vt = np.linalg.svd(jac / d, full_matrices=False)
            keep = s > EPS * r.size * s[0]  # a parameter that has no effect here stays where it is
            s, vt, g = s[keep], vt[keep], u.T[keep] @ r
            noise = 10 * EPS * np.linalg.norm(r) * (np.linalg.norm(r) + np.linalg.norm(y))
            polish = g @ g <= noise
            if radius is None:
                radius = float(np.linalg.norm(d * b)) or 1.0
            while True:  # until a step is accepted
                w = -s * g / (s * s + (0.0 if polish else _damping(s, g, radius)))
                length = float(np.linalg.norm(w))
                step = w @ vt / d
                r_new = np.asarray(model(b + step)) - y
                evaluations += 1
                # A sum of products: the difference of the two sums of squares would drown in rounding.
                decrease = float((r - r_new) @ (r + r_new))
                predicted = -float((w * s) @ (2 * g + w * s))
                if polish:
                    if not (length < shortest and decrease >= -noise):
                        return stop(True, "residuals orthogonal to the Jacobian")
                    accepted, shortest = True, length
                else:
                    accepted = decrease > 1e-4 * predicted
                    if not decrease >= 0.25 * predicted:  # also where it is nan
                        radius = 0.25 * length
                    elif decrease > 0.75 * predicted:
                        radius = max(radius, 2 * length)
                if accepted:
                    jac_new = np.asarray(jacobian(b + step))
                    iterations += 1
                    if np.all(np.isfinite(jac_new)):
                        break
                    radius = 0.25 * length
                if np.all(np.abs(step) <= EPS * np.abs(b)):
                    return stop(True, "no step decreases the sum of squares")
                if evaluations >= max_evaluations:
                    return stop(False, f"no convergence in {evaluations} evaluations")
            b, r, jac = b + step, r_new, jac_new
            if np.all(np.abs(step) <= EPS * np.abs(b)):
                return stop(True, "step as small as rounding")
            if evaluations >= max_evaluations:
                return stop(False, f"no convergence in {evaluations} evaluations")


def _damping(s: Array, g: Array, radius: float) -> float:
    """Find the damping that makes the step as long as `radius` within a tenth; 0 where it is shorter anyway.

    Newton's method on the reciprocal of the length, which is nearly linear in the damping, kept in a bracket.
    """
    low, high = 0.0, float(np.linalg.norm(s * g)) / radius
    damping = 0.0
    for _ in range(20):
        w = s * g / (s * s + damping)
        length = float(np.linalg.norm(w))
        if abs(length - radius) <= 0.1 * radius or (damping == 0 and length <= radius):
            break
        low, high = (damping, high) if length > radius else (low, damping)
        slope = -float((w / (s * s + damping)) @ w) / length
        damping -= length / radius * (length - radius) / slope
        if not low < damping < high:
            damping = max(1e-3 * high, (low * high) ** 0.5)
    return damping


def require_scipy() -> Callable[..., Any]:
    """Import SciPy's solver, or say how to get it.

    Returns
    -------
    callable
        `scipy.optimize.least_squares`.

    Raises
    ------
    MissingExtraError
        If SciPy is not installed.
    """
    try:
        from scipy.optimize import least_squares  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError(
            given="solver 'scipy' without SciPy",
            expected="SciPy to be installed",
            remedy="run pip install 'tenferro[scipy]'",
        ) from None
    solver: Callable[..., Any] = least_squares
    return solver


def scipy_least_squares(
    model: Callable[[Any], Any],
    jacobian: Callable[[Any], Any],
    y: Array,
    start: Array,
    *,
    max_evaluations: int = 10_000,
) -> Fit:
    """Minimise the sum of squares of ``model(b) - y`` over `b` with `scipy.optimize.least_squares`.

    Parameters
    ----------
    model, jacobian, y, start, max_evaluations
        As for `levenberg_marquardt`.

    Returns
    -------
    Fit
        The point where it stopped.

    Raises
    ------
    MissingExtraError
        If SciPy is not installed.
    """
    least_squares = require_scipy()
    with np.errstate(all="ignore"):
        try:
            found = least_squares(
                lambda b: np.asarray(model(b)) - y,
                start,
                jac=lambda b: np.asarray(jacobian(b)),
                x_scale="jac",
                ftol=1e-15,
                xtol=1e-15,
                gtol=1e-15,
                max_nfev=max_evaluations,
            )
        except (ValueError, np.linalg.LinAlgError) as error:  # something that is not finite
            b = np.array(start, dtype=np.float64)
            residuals = np.asarray(model(b)) - y
            return Fit(b, residuals, np.asarray(jacobian(b)), 0, 0, False, str(error))
    return Fit(
        found.x, found.fun, found.jac, int(found.njev), int(found.nfev), found.status > 0, str(found.message)
    )


def standard_deviations(residuals: Array, jacobian: Array) -> Array:
    """Compute the standard deviations of fitted parameters.

    Parameters
    ----------
    residuals : ndarray of float64, shape (n,)
        Model minus observations at the fit, ``n > p``.
    jacobian : ndarray of float64, shape (n, p)
        Derivative of the model at the fit.

    Returns
    -------
    ndarray of float64, shape (p,)
        The square roots of the diagonal of ``inv(J.T @ J) * RSS / (n - p)``; nan if J has a column of zeros.

    Notes
    -----
    From the triangular factor of J with its columns scaled, so the condition of J is not squared.

    Examples
    --------
    >>> import numpy as np
    >>> standard_deviations(np.array([1.0, -1.0, 0.0]), np.ones((3, 1))).round(6).tolist()
    [0.57735]
    """
    n, p = jacobian.shape
    norms = np.linalg.norm(jacobian, axis=0)
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.solve(np.linalg.qr(jacobian / norms, mode="r"), np.eye(p))
        except np.linalg.LinAlgError:
            return np.full(p, np.nan)
        deviations: Array = (
            np.linalg.norm(inverse, axis=1) / norms * np.linalg.norm(residuals) / np.sqrt(n - p)
        )
        return deviations
