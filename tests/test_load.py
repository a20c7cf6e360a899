"""Long, wide and much used graphs: nothing recurses, and the work is linear."""

import gc
import random
import sys

import numpy as np
import pytest
from helpers import COMPILED, counted, in_small_stack, in_threads, nodes_alive, scratch_registry

import tenferro as tn
from tenferro.errors import RuntimeStateError

#: The length of the longest chains.
LONG = 1_000_000 if COMPILED else 50_000
#: Long enough to overflow the stack, were there a recursion.
DEEP = 20_000

X = np.array([0.5, 1.5, -2.0])


@pytest.fixture(autouse=True)
def registry_as_before():
    with scratch_registry():
        yield


# --------------------------------------------------------------------------- shapes of graphs


def chain(x, n):
    for _ in range(n // 2):
        x = x * 2.0 * 0.5
    return x


def chain_of_second_operands(x, n):
    for _ in range(n // 2):
        x = 0.5 * (2.0 * x)
    return x


def chain_of_third_operands(x, n):
    none = np.zeros(1)
    x = x.reshape(1)
    for _ in range(n // 4):
        x = np.concatenate([none, none, x])[-1:]
    return np.sum(x)


def ladder(x, n):
    """Each step uses the two before it."""
    a = b = x
    for _ in range(n // 3):
        a, b = b, a * 0.5 + b * 0.5
    return b


def chain_of_chains(x, n):
    """A chain whose every link ends a chain of its own."""
    y = x
    for _ in range(n // 200):
        y = y * 0.5 + chain(x, 200) * 0.5
    return y


def star(x, n):
    """One operation of many operands."""
    n //= 4
    return np.sum(np.concatenate([(x / n).reshape(1) for _ in range(n)]))


def tree(x, n):
    level = [x / n for _ in range(n)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + level[len(level) & ~1 :]
    return level[0]


def hooked_chain(x, n):
    """Each hook holds the tensor before it, so that the chain also runs through the hooks."""
    for _ in range(n // 4):
        y = x * 1.0
        y.register_hook(lambda g, x=x: None)
        x = y
    return x


def reads(x, n):
    x = np.broadcast_to(x, (3,)) / n
    y = x[0]
    for i in range(n - 1):
        y = y + x[i % 3]
    return y


GRAPHS = [
    chain,
    chain_of_second_operands,
    chain_of_third_operands,
    ladder,
    chain_of_chains,
    star,
    tree,
    hooked_chain,
    reads,
]


def scalar(g):
    return float(np.asarray(g))


# ------------------------------------------------------------------------- long chains


def test_million_operations():
    def work():
        x = tn.tensor(1.5, requires_grad=True)
        chain(x, LONG).backward()
        return scalar(x.grad)

    assert in_small_stack(work) == 1.0


def test_long_chain_walked_twice():
    def work():
        x = tn.tensor(1.5, requires_grad=True)
        y = chain(x, LONG // 10)
        y.backward()
        y.backward(retain_graph=False)
        return scalar(x.grad)

    assert in_small_stack(work) == 2.0


def test_long_chain_through_grad():
    assert in_small_stack(lambda: tn.value_and_grad(lambda x: chain(x, LONG // 4))(1.5)) == (1.5, 1.0)


def test_long_forward_sweep():
    value, tangent = in_small_stack(lambda: tn.jvp(lambda x: chain(x, LONG // 10), (1.5,), (3.0,)))
    assert (value, tangent) == (1.5, 3.0)


def test_long_recorded_passes():
    """Passes that record make graphs as long, which are walked and freed in turn."""

    def work():
        n = DEEP
        x = tn.tensor(3.0, requires_grad=True)
        rt = x.runtime
        first = rt.grad(chain(x * x, n), x)
        second = rt.grad(first, x)
        return scalar(first.numpy()), scalar(second.numpy()), tn.hvp(lambda x: chain(x * x, n))(3.0, 1.0)

    assert in_small_stack(work) == (6.0, 2.0, 2.0)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda f: f.__name__)
def test_every_shape_of_graph_in_every_mode(graph):
    def work():
        x = tn.tensor(2.0, requires_grad=True)
        y = graph(x, DEEP)
        y.backward(retain_graph=False)
        found = [scalar(x.grad), tn.grad(lambda x: graph(x, DEEP))(2.0)]
        found += [tn.jvp(lambda x: graph(x, DEEP), (2.0,), (1.0,))[1]]
        return found

    np.testing.assert_allclose(in_small_stack(work), [1.0] * 3, rtol=1e-10)


# --------------------------------------------------------------------- the end of graphs


def loss_first(x, y, handles):
    del x, handles[:]
    return y


def leaf_first(x, y, handles):
    del y, handles[:]
    return x


def oldest_first(x, y, handles):
    del x, y
    handles.reverse()
    while handles:
        handles.pop()


def newest_first(x, y, handles):
    del x, y
    while handles:
        handles.pop()


def in_any_order(x, y, handles):
    del x, y
    random.Random(0).shuffle(handles)
    while handles:
        handles.pop()


def middle_last(x, y, handles):
    middle = handles[len(handles) // 2]
    del x, y, handles[:]
    return middle


def after_a_pass(x, y, handles):
    y.backward()


def after_a_consuming_pass(x, y, handles):
    y.backward(retain_graph=False)
    with pytest.raises(RuntimeStateError):
        y.backward()


def after_a_pass_that_failed(x, y, handles):
    def fail(g):
        raise ZeroDivisionError

    handles[len(handles) // 2].register_hook(fail)
    with pytest.raises(ZeroDivisionError):
        y.backward()


def by_the_collector(x, y, handles):
    # the graph holds the function, whose default holds the end of the graph
    handles[0].register_hook(lambda g, y=y: None)


ORDERS = [
    loss_first,
    leaf_first,
    oldest_first,
    newest_first,
    in_any_order,
    middle_last,
    after_a_pass,
    after_a_consuming_pass,
    after_a_pass_that_failed,
    by_the_collector,
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda f: f.__name__)
def test_graph_is_freed_in_any_order(order):
    gc.collect()
    before = nodes_alive()

    def work():
        x = y = tn.tensor(1.0, requires_grad=True)
        handles = []
        for _ in range(DEEP):
            y = y * 1.0
            handles.append(y)
        order(x, y, handles)

    in_small_stack(work)
    if order is by_the_collector:
        assert nodes_alive() >= before + DEEP
        in_small_stack(gc.collect)
    assert nodes_alive() == before


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda f: f.__name__)
def test_every_shape_of_graph_is_freed(graph):
    gc.collect()
    before = nodes_alive()

    def work():
        x = tn.tensor(2.0, requires_grad=True)
        kept = graph(x, DEEP)
        del x, kept
        _, pullback = tn.vjp(lambda x: graph(x, DEEP), 2.0)
        assert nodes_alive() > before
        del pullback

    in_small_stack(work)
    assert nodes_alive() == before


def test_graphs_that_are_freed_at_once_in_several_threads():
    gc.collect()
    before = nodes_alive()

    def work(k):
        x = tn.tensor(1.0, requires_grad=True)
        for _ in range(5):
            y = chain(x, DEEP // 4)
            del y

    in_threads(4, work)
    assert nodes_alive() == before


# -------------------------------------------------------------------- work is linear


@pytest.mark.parametrize("n", [10, 100_000 if COMPILED else 10_000])
def test_one_leaf_used_many_times(n):
    op, ran = counted("used")

    def f(x):
        y = op(x)
        for _ in range(n - 1):
            y = y + op(x)
        return np.sum(y)

    assert tn.grad(f)(X).tolist() == [n] * 3
    assert len(ran) == n


def test_one_leaf_on_both_sides():
    def f(x):
        y = x * x
        for _ in range(1000):
            y = y + x * x - x * x
        return y

    assert tn.grad(f)(3.0) == 6.0


def test_number_of_paths_does_not_matter():
    """Sixty doublings are 2**60 paths from the loss to the leaf."""
    op, ran = counted("doubled")

    def f(x):
        for _ in range(60):
            x = op(x)
            x = x + x
        return x

    assert tn.grad(f)(1.0) == 2.0**60
    assert tn.jvp(f, (1.0,), (1.0,))[1] == 2.0**60
    assert ran == [("vjp", 0)] * 60 + [("jvp", 0)] * 60
    x = tn.tensor(1.0, requires_grad=True)
    assert scalar(x.runtime.grad(f(x), x).numpy()) == 2.0**60


def test_memory_of_a_recording_is_linear():
    def blocks(n):
        x = tn.tensor(1.0, requires_grad=True)
        gc.collect()
        before = sys.getallocatedblocks()
        y = chain(x, n)
        used = sys.getallocatedblocks() - before
        del y
        return used

    blocks(1000)
    small, large = blocks(2000), blocks(20_000)
    assert large < 10.5 * small
