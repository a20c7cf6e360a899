"""Data and fits as small multiples. Matplotlib comes with the extra ``plot`` and is imported only here."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from tenferro.strd.fit import MissingExtraError
from tenferro.strd.problems import StrdInputError, shown
from tenferro.strd.report import Report, Result

__all__ = ["check", "draw"]

DATA_COLOR = "#3b6ea5"
FIT_STYLES: dict[int, dict[str, Any]] = {
    1: {"color": "#f0b429", "linewidth": 3.0},
    2: {"color": "#b3261e", "linewidth": 1.0},
}


def check(path: str | Path) -> None:
    """Make sure that a plot can be drawn and written, before the work is done.

    Parameters
    ----------
    path : path
        The file to write.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    StrdInputError
        If the file's ending is no image format, or the file cannot be written.
    """
    formats = _figure_class()().canvas.get_supported_filetypes()
    path = Path(path)
    if path.suffix[1:].lower() not in formats:
        raise _unusable(path, "which names no image format", "a name that ends in .png, .svg or .pdf")
    existed = path.exists()
    if existed and not path.is_file():
        raise _unusable(path, "which is not a regular file", "a file to write")
    try:
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None


def draw(report: Report, path: str | Path) -> None:
    """Draw each problem's data and the fits from each start.

    Parameters
    ----------
    report : Report
        What `run` returned.
    path : path
        The file to write; its ending chooses the format.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    StrdInputError
        If the file cannot be written.
    """
    panels: dict[str, list[Result]] = {}
    for result in report.results:
        panels.setdefault(result.problem.name, []).append(result)
    columns = min(5, math.ceil(math.sqrt(len(panels))))
    rows = math.ceil(len(panels) / columns)

    figure = _figure_class()(figsize=(max(3.2 * columns, 5.0), 2.6 * rows + 0.6), layout="constrained")
    for position, results in enumerate(panels.values(), start=1):
        _panel(figure.add_subplot(rows, columns, position), results)
    handles = {}
    for axes in figure.axes:
        handles.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper right", ncols=len(handles), frameon=False
    )

    path = Path(path)
    image = io.BytesIO()
    figure.savefig(image, format=path.suffix[1:].lower(), dpi=110)
    try:
        path.write_bytes(image.getvalue())
    except OSError as error:
        raise _unwritable(path, error) from None


def _panel(axes: Any, results: list[Result]) -> None:
    problem = results[0].problem
    # Nelson has two predictors: one curve for each temperature, over time.
    x, *others = np.atleast_2d(problem.x)
    grid = np.linspace(x.min(), x.max(), 400)
    curves = (
        [grid] if not others else [np.stack([grid, np.full(400, value)]) for value in np.unique(others[0])]
    )
    for result in results:
        style = FIT_STYLES[result.start] | {
            "label": f"fit from start {result.start}",
            "zorder": 1 + result.start,
        }
        for curve in curves:
            with np.errstate(all="ignore"):
                values = problem.model.function(result.parameters, curve)
            axes.plot(grid, np.where(np.isfinite(values), values, np.nan), **style)
            style["label"] = None
    # A fit that failed may be anywhere; it must not squeeze the data into a line.
    inside = [problem.y, *(problem.predict(result.parameters) for result in results if result.reached)]
    low, high = np.min(inside), np.max(inside)
    margin = 0.08 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    axes.plot(x, problem.y, "o", color=DATA_COLOR, markersize=3, alpha=0.7, zorder=2, label="data")
    axes.set_title(problem.name, fontsize=10, loc="left")
    axes.set_title(_caption(results), fontsize=8, loc="right", color="0.35")
    axes.tick_params(labelsize=7)
    axes.set_xlabel("x" if not others else "x1, one curve for each x2", fontsize=8)
    axes.set_ylabel("log y" if problem.model.log_response else "y", fontsize=8)


def _caption(results: list[Result]) -> str:
    return " and ".join(f"{result.parameter_digits:.1f}" for result in results) + " digits"


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            given="a file to plot to without Matplotlib",
            expected="Matplotlib to be installed",
            remedy="run pip install 'tenferro[plot]'",
        ) from None
    return Figure


def _unwritable(path: Path, error: Exception) -> StrdInputError:
    reason = getattr(error, "strerror", None) or error
    return _unusable(path, f"which cannot be written ({reason})", "a place that can be written to")


def _unusable(path: Path, fact: str, expected: str) -> StrdInputError:
    return StrdInputError(
        given=f"plot file {shown(path)}, {fact}", expected=expected, remedy="name another file"
    )
