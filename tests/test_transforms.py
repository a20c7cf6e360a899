"""The transforms: values, structures, nesting, and what they refuse."""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

import tenferro as tn
from tenferro.errors import (
    DTypeMismatchError,
    InvalidArgumentError,
    NonScalarGradError,
    ShapeMismatchError,
    UnsupportedDTypeError,
)

X = np.array([1.0, 2.0, 3.0])


def test_grad_and_value():
    value, g = tn.value_and_grad(lambda x: np.sum(x**3))(X)
    assert value == 36.0 and type(value) is np.float64
    assert type(g) is np.ndarray and g.tolist() == [3.0, 12.0, 27.0]
    assert g.flags.writeable and not np.shares_memory(g, X)


def test_argnums_aux_and_keywords():
    def f(a, b, *, scale):
        return np.sum(a * b) * scale, {"seen": a}

    (value, aux), (ga, gb) = tn.value_and_grad(f, (0, -1), has_aux=True)(X, 2 * X, scale=3.0)
    assert value == 84.0 and ga.tolist() == [6.0, 12.0, 18.0] and gb.tolist() == [3.0, 6.0, 9.0]
    assert type(aux["seen"]) is np.ndarray
    g, aux = tn.grad(f, 1, has_aux=True)(X, X, scale=1.0)
    assert g.tolist() == X.tolist() and aux["seen"] is X


@pytest.mark.parametrize("argnums", [2, -3, (0, 0), "a", None, 1.0, True, (0, -2)])
def test_bad_argnums(argnums):
    with pytest.raises(InvalidArgumentError, match="argnums"):
        tn.grad(lambda a, b: a * b, argnums)(1.0, 2.0)


def test_scalars():
    assert tn.grad(lambda x: x**2)(2) == 4.0
    assert tn.grad(lambda x: x**2)(np.int32(3)) == 6.0
    assert tn.grad(lambda x: x**2)(np.float32(3)).dtype == np.float32
    for bad in (True, np.bool_(True), np.array([1, 2]), np.array([True])):
        with pytest.raises(UnsupportedDTypeError, match="argument 0"):
            tn.grad(lambda x: np.sum(x))(bad)
    for bad in ("a", object(), {1, 2}):
        with pytest.raises(InvalidArgumentError, match="argument 0"):
            tn.grad(lambda x: 1.0)(bad)


Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: object
    name: object = None


def test_containers():
    def f(p):
        return np.sum(p["l"].w * p["t"].a) + p["t"].b[0] * 2 + (0 if p["n"] is None else 1)

    p = {"l": Layer(X, 1.0), "t": Pair(2.0, [3.0]), "n": None}
    g = tn.grad(f)(p)
    assert list(g) == ["l", "t", "n"] and g["n"] is None
    assert (
        isinstance(g["l"], Layer)
        and g["l"].w.tolist() == [2.0] * 3
        and g["l"].b == 0.0
        and g["l"].name is None
    )
    assert isinstance(g["t"], Pair) and g["t"].a == 6.0 and g["t"].b == [2.0]
    assert p["l"].w is X


def test_independent_and_constant_results_give_zeros():
    assert tn.grad(lambda x: 3.0)(X).tolist() == [0.0] * 3
    assert tn.grad(lambda x, y: np.sum(y), (0, 1))(X, X)[0].tolist() == [0.0] * 3
    assert tn.jvp(lambda x: np.ones(2), (X,), (X,))[1].tolist() == [0.0, 0.0]
    assert tn.jacobian(lambda x: np.ones(2))(X).shape == (2, 3)
    assert tn.vjp(lambda x: np.ones(2), X)[1](np.ones(2))[0].tolist() == [0.0] * 3


def test_loss_that_is_no_number():
    for f in (lambda x: x, lambda x: (x[0],), lambda x: None):
        with pytest.raises(NonScalarGradError):
            tn.grad(f)(X)
    assert tn.grad(lambda x: np.reshape(np.sum(x), (1, 1)))(X).tolist() == [1.0] * 3


def test_complex():
    z = np.array([1.0 + 2.0j, -1.0j])
    np.testing.assert_array_equal(tn.grad(lambda z: np.sum(np.abs(z) ** 2))(z), 2 * z)
    with pytest.raises(UnsupportedDTypeError, match="holomorphic"):
        tn.grad(lambda z: np.sum(z * z))(z)
    np.testing.assert_allclose(tn.grad(lambda z: np.sum(z**3), holomorphic=True)(z), 3 * z**2)
    g = tn.grad(lambda x: np.sum(np.abs(x * 1j) ** 2))(X)
    assert g.dtype == np.float64 and np.allclose(g, 2 * X)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(tn.jacobian(lambda z: z * z, mode=mode)(z), np.diag(2 * z))


def test_vjp_and_jvp():
    value, pullback = tn.vjp(lambda a, b: (a * b, np.sum(a)), X, 2.0)
    assert value[1] == 6.0
    ga, gb = pullback((np.ones(3), 10.0))
    assert ga.tolist() == [12.0] * 3 and gb == 6.0
    assert pullback((np.zeros(3), 1.0))[0].tolist() == [1.0] * 3  # again, with another cotangent
    value, tangent = tn.jvp(lambda a, b: {"y": a * b}, (X, 2.0), (np.ones(3), 1.0))
    assert tangent["y"].tolist() == (2 + X).tolist()


def test_cotangents_and_tangents_are_checked():
    _, pullback = tn.vjp(lambda x: x * 2, X)
    with pytest.raises(ShapeMismatchError, match="cotangent"):
        pullback(np.ones(2))
    with pytest.raises(DTypeMismatchError, match="cotangent"):
        pullback(np.ones(3, np.float32))
    with pytest.raises(InvalidArgumentError, match="structure"):
        pullback((np.ones(3),))
    with pytest.raises(ShapeMismatchError, match="tangent"):
        tn.jvp(np.sin, (X,), (np.ones(2),))
    with pytest.raises(InvalidArgumentError, match="tuple"):
        tn.jvp(np.sin, X, X)
    with pytest.raises(InvalidArgumentError, match="as many"):
        tn.jvp(np.sin, (X,), ())
    for name in ("grad", "value_and_grad", "jacobian", "hessian", "hvp"):
        with pytest.raises(InvalidArgumentError, match="function"):
            getattr(tn, name)(X)
    with pytest.raises(InvalidArgumentError, match="mode"):
        tn.jacobian(np.sin, mode="sideways")


def f3(x):
    return np.sum(np.sin(x) * x**3)


def test_jacobian_hessian_hvp():
    a = np.arange(6.0).reshape(2, 3)
    for mode in ("auto", "forward", "reverse"):
        assert np.array_equal(tn.jacobian(lambda x: a @ x, mode=mode)(X), a)
        ja, jx = tn.jacobian(lambda m, x: m @ x, (0, 1), mode=mode)(a, X)
        assert ja.shape == (2, 2, 3) and np.array_equal(jx, a)
        assert tn.jacobian(lambda x: x * 2, mode=mode)(np.float64(3.0)) == 2.0
        assert tn.jacobian(lambda x: x, mode=mode)(np.zeros((0, 2))).shape == (0, 2, 0, 2)
    h = tn.hessian(f3)(X)
    np.testing.assert_allclose(h, np.diag(-np.sin(X) * X**3 + 6 * np.cos(X) * X**2 + 6 * np.sin(X) * X))
    v = np.array([1.0, -1.0, 0.5])
    np.testing.assert_allclose(tn.hvp(f3)(X, v), h @ v)
    (haa, hab), (hba, hbb) = tn.hessian(lambda a, b: np.sum(a * a * b), (0, 1))(X, X + 1)
    np.testing.assert_allclose(haa, np.diag(2 * (X + 1)))
    np.testing.assert_allclose(hab, np.diag(2 * X))
    np.testing.assert_allclose(hba, hab.T)
    assert not hbb.any()
    pa, pb = tn.hvp(lambda a, b: np.sum(a * a * b), (0, 1))(X, X + 1, (v, v))
    np.testing.assert_allclose(pa, haa @ v + hab @ v)
    np.testing.assert_allclose(pb, hba @ v)


def forward(f):
    return lambda x: tn.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("a", [tn.grad, forward])
@pytest.mark.parametrize("b", [tn.grad, forward])
@pytest.mark.parametrize("c", [tn.grad, forward])
def test_third_derivatives_in_every_combination(a, b, c):
    third = a(b(c(lambda x: np.sin(x) * np.exp(2 * x))))(0.3)
    np.testing.assert_allclose(third, np.exp(0.6) * (2 * np.sin(0.3) + 11 * np.cos(0.3)))


@pytest.mark.parametrize("outer", [tn.grad, forward])
@pytest.mark.parametrize("inner", [tn.grad, forward])
def test_perturbations_do_not_mix(outer, inner):
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0
    assert outer(lambda x: inner(lambda y: x * y)(x))(3.0) == 1.0
    assert outer(lambda x: inner(lambda y: x * y * y)(x) * x)(2.0) == 3 * 2 * 2.0**2
    assert outer(lambda x: inner(lambda y: inner(lambda z: x * y * z)(y) * x)(x))(2.0) == 2 * 2.0


def test_results_are_plain_and_leave_nothing_tracked():
    assert type(tn.grad(np.sum)(X)) is np.ndarray
    assert type(tn.grad(lambda x: x * x)(1.0)) is np.float64
    assert type(tn.jvp(np.sin, (X,), (X,))[1]) is np.ndarray
    assert type(tn.vjp(np.sin, X)[0]) is np.ndarray


def test_closure_over_an_eager_leaf_stays_tracked():
    w = tn.tensor(3.0, requires_grad=True)
    g = tn.grad(lambda x: w * w * x)(2.0)
    assert isinstance(g, tn.EagerTensor) and g.item() == 9.0
    g.backward()
    assert float(np.asarray(w.grad)) == 6.0


def test_no_grad():
    with tn.no_grad():
        assert tn.grad(lambda x: x**2)(3.0) == 6.0
        x = tn.tensor(2.0, requires_grad=True)
        assert not (x * x).requires_grad

    def half(x):
        with tn.no_grad():
            c = x * x
        return c * x

    assert tn.grad(half)(3.0) == 9.0


def test_value_and_aux_do_not_alias_what_the_graph_keeps():
    value, pullback = tn.vjp(np.exp, X)
    expected = value.copy()
    value[:] = 0
    np.testing.assert_array_equal(pullback(np.ones(3))[0], expected)
