"""Supported dtypes and how exact results in them are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import UnsupportedDTypeError

#: The dtypes that derivatives are computed in, all of native byte order.
DIFFERENTIABLE = tuple(np.dtype(t) for t in (np.float32, np.float64, np.complex64, np.complex128))

#: The kinds of dtype that a tensor may hold, by width: bool, integers, real, complex.
KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def check_differentiable(dtype: Any, *, argument: str) -> None:
    """Refuse a dtype that has no derivative.

    Parameters
    ----------
    dtype : dtype_like
    argument : str
        What the message calls the array.

    Raises
    ------
    UnsupportedDTypeError
        ``dtype`` is not float32, float64, complex64 or complex128 of native byte order.

    Examples
    --------
    >>> from tenferro.dtypes import check_differentiable
    >>> check_differentiable("float32", argument="x")
    >>> check_differentiable(int, argument="x")
    Traceback (most recent call last):
    tenferro.errors.UnsupportedDTypeError: x has dtype int64; expected a differentiable dtype (float32,
    float64, complex64 or complex128); convert it with .astype(float)
    """
    dtype = np.dtype(dtype)
    if dtype in DIFFERENTIABLE:
        return
    native = native_dtype(dtype)
    remedy = None
    if native in DIFFERENTIABLE:
        remedy = f"convert it with .astype(numpy.{native}), which has native byte order"
    elif dtype.kind == "c":
        remedy = "convert it with .astype(complex)"
    raise UnsupportedDTypeError(dtype=dtype, argument=argument, remedy=remedy)


def kind_rank(dtype: np.dtype) -> int:
    """The place of a dtype's kind among bool, integer, real and complex; -1 for any other."""
    return KINDS.get(dtype.kind, -1)


def native_dtype(dtype: np.dtype) -> np.dtype:
    """The same dtype in this machine's byte order.

    Examples
    --------
    >>> import numpy as np
    >>> native_dtype(np.dtype(">f8")) == native_dtype(np.dtype("<f8")) == np.float64
    True
    """
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def tolerance(dtype: Any, units: float = 64.0) -> dict[str, float]:
    """How far a result may be from the exact one: keywords for `numpy.testing.assert_allclose`.

    Parameters
    ----------
    dtype : dtype_like
        Of the result.
    units : float, default 64
        The allowance in units of the dtype's machine epsilon; 0 for dtypes that are exact.

    Returns
    -------
    dict
        ``rtol`` and ``atol``.

    Examples
    --------
    >>> import numpy as np
    >>> from tenferro.dtypes import tolerance
    >>> np.testing.assert_allclose(np.float32(0.1) * 3, 0.3, **tolerance("float32"))
    """
    dtype = np.dtype(dtype)
    eps = units * float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0
    return {"rtol": eps, "atol": eps}
