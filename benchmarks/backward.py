"""The backward pass by itself, and forward with backward on whole workloads."""

from __future__ import annotations

import numpy as np

import tenferro as tn

from .common import Repeated, normal, rng
from .peers import PEERS
from .workloads import CASES


def chain(leaves, ops):
    y = leaves[0]
    for _ in range(ops // 2):
        y = y * leaves[0] + leaves[0]
    return y.sum()


def wide(leaves, ops):
    return sum(x * x for x in leaves).sum()


def reads(leaves, ops):
    (x,) = leaves
    return sum(x[i % x.size] for i in range(ops))


def layers(leaves, ops):
    y = leaves[0]
    for _ in range(ops // 2):
        y = np.tanh(y * leaves[1])
    return y.sum()


#: (graph, how many leaves it has)
GRAPHS = {
    "chain of one leaf": (chain, 1),
    "100 leaves": (wide, 100),
    "reads": (reads, 1),
    "layers": (layers, 2),
}


class Graph(Repeated):
    """A graph of about 100 operations, recorded once."""

    params = (list(GRAPHS), [10, 1000])
    param_names = ("graph", "n")
    calls = 5

    def setup(self, graph, n):
        build, count = GRAPHS[graph]
        r = rng()
        self.runtime = tn.EagerRuntime()
        self.leaves = [
            tn.tensor(r.uniform(0.1, 0.9, n), requires_grad=True, runtime=self.runtime) for _ in range(count)
        ]
        self.loss = build(self.leaves, 100)

    def teardown(self, graph, n):
        self.runtime.close()


class Backward(Graph):
    """Retained gradients, added to on every pass."""

    def time_backward(self, graph, n):
        self.again(self.loss.backward)


class FunctionalGrad(Graph):
    """Gradients handed out, none retained."""

    def time_grad(self, graph, n):
        self.again(self.runtime.grad, self.loss, self.leaves)


class FunctionalJvp(Graph):
    def time_jvp(self, graph, n):
        tangent = np.ones(n)
        self.again(self.runtime.jvp, self.loss, self.leaves[0], tangent)


class Workload(Repeated):
    """Forward and gradient of a workload of `compare.py`; n/a where a rule is still missing."""

    params = (
        [
            "W1 seed n=2", "W1 seed n=100", "W1 seed n=1e4", "W1 seed n=1e6", "W2 chain n=10",
            "W2 chain n=1000", "W3 logistic 2000x50", "W4 MLP 784-256-128-10", "W4 MLP tiny",
            "W5 RNN 500 steps",
            "W6 indexing n=1001", "W7 broadcast 1000x1000", "W8 Rosenbrock n=10", "W8 Rosenbrock HVP n=10",
            "W9 GMM n=1000 d=10 K=25", "W10 cholesky+solve 100", "W11 einsum 200",
        ],
    )  # fmt: skip
    param_names = ("case",)
    peer = "tenferro"

    def setup(self, name):
        case = CASES[name]
        params, consts = case.inputs()
        self.call = PEERS[self.peer].open()(case, params, consts)
        self.call()  # NoRuleError here is a NotImplementedError, which asv takes for "not applicable"
        # as many as take about 0.1 ms by hand
        self.calls = {"W1": 20 if params[0].size < 1000 else 1, "W8": 10}.get(name.split()[0], 1)


class Tenferro(Workload):
    def time_gradient(self, name):
        self.again(self.call)


class ByHand(Workload):
    """The hand-written NumPy gradient."""

    peer = "numpy"

    def time_gradient(self, name):
        self.again(self.call)


class Store(Repeated):
    """A `GradStore` that is added to."""

    params = ([10, 1000, 1_000_000],)
    param_names = ("n",)

    def setup(self, n):
        self.g, self.store = normal(rng(), n), tn.GradStore()
        self.store.insert("w", self.g)
        self.calls_for(n)


class StoreAccumulate(Store):
    def time_accumulate(self, n):
        self.again(self.store.accumulate, "w", self.g)


class StoreTryAccumulate(Store):
    def time_try_accumulate(self, n):
        self.again(self.store.try_accumulate, "w", self.g)
