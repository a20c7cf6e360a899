"""Elementwise operations: a ufunc and one partial derivative per operand.

X, Y and ANS stand for the operands and the result; a partial that needs more is a function of
whichever of ``x``, ``y``, ``ans`` it names.  The tape multiplies it with the cotangent (conjugated)
or the tangent by the strong-zero product, and undoes broadcasting and promotion.
"""

from __future__ import annotations

import numpy as np

from .._kernels import Loop, product
from ..primitive import ANS, X, Y, elementwise, functions, implements, primitive
from ._common import is_complex, plain, real_dtype

# ------------------------------------------------------------------- arithmetic

add = elementwise(np.add, 1, 1)
subtract = elementwise(np.subtract, 1, -1)
negative = elementwise(np.negative, -1)
multiply = elementwise(np.multiply, Y, X)
square = elementwise(np.square, 2 * X)
multiply.same_operand = square  # x * x, in one pass over x


def divide_dx(y):
    return divide(1, y)


def divide_dy(y, ans):
    return -ans / y


divide = elementwise(np.divide, divide_dx, divide_dy)


def power_dx(x, y):
    # x**0 is constant, also at x = 0, where x**-1 is infinite
    if isinstance(y, (int, float)):
        return y * x ** (y - 1) if y else 0.0
    return times(y, x ** (y - 1))


def power_dy(x, y, ans):
    # 0**y is 0 for all y > 0
    flat = (plain(x) == 0) & (plain(y).real >= 0)
    return where(flat, 0.0, ans * log(where(flat, 1, x)))


power = elementwise(np.power, power_dx, power_dy)


def sqrt_dx(ans):
    return 0.5 / ans


sqrt = elementwise(np.sqrt, sqrt_dx)

# ---------------------------------------------------- exponential and trigonometric

exp = elementwise(np.exp, ANS)


def log_dx(x):
    return 1 / x


log = elementwise(np.log, log_dx)


def sin_dx(x):
    return cos(x)


def cos_dx(x):
    return -sin(x)


def tan_dx(ans):
    return 1 + square(ans)


def arctan_dx(x):
    return 1 / (1 + square(x))


def tanh_dx(ans):
    return 1 - square(ans)


sin = elementwise(np.sin, sin_dx)
cos = elementwise(np.cos, cos_dx)
tan = elementwise(np.tan, tan_dx)
arctan = elementwise(np.arctan, arctan_dx)
tanh = elementwise(np.tanh, tanh_dx)

# --------------------------------------------------------------------- selection


def share_of_x(x, y, ans):
    # ties share equally, and a nan is whoever brought it
    x, y, ans = plain(x), plain(y), plain(ans)
    mine = ((x == ans) | np.isnan(x)).astype(real_dtype(ans))
    other = (y == ans) | np.isnan(y)
    return mine / np.maximum(mine + other, 1)


def share_of_y(x, y, ans):
    return share_of_x(y, x, ans)


maximum = elementwise(np.maximum, share_of_x, share_of_y)
minimum = elementwise(np.minimum, share_of_x, share_of_y)


@primitive(linear=True, broadcasts=True)
def select(x, y, *, condition):
    return np.asarray(np.where(condition, x, y))


@select.vjp(0)
def select_vjp_x(g, condition):
    return select(g, 0.0, condition=condition)


@select.vjp(1)
def select_vjp_y(g, condition):
    return select(0.0, g, condition=condition)


@implements(np.where)
def where(condition, x=None, y=None, /):
    """`numpy.where` with three arguments; only the taken branch gets a gradient."""
    condition = plain(condition)
    if x is None and y is None:
        return np.where(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    return select(x, y, condition=np.asarray(condition))


# ------------------------------------------------------------- not holomorphic

_absolute = Loop(np.absolute)
_conjugate = Loop(np.conjugate)


@primitive
def absolute(x):
    return _absolute.call1(x)


def direction(x, ans):
    """x / |x|, and 0 at 0."""
    if not is_complex(x):
        return np.sign(plain(x))
    return x / where(plain(ans) == 0, np.inf, ans)


@absolute.vjp
def absolute_vjp(g, x, ans):
    return times(g, direction(x, ans))


@absolute.jvp
def absolute_jvp(t, x, ans):
    if not is_complex(x):
        return times(t, direction(x, ans))
    return real(times(t, conjugate(direction(x, ans))))


functions[np.absolute] = absolute


@primitive(linear=True)
def conjugate(x):
    return _conjugate.call1(x) if is_complex(x) else np.asarray(x)


@conjugate.vjp
def conjugate_vjp(g):
    return conjugate(g)


@primitive(linear=True)
def real(x):
    return np.asarray(np.real(x))


@real.vjp
def real_vjp(g):
    return g


# ------------------------------------------------------- what the rules are made of


@primitive(multilinear=True, broadcasts=True)
def times(x, y):
    """The strong-zero product, as an operation that can itself be differentiated."""
    return product.times(x, y)


@times.vjp(0)
def times_vjp_x(g, y):
    return times(g, conjugate(y))


@times.vjp(1)
def times_vjp_y(g, x):
    return times(g, conjugate(x))
