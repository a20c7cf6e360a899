"""Transforms, over the Rosenbrock function and a few that suit them better."""

from __future__ import annotations

import numpy as np

import tenferro as tn

from .common import Repeated, normal, rng


def rosenbrock(x):
    x0, x1 = x[:-1], x[1:]
    return np.sum(100 * (x1 - x0**2) ** 2 + (1 - x0) ** 2)


class Transform(Repeated):
    params = ([2, 10, 100],)
    param_names = ("n",)
    calls = 10

    def setup(self, n):
        r = rng()
        self.x, self.v = normal(r, n), normal(r, n)


class Value(Transform):
    """The function alone, on plain arrays."""

    def time_value(self, n):
        self.again(rosenbrock, self.x)


class Grad(Transform):
    def time_grad(self, n):
        self.again(tn.grad(rosenbrock), self.x)


class ValueAndGrad(Transform):
    def time_value_and_grad(self, n):
        self.again(tn.value_and_grad(rosenbrock), self.x)


class Vjp(Transform):
    def time_vjp(self, n):
        self.again(lambda: tn.vjp(rosenbrock, self.x)[1](1.0))


class Jvp(Transform):
    def time_jvp(self, n):
        self.again(tn.jvp, rosenbrock, (self.x,), (self.v,))


class Hvp(Transform):
    def time_hvp(self, n):
        self.again(tn.hvp(rosenbrock), self.x, self.v)


class Hessian(Transform):
    def time_hessian(self, n):
        self.again(tn.hessian(rosenbrock), self.x)


class Jacobian(Repeated):
    """Of a map from ``n`` inputs to ``m`` outputs."""

    params = ([2, 50], [2, 50], ["forward", "reverse"])
    param_names = ("n", "m", "mode")

    def setup(self, n, m, mode):
        r = rng()
        weights = normal(r, (m, n))
        self.x = normal(r, n)
        self.jacobian = tn.jacobian(lambda x: np.tanh(weights @ x), mode=mode)

    def time_jacobian(self, n, m, mode):
        self.again(self.jacobian, self.x)


class Nested(Repeated):
    """The derivative of a function of one number, taken ``order`` times."""

    params = ([1, 2, 3, 4],)
    param_names = ("order",)
    calls = 10

    def setup(self, order):
        self.f = np.sin
        for _ in range(order):
            self.f = tn.grad(self.f)


class NestedGrad(Nested):
    def time_grad(self, order):
        self.again(self.f, 0.5)


class Asked(Repeated):
    """Both gradients of a product of matrices, and either alone: what nobody asks for costs nothing."""

    params = (["left", "right", "both"],)
    param_names = ("which",)

    def setup(self, which):
        r = rng()
        self.a, self.b = normal(r, (200, 200)), normal(r, (200, 200))
        argnums = {"left": 0, "right": 1, "both": (0, 1)}[which]
        self.grad = tn.grad(lambda a, b: np.sum(a @ b), argnums=argnums)


class AskedMatmul(Asked):
    def time_grad(self, which):
        self.again(self.grad, self.a, self.b)
