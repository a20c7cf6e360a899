"""The compiled kernels, beside the NumPy functions that they stand for."""

from __future__ import annotations

from threading import Thread

import numpy as np

from tenferro._kernels import Loop, accumulate, fingerprint, product, reduce

from .common import Repeated, normal, rng


class Kernel(Repeated):
    """Contiguous operands ``g`` and ``d``, a result to add into, and one number ``c``."""

    params = ([10, 1000, 1_000_000], ["float64", "complex128"])
    param_names = ("n", "dtype")

    def setup(self, n, dtype):
        r = rng()
        self.g, self.d, self.c = normal(r, n, dtype), normal(r, n, dtype), normal(r, (), dtype)
        self.out = np.zeros(n, dtype)
        self.index = r.integers(0, n, n)
        self.mark = fingerprint.of(self.g)
        self.calls_for(n)


class Product(Kernel):
    def time_times(self, n, dtype):
        self.again(product.times, self.g, self.d)


class ProductScaled(Kernel):
    def time_times(self, n, dtype):
        self.again(product.times, self.g, self.d, 2.0)


class ProductOfOneNumber(Kernel):
    """What a full sum sends back: one cotangent for all elements."""

    def time_times(self, n, dtype):
        self.again(product.times, np.broadcast_to(self.c, n), self.d)


class ProductInto(Kernel):
    def time_times_into(self, n, dtype):
        self.again(product.times_into, self.out, self.g, self.d)


class ProductIntoScaled(Kernel):
    def time_times_into(self, n, dtype):
        self.again(product.times_into, self.out, self.g, self.d, 2.0)


class Multiply(Kernel):
    def time_numpy(self, n, dtype):
        self.again(np.multiply, self.g, self.d)


class MultiplyLoop(Kernel):
    """NumPy's own inner loop, called on pointers."""

    loop = Loop(np.multiply)

    def time_call2(self, n, dtype):
        self.again(self.loop.call2, self.g, self.d)


class Exp(Kernel):
    def time_numpy(self, n, dtype):
        self.again(np.exp, self.g)


class ExpLoop(Kernel):
    loop = Loop(np.exp)

    def time_call1(self, n, dtype):
        self.again(self.loop.call1, self.g)


class Accumulate(Kernel):
    def time_add_into(self, n, dtype):
        self.again(accumulate.add_into, self.out, self.g)


class AccumulateItem(Kernel):
    """One element's gradient, as an index read sends it back."""

    def time_add_item(self, n, dtype):
        self.again(accumulate.add_item, self.out, n // 2, self.c)


class AccumulateAt(Kernel):
    """Gradients at an integer array of indices, repetitions among them."""

    def time_add_at(self, n, dtype):
        self.again(accumulate.add_at, self.out, self.index, self.g)


class ReduceSum(Kernel):
    def time_sum(self, n, dtype):
        self.again(reduce.sum, self.g)


class Sum(Kernel):
    def time_numpy(self, n, dtype):
        self.again(np.add.reduce, self.g)


class FingerprintOf(Kernel):
    """What keeping a borrowed array costs, in time for the copy that it saves."""

    def time_of(self, n, dtype):
        self.again(fingerprint.of, self.g)


class FingerprintSame(Kernel):
    def time_same(self, n, dtype):
        self.again(fingerprint.same, self.g, self.mark)


class Matrix(Repeated):
    """Square matrices, in the same memory order or in different ones."""

    params = ([10, 1000], ["C", "F"])
    param_names = ("n", "order of g")

    def setup(self, n, order):
        r = rng()
        self.g, self.d = np.asarray(normal(r, (n, n)), order=order), normal(r, (n, n))
        self.row, self.out = normal(r, n), np.zeros((n, n))
        self.calls_for(n * n)


class ProductMatrix(Matrix):
    def time_times(self, n, order):
        self.again(product.times, self.g, self.d)


class ProductRow(Matrix):
    """A broadcast operand."""

    def time_times(self, n, order):
        self.again(product.times, self.g, self.row)


class ProductMatrixInto(Matrix):
    def time_times_into(self, n, order):
        self.again(product.times_into, self.out, self.g, self.d)


class ReduceRows(Matrix):
    def time_sum(self, n, order):
        self.again(reduce.sum, self.g, 0)


class ReduceColumns(Matrix):
    def time_sum(self, n, order):
        self.again(reduce.sum, self.g, 1)


class Threads(Repeated):
    """The same work from one thread and from two: where the GIL is released, two take half as long."""

    params = ([1000, 100_000, 1_000_000], [1, 2])
    param_names = ("n", "threads")

    def setup(self, n, threads):
        r = rng()
        self.jobs = [(np.zeros(n), normal(r, n), normal(r, n)) for _ in range(threads)]
        self.calls = max(2, 2_000_000 // n) // threads

    def in_threads(self, call):
        workers = [Thread(target=self.again, args=(call, *job)) for job in self.jobs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


class ProductThreads(Threads):
    def time_times_into(self, n, threads):
        self.in_threads(product.times_into)


class ReduceThreads(Threads):
    def time_sum(self, n, threads):
        self.in_threads(lambda out, g, d: reduce.sum(g))
