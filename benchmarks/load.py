"""The engine under load: long chains, leaves used very often, many leaves, many passes."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import numpy as np

import tenferro as tn

from .common import Repeated, normal, rng


class Growing:
    """The time per operation of a graph of ``ops`` operations, forward and backward: flat is linear."""

    params = ([10, 1000, 100_000, 1_000_000],)
    param_names = ("ops",)
    unit = "ns/op"
    timeout = 300

    def per_op(self, ops):
        """The fastest of a few: what the machine adds now and then is not the engine's."""
        best = float("inf")
        for _ in range(max(1, 300_000 // (ops + 100))):
            start = time.perf_counter_ns()
            self.gradient(ops)
            best = min(best, time.perf_counter_ns() - start)
        return best / ops


class TensorChain(Growing):
    """A chain of scalar operations on a tensor."""

    def gradient(self, ops):
        y = x = tn.tensor(0.5, requires_grad=True)
        for _ in range(ops):
            y = y * 0.999
        y.backward(retain_graph=False)
        return x.grad

    def track_per_op(self, ops):
        return self.per_op(ops)


class FunctionChain(Growing):
    """The same through `grad`."""

    def gradient(self, ops):
        def f(x):
            y = x
            for _ in range(ops):
                y = y * 0.999
            return y

        return tn.grad(f)(0.5)

    def track_per_op(self, ops):
        return self.per_op(ops)


class OneLeaf(Growing):
    """One leaf of 10 elements, used again and again."""

    params = ([10, 1000, 100_000],)

    def gradient(self, ops):
        x = tn.tensor(np.ones(10), requires_grad=True)
        y = x
        for _ in range(ops - 1):
            y = y + x
        y.sum().backward(retain_graph=False)
        return x.grad

    def track_per_op(self, ops):
        return self.per_op(ops)


class LiveLeaves(Repeated):
    """A pass beside unrelated leaves that live, each with a gradient: it costs the same as beside none."""

    params = ([0, 100_000],)
    param_names = ("leaves",)
    calls = 20

    def setup(self, leaves):
        self.runtime = tn.EagerRuntime()
        self.others = [tn.tensor(1.0, requires_grad=True, runtime=self.runtime) for _ in range(leaves)]
        for other in self.others:
            (other * 2.0).backward()
        self.x = tn.tensor(normal(rng(), 10), requires_grad=True, runtime=self.runtime)

    def teardown(self, leaves):
        self.runtime.close()


class LiveLeavesPass(LiveLeaves):
    def time_pass(self, leaves):
        self.again(lambda: (self.x * self.x).sum().backward())


class LiveLeavesClear(LiveLeaves):
    """Clearing one leaf's gradient after a pass."""

    def time_pass(self, leaves):
        def one():
            (self.x * self.x).sum().backward()
            self.x.clear_grad()

        self.again(one)


def resident_kib() -> float:
    """Memory that the process holds now."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024
    except OSError:
        raise NotImplementedError("resident memory is read from /proc, which is Linux's") from None


class Growth:
    """How much memory a process holds more after so many passes, with the cycle collector off."""

    params = ([1000, 100_000],)
    param_names = ("passes",)
    unit = "KiB"
    timeout = 300

    def setup(self, passes):
        self.x = normal(rng(), 100)

    def growth(self, passes):
        gc.collect()
        gc.disable()
        try:
            for _ in range(500):  # caches and free lists fill
                self.one()
            before = resident_kib()
            for _ in range(passes):
                self.one()
            return resident_kib() - before
        finally:
            gc.enable()


class FunctionGrowth(Growth):
    """Through `grad`."""

    def setup(self, passes):
        super().setup(passes)
        self.grad = tn.grad(lambda x: np.sum(np.exp(x) * x))

    def one(self):
        self.grad(self.x)

    def track_growth(self, passes):
        return self.growth(passes)


class TensorGrowth(Growth):
    """Leaves, graphs and retained gradients that are dropped."""

    def one(self):
        x = tn.tensor(self.x, requires_grad=True)
        (np.exp(x) * x).sum().backward()

    def track_growth(self, passes):
        return self.growth(passes)


class RuntimeGrowth(Growth):
    """Runtimes that are dropped with all that is in them, not closed."""

    def one(self):
        x = tn.tensor(self.x, requires_grad=True, runtime=tn.EagerRuntime())
        (np.exp(x) * x).sum().backward()

    def track_growth(self, passes):
        return self.growth(passes)
