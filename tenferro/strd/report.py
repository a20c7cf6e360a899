"""Running the job: every chosen problem from every chosen start, compared with the certified values."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tenferro import jacobian
from tenferro.strd.fit import levenberg_marquardt, require_scipy, scipy_least_squares, standard_deviations
from tenferro.strd.problems import NAMES, Problem, StrdInputError, load, resolve

__all__ = ["CAP", "HEADER", "SOLVERS", "THRESHOLD", "Report", "Result", "digits", "run", "table_row"]

SOLVERS = {"lm": levenberg_marquardt, "scipy": scipy_least_squares}

# NIST certifies 11 digits; nobody can agree with more.
CAP = 11.0
# What a fit must reach.
THRESHOLD = 6.0


def digits(found: ArrayLike, certified: ArrayLike) -> float:
    """Count the decimal digits to which values agree with certified ones, the worst of them.

    Parameters
    ----------
    found : array_like of float, shape (p,)
        What was computed.
    certified : array_like of float, shape (p,)
        What is right, none of them zero.

    Returns
    -------
    float
        The smallest ``-log10(|found - certified| / |certified|)``, at least 0 and at most 11; 0 for nan.

    Examples
    --------
    >>> digits([1.0, 2.002], [1.0, 2.0])
    3.0
    """
    certified = np.asarray(certified, dtype=np.float64)
    with np.errstate(divide="ignore"):
        agreement = -np.log10(np.abs(np.asarray(found, dtype=np.float64) - certified) / np.abs(certified))
    return round(
        float(np.clip(np.nan_to_num(agreement, nan=0.0, posinf=CAP, neginf=0.0), 0.0, CAP).min()), 12
    )


@dataclass(frozen=True, eq=False)
class Result:
    """One fit and how it compares.

    Attributes
    ----------
    problem : Problem
        What was fitted.
    start : {1, 2}
        The starting point's number.
    parameters, deviations : ndarray of float64, shape (p,)
        The parameters found and their standard deviations.
    rss : float
        The residual sum of squares.
    iterations, evaluations : int
        Evaluations of the Jacobian and of the model.
    converged : bool
        Whether the solver says so.
    message : str
        Why the solver stopped.
    parameter_digits, deviation_digits : float
        Digits of agreement with the certified values, the worst parameter's (see `digits`).
    seconds : float
        Wall time of the fit.
    """

    problem: Problem
    start: int
    parameters: NDArray[np.float64]
    deviations: NDArray[np.float64]
    rss: float
    iterations: int
    evaluations: int
    converged: bool
    message: str
    parameter_digits: float
    deviation_digits: float
    seconds: float

    @property
    def reached(self) -> bool:
        """Whether every parameter agrees to 6 digits."""
        return self.parameter_digits >= THRESHOLD

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain values that JSON can hold; None stands for what is not finite."""
        return {
            "problem": self.problem.name,
            "difficulty": self.problem.difficulty,
            "start": self.start,
            "iterations": self.iterations,
            "evaluations": self.evaluations,
            "converged": bool(self.converged),
            "message": self.message,
            "parameter_digits": self.parameter_digits,
            "deviation_digits": self.deviation_digits,
            "reached": self.reached,
            "parameters": [_finite(value) for value in self.parameters],
            "deviations": [_finite(value) for value in self.deviations],
            "rss": _finite(self.rss),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class Report:
    """All results of one run, in the order in which they were computed.

    Attributes
    ----------
    solver : {"lm", "scipy"}
        Which solver ran.
    results : list of Result
        One per problem and start.
    """

    solver: str
    results: list[Result] = field(default_factory=list)

    def count(self, start: int) -> tuple[int, int]:
        """Return how many fits from a start reached 6 digits, and how many there were.

        Parameters
        ----------
        start : {1, 2}
            The starting point's number.

        Returns
        -------
        tuple of int
            Reached, of how many.
        """
        fits = [result for result in self.results if result.start == start]
        return sum(result.reached for result in fits), len(fits)

    @property
    def starts(self) -> list[int]:
        """The starting points that were used."""
        return sorted({result.start for result in self.results})

    @property
    def passed(self) -> bool:
        """Whether every chosen problem reached 6 digits from start 2 (start 1 if only that was run)."""
        reached, total = self.count(max(self.starts, default=2))
        return reached == total > 0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values that JSON can hold."""
        return {
            "solver": self.solver,
            "threshold": THRESHOLD,
            "passed": self.passed,
            "reached": {str(start): self.count(start)[0] for start in self.starts},
            "total": {str(start): self.count(start)[1] for start in self.starts},
            "results": [result.as_dict() for result in self.results],
        }


def run(
    problems: Iterable[str] | None = None,
    *,
    starts: Iterable[int] = (1, 2),
    solver: str = "lm",
    data: str | Path | None = None,
    mode: str = "auto",
    on_start: Callable[[Problem, int, int, int], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Report:
    """Fit NIST's problems with Jacobians from tenferro and compare with the certified values.

    Parameters
    ----------
    problems : iterable of str, optional
        Names, in any case; all 27 by default.
    starts : iterable of int
        Which of the two starting points to use.
    solver : {"lm", "scipy"}
        The package's Levenberg-Marquardt or `scipy.optimize.least_squares`.
    data : path, optional
        A directory to read the ``.dat`` files from; those in the package by default.
    mode : {"auto", "forward", "reverse"}
        How `tenferro.jacobian` computes.
    on_start : callable, optional
        Called with the problem, the start, and this fit's number of how many, before each fit.
    on_result : callable, optional
        Called with each `Result` as it comes.

    Returns
    -------
    Report
        One result per problem and start.

    Raises
    ------
    StrdInputError
        If a name, a start, the solver or a data file is unusable; raised before anything is fitted.
    MissingExtraError
        If the solver is SciPy's and SciPy is not installed.

    Examples
    --------
    >>> from tenferro.strd import run
    >>> report = run(["Misra1a", "BoxBOD"], starts=[2])
    >>> report.passed, report.count(2)
    (True, (2, 2))
    """
    if isinstance(problems, str):
        raise StrdInputError(
            given=f"problems={problems!r}", expected="a list of names", remedy=f"pass [{problems!r}]"
        )
    if solver not in SOLVERS:
        raise StrdInputError(
            given=f"solver={solver!r}", expected="'lm' or 'scipy'", remedy="pass one of these"
        )
    starts = sorted(set(starts))
    if not starts or not set(starts) <= {1, 2}:
        raise StrdInputError(given=f"starts={starts}", expected="1, 2 or both", remedy="pass starts=(1, 2)")
    names = list(NAMES) if problems is None else list(dict.fromkeys(map(resolve, problems)))
    if not names:
        raise StrdInputError(given="problems=[]", expected="at least one name", remedy="pass None for all 27")
    chosen = [load(name, data) for name in names]
    if solver == "scipy":
        require_scipy()

    report = Report(solver)
    for problem in chosen:
        for start in starts:
            if on_start is not None:
                on_start(problem, start, len(report.results) + 1, len(chosen) * len(starts))
            report.results.append(_fit(problem, start, solver, mode))
            if on_result is not None:
                on_result(report.results[-1])
    return report


def _fit(problem: Problem, start: int, solver: str, mode: str) -> Result:
    began = time.perf_counter()
    fit = SOLVERS[solver](
        problem.predict, jacobian(problem.predict, mode=mode), problem.y, problem.starts[start - 1]
    )
    deviations = standard_deviations(fit.residuals, fit.jacobian)
    return Result(
        problem=problem,
        start=start,
        parameters=fit.parameters,
        deviations=deviations,
        rss=float(fit.residuals @ fit.residuals),
        iterations=fit.iterations,
        evaluations=fit.evaluations,
        converged=fit.converged,
        message=fit.message,
        parameter_digits=digits(fit.parameters, problem.certified),
        deviation_digits=digits(deviations, problem.certified_deviations),
        seconds=time.perf_counter() - began,
    )


HEADER = (
    f"{'problem':<10}{'difficulty':<12}{'start':>5}{'iterations':>12}"
    f"{'digits b':>10}{'digits sd':>11}{'time':>10}"
)


def table_row(result: Result) -> str:
    """Format one result as a line under `HEADER`.

    Parameters
    ----------
    result : Result
        What to format.

    Returns
    -------
    str
        A line of plain ASCII, without its end.
    """
    note = "" if result.reached else f"  below {THRESHOLD:.0f} digits ({result.message})"
    return (
        f"{result.problem.name:<10}{result.problem.difficulty:<12}{result.start:>5}{result.iterations:>12}"
        f"{result.parameter_digits:>10.1f}{result.deviation_digits:>11.1f}{result.seconds:>8.2f} s{note}"
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
