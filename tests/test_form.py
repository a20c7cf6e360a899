"""The form of an operation, on operations that this release does not have.

Each kind that later families need is written once here, as its author would, and checked.
"""

import numpy as np
import pytest

from tenferro.errors import NoRuleError, ShapeMismatchError
from tenferro.ops.elementwise import select, times
from tenferro.ops.index import index
from tenferro.ops.shape import reshape_to
from tenferro.primitive import elementwise, primitive, registry
from tenferro.testing import check_grads
from tenferro.transforms import grad, jvp

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]])


@pytest.fixture(autouse=True)
def clean_registry():
    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


def test_elementwise_with_a_parameter():
    @primitive
    def monomial(x, *, n):
        return np.asarray(x) ** n

    @monomial.partial(0)
    def monomial_dx(x, n):
        return n * monomial(x, n=n - 1)

    check_grads(lambda x: monomial(x, n=3), (X,))


def test_elementwise_of_three_operands_that_broadcast():
    @primitive
    def fma(x, y, z):
        return np.asarray(x * y + z)

    @fma.partial(0)
    def fma_dx(y):
        return y

    @fma.partial(1)
    def fma_dy(x):
        return x

    @fma.partial(2)
    def fma_dz(z_like):
        return 1.0

    check_grads(fma, (X, X[0], X[:, :1]))
    check_grads(lambda x, z: fma(x, 2.0, z), (X, np.array(3.0)))
    assert grad(lambda x: np.sum(fma(x, 2.0, 1.0)))(X.astype("f4")).dtype == np.float32


def test_cumulative_operation():
    @primitive(linear=True)
    def running(x, *, axis):
        return np.cumsum(x, axis)

    @running.vjp
    def running_vjp(g, axis):
        back = (slice(None),) * axis + (slice(None, None, -1),)
        return running(g[back], axis=axis)[back]

    check_grads(lambda x: running(x, axis=1), (X,))


def test_variadic_operation_whose_rules_use_all_operands():
    @primitive(multilinear=True)
    def product_of(*factors):
        out = np.asarray(factors[0])
        for f in factors[1:]:
            out = out * f
        return np.asarray(out)

    @product_of.vjp_of_all
    def product_of_vjp(g, factors, wanted):
        found = []
        for i, want in enumerate(wanted):
            rest = [g, *factors[:i], *factors[i + 1 :]]
            found.append(product_of(*rest) if want else None)
        return found

    check_grads(product_of, (X, X + 1, X - 2))
    check_grads(lambda x, y: product_of(x, X, y), (X, X + 1))


def test_several_outputs_and_what_only_the_rules_need():
    """A decomposition gives one packed array; its parts are read out of it by index and reshape."""

    @primitive
    def packed_eigh(a):
        w, v = np.linalg.eigh(a)
        return np.concatenate([w, v.ravel()])

    def parts(ans, n):
        return index(ans, index=slice(0, n)), reshape_to(index(ans, index=slice(n, None)), shape=(n, n))

    def middle(w):
        gap = np.expand_dims(w, 0) - np.expand_dims(w, 1)
        return select(
            0.0,
            1 / select(1.0, gap, condition=np.eye(w.shape[0], dtype=bool)),
            condition=np.eye(w.shape[0], dtype=bool),
        )

    @packed_eigh.vjp
    def packed_eigh_vjp(g, ans, a_like):
        n = a_like.shape[0]
        w, v = parts(ans, n)
        g_w, g_v = parts(g, n)
        diagonal = np.expand_dims(g_w, 1) * np.eye(n)
        inner = diagonal + times(middle(w), v.T @ g_v)
        full = v @ inner @ v.T
        return (full + full.T) / 2

    @packed_eigh.jvp
    def packed_eigh_jvp(t, ans, a):
        n = a.shape[0]
        w, v = parts(ans, n)
        inner = v.T @ ((t + t.T) / 2) @ v
        t_w = np.sum(inner * np.eye(n), axis=0)
        t_v = v @ times(middle(w), inner)
        return np.concatenate([t_w, reshape_to(t_v, shape=(n * n,))])

    a = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, -0.5]])
    check_grads(lambda a: parts(packed_eigh((a + a.T) / 2), 3), (a,), rtol=1e-5, atol=1e-5)


def test_forward_may_return_a_scalar():
    @primitive(linear=True)
    def trace_of(x):
        return np.trace(x)

    @trace_of.vjp
    def trace_of_vjp(g, x_like):
        return g * np.eye(*x_like.shape)

    check_grads(trace_of, (X[:, :2],))


# ----------------------------------------------------------------- what is refused


def test_unknown_rule_parameter_is_refused_when_declared():
    @primitive(name="probe_a")
    def probe(x, *, axis):
        return x

    with pytest.raises(TypeError, match=r"unknown parameter .xlike.; it may be one of .*x_like"):

        @probe.vjp
        def probe_vjp(g, xlike):
            return g


def test_operand_with_a_default_is_refused():
    with pytest.raises(TypeError, match="keyword-only"):

        @primitive
        def probe(x, axis=None):
            return x


def test_number_of_partials_is_checked():
    with pytest.raises(TypeError, match="2 operands; given 1"):
        elementwise(np.hypot, 1.0)


def test_no_partial_is_no_rule_and_not_zero():
    ldexp = elementwise(np.arctan2, 1.0, None, name="probe_b")
    with pytest.raises(NoRuleError, match="probe_b"):
        grad(lambda y: np.sum(ldexp(X, y)))(X)
    with pytest.raises(NoRuleError, match="probe_b"):
        jvp(lambda y: ldexp(X, y), (X,), (X,))


def test_rule_of_the_wrong_shape_is_refused():
    @primitive(name="probe_c")
    def probe(x):
        return np.sum(x, axis=0)

    @probe.vjp
    def probe_vjp(g, x_like):
        return np.ones((5, *x_like.shape))

    with pytest.raises(ShapeMismatchError, match="probe_c"):
        grad(lambda x: np.sum(probe(x)))(X)


def test_second_primitive_of_one_name_is_refused():
    with pytest.raises(ValueError, match="exists already"):
        elementwise(np.multiply, 1.0, 1.0)
