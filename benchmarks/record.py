"""What an operation costs as it is recorded: NumPy's part, dispatch, the node."""

from __future__ import annotations

import numpy as np

import tenferro as tn

from .common import Repeated, normal, rng

OPS = {
    "x * y": lambda x, y: x * y,
    "x + y": lambda x, y: x + y,
    "x * 2.0": lambda x, y: x * 2.0,
    "x ** 2": lambda x, y: x**2,
    "-x": lambda x, y: -x,
    "np.exp(x)": lambda x, y: np.exp(x),
    "np.where(True, x, y)": lambda x, y: np.where(True, x, y),
    "x.sum()": lambda x, y: x.sum(),
    "np.sum(x)": lambda x, y: np.sum(x),
    "np.mean(x)": lambda x, y: np.mean(x),
    "x @ y": lambda x, y: x @ y,
    "x[0]": lambda x, y: x[0],
    "x[1:]": lambda x, y: x[1:],
    "x[None]": lambda x, y: x[None],
    "x.reshape(-1, 1)": lambda x, y: x.reshape(-1, 1),
    "np.concatenate([x, y])": lambda x, y: np.concatenate([x, y]),
}


class Operation(Repeated):
    """On vectors of 10 elements: the arithmetic itself is a small part."""

    params = (list(OPS),)
    param_names = ("op",)

    def setup(self, op):
        r = rng()
        self.x, self.y = self.operand(normal(r, 10)), self.operand(normal(r, 10))
        self.op = OPS[op]
        self.calls_for(10)

    def operand(self, array):
        """An array as the operand that is measured."""
        return tn.tensor(array, requires_grad=True)


class Recorded(Operation):
    def time_op(self, op):
        self.again(self.op, self.x, self.y)


class NoGrad(Operation):
    """Tracked operands, nothing recorded."""

    def time_op(self, op):
        with tn.no_grad():
            self.again(self.op, self.x, self.y)


class Plain(Operation):
    """NumPy alone."""

    def operand(self, array):
        return array

    def time_op(self, op):
        self.again(self.op, self.x, self.y)


class Leaf(Repeated):
    """Making a leaf of an array."""

    params = ([10, 100_000],)
    param_names = ("n",)

    def setup(self, n):
        self.x = normal(rng(), n)
        self.host = tn.Tensor.from_numpy(self.x)
        self.runtime = tn.EagerRuntime()
        self.calls_for(n)

    def teardown(self, n):
        self.runtime.close()


class LeafOfArray(Leaf):
    def time_tensor(self, n):
        self.again(lambda: tn.tensor(self.x, requires_grad=True, runtime=self.runtime))


class LeafOfTensor(Leaf):
    def time_requires_grad_in(self, n):
        self.again(tn.EagerTensor.requires_grad_in, self.host, self.runtime)
