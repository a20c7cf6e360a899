"""What the areas for asv share: seeded inputs, and calls that are too short to be timed alone."""

from __future__ import annotations

import numpy as np


def rng() -> np.random.Generator:
    """The generator that every input comes from."""
    return np.random.default_rng(0)


def normal(r: np.random.Generator, shape: int | tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    """Standard normal numbers; complex ones in both parts."""
    x = r.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * r.standard_normal(shape)
    return x.astype(dtype)


class Repeated:
    """Base of benchmarks of short calls.

    asv sets up anew before each timed call, so a timed call has to be long enough by itself: it
    makes ``calls`` calls, as many as take about 0.1 ms, and the figure is for all of them.
    """

    repeat = (5, 40, 0.5)  # at least, at most, seconds
    calls = 1

    def calls_for(self, size: int) -> None:
        """Set ``calls`` for arrays of ``size`` elements."""
        self.calls = max(1, 20_000 // (20 + size))

    def again(self, call, *args) -> None:
        """Make the calls."""
        for _ in range(self.calls):
            call(*args)
