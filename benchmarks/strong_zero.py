"""The price of the strong zero: our product against a plain one with the same thin entry."""

from __future__ import annotations

import numpy as np

from tenferro._kernels import Loop, product

from .common import Repeated, normal, rng
from .pairs import Effort, alternate, ratios

plain = Loop(np.multiply)


class Operands(Repeated):
    params = ([10, 1000, 100_000, 1_000_000, 10_000_000],)
    param_names = ("n",)

    def setup(self, n):
        r = rng()
        self.g, self.d = normal(r, n), normal(r, n)
        self.out, self.scratch = np.zeros(n), np.zeros(n)
        self.calls_for(n)

    def strong_into(self):
        product.times_into(self.out, self.g, self.d)

    def plain_into(self):
        np.multiply(self.g, self.d, out=self.scratch)
        np.add(self.out, self.scratch, out=self.out)


class Strong(Operands):
    def time_product(self, n):
        self.again(product.times, self.g, self.d)


class Plain(Operands):
    def time_product(self, n):
        self.again(plain.call2, self.g, self.d)


class StrongInto(Operands):
    def time_product(self, n):
        self.again(self.strong_into)


class PlainInto(Operands):
    """Two passes over memory, as NumPy has no product that adds."""

    def time_product(self, n):
        self.again(self.plain_into)


class Price(Operands):
    """Strong over plain, timed alternately."""

    unit = "times the plain product"
    effort = Effort(warm_up=0.05, total=0.3)

    def track_product(self, n):
        return ratios(
            alternate(lambda: plain.call2(self.g, self.d), lambda: product.times(self.g, self.d), self.effort)
        )["median"]

    def track_product_into(self, n):
        return ratios(alternate(self.plain_into, self.strong_into, self.effort))["median"]
