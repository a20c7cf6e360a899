"""dtypes.py: what is differentiable, and tolerances."""

import doctest

import numpy as np
import pytest

from tenferro import dtypes
from tenferro.dtypes import DIFFERENTIABLE, check_differentiable, kind_rank, native_dtype, tolerance
from tenferro.errors import UnsupportedDTypeError

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize(
    "dtype", ["f4", "f8", "c8", "c16", float, complex, np.float32, np.dtype(np.complex64)]
)
def test_differentiable(dtype):
    check_differentiable(dtype, argument="x")
    assert np.dtype(dtype) in DIFFERENTIABLE


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "u4", "f2", "g", "O", "S3", "U3", "M8[s]", "m8[s]", "V4",
                                   [("a", "f8")], ("f8", (2,))])  # fmt: skip
def test_not_differentiable(dtype):
    dtype = np.dtype(dtype)
    if dtype in DIFFERENTIABLE:
        pytest.skip("long double is double here")
    with pytest.raises(UnsupportedDTypeError) as caught:
        check_differentiable(dtype, argument="weights")
    error = caught.value
    assert isinstance(error, TypeError) and isinstance(error, ValueError)
    assert (error.dtype, error.given, error.argument) == (dtype, dtype, "weights")
    assert "float64" in error.expected
    assert "weights has dtype" in str(error) and ".astype(float)" in error.remedy


def test_the_remedy_keeps_what_it_can():
    with pytest.raises(UnsupportedDTypeError, match=r"\.astype\(complex\)"):
        if np.dtype("G") in DIFFERENTIABLE:
            raise UnsupportedDTypeError(dtype="G", argument="x", remedy=".astype(complex)")
        check_differentiable("G", argument="x")
    with pytest.raises(UnsupportedDTypeError, match=r"\.astype\(numpy\.float32\)"):
        check_differentiable(np.dtype("f4").newbyteorder("S"), argument="x")


def test_remedies_work():
    foreign = np.arange(3, dtype=np.dtype("f4").newbyteorder("S"))
    check_differentiable(foreign.astype(np.float32).dtype, argument="x")
    check_differentiable(np.arange(3).astype(float).dtype, argument="x")


@pytest.mark.parametrize("dtype", (*DIFFERENTIABLE, np.dtype("i4"), np.dtype(bool)))
def test_native(dtype):
    assert native_dtype(dtype) is dtype
    assert native_dtype(dtype.newbyteorder("S")) == dtype


def test_kinds_are_ordered():
    ranks = [kind_rank(np.dtype(t)) for t in ("?", "u1", "i8", "f2", "f8", "c8")]
    assert ranks == sorted(ranks) and ranks[0] >= 0 and ranks[1] == ranks[2]
    assert kind_rank(np.dtype("O")) == kind_rank(np.dtype("M8[s]")) == -1


def test_tolerance():
    assert tolerance(np.float32) == tolerance(np.complex64)
    assert 0 < tolerance(np.float64)["rtol"] < 1e-13 < 1e-6 < tolerance(np.float32)["rtol"] < 1e-4
    assert tolerance(np.float64, units=2)["atol"] == 2 * np.finfo(float).eps
    assert tolerance(np.int64) == tolerance(bool) == {"rtol": 0, "atol": 0}
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(1 + 1e-10, 1.0, **tolerance(float))


def test_examples():
    assert doctest.testmod(dtypes, optionflags=FLAGS).failed == 0
