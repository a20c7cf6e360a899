"""Two calls timed alternately in one process, so that a drift of the machine cancels in their ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

clock = time.perf_counter
Call = Callable[[], Any]


class Effort(NamedTuple):
    """How long to measure."""

    warm_up: float = 0.2  # seconds, for each of the two
    sample: float = 500e-6  # seconds; a sample repeats its call until it takes about this long
    total: float = 1.5  # seconds, at least, for all pairs
    pairs: int = 7  # at least


QUICK = Effort(warm_up=0.0, sample=0.0, total=0.0, pairs=2)  # says whether it runs, not how fast


def sampled(call: Call, calls: int) -> float:
    """Seconds per call, over so many calls."""
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def calls_per_sample(call: Call, effort: Effort) -> int:
    """Warm up, and count how many calls fill a sample."""
    start, calls = clock(), 0
    while calls == 0 or clock() - start < effort.warm_up:
        call()
        calls += 1
    return max(1, int(effort.sample * calls / (clock() - start)))


def alternate(a: Call, b: Call, effort: Effort) -> list[tuple[float, float]]:
    """Seconds per call of ``a`` and ``b``, in pairs: a sample of one, then a sample of the other.

    The garbage collector runs as it does in normal use.
    """
    calls_a, calls_b = calls_per_sample(a, effort), calls_per_sample(b, effort)
    pairs: list[tuple[float, float]] = []
    start = clock()
    while len(pairs) < effort.pairs or clock() - start < effort.total:
        pairs.append((sampled(a, calls_a), sampled(b, calls_b)))
    return pairs


def quartiles(values: Sequence[float]) -> dict[str, float]:
    """The median and the quartiles."""
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"q1": q1, "median": median, "q3": q3}


def ratios(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """The median of b / a with its quartiles, pair by pair."""
    return quartiles([b / a for a, b in pairs])
