"""Contractions: matmul and dot.  They are linear in each operand and keep IEEE arithmetic."""

from __future__ import annotations

from math import prod

import numpy as np

from ..primitive import functions, implements, primitive
from ._common import plain, refuse
from .elementwise import conjugate, multiply
from .shape import permute, reshape_to


def adjoint(x):
    """The conjugate transpose of the last two axes."""
    ndim = len(x.shape)
    return conjugate(permute(x, axes=(*range(ndim - 2), ndim - 1, ndim - 2)))


def column(x):
    return reshape_to(x, shape=(*x.shape, 1))


def row(x):
    return reshape_to(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


@primitive(multilinear=True, broadcasts=True)
def matmul(a, b):
    return np.asarray(np.matmul(a, b))


def as_matrices(g, a_ndim, b_ndim):
    """The cotangent with the axes back that matmul drops for vectors."""
    if a_ndim == 1:
        g = reshape_to(g, shape=(1, 1)) if b_ndim == 1 else row(g)
    elif b_ndim == 1:
        g = column(g)
    return g


@matmul.vjp(0)
def matmul_vjp_a(g, a_like, b):
    g = as_matrices(g, len(a_like.shape), len(b.shape))
    out = matmul(g, adjoint(column(b) if len(b.shape) == 1 else b))
    return out[..., 0, :] if len(a_like.shape) == 1 else out


@matmul.vjp(1)
def matmul_vjp_b(g, a, b_like):
    g = as_matrices(g, len(a.shape), len(b_like.shape))
    out = matmul(adjoint(row(a) if len(a.shape) == 1 else a), g)
    return out[..., 0] if len(b_like.shape) == 1 else out


functions[np.matmul] = matmul


@primitive(name="dot", multilinear=True)
def contract_last(a, b):
    return np.asarray(np.dot(a, b))


def as_matrix(b):
    """b with the contracted axis first and the others flattened."""
    if len(b.shape) == 1:
        return column(b)
    ndim = len(b.shape)
    columns = prod(b.shape[:-2]) * b.shape[-1]
    return reshape_to(permute(b, axes=(ndim - 2, *range(ndim - 2), ndim - 1)), shape=(b.shape[-2], columns))


@contract_last.vjp(0)
def dot_vjp_a(g, a_like, b):
    b = as_matrix(b)
    rows = prod(a_like.shape[:-1])
    return reshape_to(matmul(reshape_to(g, shape=(rows, b.shape[1])), adjoint(b)), shape=a_like.shape)


@contract_last.vjp(1)
def dot_vjp_b(g, a, b_like):
    rows = reshape_to(a, shape=(prod(a.shape[:-1]), a.shape[-1]))
    columns = prod(b_like.shape[:-2]) * b_like.shape[-1] if len(b_like.shape) > 1 else 1
    flat = matmul(adjoint(rows), reshape_to(g, shape=(rows.shape[0], columns)))
    if len(b_like.shape) == 1:
        return reshape_to(flat, shape=b_like.shape)
    ndim = len(b_like.shape)
    moved = (b_like.shape[-2], *b_like.shape[:-2], b_like.shape[-1])
    return permute(reshape_to(flat, shape=moved), axes=(*range(1, ndim - 1), 0, ndim - 1))


@implements(np.dot)
def dot(a, b, out=None):
    """`numpy.dot`, without ``out``."""
    refuse("dot", out=out)
    if not plain(a).ndim or not plain(b).ndim:
        return multiply(a, b)
    return contract_last(a, b)
