"""The error hierarchy.

Every error is a `TenferroError` and also the built-in that a NumPy user would catch.  A raising site
passes facts by keyword; the class makes the message of them: what was given, what was expected, what
to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.exceptions import AxisError

#: Longest text of a user's value in a message.
_SHOWN = 80
_ABSENT: Any = None


def _show(fact: Any) -> str:
    """A fact as part of a sentence; an object whose repr raises must not hide the error."""
    if isinstance(fact, (str, np.dtype)):
        return str(fact)
    try:
        text = repr(fact)
    except Exception:
        text = f"a {type(fact).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


class TenferroError(Exception):
    """The root of tenferro's errors.

    Parameters
    ----------
    given, expected : object, optional
        What was passed and what is accepted: facts, or words where a string is passed.
    remedy : str, optional
        What to do, where the class cannot know it.
    op : str, optional
        The operation that was refused.
    argument : str or int, optional
        Which argument, by name or position.
    shape, dtype, axis, ndim : object, optional
        The array or axis that the error is about.
    shapes : sequence of tuple of int, optional
        The operands' shapes.
    lhs, rhs : object, optional
        The two sides that do not go together.
    line : str, optional
        Where in the user's code it began.

    Attributes
    ----------
    given, expected, remedy
        As passed, or the class's own words.
    op, argument, shape, dtype, axis, ndim, shapes, lhs, rhs, line
        As passed; None where the error does not speak of it.

    Notes
    -----
    Errors can be pickled, so they cross process boundaries.
    """

    # Templates over the facts; a fact that is itself a string replaces its template.
    _given = "given {given}"
    _expected = "{expected}"
    _remedy = ""
    # the fact that `given` repeats where it is not passed
    _subject = ""

    # class-level defaults, so that every attribute can be read on every error
    given = expected = remedy = op = argument = _ABSENT
    shape = dtype = axis = ndim = shapes = lhs = rhs = line = _ABSENT

    def __init__(
        self, *, given: Any = None, expected: Any = None, remedy: str | None = None, op: str | None = None,
        argument: str | int | None = None, shape: Any = None, dtype: Any = None, axis: Any = None,
        ndim: int | None = None, shapes: Any = None, lhs: Any = None, rhs: Any = None,
        line: str | None = None,
    ) -> None:  # fmt: skip
        facts = {
            "given": given, "expected": expected, "op": op, "argument": argument, "shape": shape,
            "dtype": dtype, "axis": axis, "ndim": ndim, "shapes": shapes, "lhs": lhs, "rhs": rhs,
            "line": line,
        }  # fmt: skip
        shown = {name: _show(fact) for name, fact in facts.items()}
        if isinstance(argument, int):
            shown["argument"] = f"operand {argument}"
        given_text = f"given {given}" if isinstance(given, str) else self._given.format(**shown)
        expected_text = expected if isinstance(expected, str) else self._expected.format(**shown)
        facts["remedy"] = remedy or self._remedy.format(**shown)
        if given is None:
            subject = facts.get(self._subject)
            facts["given"] = given_text if subject is None else subject
        if expected is None:
            facts["expected"] = expected_text
        self.__dict__.update({name: fact for name, fact in facts.items() if fact is not None})
        names = [
            n for n in ("op", "argument") if facts[n] is not None and not given_text.startswith(shown[n])
        ]
        where = "".join(f"{shown[n]}: " for n in names)
        # not super(): another parent, such as AxisError, may have a constructor of its own
        Exception.__init__(self, f"{where}{given_text}; expected {expected_text}; {facts['remedy']}")

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else type(self).__name__

    def __reduce__(self) -> Any:
        # the default would call the class with the message, but arguments are keywords
        return _restore, (type(self), self.args), self.__dict__


def _restore(cls: type[TenferroError], args: tuple[Any, ...]) -> TenferroError:
    error = cls.__new__(cls)
    error.args = args
    return error


class ValidationError(TenferroError, ValueError):
    """The parent of the input errors: an argument that cannot be used as it is.

    Examples
    --------
    >>> import tenferro as tn
    >>> try:
    ...     tn.Tensor.from_vec_row_major([2], [1.0, 2.0, 3.0])
    ... except tn.ValidationError as error:
    ...     error.expected, error.given
    (2, 3)
    """


class ShapeMismatchError(ValidationError):
    """Two shapes had to be equal and are not; nothing is broadcast silently.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> store = tn.GradStore()
    >>> store.insert("w", np.zeros(2))
    >>> store.try_accumulate("w", np.ones(3))
    Traceback (most recent call last):
    tenferro.errors.ShapeMismatchError: grad: given shape (3,); expected shape (2,); bring it to that
    shape first, for example with numpy.broadcast_to, reshape or sum
    >>> store.try_accumulate("w", np.ones(3)[:2])
    """

    _given = "given shape {given}"
    _expected = "shape {expected}"
    _remedy = "bring it to that shape first, for example with numpy.broadcast_to, reshape or sum"


class ShapeDataLengthMismatchError(ValidationError):
    """The number of elements is not the product of the shape.

    Examples
    --------
    >>> import tenferro as tn
    >>> tn.Tensor.from_vec_col_major([2, 2], [1.0, 2.0, 3.0])
    Traceback (most recent call last):
    tenferro.errors.ShapeDataLengthMismatchError: given 3 elements for shape (2, 2); expected 4 elements;
    pass as many elements as the shape has, or another shape
    >>> tn.Tensor.from_vec_col_major([2, 2], [1.0, 2.0, 3.0, 4.0]).size
    4
    """

    _given = "given {given} elements for shape {shape}"
    _expected = "{expected} elements"
    _remedy = "pass as many elements as the shape has, or another shape"


class RankMismatchError(ValidationError):
    """An array has more or fewer axes than the operation takes.

    Examples
    --------
    >>> import tenferro as tn
    >>> tn.Tensor.from_vec_row_major([2, 2], [[1.0, 2.0], [3.0, 4.0]])
    Traceback (most recent call last):
    tenferro.errors.RankMismatchError: data: given rank 2; expected rank 1; pass the elements as one flat
    sequence, or nested data to Tensor.from_numpy
    >>> tn.Tensor.from_numpy([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """

    _given = "given rank {given}"
    _expected = "rank {expected}"
    _remedy = "add axes with numpy.expand_dims, or remove some with reshape"


class AxisOutOfBoundsError(ValidationError, AxisError):
    """An axis that the array does not have.

    Examples
    --------
    >>> import tenferro as tn
    >>> raise tn.AxisOutOfBoundsError(op="sum", axis=2, ndim=1)
    Traceback (most recent call last):
    tenferro.errors.AxisOutOfBoundsError: sum: axis 2 is out of bounds for array of dimension 1; expected
    an axis from -1 to 0; pass one of these, or None for all axes
    """

    _given = "axis {axis} is out of bounds for array of dimension {ndim}"
    _remedy = "pass one of these, or None for all axes"
    _subject = "axis"

    def __init__(self, *, axis: Any, ndim: int, op: str | None = None, remedy: str | None = None) -> None:
        some = f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis, as the array has none"
        super().__init__(axis=axis, ndim=ndim, op=op, remedy=remedy, expected=some, given=axis)


class DuplicateAxisError(ValidationError):
    """One axis was named twice.

    Examples
    --------
    >>> import tenferro as tn
    >>> raise tn.DuplicateAxisError(op="sum", axis=1, given=(1, -1))
    Traceback (most recent call last):
    tenferro.errors.DuplicateAxisError: sum: given axes (1, -1), which name axis 1 twice; expected each
    axis once; leave the repetition out
    """

    _given = "given axes {given}, which name axis {axis} twice"
    _expected = "each axis once"
    _remedy = "leave the repetition out"


class InvalidArgumentError(ValidationError):
    """An argument outside of what its function takes.

    Examples
    --------
    >>> import tenferro as tn
    >>> tn.CpuBackend(threads=0)
    Traceback (most recent call last):
    tenferro.errors.InvalidArgumentError: given threads=0; expected a positive integer, or None for the
    default; pass threads=1 or more
    >>> tn.CpuBackend(threads=1)
    CpuBackend(threads=1)
    """

    _remedy = "pass an argument of the kind that is expected"


class DTypeMismatchError(ValidationError, TypeError):
    """Two dtypes had to be equal and are not; nothing is cast silently.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> t = tn.Tensor.from_vec_row_major([2], [1.0, 2.0])
    >>> t.as_slice(np.float32)
    Traceback (most recent call last):
    tenferro.errors.DTypeMismatchError: as_slice: dtype: given dtype float32; expected dtype float64; ask
    for dtype float64, or convert a copy with numpy.asarray(...).astype
    >>> t.as_slice(np.float64).tolist()
    [1.0, 2.0]
    """

    _given = "given dtype {given}"
    _expected = "dtype {expected}"
    _remedy = "convert it first, with astype(numpy.{expected})"


class UnsupportedDTypeError(ValidationError, TypeError):
    """A dtype that has no derivative, or that tenferro does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> x = np.array([1, 2])
    >>> tn.grad(lambda x: np.sum(x * x))(x)
    Traceback (most recent call last):
    tenferro.errors.UnsupportedDTypeError: argument 0 has dtype int64; expected a differentiable dtype
    (float32, float64, complex64 or complex128); convert it with .astype(float)
    >>> tn.grad(lambda x: np.sum(x * x))(x.astype(float))
    array([2., 4.])
    """

    _given = "{argument} has dtype {dtype}"
    _expected = "a differentiable dtype (float32, float64, complex64 or complex128)"
    _remedy = "convert it with .astype(float)"
    _subject = "dtype"


class RuntimeStateError(TenferroError, RuntimeError):
    """Something is used after its end: a closed runtime, a freed graph, a released guard.

    Examples
    --------
    >>> import tenferro as tn
    >>> x = tn.tensor([2.0], requires_grad=True)
    >>> _ = (x * x).sum().backward()
    >>> guard = x.grad.value()
    >>> with guard:
    ...     guard.as_array().tolist()
    [4.0]
    >>> guard.as_array()
    Traceback (most recent call last):
    tenferro.errors.RuntimeStateError: given a guard that was released; expected a guard within its with
    block; call value() again, or keep a copy with to_tensor()
    """

    _remedy = "make what was closed or released again"


class ContextMismatchError(TenferroError, RuntimeError):
    """An operation over tensors of two runtimes.

    Examples
    --------
    >>> import tenferro as tn
    >>> a, b = tn.EagerRuntime(), tn.EagerRuntime()
    >>> x, y = tn.tensor(1.0, runtime=a), tn.tensor(2.0, runtime=b)
    >>> x + y
    Traceback (most recent call last):
    tenferro.errors.ContextMismatchError: given tensors of runtimes ... and ...; expected tensors of one
    runtime; move one over with detach_into(runtime), which drops its history
    >>> (x + y.detach_into(a)).item()
    3.0
    """

    _given = "given tensors of runtimes {lhs} and {rhs}"
    _expected = "tensors of one runtime"
    _remedy = "move one over with detach_into(runtime), which drops its history"
    _subject = "rhs"


class NonScalarGradError(TenferroError, ValueError):
    """The gradient of a result that is not one number.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> x = tn.tensor([2.0, 3.0], requires_grad=True)
    >>> (x * x).backward()
    Traceback (most recent call last):
    tenferro.errors.NonScalarGradError: given a result of shape (2,); expected one element; reduce it, for
    example with sum(), or pass a seed of that shape: backward(seed), vjp
    >>> len((x * x).backward(np.ones(2)))
    1
    """

    _given = "given a result of shape {shape}"
    _expected = "one element"
    _remedy = "reduce it, for example with sum(), or pass a seed of that shape: backward(seed), vjp"
    _subject = "shape"


class UntrackedError(TenferroError, RuntimeError):
    """There is nothing to differentiate, or an input is not reached.

    Examples
    --------
    >>> import tenferro as tn
    >>> tn.tensor([2.0]).sum().backward()
    Traceback (most recent call last):
    tenferro.errors.UntrackedError: backward: given a tensor that does not depend on an input that requires
    a gradient; expected a dependence on one; make the inputs with requires_grad=True, outside of no_grad()
    and without detach()
    >>> x = tn.tensor([2.0], requires_grad=True)
    >>> len(x.sum().backward())
    1
    """

    _given = "given a tensor that does not depend on an input that requires a gradient"
    _expected = "a dependence on one"
    _remedy = "make the inputs with requires_grad=True, outside of no_grad() and without detach()"

    def __init__(
        self, *, op: str | None = None, argument: str | int | None = None, remedy: str | None = None
    ) -> None:
        if remedy is None and op in ("grad", "vjp", "jvp"):
            remedy = f"{self._remedy}; {op}_optional gives None where an input is not reached"
        super().__init__(op=op, argument=argument, remedy=remedy)


class NoRuleError(TenferroError, NotImplementedError):
    """A function that has no derivative rule met a tracked value.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> x = tn.tensor([2.0, 3.0], requires_grad=True)
    >>> np.packbits(x)
    Traceback (most recent call last):
    tenferro.errors.NoRuleError: numpy.packbits has no derivative rule; expected a function with one; write
    it with functions that have a rule, or call it on x.detach() or x.numpy() where no gradient is wanted
    >>> np.packbits(x.numpy() > 2.5)
    array([64], dtype=uint8)
    """

    _given = "{op} has no derivative rule"
    _expected = "a function with one"
    _remedy = (
        "write it with functions that have a rule, or call it on x.detach() or x.numpy() where no gradient "
        "is wanted"
    )
    _subject = "op"


class HostAccessError(TenferroError, RuntimeError):
    """The elements cannot be read in place, as they are not one compact block of host memory.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> x = tn.tensor([[1.0, 2.0], [3.0, 4.0]])[:, 0]
    >>> x.value().as_slice(np.float64)
    Traceback (most recent call last):
    tenferro.errors.HostAccessError: as_slice: given an array of shape (2,) that is not compact in memory;
    expected compact host memory; take a copy with to_tensor()
    >>> x.to_tensor().as_slice(np.float64).tolist()
    [1.0, 3.0]
    """

    _given = "given an array of shape {shape} that is not compact in memory"
    _expected = "compact host memory"
    _remedy = "take a copy with to_tensor()"
    _subject = "shape"


class TracedConversionError(TenferroError, TypeError):
    """A tracked value was turned into a plain number or array, which would lose its gradient.

    Examples
    --------
    >>> import tenferro as tn
    >>> x = tn.tensor(2.0, requires_grad=True)
    >>> float(x)
    Traceback (most recent call last):
    tenferro.errors.TracedConversionError: float(): given a tensor of shape (); expected ...
    >>> x.item()
    2.0
    """

    _given = "given a tracked value"
    _expected = "a plain number or array"
    _remedy = (
        "x.detach(), x.numpy() and x.item() are the ways out, without a gradient; tenferro.numpy has the "
        "functions that keep it"
    )


class MutatedError(TenferroError, RuntimeError):
    """An array was changed in place between its use and the backward pass that needs its old values.

    Examples
    --------
    >>> import numpy as np
    >>> import tenferro as tn
    >>> x = tn.tensor(np.ones(100_000), requires_grad=True)
    >>> c = np.ones(100_000)
    >>> y = (x * c).sum()
    >>> c *= 5
    >>> y.backward()
    Traceback (most recent call last):
    tenferro.errors.MutatedError: multiply: operand 1: given an array of shape (100000,) that was changed in
    place after its use; expected its values as they were; run backward before changing it, or pass a copy()
    >>> y = (x * c).sum()
    >>> len(y.backward())
    1
    """

    _given = "given an array of shape {shape} that was changed in place after its use"
    _expected = "its values as they were"
    _remedy = "run backward before changing it, or pass a copy()"
    _subject = "shape"


class AnomalyError(TenferroError, ArithmeticError):
    """Anomaly mode: a nan or inf arose.

    Examples
    --------
    >>> import tenferro as tn
    >>> raise tn.AnomalyError(op="log", given="a nan", shapes=[(3,)], line="model.py:7")
    Traceback (most recent call last):
    tenferro.errors.AnomalyError: log: given a nan in operands of shapes [(3,)] at model.py:7; expected
    finite values; look at the operands on that line, or leave anomaly mode
    """

    _expected = "finite values"
    _remedy = "look at the operands on that line, or leave anomaly mode"

    def __init__(
        self, *, op: str, given: str, shapes: Any, line: str | None = None, remedy: str | None = None
    ) -> None:
        place = "" if line is None else f" at {line}"
        text = f"{given} in operands of shapes {_show(list(shapes))}{place}"
        super().__init__(op=op, given=text, shapes=list(shapes), line=line, remedy=remedy)
        self.given = given
