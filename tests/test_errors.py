"""errors.py: classes, attributes, messages."""

import copy
import doctest
import pickle

import numpy as np
import pytest
from numpy.exceptions import AxisError

from tenferro import errors

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

# class, built-in that it is too, facts, what the message must say of given, expected and remedy
CASES = [
    (errors.ValidationError, ValueError, {"given": "x=1", "expected": "y", "remedy": "pass y"},
     ["given x=1", "expected y", "pass y"]),
    (errors.ShapeMismatchError, ValueError, {"given": (3,), "expected": (2,), "argument": "seed"},
     ["seed", "(3,)", "(2,)", "broadcast_to"]),
    (errors.ShapeDataLengthMismatchError, ValueError, {"given": 3, "expected": 4, "shape": (2, 2)},
     ["3 elements", "(2, 2)", "4 elements", "pass as many elements"]),
    (errors.RankMismatchError, ValueError, {"given": 2, "expected": 1, "op": "dot"},
     ["dot", "rank 2", "rank 1", "reshape"]),
    (errors.AxisOutOfBoundsError, AxisError, {"axis": 3, "ndim": 2, "op": "sum"},
     ["sum: axis 3 is out of bounds for array of dimension 2", "from -2 to 1", "None for all axes"]),
    (errors.AxisOutOfBoundsError, IndexError, {"axis": 0, "ndim": 0},
     ["axis 0 is out of bounds for array of dimension 0", "no axis", "None for all axes"]),
    (errors.DuplicateAxisError, ValueError, {"axis": 1, "given": (1, -1), "op": "sum"},
     ["(1, -1)", "axis 1 twice", "each axis once", "leave the repetition out"]),
    (errors.InvalidArgumentError, ValueError, {"given": "threads=0", "expected": "1", "remedy": "pass 1"},
     ["threads=0", "expected 1", "pass 1"]),
    (errors.DTypeMismatchError, TypeError,
     {"given": np.dtype("f4"), "expected": np.dtype("f8"), "argument": "seed"},
     ["seed", "float32", "float64", "astype(numpy.float64)"]),
    (errors.DTypeMismatchError, ValueError, {"given": np.dtype("f4"), "expected": np.dtype("c16")},
     ["float32", "complex128", "astype(numpy.complex128)"]),
    (errors.UnsupportedDTypeError, TypeError, {"dtype": np.dtype(bool), "argument": "mask"},
     ["mask has dtype bool", "float32, float64, complex64 or complex128", "convert it with .astype(float)"]),
    (errors.UnsupportedDTypeError, ValueError, {"dtype": np.dtype("i8"), "argument": "argument 0"},
     ["argument 0 has dtype int64", ".astype(float)"]),
    (errors.RuntimeStateError, RuntimeError,
     {"given": "the closed runtime 1", "expected": "an open runtime", "remedy": "make a new EagerRuntime"},
     ["the closed runtime 1", "an open runtime", "make a new EagerRuntime"]),
    (errors.ContextMismatchError, RuntimeError, {"lhs": 4, "rhs": 7},
     ["runtimes 4 and 7", "one runtime", "detach_into"]),
    (errors.NonScalarGradError, ValueError, {"shape": (2,)},
     ["shape (2,)", "one element", "sum()", "pass a seed"]),
    (errors.NonScalarGradError, ValueError, {"given": "a dict"}, ["given a dict", "one element", "seed"]),
    (errors.UntrackedError, RuntimeError, {"op": "backward"},
     ["backward: ", "does not depend on an input", "requires_grad=True", "no_grad()"]),
    (errors.UntrackedError, RuntimeError, {"op": "vjp"}, ["vjp: ", "requires_grad=True", "vjp_optional"]),
    (errors.NoRuleError, NotImplementedError, {"op": "numpy.packbits"},
     ["numpy.packbits has no derivative rule", "a function with one", "detach()"]),
    (errors.NoRuleError, NotImplementedError, {"op": "index", "argument": 1},
     ["operand 1: ", "index has no derivative rule", "detach()"]),
    (errors.HostAccessError, RuntimeError, {"op": "as_slice", "shape": (2, 3)},
     ["as_slice: ", "(2, 3)", "not compact", "compact host memory", "to_tensor()"]),
    (errors.TracedConversionError, TypeError, {"op": "float()"},
     ["float(): ", "tracked value", "detach()", "tenferro.numpy"]),
    (errors.MutatedError, RuntimeError, {"op": "multiply", "argument": 1, "shape": (9,)},
     ["multiply: operand 1: ", "shape (9,)", "changed in place", "as they were", "copy()"]),
    (errors.AnomalyError, ArithmeticError,
     {"op": "log", "given": "a nan", "shapes": [(3,), ()], "line": "model.py:7"},
     ["log: given a nan", "[(3,), ()]", "model.py:7", "finite", "look at the operands"]),
    (errors.AnomalyError, ArithmeticError, {"op": "log", "given": "an inf", "shapes": ((3,),)},
     ["given an inf", "[(3,)]", "anomaly mode"]),
]  # fmt: skip
PICKLERS = [lambda e, protocol=p: pickle.loads(pickle.dumps(e, protocol)) for p in (2, 5)]
IDS = [f"{cls.__name__}-{i}" for i, (cls, *_) in enumerate(CASES)]


@pytest.mark.parametrize(("cls", "builtin", "facts", "words"), CASES, ids=IDS)
def test_class_attributes_and_message(cls, builtin, facts, words):
    error = cls(**facts)
    assert isinstance(error, errors.TenferroError) and isinstance(error, builtin)
    for name, fact in facts.items():
        assert getattr(error, name) == (list(fact) if name == "shapes" else fact)
    assert error.given is not None and error.expected is not None and error.remedy
    for word in words:
        assert word in str(error)
    assert str(error).endswith(error.remedy)
    assert "None;" not in str(error) and "{" not in str(error)


def test_every_class_is_covered():
    public = {c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.TenferroError)}
    assert public - {cls for cls, *_ in CASES} == {errors.TenferroError}


@pytest.mark.parametrize(("cls", "builtin", "facts", "words"), CASES, ids=IDS)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, *PICKLERS])
def test_pickle_and_copy(cls, builtin, facts, words, again):
    error = cls(**facts)
    error.add_note("seen in a worker")
    twin = again(error)
    assert type(twin) is cls and str(twin) == str(error) and twin.args == error.args
    assert vars(twin) == vars(error) and twin.__notes__ == ["seen in a worker"]


def test_validation_errors_share_a_parent():
    for name in ("ShapeMismatch", "ShapeDataLengthMismatch", "RankMismatch", "AxisOutOfBounds",
                 "DuplicateAxis", "InvalidArgument", "DTypeMismatch", "UnsupportedDType"):  # fmt: skip
        assert issubclass(getattr(errors, name + "Error"), errors.ValidationError)


def test_given_repeats_the_subject():
    assert errors.UnsupportedDTypeError(dtype=np.dtype(bool), argument="x").given == np.dtype(bool)
    assert errors.NonScalarGradError(shape=()).given == ()
    assert errors.AxisOutOfBoundsError(axis=0, ndim=0).given == 0
    assert errors.ContextMismatchError(lhs=1, rhs=2).given == 2


def test_attributes_that_do_not_apply_are_none():
    error = errors.UntrackedError(op="backward")
    for name in ("argument", "shape", "dtype", "axis", "ndim", "shapes", "lhs", "rhs", "line"):
        assert getattr(error, name) is None


def test_axis_error_is_numpys():
    with pytest.raises(AxisError, match="axis 2 is out of bounds for array of dimension 1") as caught:
        raise errors.AxisOutOfBoundsError(axis=2, ndim=1)
    assert (caught.value.axis, caught.value.ndim) == (2, 1)


def test_facts_are_keywords_and_known():
    with pytest.raises(TypeError):
        errors.ShapeMismatchError((3,), (2,))
    with pytest.raises(TypeError, match="colour"):
        errors.ShapeMismatchError(colour="red")


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no repr")


def test_a_repr_that_raises_does_not_hide_the_error():
    assert "a Unspeakable" in str(errors.ShapeMismatchError(given=Unspeakable(), expected=(2,)))


def test_long_values_and_braces_are_harmless():
    assert len(str(errors.ShapeMismatchError(given=tuple(range(10**4)), expected=(2,)))) < 300
    assert "{0} {x}" in str(errors.InvalidArgumentError(given="{0} {x}", expected="{y}", remedy="{z}"))


def test_examples():
    assert doctest.testmod(errors, optionflags=FLAGS).failed == 0
