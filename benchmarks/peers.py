"""The libraries that `compare.py` knows, each imported only where it is used.

``PEERS[name].open()`` imports the library and returns ``build(case, params, consts)``, which
returns ``call``, and ``call()`` gives (loss, gradients).  What a library cannot do is a
NotImplementedError from ``build`` or from the first call.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np


class Peer(NamedTuple):
    """A library, and how a workload is differentiated with it."""

    module: str
    open: Callable[[], Callable]
    installs: tuple[str, ...] = ()  # its distribution, and what that brings beyond NumPy

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


def namespace(library: Any, **differing: Any) -> SimpleNamespace:
    """The names that the forward functions use, out of a library with NumPy's names."""
    same = "sum mean exp log log1p tanh reshape swapaxes diag einsum".split()
    return SimpleNamespace(**{name: getattr(library, name) for name in same if hasattr(library, name)} | differing)


def linear_algebra(library: Any) -> dict[str, Any]:
    """Those names of a library's ``linalg``."""
    return {
        "cholesky": library.linalg.cholesky,
        "solve": library.linalg.solve,
        "logdet": lambda A: library.linalg.slogdet(A)[1],
    }


def open_numpy():
    def build(case, params, consts):
        return lambda: case.baseline(*params, *consts)

    return build


def open_tenferro():
    import tenferro as tn

    def logsumexp(x, axis):
        try:
            from tenferro.scipy.special import logsumexp
        except ImportError:
            raise tn.NoRuleError(op="scipy.special.logsumexp") from None
        return logsumexp(x, axis)

    # plain NumPy: tracked values dispatch themselves
    F = namespace(np, logsumexp=logsumexp, **linear_algebra(np))

    def build(case, params, consts):
        if case.hvp:
            hvp = tn.hvp(lambda x: case.forward(F, x))
            return lambda: (0.0, [hvp(params[0], consts[0])])
        both = tn.value_and_grad(
            lambda *p: case.forward(F, *p, *consts), argnums=tuple(range(len(params)))
        )
        return lambda: both(*params)

    return build


def open_autograd():
    import autograd
    import autograd.numpy as anp

    def logsumexp(x, axis):
        from autograd.scipy.special import logsumexp  # here, as it loads all of scipy.special

        return logsumexp(x, axis)

    F = namespace(anp, logsumexp=logsumexp, **linear_algebra(anp))

    def build(case, params, consts):
        if case.hvp:
            hvp = autograd.hessian_vector_product(lambda x: case.forward(F, x))
            return lambda: (0.0, [hvp(params[0], consts[0])])
        both = autograd.value_and_grad(
            lambda *p: case.forward(F, *p, *consts), argnum=tuple(range(len(params)))
        )
        return lambda: both(*params)

    return build


def open_mygrad():
    import mygrad as mg

    # its backward pass recurses once per operation
    sys.setrecursionlimit(10**5)

    def logsumexp(x, axis):
        top = x.data.max(axis=axis, keepdims=True)
        return mg.log(mg.sum(mg.exp(x - top), axis=axis)) + top.squeeze(axis)

    def missing(*_):
        raise NotImplementedError("no cholesky, solve or slogdet")

    F = namespace(mg, logsumexp=logsumexp, cholesky=missing, solve=missing, logdet=missing)

    def build(case, params, consts):
        if case.hvp:
            raise NotImplementedError("no second derivatives")
        leaves = [mg.tensor(p, copy=False) for p in params]

        def call():
            loss = case.forward(F, *leaves, *consts)
            loss.backward()
            return loss.data, [p.grad for p in leaves]

        return call

    return build


def open_torch(threads):
    import torch

    torch.set_num_threads(threads)
    F = namespace(torch, logsumexp=torch.logsumexp, **linear_algebra(torch))
    grad = torch.autograd.grad

    def build(case, params, consts):
        leaves = [torch.from_numpy(p).requires_grad_() for p in params]
        fixed = [torch.from_numpy(c) for c in consts]
        if case.hvp:

            def hvp():
                (g,) = grad(case.forward(F, *leaves), leaves, create_graph=True)
                return 0.0, grad(g, leaves, fixed[0])

            return hvp

        def call():
            loss = case.forward(F, *leaves, *fixed)
            return loss.detach(), grad(loss, leaves)

        return call

    return build


def open_jax(jit):
    os.environ["JAX_ENABLE_X64"] = "1"
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    F = namespace(jnp, logsumexp=logsumexp, **linear_algebra(jnp))

    def build(case, params, consts):
        params = [jnp.asarray(p) for p in params]
        consts = [jnp.asarray(c) for c in consts]
        if case.hvp:
            g = jax.grad(lambda x: case.forward(F, x))
            f = lambda p, c: (0.0, [jax.jvp(g, p, c)[1]])  # noqa: E731
        else:
            f = jax.value_and_grad(lambda p, c: case.forward(F, *p, *c))
        if jit:
            f = jax.jit(f)
        return lambda: jax.block_until_ready(f(params, consts))

    return build


TORCH = (
    "torch", "filelock", "fsspec", "jinja2", "markupsafe", "networkx", "setuptools", "sympy", "mpmath",
    "typing_extensions",
)  # fmt: skip
JAX = ("jax", "jaxlib", "ml_dtypes", "opt_einsum", "scipy")

PEERS = {
    "numpy": Peer("numpy", open_numpy, ("numpy",)),
    "tenferro": Peer("tenferro", open_tenferro, ("tenferro",)),
    "autograd": Peer("autograd", open_autograd, ("autograd",)),
    "mygrad": Peer("mygrad", open_mygrad, ("mygrad",)),
    "torch-1t": Peer("torch", lambda: open_torch(1), TORCH),
    "torch-2t": Peer("torch", lambda: open_torch(2), TORCH),
    "jax-eager": Peer("jax", lambda: open_jax(False), JAX),
    "jax-jit": Peer("jax", lambda: open_jax(True), JAX),
}


# --------------------------------------------------------------------------
# Other ways to write a case, worth knowing beside the plain one
# --------------------------------------------------------------------------


def by_hand(baseline, module="numpy"):
    """Another hand-written gradient."""

    def build(case, params, consts):
        return lambda: baseline(*params, *consts)

    return Peer(module, lambda: build)


def written(peer, forward):
    """A peer that differentiates another forward function."""

    def build(case, params, consts):
        return PEERS[peer].open()(replace(case, forward=forward), params, consts)

    return Peer(PEERS[peer].module, lambda: build)


def np_seed_dot(x):
    return np.dot(x, x), [2 * x]


def np_chain_blocked(x, block=4096):
    """The chain, run through block by block, so that all of it stays in the caches."""
    from math import fsum

    half, gx, losses = 0.5 * x, np.empty_like(x), []
    for start in range(0, len(x), block):
        part = slice(start, start + block)
        ys = [x[part]]
        for _ in range(50):
            ys.append(ys[-1] * half[part] + x[part])
        losses.append(float(np.sum(ys.pop())))
        g, total = np.ones_like(x[part]), np.zeros_like(x[part])
        for y in reversed(ys):
            total += g * (0.5 * y + 1)
            g *= half[part]
        gx[part] = total + g
    return fsum(losses), [gx]


def np_chain_numexpr(x):
    import numexpr as ne

    y, ys = x, []
    for _ in range(50):
        ys.append(y)
        y = ne.evaluate("y * x * 0.5 + x")
    loss = np.sum(y)
    g, gx = np.ones_like(x), np.zeros_like(x)
    for y in reversed(ys):  # noqa: B007 (numexpr finds y by its name)
        ne.evaluate("gx + g * (0.5 * y + 1)", out=gx)
        ne.evaluate("g * x * 0.5", out=g)
    gx += g
    return loss, [gx]


def np_indexing_vectorised(x):
    head, tail = x[:1000], x[1:1001]
    g = np.zeros_like(x)
    g[:1000] = tail
    g[1:1001] += head
    return np.dot(head, tail), [g]


def rnn_scan(F, W, U, b, xs, h):
    import jax

    h, _ = jax.lax.scan(lambda h, x: (F.tanh(W @ h + U @ x + b), None), h, xs)
    return F.sum(h * h)


def indexing_scan(F, x):
    import jax

    step = lambda s, i: (s + x[i] * x[i + 1], None)  # noqa: E731
    return jax.lax.scan(step, 0.0, jax.numpy.arange(1000))[0]


def indexing_unbind(F, x):
    xs = x.unbind()
    s = 0.0
    for i in range(1000):
        s = s + xs[i] * xs[i + 1]
    return s


def einsum_optimize(F, A, B, C):
    return F.sum(F.einsum("ij,jk,kl->il", A, B, C, optimize=True) ** 2)


def einsum_matmul(F, A, B, C):
    return F.sum((A @ B @ C) ** 2)


VARIANTS: dict[str, dict[str, Peer]] = {
    **{f"W1 seed n={n}": {"numpy, np.dot": by_hand(np_seed_dot)} for n in ("1e6", "1e7")},
    **{
        f"W2 chain n={n}": {
            "numpy, blocks of 4096": by_hand(np_chain_blocked),
            "numexpr": by_hand(np_chain_numexpr, "numexpr"),
        }
        for n in ("1e5", "1e6")
    },
    "W5 RNN 500 steps": {"jax-jit, lax.scan": written("jax-jit", rnn_scan)},
    "W6 indexing n=1001": {
        "numpy, vectorised": by_hand(np_indexing_vectorised),
        "torch-1t, x.unbind() first": written("torch-1t", indexing_unbind),
        "jax-jit, lax.scan": written("jax-jit", indexing_scan),
    },
    "W6 indexing n=100001": {"jax-jit, lax.scan": written("jax-jit", indexing_scan)},
    "W11 einsum 200": {
        **{f"{p}, optimize=True": written(p, einsum_optimize) for p in ("autograd", "mygrad")},
        **{f"{p}, A @ B @ C": written(p, einsum_matmul) for p in ("tenferro", "autograd", "mygrad")},
    },
}
