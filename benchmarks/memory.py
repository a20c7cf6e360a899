"""Peak memory: of the process, and of a pass over what its forward kept."""

from __future__ import annotations

import tracemalloc

import numpy as np

import tenferro as tn

from .common import normal, rng
from .peers import PEERS
from .workloads import CASES


class Peak:
    """Peak memory of the whole process, the library and the inputs included."""

    params = (["W1 seed n=1e4", "W1 seed n=1e7", "W2 chain n=1e6", "W7 broadcast 1000x1000"],)
    param_names = ("case",)
    peer = "tenferro"

    def setup(self, name):
        case = CASES[name]
        params, consts = case.inputs()
        self.call = PEERS[self.peer].open()(case, params, consts)


class Tenferro(Peak):
    def peakmem_gradient(self, name):
        self.call()


class ByHand(Peak):
    """The hand-written NumPy gradient."""

    peer = "numpy"

    def peakmem_gradient(self, name):
        self.call()


class Consumed:
    """A chain of 100 matrix products: how far the pass goes above what the forward kept.

    A pass that frees saved values as it consumes them needs a few matrices more, whatever their
    size; one that keeps them to its end needs about 100.  Small matrices are copied when they are
    saved, large ones borrowed.  Counted by tracemalloc, which NumPy reports its arrays to.
    """

    params = ([50, 300],)
    param_names = ("n",)
    unit = "matrices"
    depth = 100

    def setup(self, n):
        self.x = np.linalg.qr(normal(rng(), (n, n)))[0]
        self.factors = [self.x.copy() for _ in range(self.depth)]

    def chain(self, x, *factors):
        y = x
        for a in factors:
            y = y @ a
        tracemalloc.reset_peak()
        self.kept = tracemalloc.get_traced_memory()[0]
        return np.sum(y)

    def over_forward(self, argnums):
        tracemalloc.start()
        try:
            tn.grad(self.chain, argnums=argnums)(self.x, *self.factors)
            return (tracemalloc.get_traced_memory()[1] - self.kept) / self.x.nbytes
        finally:
            tracemalloc.stop()


class ConsumedByOne(Consumed):
    """Only the first factor's gradient is asked for."""

    def track_over_forward(self, n):
        return self.over_forward(0)


class ConsumedByAll(Consumed):
    """All gradients are asked for: 101 matrices, each in the place of a saved value that is gone."""

    def track_over_forward(self, n):
        return self.over_forward(tuple(range(self.depth + 1)))
