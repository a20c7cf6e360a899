"""What the tests of the engine share: threads, small stacks, primitives that count, what is alive."""

import contextlib
import gc
import sys
import threading

import numpy as np

from tenferro import tape
from tenferro.primitive import primitive, registry
from tenferro.tape import Node

#: Whether the engine runs compiled.
COMPILED = not tape.__file__.endswith(".py")

#: Room for ordinary calls, not for a recursion over a graph.
SMALL_STACK = 128 * 1024


@contextlib.contextmanager
def scratch_registry():
    """Primitives that are declared within the block are gone after it."""
    before = dict(registry)
    try:
        yield
    finally:
        registry.clear()
        registry.update(before)


def counted(name, operands=1):
    """A primitive, the product of its operands (the identity for one), and the list of rules that ran.

    The list gets ``("vjp", operand)`` and ``("jvp", operand)``.
    """
    ran = []
    if operands == 1:
        op = primitive(lambda x: np.array(x), name=name, linear=True)

        @op.vjp
        def vjp(g):
            ran.append(("vjp", 0))
            return g

        @op.jvp
        def jvp(t):
            ran.append(("jvp", 0))
            return t

        return op, ran
    op = primitive(lambda x, y: np.asarray(x * y), name=name, multilinear=True)

    @op.vjp(0)
    def vjp_x(g, y):
        ran.append(("vjp", 0))
        return g * y

    @op.vjp(1)
    def vjp_y(g, x):
        ran.append(("vjp", 1))
        return g * x

    @op.jvp(0)
    def jvp_x(t, y):
        ran.append(("jvp", 0))
        return t * y

    @op.jvp(1)
    def jvp_y(t, x):
        ran.append(("jvp", 1))
        return t * x

    return op, ran


def in_threads(count, work, stack=0):
    """``[work(0), ..., work(count - 1)]``, each in a thread, which switch all the time.

    The first error of a thread is raised here.
    """
    results, errors = [None] * count, []
    start = threading.Barrier(count)

    def run(k):
        try:
            start.wait()
            results[k] = work(k)
        except BaseException as error:
            errors.append(error)

    interval, size = sys.getswitchinterval(), threading.stack_size(stack)
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        threading.stack_size(size)
    if errors:
        raise errors[0]
    return results


def in_small_stack(work):
    """``work()`` in a thread whose stack holds no recursion over a graph."""
    return in_threads(1, lambda k: work(), SMALL_STACK)[0]


def nodes_alive():
    """How many nodes of the tape there are, whoever holds them."""
    return sum(type(o) is Node for o in gc.get_objects())


@contextlib.contextmanager
def without_collector():
    """Within the block only reference counts free anything; nothing may be left for the collector."""
    gc.collect()
    gc.disable()
    try:
        yield
        assert gc.collect() == 0, "reference cycles were left"
    finally:
        gc.enable()
