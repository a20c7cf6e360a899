"""A user's array that is changed after its use: the value at the time of use counts, or MutatedError."""

import numpy as np
import pytest

import tenferro as tn
from tenferro.errors import MutatedError
from tenferro.tape import COPY_LIMIT

SMALL = 6
LARGE = COPY_LIMIT // 8 + 6


def assign(c, backup):
    c[...] = 7


def scale(c, backup):
    c *= 2.0


def one_element(c, backup):
    c[..., 3] += 1


def through_a_view(c, backup):
    c[..., ::-1][..., 1] = -5


def by_out(c, backup):
    np.add(c, 1, out=c)


def copyto(c, backup):
    np.copyto(c, 0.5)


def reverse(c, backup):
    c[...] = c[..., ::-1].copy()


CHANGES = [assign, scale, one_element, through_a_view, by_out, copyto, reverse]

USES = {
    "multiply": lambda t, c: t * c,
    "rmultiply": lambda t, c: c * t,
    "divide": lambda t, c: t / c,
    "rdivide": lambda t, c: c / t,
    "power": lambda t, c: t**c,
    "rpower": lambda t, c: c**t,
    "maximum": lambda t, c: np.maximum(t, c),
    "dot": lambda t, c: np.dot(t, c),
    "matmul": lambda t, c: c @ t,
    "where": lambda t, c: np.where(c > 0.9, t, 2 * t),
    "add": lambda t, c: t + c,
    "concatenate": lambda t, c: np.concatenate([t, c]) * 2,
    "chain": lambda t, c: np.sin(t * c) * c,
    "masked": lambda t, c: np.sum(t, where=c > 0.9),
}


def data(n):
    r = np.random.default_rng(3)
    return r.uniform(0.5, 1.5, n), r.uniform(0.6, 1.4, n)


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("use", USES)
def test_constant_changed_between_use_and_backward(use, change, n):
    x, c = data(n)
    f = USES[use]
    expected = tn.grad(lambda t: np.sum(f(t, c)))(x)
    leaf = tn.tensor(x, requires_grad=True)
    loss = np.sum(f(leaf, c))
    change(c, None)
    try:
        loss.backward()
    except MutatedError as e:
        assert n == LARGE and leaf.grad is None
        assert "copy" in str(e)
        return
    np.testing.assert_array_equal(np.asarray(leaf.grad), expected)


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "f", [lambda t: t * t, np.exp, np.sin, lambda t: t[1:] * t[:-1], lambda t: t.reshape(2, -1) ** 3]
)
def test_argument_of_a_transform_changed_inside(f, change, n):
    x, _ = data(n)
    expected = tn.grad(lambda t: np.sum(f(t)))(x.copy())

    def loss(t):
        y = np.sum(f(t))
        change(x, None)
        return y

    try:
        got = tn.grad(loss)(x)
    except MutatedError:
        assert n == LARGE
        return
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_pullback_and_second_order_after_a_change(n):
    x, v = data(n)
    for f in (lambda t: t**3, tn.grad(lambda t: np.sum(t**3))):
        fresh = x.copy()
        expected = tn.vjp(f, x.copy())[1](v)[0]
        _, pullback = tn.vjp(f, fresh)
        fresh[0] += 1
        try:
            got = pullback(v)[0]
        except MutatedError:
            assert n == LARGE
            continue
        np.testing.assert_array_equal(got, expected)


def test_index_arrays_conditions_and_axes_are_private():
    x = np.arange(4.0)
    index = np.array([0, 0, 3])
    mask = np.array([True, False, True, False])
    t = tn.tensor(x, requires_grad=True)
    y = np.sum(t[index] * 2) + np.sum(t[mask]) + np.sum(np.where(mask, t, 0.0))
    index[:] = 1
    mask[:] = False
    y.backward()
    assert np.asarray(t.grad).tolist() == [6.0, 0.0, 2.0, 2.0]


def test_sources_of_leaves_seeds_and_tangents_are_private():
    x = np.ones(3)
    t = tn.tensor(x, requires_grad=True)
    x[:] = 5
    seed = np.ones(3)
    (t * t).backward(seed)
    seed[:] = 9
    assert np.asarray(t.grad).tolist() == [2.0] * 3


def test_what_is_handed_out_cannot_change_the_graph():
    t = tn.tensor(np.ones(3), requires_grad=True)
    y = np.exp(t)
    for view in (y.numpy(), t.numpy(), y.detach().numpy(), np.asarray(y.tensor_read())):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
    first = np.sum(y).backward()[t]
    held = np.asarray(first).copy()
    np.sum(y).backward()
    np.testing.assert_array_equal(np.asarray(first), held)
    np.testing.assert_array_equal(np.asarray(t.grad), 2 * held)
