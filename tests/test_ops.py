"""Every operation against NumPy's forward, finite differences, and itself, over the table in `specs`."""

import warnings

import numpy as np
import pytest
from specs import SPECS

import tenferro as tn
from tenferro.testing import check_grads, check_jvp, check_vjp

CALLS = [(spec, k) for spec in SPECS for k in range(len(spec.calls))]
IDS = [f"{spec.name}-{k}" for spec, k in CALLS]
every_call = pytest.mark.parametrize(("spec", "k"), CALLS, ids=IDS)


def bound(spec, k, module=np):
    f, operands = spec.calls[k]
    return (lambda *x: f(module, *x)), operands


def as_dtype(operands, dtype):
    phase = 1 + 0.5j if np.dtype(dtype).kind == "c" else 1
    return tuple(np.asarray(x * phase).astype(dtype) for x in operands)


def dtypes(spec):
    return [np.float32, np.float64] + ([np.complex64, np.complex128] if spec.complex else [])


def quiet(f, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f(*args)


@every_call
def test_forward_is_numpys(spec, k):
    f, operands = bound(spec, k)
    for dtype in dtypes(spec):
        plain = as_dtype(operands, dtype)
        expected = np.asarray(quiet(f, *plain))
        for leaf in (True, False):
            got = quiet(f, *[tn.tensor(x, requires_grad=leaf) for x in plain])
            assert isinstance(got, tn.EagerTensor)
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6 if got.dtype.char in "fF" else 1e-13)


@every_call
def test_namespace_is_numpys(spec, k):
    f, operands = bound(spec, k, tn.numpy)
    g, _ = bound(spec, k)
    got = quiet(f, *[tn.tensor(x) for x in operands])
    np.testing.assert_array_equal(got.numpy(), quiet(g, *[tn.tensor(x) for x in operands]).numpy())
    np.testing.assert_array_equal(quiet(f, *operands), quiet(g, *operands))


@every_call
def test_derivatives(spec, k):
    f, operands = bound(spec, k)
    quiet(check_grads, f, as_dtype(operands, np.float64))
    if spec.complex:
        quiet(check_grads, f, as_dtype(operands, np.complex128))


@every_call
def test_derivatives_in_single_precision(spec, k):
    f, operands = bound(spec, k)
    for dtype in dtypes(spec)[::2]:
        single = as_dtype(operands, dtype)
        quiet(check_vjp, f, single)
        quiet(check_jvp, f, single)


@every_call
def test_layout_does_not_matter(spec, k):
    f, operands = bound(spec, k)
    rng = np.random.default_rng(1)
    value, pullback = quiet(tn.vjp, f, *operands)
    u = rng.standard_normal(np.shape(value)).astype(np.asarray(value).dtype)
    expected = pullback(u)
    for relaid in (fortran, spread, frozen):
        moved = [relaid(x) for x in operands]
        before = [x.copy() for x in moved]
        got = quiet(tn.vjp, f, *moved)[1](relaid(u))
        for g, e, x, b in zip(got, expected, moved, before, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-12, atol=1e-12)
            assert np.shape(g) == x.shape and g.dtype == x.dtype
            np.testing.assert_array_equal(x, b)


def fortran(x):
    return np.array(x, order="F")


def spread(x):
    """The same values at every other place of a larger, reversed array."""
    if not np.ndim(x):
        return np.array(x)
    wide = np.zeros([2 * n for n in x.shape], x.dtype)[tuple(slice(None, None, -2) for _ in x.shape)]
    wide[...] = x
    return wide


def frozen(x):
    x = np.array(x)
    x.flags.writeable = False
    return x


@every_call
def test_modes_agree_and_gradients_have_the_leafs_dtype(spec, k):
    f, operands = bound(spec, k)
    rng = np.random.default_rng(2)
    for dtype in dtypes(spec):
        x = as_dtype(operands, dtype)
        v = tuple(rng.standard_normal(p.shape).astype(dtype) for p in x)
        value, tangent = quiet(tn.jvp, f, x, v)
        u = np.asarray(rng.standard_normal(np.shape(value))).astype(np.asarray(value).dtype)
        gradients = quiet(tn.vjp, f, *x)[1](u)
        left = np.sum(np.conj(u) * tangent).real
        right = sum(np.sum(np.conj(g) * t).real for g, t in zip(gradients, v, strict=True))
        tolerance = 1e-4 if np.dtype(dtype).char in "fF" or np.asarray(value).dtype.char in "fF" else 1e-10
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * (1 + np.size(value)))
        for g, p in zip(gradients, x, strict=True):
            assert g.dtype == p.dtype and np.shape(g) == p.shape


@pytest.mark.parametrize(
    ("spec", "f", "operands", "gradients"),
    [(s, *e) for s in SPECS for e in s.exact],
    ids=[f"{s.name}-{i}" for s in SPECS for i in range(len(s.exact))],
)
def test_special_points(spec, f, operands, gradients):
    argnums = tuple(range(len(operands)))
    got = quiet(tn.grad(lambda *x: f(np, *x), argnums), *operands)
    for g, expected in zip(got, gradients, strict=True):
        np.testing.assert_array_equal(g, expected)
    # forward mode: one basis vector at a time
    for i, expected in enumerate(gradients):
        for j in range(np.size(expected)):
            v = [np.zeros_like(x) for x in operands]
            v[i].flat[j] = 1.0
            tangent = quiet(tn.jvp, lambda *x: f(np, *x), operands, tuple(v))[1]
            np.testing.assert_array_equal(tangent, np.ravel(expected)[j])


@pytest.mark.parametrize(
    ("f", "operands"),
    [r for s in SPECS for r in s.raises],
    ids=[f"{s.name}-{i}" for s in SPECS for i in range(len(s.raises))],
)
def test_refused_as_numpy_refuses(f, operands):
    with pytest.raises(Exception) as expected:
        f(np, *operands)
    with pytest.raises(type(expected.value)):
        f(np, *[tn.tensor(x, requires_grad=True) for x in operands])


def test_float32_leaf_and_float64_constant():
    g = tn.grad(lambda x: np.sum(x * np.arange(3.0)))(np.ones(3, np.float32))
    assert g.dtype == np.float32
    np.testing.assert_array_equal(g, [0, 1, 2])
