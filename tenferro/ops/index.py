"""Indexing: reading, its transpose, and assignment as a new value."""

from __future__ import annotations

import numpy as np

from .._kernels import accumulate
from ..primitive import primitive
from .shape import reshape_to


@primitive(linear=True, view=True)
def index(x, *, index):
    return np.asarray(x[index])


index.scatter = True  # the tape adds its cotangent straight into the operand's


@primitive(linear=True)
def scatter(*values, indices, shape, dtype):
    """The sum of zeros with each of ``values`` added at its index: the transpose of reading."""
    out = np.zeros(shape, dtype)
    for place, value in zip(indices, values, strict=True):
        accumulate.add_at(out, place, np.asarray(value, dtype))
    return out


@scatter.vjp_of_all
def scatter_vjp(g, indices, wanted):
    return [index(g, index=place) if want else None for place, want in zip(indices, wanted, strict=True)]


@primitive(linear=True, broadcasts=True)
def set_item(x, v, *, index):
    """x with ``x[index] = v``; where an element is assigned twice the last one counts."""
    out = np.array(x)
    out[index] = v
    return out


@set_item.vjp(0)
def set_item_vjp_x(g, index):
    return set_item(g, 0.0, index=index)


@set_item.vjp(1)
def set_item_vjp_v(g, index, x_like, v_like):
    taken = read_back(g, index)
    # NumPy lets v have leading axes of length 1 that the place does not have
    lead = (1,) * (len(v_like.shape) - len(taken.shape))
    taken = reshape_to(taken, shape=lead + tuple(taken.shape))
    if is_basic(index):
        return taken
    # of several writes to one element only the last is visible
    order = np.full(x_like.shape, -1)
    turn = np.arange(order[index].size).reshape(order[index].shape)
    order[index] = turn
    return taken * (order[index] == turn).reshape(taken.shape)


def read_back(g, place):
    return index(g, index=place)


def is_basic(place):
    parts = place if isinstance(place, tuple) else (place,)
    return not any(isinstance(part, (np.ndarray, list)) for part in parts)
