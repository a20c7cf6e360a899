"""The checker accepts right rules and rejects every kind of wrong one."""

import numpy as np
import pytest

import tenferro as tn
from tenferro.ops.elementwise import conjugate, times
from tenferro.primitive import primitive, registry
from tenferro.testing import GradientCheckError, check_grads, check_jvp, check_vjp

X = np.array([0.5, -1.5, 2.0])
Z = X + 0.5j


@pytest.fixture(autouse=True)
def clean_registry():
    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


def cube(vjp=lambda g, x: g * 3 * x**2, jvp=lambda t, x: t * 3 * x**2):
    """x**3 with the given rules."""

    @primitive(name="cube_under_test")
    def op(x):
        return np.asarray(x) ** 3

    @op.vjp
    def op_vjp(g, x):
        return vjp(g, x)

    @op.jvp
    def op_jvp(t, x):
        return jvp(t, x)

    return op


def test_right_rules_pass():
    check_grads(cube(), (X,))
    check_grads(lambda x, y: x * np.sin(y), (X, 2.0), order=3)
    check_grads(lambda d: d["a"] * d["b"][0], ({"a": X, "b": (X[::-1],)},))


WRONG_VJPS = {
    "sign": lambda g, x: -g * 3 * x**2,
    "factor": lambda g, x: g * 2.99 * x**2,
    "offset": lambda g, x: g * 3 * x**2 + 1e-3,
    "order": lambda g, x: (g * 3 * x**2)[::-1],
    "missing g": lambda g, x: 3 * x**2,
    "zero": lambda g, x: g * 0,
    "nan": lambda g, x: g * np.nan,
    "not linear in g": lambda g, x: g * g * 3 * x**2,
}


@pytest.mark.parametrize("name", WRONG_VJPS)
def test_wrong_vjp_is_rejected(name):
    op = cube(vjp=WRONG_VJPS[name])
    with pytest.raises(GradientCheckError):
        check_vjp(op, (X,))
    with pytest.raises(GradientCheckError):
        check_grads(op, (X,), order=1)
    check_jvp(op, (X,))


@pytest.mark.parametrize("name", WRONG_VJPS)
def test_wrong_jvp_is_rejected(name):
    rule = WRONG_VJPS[name]
    op = cube(jvp=rule)
    with pytest.raises(GradientCheckError):
        check_jvp(op, (X,))
    with pytest.raises(GradientCheckError):
        check_grads(op, (X,), order=1)
    check_vjp(op, (X,))


def test_missing_conjugate_is_rejected():
    op = cube()
    with pytest.raises(GradientCheckError):
        check_vjp(op, (Z,))
    check_jvp(op, (Z,))
    good = cube_conjugated()
    check_grads(good, (Z,))


def cube_conjugated():
    registry.pop("cube_under_test")
    return cube(vjp=lambda g, x: times(g, conjugate(3 * x**2)))


def test_wrong_second_derivative_is_rejected():
    """A rule that is right in value but hides a part of its dependence on x."""
    op = cube(vjp=lambda g, x: g * 3 * np.asarray(x._value if hasattr(x, "_value") else x) ** 2)
    check_vjp(op, (X,))
    with pytest.raises(GradientCheckError):
        check_grads(op, (X,))


def test_wrong_dtype_is_rejected():
    """A gradient of another dtype than its argument: seen through a transform that breaks it."""

    def widened(x):
        return tn.numpy.asarray(x) * np.float64(1.0)

    single = X.astype(np.float32)
    check_vjp(widened, (single,))  # the tape brings the gradient back to float32 ...
    gradients = tn.vjp(widened, single)[1](np.ones(3))
    assert gradients[0].dtype == np.float32
    with pytest.raises(GradientCheckError, match="dtype"):  # ... and the checker would see if it did not
        from tenferro.testing import compare_kind

        compare_kind((single,), (np.ones(3),), "gradient", "argument")
    with pytest.raises(GradientCheckError, match="shape"):
        compare_kind((single,), (np.ones(2, np.float32),), "gradient", "argument")


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="order must be at least 1"):
        check_grads(np.sin, (X,), order=0)
    with pytest.raises(ValueError, match="modes"):
        check_grads(np.sin, (X,), modes=("sideways",))
