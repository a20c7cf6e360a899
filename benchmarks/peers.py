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
    shared = {name: getattr(library, name) for name in same if hasattr(library, name)}
    return SimpleNamespace(**shared | differing)


def linear_algebra(library: Any) -> dict[str, Any]:
    """Those names of a library's ``linalg``."""
    return {
        "cholesky": library.linalg.cholesky,
        "solve": library.linalg.solve,
        "logdet": lambda A: library.linalg.slogdet(A)[1],
    }


def gradients(value_and_grad, f, params):
    """A call of ``value_and_grad``, as one writes it for one argument and for several."""
    if len(params) > 1:
        both = value_and_grad(f, tuple(range(len(params))))
        return lambda: both(*params)
    both, (x,) = value_and_grad(f), params

    def call():
        value, g = both(x)
        return value, [g]

    return call


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
        return gradients(tn.value_and_grad, lambda *p: case.forward(F, *p, *consts), params)

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
        return gradients(autograd.value_and_grad, lambda *p: case.forward(F, *p, *consts), params)

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
