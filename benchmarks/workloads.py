"""The workloads: inputs, a hand-written NumPy gradient and one forward function for all libraries.

A forward takes a namespace `F` with the few names that differ between the libraries.  NumPy is all
that this module imports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import lgamma, log, pi

import numpy as np

Arrays = list[np.ndarray]

# --------------------------------------------------------------------------
# Inputs: each returns (parameters to differentiate by, constants)
# --------------------------------------------------------------------------


def rng():
    return np.random.default_rng(0)


def seed_data(n):
    return [rng().standard_normal(n)], []


def chain_data(n):
    return [rng().uniform(0.1, 0.9, n)], []


def logistic_data(n, d):
    r = rng()
    X = r.standard_normal((n, d))
    y = np.where(r.random(n) < 0.5, -1.0, 1.0)
    return [0.1 * r.standard_normal(d)], [X, y]


def dense_layers(r, sizes):
    params = []
    for a, b in pairwise(sizes):
        params += [r.standard_normal((a, b)) / a**0.5, 0.1 * r.standard_normal(b)]
    return params


def mlp_data():
    r = rng()
    X = r.standard_normal((128, 784))
    return dense_layers(r, [784, 256, 128, 10]), [X, np.arange(128), r.integers(0, 10, 128)]


def tiny_mlp_data():
    r = rng()
    X, t = r.standard_normal((16, 10)), r.standard_normal((16, 1))
    return dense_layers(r, [10, 16, 16, 1]), [X, t]


def rnn_data(steps=500, size=20, inputs=10):
    r = rng()
    W = 0.9 * r.standard_normal((size, size)) / size**0.5
    U = r.standard_normal((size, inputs)) / inputs**0.5
    return [W, U, 0.1 * r.standard_normal(size)], [r.standard_normal((steps, inputs)), np.zeros(size)]


def indexing_data(n):
    return [rng().standard_normal(n)], []


def broadcast_data(n=1000):
    r = rng()
    return [r.standard_normal((n, n)), r.standard_normal(n), r.standard_normal((n, 1))], []


def rosenbrock_data(n):
    return [rng().uniform(-1.5, 1.5, n)], []


def rosenbrock_hvp_data(n):
    r = rng()
    return [r.uniform(-1.5, 1.5, n)], [r.standard_normal(n)]


def gmm_data(n=1000, d=10, k=25):
    r = rng()
    alphas = r.standard_normal(k)
    means = r.standard_normal((k, d))
    logdiag = 0.3 * r.standard_normal((k, d))
    lower = 0.3 * r.standard_normal((k, d * (d - 1) // 2))
    # place[p] has its only one where the p-th entry below the diagonal goes
    rows, cols = np.tril_indices(d, -1)
    place = np.zeros((len(rows), d, d))
    place[np.arange(len(rows)), rows, cols] = 1.0
    consts = [r.standard_normal((n, d)), place.reshape(len(rows), d * d), np.eye(d)]
    return [alphas, means, logdiag, lower], consts


def linalg_data(n):
    r = rng()
    A = r.standard_normal((n, n)) + 2 * n**0.5 * np.eye(n)
    return [A, r.standard_normal(n)], [n * np.eye(n)]


def logdet_data(n):
    return linalg_data(n)[0][:1], []


def einsum_data(n):
    r = rng()
    return [r.standard_normal((n, n)) / n**0.5 for _ in range(3)], []


# --------------------------------------------------------------------------
# The hand-written NumPy baseline: (loss, gradients) for each workload.
# Written as a careful person would: vectorised, stored intermediates reused,
# in-place where that costs no clarity; no blocking and no compiled code.
# --------------------------------------------------------------------------


def np_seed(x):
    return np.sum(x * x), [2 * x]


def np_chain(x):
    half = 0.5 * x
    y, ys = x, []
    for _ in range(50):
        ys.append(y)
        y = y * half
        y += x
    g, gx = np.ones_like(x), np.zeros_like(x)
    for y_in in reversed(ys):
        t = 0.5 * y_in
        t += 1
        t *= g
        gx += t
        g *= half
    gx += g
    return np.sum(y), [gx]


def np_logistic(w, X, y):
    e = np.exp(-y * (X @ w))
    loss = np.mean(np.log1p(e)) + 0.5e-3 * np.sum(w * w)
    dz = e / (1 + e)
    dz *= y
    dz *= -1 / len(y)
    return loss, [dz @ X + 1e-3 * w]


def np_mlp(W1, b1, W2, b2, W3, b3, X, rows, labels):
    h1 = np.tanh(X @ W1 + b1)
    h2 = np.tanh(h1 @ W2 + b2)
    z = h2 @ W3 + b3
    top = z.max(axis=1, keepdims=True)
    e = np.exp(z - top)
    s = e.sum(axis=1, keepdims=True)
    loss = np.mean((np.log(s) + top)[:, 0] - z[rows, labels])
    dz = e / s
    dz[rows, labels] -= 1
    dz /= len(X)
    d2 = (dz @ W3.T) * (1 - h2 * h2)
    d1 = (d2 @ W2.T) * (1 - h1 * h1)
    return loss, [X.T @ d1, d1.sum(0), h1.T @ d2, d2.sum(0), h2.T @ dz, dz.sum(0)]


def np_tiny_mlp(W1, b1, W2, b2, W3, b3, X, t):
    h1 = np.tanh(X @ W1 + b1)
    h2 = np.tanh(h1 @ W2 + b2)
    r = h2 @ W3 + b3 - t
    dz = r * (2 / r.size)
    d2 = (dz @ W3.T) * (1 - h2 * h2)
    d1 = (d2 @ W2.T) * (1 - h1 * h1)
    return np.mean(r * r), [X.T @ d1, d1.sum(0), h1.T @ d2, d2.sum(0), h2.T @ dz, dz.sum(0)]


def np_rnn(W, U, b, xs, h0):
    hs = np.empty((len(xs) + 1, len(h0)))
    hs[0] = h = h0
    for t, x in enumerate(xs):
        hs[t + 1] = h = np.tanh(W @ h + U @ x + b)
    slopes = 1 - hs[1:] * hs[1:]
    deltas = np.empty_like(slopes)
    g, WT = 2 * h, W.T
    for t in range(len(xs) - 1, -1, -1):
        deltas[t] = d = g * slopes[t]
        g = WT @ d
    return np.sum(h * h), [deltas.T @ hs[:-1], deltas.T @ xs, deltas.sum(0)]


def np_indexing(x):
    s, g = 0.0, np.zeros_like(x)
    for i in range(1000):
        a, b = x[i], x[i + 1]
        s += a * b
        g[i] += b
        g[i + 1] += a
    return s, [g]


def np_broadcast(A, b, c):
    r = A * b
    r += c
    loss = np.sum(r * r)
    r *= 2
    return loss, [r * b, np.sum(r * A, axis=0), np.sum(r, axis=1, keepdims=True)]


def np_rosenbrock(x):
    x0, x1 = x[:-1], x[1:]
    a, b = x1 - x0**2, 1 - x0
    g = np.zeros_like(x)
    g[:-1] = -400 * x0 * a - 2 * b
    g[1:] += 200 * a
    return np.sum(100 * a**2 + b**2), [g]


def np_rosenbrock_hvp(x, v):
    x0, x1, v0, v1 = x[:-1], x[1:], v[:-1], v[1:]
    cross = -400 * x0
    out = np.zeros_like(x)
    out[:-1] = (1200 * x0**2 - 400 * x1 + 2) * v0 + cross * v1
    out[1:] += 200 * v1 + cross * v0
    return 0.0, [out]


GAMMA, WISHART_M = 1.0, 0.0  # of the Wishart prior, as ADBench's data files have them


def gmm_constant(n, d, k):
    """The terms of ADBench's objective that depend on the sizes alone."""
    df = d + WISHART_M + 1
    multigamma = 0.25 * d * (d - 1) * log(pi) + sum(lgamma(0.5 * df - 0.5 * j) for j in range(d))
    prior = df * d * (log(GAMMA) - 0.5 * log(2)) - multigamma
    return -0.5 * n * d * log(2 * pi) - k * prior


def np_gmm(alphas, means, logdiag, lower, x, place, eye):
    (n, d), k = x.shape, len(alphas)
    diag = np.exp(logdiag)
    Q = (lower @ place).reshape(k, d, d)
    Q += diag[:, :, None] * eye
    diff = x - means[:, None, :]
    Y = diff @ np.swapaxes(Q, 1, 2)
    inner = (alphas + logdiag.sum(1))[:, None] - 0.5 * np.sum(Y * Y, axis=2)
    top = inner.max(0)
    e = np.exp(inner - top)
    s = e.sum(0)
    atop = alphas.max()
    ae = np.exp(alphas - atop)
    frob = np.sum(diag * diag) + np.sum(lower * lower)
    loss = np.sum(np.log(s) + top) - n * (np.log(ae.sum()) + atop)
    loss += 0.5 * GAMMA**2 * frob - WISHART_M * logdiag.sum() + gmm_constant(n, d, k)

    e /= s  # now each component's share of each point
    share = e.sum(1)
    Y *= -e[:, :, None]  # now d(loss)/dY
    dQ = np.swapaxes(Y, 1, 2) @ diff
    dmeans = -(Y.sum(1)[:, None, :] @ Q)[:, 0, :]
    ddiag = share[:, None] - WISHART_M + diag * (np.einsum("kii->ki", dQ) + GAMMA**2 * diag)
    dlower = dQ.reshape(k, d * d) @ place.T + GAMMA**2 * lower
    return loss, [share - n * ae / ae.sum(), dmeans, ddiag, dlower]


def np_linalg(A, b, shift):
    S = A @ A.T + shift
    x = np.linalg.solve(A, b)
    loss = np.sum(np.log(np.diag(np.linalg.cholesky(S)))) + np.sum(x)
    u = np.linalg.solve(A.T, np.ones_like(b))
    return loss, [np.linalg.solve(S, A) - np.outer(u, x), u]


def np_logdet(A):
    return np.linalg.slogdet(A)[1], [np.linalg.inv(A).T]


def np_einsum(A, B, C):
    AB = A @ B
    E = AB @ C
    loss = np.sum(E * E)
    E *= 2
    t = E @ C.T
    return loss, [t @ B.T, A.T @ t, AB.T @ E]


# --------------------------------------------------------------------------
# The forward functions that the peers differentiate
# --------------------------------------------------------------------------


def seed(F, x):
    return F.sum(x * x)


def chain(F, x):
    y = x
    for _ in range(50):
        y = y * x * 0.5 + x
    return F.sum(y)


def logistic(F, w, X, y):
    return F.mean(F.log1p(F.exp(-y * (X @ w)))) + 0.5 * 1e-3 * F.sum(w * w)


def mlp(F, W1, b1, W2, b2, W3, b3, X, rows, labels):
    h = F.tanh(X @ W1 + b1)
    h = F.tanh(h @ W2 + b2)
    z = h @ W3 + b3
    return F.mean(F.logsumexp(z, 1) - z[rows, labels])


def tiny_mlp(F, W1, b1, W2, b2, W3, b3, X, t):
    h = F.tanh(X @ W1 + b1)
    h = F.tanh(h @ W2 + b2)
    r = h @ W3 + b3 - t
    return F.mean(r * r)


def rnn(F, W, U, b, xs, h):
    for x in xs:
        h = F.tanh(W @ h + U @ x + b)
    return F.sum(h * h)


def indexing(F, x):
    s = 0.0
    for i in range(1000):
        s = s + x[i] * x[i + 1]
    return s


def broadcast(F, A, b, c):
    return F.sum((A * b + c) ** 2)


def rosenbrock(F, x):
    x0, x1 = x[:-1], x[1:]
    return F.sum(100 * (x1 - x0**2) ** 2 + (1 - x0) ** 2)


def gmm(F, alphas, means, logdiag, lower, x, place, eye):
    (n, d), k = x.shape, alphas.shape[0]
    diag = F.exp(logdiag)
    Q = F.reshape(lower @ place, (k, d, d)) + diag[:, :, None] * eye
    Y = (x - means[:, None, :]) @ F.swapaxes(Q, 1, 2)
    inner = (alphas + F.sum(logdiag, 1))[:, None] - 0.5 * F.sum(Y * Y, 2)
    loss = F.sum(F.logsumexp(inner, 0)) - n * F.logsumexp(alphas, 0)
    frob = F.sum(diag * diag) + F.sum(lower * lower)
    prior = 0.5 * GAMMA**2 * frob - WISHART_M * F.sum(logdiag)
    return loss + prior + gmm_constant(n, d, k)


def linalg(F, A, b, shift):
    L = F.cholesky(A @ A.T + shift)
    return F.sum(F.log(F.diag(L))) + F.sum(F.solve(A, b))


def logdet(F, A):
    return F.logdet(A)


def einsum(F, A, B, C):
    return F.sum(F.einsum("ij,jk,kl->il", A, B, C) ** 2)


# --------------------------------------------------------------------------
# The table
# --------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A workload at one size.

    ``data(*args)`` gives the inputs, ``baseline`` the loss and gradients by hand, ``forward`` the
    loss alone; ``goal`` is the ratio to the baseline that tenferro is to reach.
    """

    data: Callable
    args: tuple
    baseline: Callable
    forward: Callable
    dtype: str = "float64"
    hvp: bool = False
    goal: float | None = None

    def inputs(self) -> tuple[Arrays, Arrays]:
        """The parameters to differentiate by, and the constants."""
        params, consts = self.data(*self.args)
        return self.cast(params), self.cast(consts)

    def cast(self, arrays: Arrays) -> Arrays:
        return [a.astype(self.dtype, copy=False) if a.dtype.kind == "f" else a for a in arrays]

    def check(self, got: tuple, want: tuple) -> float:
        """Compare loss and gradients with the baseline's; return the largest error.

        It is relative to the array's largest entry.
        """
        rtol = 1e-10 if self.dtype == "float64" else 2e-4
        (loss, grads), (want_loss, want_grads) = got, want
        np.testing.assert_allclose(float(loss), float(want_loss), rtol=rtol)
        if len(grads) != len(want_grads):
            raise AssertionError(f"{len(grads)} gradients, expected {len(want_grads)}")
        worst = 0.0
        for g, w in zip(map(np.asarray, grads), want_grads, strict=True):
            if g.dtype != self.dtype or g.shape != w.shape:
                raise AssertionError(f"a gradient of {g.dtype}{g.shape}, expected {self.dtype}{w.shape}")
            scale = np.abs(w).max()
            # entries that cancel to nearly nothing are held to the array's scale
            np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-2 * rtol * scale)
            worst = max(worst, float(np.abs(g - w).max() / scale))
        return worst


CASES = {
    "W1 seed n=2": Case(seed_data, (2,), np_seed, seed, goal=0.7),
    "W1 seed n=100": Case(seed_data, (100,), np_seed, seed, goal=0.7),
    "W1 seed n=1e4": Case(seed_data, (10**4,), np_seed, seed, goal=1.0),
    "W1 seed n=1e6": Case(seed_data, (10**6,), np_seed, seed, goal=1.3),
    "W1 seed n=1e7": Case(seed_data, (10**7,), np_seed, seed),
    "W2 chain n=10": Case(chain_data, (10,), np_chain, chain, goal=1.0),
    "W2 chain n=1000": Case(chain_data, (1000,), np_chain, chain),
    "W2 chain n=1e5": Case(chain_data, (10**5,), np_chain, chain),
    "W2 chain n=1e6": Case(chain_data, (10**6,), np_chain, chain),
    "W3 logistic 2000x50": Case(logistic_data, (2000, 50), np_logistic, logistic),
    "W3 logistic 200000x50": Case(logistic_data, (200000, 50), np_logistic, logistic),
    "W4 MLP 784-256-128-10": Case(mlp_data, (), np_mlp, mlp),
    "W4 MLP tiny": Case(tiny_mlp_data, (), np_tiny_mlp, tiny_mlp),
    "W5 RNN 500 steps": Case(rnn_data, (), np_rnn, rnn),
    "W6 indexing n=1001": Case(indexing_data, (1001,), np_indexing, indexing, goal=6.0),
    "W6 indexing n=100001": Case(indexing_data, (100001,), np_indexing, indexing),
    "W7 broadcast 1000x1000": Case(broadcast_data, (), np_broadcast, broadcast),
    "W8 Rosenbrock n=10": Case(rosenbrock_data, (10,), np_rosenbrock, rosenbrock, goal=2.5),
    "W8 Rosenbrock n=1000": Case(rosenbrock_data, (1000,), np_rosenbrock, rosenbrock),
    "W8 Rosenbrock HVP n=10": Case(rosenbrock_hvp_data, (10,), np_rosenbrock_hvp, rosenbrock, hvp=True),
    "W8 Rosenbrock HVP n=1000": Case(rosenbrock_hvp_data, (1000,), np_rosenbrock_hvp, rosenbrock, hvp=True),
    "W9 GMM n=1000 d=10 K=25": Case(gmm_data, (), np_gmm, gmm),
    "W10 cholesky+solve 100": Case(linalg_data, (100,), np_linalg, linalg),
    "W10 logdet 200": Case(logdet_data, (200,), np_logdet, logdet),
    "W11 einsum 200": Case(einsum_data, (200,), np_einsum, einsum),
}

#: those that are also run in float32, as "<name> f32"
FLOAT32 = (
    "W1 seed n=1e6", "W1 seed n=1e7", "W2 chain n=1e5", "W2 chain n=1e6", "W3 logistic 2000x50",
    "W3 logistic 200000x50", "W4 MLP 784-256-128-10", "W4 MLP tiny", "W7 broadcast 1000x1000",
    "W9 GMM n=1000 d=10 K=25",
)  # fmt: skip

CASES |= {f"{name} f32": replace(CASES[name], dtype="float32", goal=None) for name in FLOAT32}
