"""What is kept and for how long: nothing waits for the cycle collector, nothing grows."""

import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest
from helpers import counted, nodes_alive, scratch_registry, without_collector

import tenferro as tn
from tenferro.primitive import primitive, registry
from tenferro.tape import COPY_LIMIT

X = np.array([0.5, 1.5, -2.0])
V = np.array([1.0, -1.0, 0.5])


@pytest.fixture(autouse=True)
def registry_as_before():
    with scratch_registry():
        yield


def f(x):
    return np.sum(np.exp(x) * x[::-1] + np.where(x > 0, x, 2.0) @ np.ones((3, 3)))


def raising(error=ZeroDivisionError):
    """An identity whose rules raise."""
    op = primitive(lambda x: np.array(x), name=f"raising {len(registry)}")

    @op.vjp
    def raising_vjp(g):
        raise error

    @op.jvp
    def raising_jvp(t):
        raise error

    return op


def fails(call):
    """`call` raises; unlike pytest.raises this makes no reference cycle."""
    try:
        call()
    except ZeroDivisionError:
        return
    pytest.fail("a rule that raises was not run")


# -------------------------------------------------------- freed by reference counts alone


def eager_pass():
    x = tn.tensor(X, requires_grad=True)
    loss = f(x)
    loss.backward()
    return [x, loss]


def consuming_pass():
    x = tn.tensor(X, requires_grad=True)
    loss = f(x)
    loss.backward(retain_graph=False)
    return [x, loss]


def runtime_passes():
    rt = tn.EagerRuntime()
    x = rt.variable_from(X)
    loss = f(x)
    g = rt.grad(loss, x)
    h = rt.grad(np.sum(g * V), x)
    t = rt.jvp(loss, x, X)
    loss.backward()
    return [rt, x, loss, g, h, t]


def intermediates():
    x = tn.tensor(X, requires_grad=True)
    y = np.exp(x)
    y.retain_grad()
    y.register_hook(lambda g: 2 * g)
    gradients = np.sum(y * y).backward()
    return [x, y, gradients, gradients[y], x.grad, y.grad.value()]


def error_in_a_pass():
    op = raising()
    x = tn.tensor(X, requires_grad=True)
    loss = np.sum(op(x) * x)
    fails(loss.backward)
    fails(lambda: x.runtime.jvp(loss, x, X))
    fails(lambda: tn.hessian(lambda x: np.sum(op(x)))(X))
    return [x, loss]


def closed_runtime():
    with tn.EagerRuntime() as rt:
        x = rt.variable_from(X)
        f(x).backward()
        g = x.grad
    return [rt, x, g]


def closure():
    w = tn.tensor(V, requires_grad=True)
    g = tn.grad(lambda x: np.sum(x * x * w))(X)
    np.sum(g).backward()
    return [w, g]


def pullbacks():
    value, pullback = tn.vjp(lambda x: np.exp(x) * x, X)
    pullback(V)
    return [value, pullback]


def stores():
    x = tn.tensor(X, requires_grad=True)
    store = tn.GradStore()
    store.accumulate(x, f(x).backward()[x])
    return [x, store]


def rebound():
    x = tn.tensor(X, requires_grad=True)
    y = x * 1.0
    y += x
    y[0] = 3.0
    np.sum(y * y).backward()
    return [x, y]


def leaked():
    held = []

    def g(x):
        held.append(x * x)
        return np.sum(x)

    tn.grad(g)(X)
    return held


PROGRAMS = [
    eager_pass,
    consuming_pass,
    runtime_passes,
    intermediates,
    error_in_a_pass,
    closed_runtime,
    closure,
    pullbacks,
    stores,
    rebound,
    leaked,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_dies_with_its_last_handle(program):
    program()  # what is made once (caches, the default runtime) is made
    with without_collector():
        nodes = nodes_alive()
        # a loop variable of the test itself would keep the last one
        refs = list(map(weakref.ref, program()))
        assert [ref() for ref in refs] == [None] * len(refs)
        assert nodes_alive() == nodes


@pytest.mark.parametrize(
    "transform",
    [
        lambda: tn.grad(f)(X),
        lambda: tn.value_and_grad(lambda x: (f(x), x), has_aux=True)(X),
        lambda: tn.jvp(f, (X,), (V,)),
        lambda: tn.jacobian(lambda x: np.sin(x), mode="forward")(X),
        lambda: tn.jacobian(lambda x: np.sin(x), mode="reverse")(X),
        lambda: tn.hessian(f)(X),
        lambda: tn.hvp(f)(X, V),
        lambda: tn.grad(lambda p: f(p["a"]) * np.sum(p["b"][0]))({"a": X, "b": [V, None]}),
        lambda: tn.grad(lambda x: np.sum(tn.grad(f)(x) * tn.jvp(np.sin, (x,), (x,))[1]))(X),
    ],
)
def test_a_transform_leaves_nothing_behind(transform):
    transform()
    with without_collector():
        nodes = nodes_alive()
        transform()
        assert nodes_alive() == nodes


def test_values_die_before_their_handles_where_nothing_needs_them():
    """A sum needs no values of what it sums, nor does anything of a handle that was dropped."""
    x = tn.tensor(np.ones(1000), requires_grad=True)
    y = x + 1.0
    dead = weakref.ref(y._value)
    total = np.sum(y)
    del y
    assert dead() is None
    total.backward()
    assert np.asarray(x.grad).tolist() == [1.0] * 1000


def test_consuming_pass_frees_kept_values_under_the_handles():
    x = tn.tensor(np.ones(1000), requires_grad=True)
    y = np.exp(x)
    dead = weakref.ref(y._value)
    loss = np.sum(y)
    del y
    assert dead() is not None  # exp keeps its result
    loss.backward(retain_graph=False)
    assert dead() is None


def test_dropped_leaf_has_no_slot_that_a_pass_could_fill():
    rt = tn.EagerRuntime()
    x, y = rt.variable_from(X), rt.variable_from(V)
    loss = np.sum(x * y)
    del x
    gradients = loss.backward()
    assert list(gradients) == [y.id] and len(rt.retained) == 1
    del y, gradients
    assert len(rt.retained) == 0


# ------------------------------------------------------------------ flat over many passes


def grow(one, warm=300, times=1500):
    """How many blocks, and traced bytes, are held more after ``times`` more calls."""
    one()
    with without_collector():
        for _ in range(warm):  # a collection empties the interpreter's free lists: they fill again
            one()
        blocks = sys.getallocatedblocks()
        for _ in range(times):
            one()
        blocks = sys.getallocatedblocks() - blocks
    tracemalloc.start()
    try:
        for _ in range(20):
            one()
        traced = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            one()
        traced = tracemalloc.get_traced_memory()[0] - traced
    finally:
        tracemalloc.stop()
    return blocks, traced


@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p is not error_in_a_pass], ids=lambda p: p.__name__
)
def test_programs_do_not_grow(program):
    blocks, traced = grow(program, times=500)
    assert blocks < 100 and traced < 16384


def test_passes_over_one_graph_do_not_grow():
    rt = tn.EagerRuntime()
    x = rt.variable_from(X)
    y = np.exp(x)
    y.retain_grad()
    loss = np.sum(y * y)

    def one():
        loss.backward()
        rt.grad(loss, x)
        rt.jvp(loss, x, V)
        remove = y.register_hook(lambda g: None)
        remove()

    blocks, traced = grow(one)
    assert blocks < 100 and traced < 16384


def test_pullback_called_again_and_again_does_not_grow():
    _, pullback = tn.vjp(lambda x: np.exp(x) * x[::-1], X)
    blocks, traced = grow(lambda: pullback(V))
    assert blocks < 100 and traced < 16384


def test_failed_passes_do_not_grow():
    op = raising()
    x = tn.tensor(X, requires_grad=True)
    loss = np.sum(op(x * 2.0) * x)

    def one():
        fails(loss.backward)
        fails(lambda: x.runtime.jvp(loss, x, X))

    blocks, traced = grow(one, warm=50, times=100)
    assert blocks < 100 and traced < 16384


# ------------------------------------------------------------------------- peaks of memory


def peak(work):
    """The most bytes that ``work`` held beyond what was there."""
    work()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


N, STEPS = 48, 30
WEIGHTS = [np.eye(N) * 0.9 for _ in range(STEPS)]


def network(weights):
    x = np.ones((N, N)) * 0.1
    for w in weights:
        x = np.tanh(x @ w)
    return np.sum(x)


def watched(seen):
    """An identity that notes, when its rule runs, how much memory is held."""
    op = primitive(lambda x: np.array(x), name="watched", linear=True)

    @op.vjp
    def watched_vjp(g):
        seen.append(tracemalloc.get_traced_memory()[0])
        return g

    return op


def test_functional_pass_frees_what_it_consumed():
    """Of a chain of matmuls the values go as the gradients come."""
    seen = []
    op = watched(seen)
    one = WEIGHTS[0].nbytes

    def loss(weights):
        return network([op(w) for w in weights])

    most = peak(lambda: tn.grad(loss)(WEIGHTS))
    # per step the recording holds the copy of w (twice, by the watched identity) and of its result
    assert most < (3 * STEPS + 12) * one
    held = seen[-STEPS:]
    # each step takes one gradient and gives back at least as much
    assert max(np.diff(held)) < 0.5 * one and held[-1] < held[0]


def test_retained_graph_can_be_consumed_too():
    seen = []
    op = watched(seen)
    leaf = tn.tensor(np.eye(N), requires_grad=True)

    def loss():
        x = op(leaf)
        for _ in range(STEPS):
            x = np.tanh(x @ WEIGHTS[0])
        return np.sum(x)

    def held_at_the_leaf(retain_graph):
        tracemalloc.start()
        try:
            loss().backward(retain_graph=retain_graph)
        finally:
            tracemalloc.stop()
        return seen[-1]

    assert held_at_the_leaf(False) < 0.3 * held_at_the_leaf(True)


def test_one_gradient_for_many_uses():
    """A leaf that is used often has one accumulator, not one contribution per use."""
    x = np.ones(20_000)

    def loss(x):
        y = x
        for _ in range(50):
            y = y + x * 0.5
        return np.sum(y)

    # x in 50 steps: nothing but the results' memory while they are needed
    assert peak(lambda: tn.grad(loss)(x)) < 10 * x.nbytes


def test_reads_of_elements_share_one_gradient():
    x = np.ones(50_000)

    def loss(x):
        y = 0.0
        for i in range(500):
            y = y + x[i] * x[i + 1]
        return y

    assert peak(lambda: tn.grad(loss)(x)) < 6 * x.nbytes


def test_cotangent_of_a_sum_is_not_written_out():
    x = np.ones(100_000)
    # the leaf's copy is not needed (large arguments are borrowed); the gradient is
    assert peak(lambda: tn.grad(np.sum)(x)) < 1.5 * x.nbytes
    assert peak(lambda: tn.grad(lambda x: np.sum(x + x))(x)) < 3.5 * x.nbytes


def test_constants_that_no_rule_needs_are_not_kept():
    x = tn.tensor(np.ones(10_000), requires_grad=True)
    c = np.ones(10_000)
    kept = []

    def holds(make):
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            y = make()
            kept.append(y)
            return tracemalloc.get_traced_memory()[0] - before - y.numpy().nbytes
        finally:
            tracemalloc.stop()

    assert holds(lambda: x + c) < 2000
    assert holds(lambda: c - x) < 2000
    assert holds(lambda: np.sum(x)) < 2000
    assert holds(lambda: np.concatenate([x, c])) < 2000
    assert c.nbytes <= holds(lambda: x * c) < c.nbytes + 2000


def test_large_constants_are_not_copied():
    c = np.ones(COPY_LIMIT // 8 + 1)
    x = tn.tensor(np.ones(c.size), requires_grad=True)
    made = []
    assert peak(lambda: made.append(x * c)) < 1.1 * c.nbytes
    made[-1].backward(np.ones(c.size))


def test_sweep_drops_tangents_that_are_spent():
    x = np.ones(20_000)
    op, _ = counted("kept")

    def steps(n):
        def g(x):
            for _ in range(n):
                x = op(x) + 1.0
            return x

        return peak(lambda: tn.jvp(g, (x,), (x,)))

    # identities and sums keep no values: neither they nor their tangents add up
    assert steps(60) < steps(10) + 2 * x.nbytes
