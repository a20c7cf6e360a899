"""The command ``python -m tenferro strd``: arguments, progress and output."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TextIO

import tenferro
from tenferro.strd import plot
from tenferro.strd.problems import Problem
from tenferro.strd.report import HEADER, SOLVERS, THRESHOLD, Report, Result, run, table_row

__all__ = ["DESCRIPTION", "SUMMARY", "add_arguments", "execute"]

SUMMARY = "fit the 27 NIST StRD nonlinear regression problems"

DESCRIPTION = f"""
Fit the 27 NIST StRD nonlinear regression problems by least squares, with Jacobians from tenferro, and compare
with the certified parameters and standard deviations. The exit status is 0 if every chosen problem reaches
{THRESHOLD:.0f} digits from start 2 (from start 1 with --start 1), 1 if one does not, and 2 for bad input.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to a parser.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.add_argument(
        "--problem",
        action="append",
        metavar="NAME",
        help="fit this problem (repeatable); all 27 by default",
    )
    parser.add_argument(
        "--start", type=int, choices=(1, 2), help="fit from this start only; from both by default"
    )
    parser.add_argument(
        "--solver",
        choices=tuple(SOLVERS),
        default="lm",
        help="lm: the Levenberg-Marquardt of this package (default); scipy: scipy.optimize.least_squares",
    )
    parser.add_argument("--data", metavar="DIR", help="read NAME.dat from this directory")
    parser.add_argument(
        "--json", action="store_true", help="write JSON to standard output, the table to standard error"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw data and fits (needs Matplotlib)")


def execute(args: argparse.Namespace) -> int:
    """Run the command.

    Parameters
    ----------
    args : argparse.Namespace
        What `add_arguments` made of the command line.

    Returns
    -------
    int
        0 if the report passed, else 1.

    Raises
    ------
    StrdInputError, MissingExtraError
        If an argument or a file is unusable, or a library missing; before anything is fitted.
    """
    if args.plot is not None:
        plot.check(args.plot)
    screen = _Screen(sys.stderr if args.json else sys.stdout, sys.stderr)
    try:
        report = run(
            args.problem,
            starts=(1, 2) if args.start is None else (args.start,),
            solver=args.solver,
            data=args.data,
            on_start=screen.begin,
            on_result=screen.row,
        )
        if args.plot is not None:
            screen.step("drawing the plot")
            plot.draw(report, args.plot)
    finally:
        screen.clear()
    for line in _summary(report):
        screen.line(line)
    if args.json:
        document = {"tenferro": tenferro.__version__, **report.as_dict()}
        print(json.dumps(document, indent=2, allow_nan=False), flush=True)
    return 0 if report.passed else 1


def _summary(report: Report) -> list[str]:
    lines = [
        "",
        "digits: agreement with the certified parameters (b) and standard deviations (sd),",
        "the worst of each fit, at most the 11 that are certified",
    ]
    for start in report.starts:
        reached, total = report.count(start)
        missed = [r.problem.name for r in report.results if r.start == start and not r.reached]
        names = f"; not: {', '.join(missed)}" if missed else ""
        lines.append(f"start {start}: {reached} of {total} reach {THRESHOLD:.0f} digits{names}")
    return lines


class _Screen:
    """The table on one stream as results come, and on the other, if a terminal, what is being fitted."""

    def __init__(self, table: TextIO | None, live: TextIO | None) -> None:
        self.table = table
        self.live = live if live is not None and live.isatty() else None
        self.shown = ""
        self.headed = False

    def begin(self, problem: Problem, start: int, number: int, total: int) -> None:
        if not self.headed:
            self.line(HEADER)
            self.headed = True
        self.step(f"[{number}/{total}] {problem.name}, start {start}")

    def step(self, text: str) -> None:
        if self.live is not None:
            self.clear()
            self.live.write(text)
            self.live.flush()
            self.shown = text

    def row(self, result: Result) -> None:
        self.line(table_row(result))

    def line(self, text: str) -> None:
        self.clear()
        if self.table is not None:
            self.table.write(text + "\n")
            self.table.flush()

    def clear(self) -> None:
        if self.live is not None and self.shown:
            self.live.write("\r" + " " * len(self.shown) + "\r")
            self.live.flush()
            self.shown = ""
