"""Other ways to write a workload, worth knowing beside the plain one (`compare.py --variants`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .peers import PEERS, Peer
from .workloads import np_chain


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
    gx, loss = np.empty_like(x), 0.0
    for start in range(0, len(x), block):
        part, (g,) = np_chain(x[start : start + block])
        loss += part
        gx[start : start + block] = g
    return loss, [gx]


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
