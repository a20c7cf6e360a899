"""Reductions: sum and mean."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .._kernels import reduce
from ..primitive import Primitive, direct, implements, primitive
from ._common import dtype_of, plain, refuse
from .elementwise import divide, where
from .shape import astype, reshape_to, stretch


@primitive(linear=True)
def reduce_sum(x, *, axis, keepdims):
    return reduce.sum(x, axis, keepdims)


@reduce_sum.vjp
def reduce_sum_vjp(g, x_like, axis, keepdims):
    if axis is not None and not keepdims:
        g = reshape_to(g, shape=tuple([1 if k in axis else n for k, n in enumerate(x_like.shape)]))
    return stretch(g, shape=x_like.shape)


# the same without parameters: the last operation of nearly every loss
reduce_all = Primitive("reduce_all", reduce.sum, ["x"], linear=True)


@reduce_all.vjp
def reduce_all_vjp(g, x_like):
    return stretch(g, shape=x_like.shape)


direct[np.sum] = reduce_all
reduce_all.spread = True  # outside a recording pass the tape does this itself: every loss ends in it


@implements(np.sum)
def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """`numpy.sum`, without ``out``."""
    if dtype is None and out is None and initial is None and where is None and axis is None and not keepdims:
        return reduce_all(a)
    refuse("sum", out=out)
    if dtype is not None:
        a = astype(a, dtype)
    if where is not None:
        a = masked(a, where)
    total = reduce_sum(a, axis=axes_of(axis, a), keepdims=given(keepdims, False))
    return total if given(initial, None) is None else total + initial


@implements(np.mean)
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """`numpy.mean`, without ``out``."""
    refuse("mean", out=out)
    if dtype is not None:
        a = astype(a, dtype)
    axes = axes_of(axis, a)
    shape = plain(a).shape
    over = range(len(shape)) if axes is None else axes
    if given(where, None) is None:
        count = int(np.prod([shape[k] for k in over], dtype=np.intp))
    else:
        count = np.sum(np.broadcast_to(where, shape), axis=axes, keepdims=given(keepdims, False))
        count = count.astype(plain(a).real.dtype)
        a = masked(a, where)
    if not np.all(count):
        np.mean(np.empty(0))  # NumPy's own warning about an empty slice
    return divide(reduce_sum(a, axis=axes, keepdims=given(keepdims, False)), count)


def masked(a, mask):
    return where(np.broadcast_to(mask, plain(a).shape), a, dtype_of(a).type(0))


def axes_of(axis, a):
    """A NumPy axis argument as None or a tuple of non-negative axes, refused as NumPy does."""
    if axis is None:
        return None
    return normalize_axis_tuple(axis, plain(a).ndim)


def given(value, default):
    """A keyword that NumPy's own wrapper may have passed as its no-value marker."""
    return default if value is np._NoValue else value
