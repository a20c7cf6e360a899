"""Shape operations: views of the same elements, repetition, and joining.

All are linear, so the JVP is the forward; each VJP is the operation that puts elements back.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .._kernels import layout, reduce
from ..primitive import implements, primitive
from ._common import dtype_of, plain, refuse


@primitive(name="reshape", linear=True, view=True)
def reshape_to(x, *, shape, order="C"):
    return np.reshape(x, shape, order=order)


@reshape_to.vjp
def reshape_vjp(g, x_like, order):
    return reshape_to(g, shape=x_like.shape, order=order)


@implements(np.reshape)
def reshape(a, /, shape, order="C", *, copy=None):
    """`numpy.reshape`; ``order="A"`` follows the operand's memory order, as NumPy's does."""
    if order not in ("C", "F", "A"):
        np.reshape(plain(a), shape, order=order)  # NumPy's own refusal
    if order == "A":
        flags = plain(a).flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    return reshape_to(a, shape=shape, order=order)


@primitive(name="transpose", linear=True, view=True)
def permute(x, *, axes):
    return np.transpose(x, axes)


@permute.vjp
def permute_vjp(g, axes):
    return permute(g, axes=tuple(np.argsort(axes)))


@implements(np.transpose)
def transpose(a, axes=None):
    """`numpy.transpose`."""
    ndim = plain(a).ndim
    if axes is None:
        axes = tuple(reversed(range(ndim)))
    elif np.ndim(axes) == 0 or len(axes) != ndim:
        np.transpose(plain(a), axes)  # NumPy's own refusal
        axes = (axes,)
    return permute(a, axes=normalize_axis_tuple(axes, ndim))


@implements(np.squeeze)
def squeeze(a, axis=None):
    """`numpy.squeeze`."""
    return reshape_to(a, shape=np.squeeze(plain(a), axis).shape)


@implements(np.expand_dims)
def expand_dims(a, axis):
    """`numpy.expand_dims`."""
    return reshape_to(a, shape=np.expand_dims(plain(a), axis).shape)


# ------------------------------------------------------------------ broadcasting


@primitive(name="broadcast_to", linear=True, view=True)
def stretch(x, *, shape):
    return layout.stretch(x, shape)


@stretch.vjp
def stretch_vjp(g, x_like):
    return unbroadcast(g, shape=x_like.shape)


@implements(np.broadcast_to)
def broadcast_to(array, shape, subok=False):
    """`numpy.broadcast_to`; the result is immutable like every tracked value."""
    return stretch(array, shape=np.broadcast_to(plain(array), shape).shape)


@primitive(linear=True)
def unbroadcast(x, *, shape):
    """Sum over the axes that broadcasting from ``shape`` to x's shape added or stretched."""
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        [k + lead for k, n in enumerate(shape) if n == 1 and x.shape[k + lead] != 1]
    )
    return np.reshape(reduce.sum(x, axes, True), shape)


@unbroadcast.vjp
def unbroadcast_vjp(g, x_like):
    # axes that were summed away come back as length 1, then stretch
    lead = len(x_like.shape) - len(g.shape)
    return stretch(reshape_to(g, shape=(1,) * lead + tuple(g.shape)), shape=x_like.shape)


# ------------------------------------------------------------------------ dtype


@primitive(linear=True)
def cast(x, *, dtype):
    """To another floating or complex dtype; from complex to real it is the real part."""
    x = np.asarray(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = x.real
    return x.astype(dtype)


@cast.vjp
def cast_vjp(g):
    return g  # the tape brings it back to the operand's dtype


@implements(np.astype)
def astype(x, dtype, /, *, copy=True, device=None):
    """`numpy.astype`; a cast to an integer or bool dtype stops the gradient: a plain array."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fc":
        return plain(x).astype(dtype)
    if dtype_of(x).kind == "c" and dtype.kind == "f":
        plain(x)[:0].astype(dtype) if plain(x).ndim else plain(x).astype(dtype)  # NumPy's own warning
    return cast(x, dtype=dtype)


# ----------------------------------------------------------------------- joining


@primitive(name="concatenate", linear=True)
def join(*arrays, axis):
    return np.concatenate(arrays, axis)


@join.vjp_of_all
def join_vjp(g, arrays_like, axis, wanted):
    pieces = []
    start = 0
    for like, want in zip(arrays_like, wanted, strict=True):
        stop = start + like.shape[axis]
        pieces.append(g[(slice(None),) * axis + (slice(start, stop),)] if want else None)
        start = stop
    return pieces


@implements(np.concatenate)
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """`numpy.concatenate`."""
    refuse("concatenate", out=out)
    arrays = list(arrays)
    shape_of = [plain(a) for a in arrays]
    if axis is None:
        arrays = [reshape_to(a, shape=(-1,)) for a in arrays]
        axis = 0
    elif not arrays or any(s.ndim != shape_of[0].ndim or s.ndim == 0 for s in shape_of):
        np.concatenate(shape_of, axis)  # NumPy's own refusal
    axis = normalize_axis_index(
        axis, len(arrays[0].shape) if hasattr(arrays[0], "shape") else shape_of[0].ndim
    )
    joined = join(*arrays, axis=axis)
    if dtype is None or joined.dtype == dtype:
        return joined
    if not np.can_cast(joined.dtype, dtype, casting):
        np.concatenate(shape_of, axis, dtype=dtype, casting=casting)
    return astype(joined, dtype)


@implements(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """`numpy.stack`."""
    refuse("stack", out=out)
    arrays = list(arrays)
    shapes = {plain(a).shape for a in arrays}
    if len(shapes) != 1:
        np.stack([plain(a) for a in arrays], axis)  # NumPy's own refusal
    axis = normalize_axis_index(axis, len(shapes.pop()) + 1)
    return concatenate([expand_dims(a, axis) for a in arrays], axis, dtype=dtype, casting=casting)
