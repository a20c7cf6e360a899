"""A pass visits what the loss reaches and computes what was asked for, and nothing else."""

import gc
import sys

import numpy as np
import pytest
from helpers import counted, scratch_registry

import tenferro as tn

X = np.array([0.5, 1.5, -2.0])


@pytest.fixture(autouse=True)
def registry_as_before():
    with scratch_registry():
        yield


# ------------------------------------------------------- only what the loss reaches


def test_unrelated_leaves_are_not_visited():
    op, ran = counted("visited")
    rt = tn.EagerRuntime()
    others = [rt.variable_from(X) for _ in range(2000)]
    losses = [np.sum(op(t)) for t in others]
    x = rt.variable_from(X)
    loss = np.sum(op(x) * op(x))
    assert list(loss.backward()) == [x.id]
    rt.grad(loss, x)
    rt.jvp(loss, x, X)
    assert ran == [("vjp", 0)] * 4 + [("jvp", 0)] * 2
    assert all(t.grad is None for t in others)
    # a consuming pass marks what it walks as freed: nothing of the others' is
    loss.backward(retain_graph=False)
    assert [other.backward() for other in losses[:3]]


def test_live_leaves_cost_a_pass_nothing():
    """The blocks that a pass allocates are the same beside many leaves as beside none."""

    def blocks(others):
        rt = tn.EagerRuntime()
        held = [rt.variable_from(X) for _ in range(others)]
        for t in held:
            (t * 2.0).backward(X)
        x = rt.variable_from(X)
        loss = np.sum(np.exp(x) * x)
        most = [0]

        def look(g):
            most[0] = max(most[0], sys.getallocatedblocks() - before)

        x.register_hook(look)
        gc.collect()
        for _ in range(3):
            before = sys.getallocatedblocks()
            loss.backward()
        return most[0]

    assert blocks(20_000) <= blocks(0) + 10


def test_what_lies_before_an_enclosing_level_is_not_walked():
    """A pass of an inner transform stops at its own leaves."""
    op, ran = counted("before")

    def outer(x):
        long = op(x)
        for _ in range(100):
            long = op(long)
        inner = tn.grad(lambda y: np.sum(y * y * long))(X)
        assert ran == []
        return np.sum(inner)

    np.testing.assert_array_equal(tn.grad(outer)(X), 2 * X)
    assert len(ran) == 101


# ------------------------------------------------------- only what was asked for


@pytest.fixture
def pair():
    return counted("pair", operands=2)


def test_constants_get_no_cotangent(pair):
    op, ran = pair
    tn.grad(lambda x: np.sum(op(x, X)))(X)
    tn.grad(lambda x: np.sum(op(X, x)))(X)
    assert ran == [("vjp", 0), ("vjp", 1)]


def test_only_argnums_get_a_cotangent(pair):
    op, ran = pair
    tn.grad(lambda x, y: np.sum(op(x, y)), 1)(X, X)
    tn.grad(lambda x, y: np.sum(op(x, y)), (1, 0))(X, X)
    assert ran == [("vjp", 1), ("vjp", 0), ("vjp", 1)]


def test_only_wrt_gets_a_cotangent(pair):
    op, ran = pair
    rt = tn.EagerRuntime()
    x, y = rt.variable_from(X), rt.variable_from(X)
    loss = np.sum(op(op(x, y), y))
    rt.grad(loss, x)
    assert ran == [("vjp", 0)] * 2
    del ran[:]
    rt.jvp(loss, x, X)
    assert ran == [("jvp", 0)] * 2


def test_branches_that_lead_nowhere_are_not_walked(pair):
    op, ran = pair
    rt = tn.EagerRuntime()
    x, y = rt.variable_from(X), rt.variable_from(X)
    aside = y
    for _ in range(50):
        aside = op(aside, X)
    loss = np.sum(x * aside)
    rt.grad(loss, x)
    rt.jvp(loss, x, X)
    assert ran == []
    assert rt.grad_optional(np.sum(aside), x) is None and ran == []


def test_detached_and_unrecorded_parts_are_not_walked(pair):
    op, ran = pair

    def f(x):
        with tn.no_grad():
            fixed = op(x, X)
        return np.sum(x * fixed)

    np.testing.assert_array_equal(tn.grad(f)(X), X * X)
    x = tn.tensor(X, requires_grad=True)
    np.sum(op(x, X).detach() * x).backward()
    assert ran == []


def test_closed_over_leaves_get_no_cotangent_in_a_transform(pair):
    op, ran = pair
    w = tn.tensor(X, requires_grad=True)
    g = tn.grad(lambda x: np.sum(op(x, w)))(X)
    assert ran == [("vjp", 0)]
    np.sum(g * g).backward()
    np.testing.assert_array_equal(np.asarray(w.grad), 2 * X)


def test_masked_and_unused_outputs_cost_nothing(pair):
    op, ran = pair

    def f(x):
        op(x, X)  # unused
        return (np.sum(x), op(x, X))

    _, pullback = tn.vjp(f, X)
    del ran[:]
    tn.grad(lambda x: f(x)[0])(X)
    assert ran == []
    pullback((1.0, X))
    assert ran == [("vjp", 0)]
