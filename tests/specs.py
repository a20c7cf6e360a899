"""One row per operation: how it is called, and on what.

`Spec.args` are the operands that are differentiated (float64; the suite derives the other dtypes, the
layouts and the constants); a function takes NumPy or any module with its names as first argument.
``exact`` has special points: (function of the operands, operands, gradients).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

R = np.random.default_rng(0)
A = R.uniform(0.3, 1.7, (2, 3)) * R.choice([-1.0, 1.0], (2, 3))
B = R.uniform(0.3, 1.7, (2, 3))
ROW = R.uniform(0.3, 1.7, 3)
COLUMN = R.uniform(0.3, 1.7, (2, 1))
POINT = np.array(0.7)
EMPTY = np.zeros((0, 3))
CUBE = R.uniform(-1.0, 1.0, (2, 3, 4))
MASK = np.array([[True, False, True], [False, False, True]])
INF, NAN = np.inf, np.nan


@dataclass
class Spec:
    """A row of the table."""

    name: str
    calls: list  # (f(np, *operands), operands)
    complex: bool = True
    exact: list = field(default_factory=list)
    raises: list = field(default_factory=list)  # calls that NumPy refuses

    def __str__(self):
        return self.name


SPECS: list[Spec] = []


def row(name: str, *calls: Any, **more: Any) -> None:
    SPECS.append(Spec(name, list(calls), **more))


def binary(name, complex=True, raises=(), **more):
    """A binary ufunc over every way to broadcast."""
    pairs = [
        (A, B),
        (A, ROW),
        (COLUMN, ROW),
        (POINT, A),
        (A, POINT),
        (POINT, 2 * POINT),
        (EMPTY, ROW),
        (A.T, B.T),
    ]
    pairs = [(np.abs(x), y) for x, y in pairs] if name == "power" else pairs
    calls = [(lambda np, x, y: getattr(np, name)(x, y), pair) for pair in pairs]
    if complex:  # maximum(x, x) has no derivative that differences could see
        calls += [(lambda np, x: getattr(np, name)(x, x), (B,))]
    calls += [(lambda np, x: getattr(np, name)(x, 2.0), (B,))]
    calls += [(lambda np, x: getattr(np, name)(3, x), (B,)), (lambda np, x: getattr(np, name)(B, x), (ROW,))]
    wrong = [(lambda np, x, y: getattr(np, name)(x, y), (A, ROW[:2]))]
    row(name, *calls, complex=complex, raises=[*wrong, *raises], **more)


def unary(name, *more_operands, **more):
    operands = [B, ROW, POINT, EMPTY, B.T, B[:, ::-1], *more_operands]
    row(name, *[(lambda np, x: getattr(np, name)(x), (x,)) for x in operands], **more)


def op(name):
    return lambda np, *x: getattr(np, name)(*x)


# ------------------------------------------------------------------------ elementwise
binary("add")
binary("subtract")
binary("multiply", exact=[(lambda np, x: np.sum(x * x**0.5), (np.array([0.0]),), ([0.0],))])
binary("divide")
binary(
    "power",
    exact=[
        (lambda np, x: np.sum(x**0), (np.array([0.0, 2.0]),), ([0.0, 0.0],)),
        (lambda np, x: np.sum(x**1.5), (np.array([0.0]),), ([0.0],)),
        (lambda np, x: np.sum(x**2), (np.array([-3.0, 0.0]),), ([-6.0, 0.0],)),
        (lambda np, p: np.sum(0.0**p), (np.array([1.0, 2.5]),), ([0.0, 0.0],)),
        (lambda np, x, p: np.sum(x**p), (np.array([-2.0]), np.array([3.0])), ([12.0], [NAN])),
    ],
)
binary(
    "maximum",
    complex=False,
    exact=[(lambda np, x, y: np.sum(np.maximum(x, y)), (np.array([1.0, 2.0]), np.array([1.0, 1.0])), ([0.5, 1.0], [0.5, 0.0]))],
)  # fmt: skip
binary(
    "minimum",
    complex=False,
    exact=[(lambda np, x: np.sum(np.minimum(x, x)), (np.array([1.0]),), ([1.0],))],
)
unary("negative")
unary("square")
unary("exp")
unary("sin")
unary("cos")
unary("tan")
unary("arctan")
unary("tanh")
unary("log", exact=[(lambda np, x: np.sum(np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0)), (np.array([0.0, 2.0]),), ([0.0, 0.5],))])  # fmt: skip
unary(
    "sqrt",
    exact=[
        (lambda np, x: np.sqrt(np.sum(x**2)), (np.zeros(3),), ([0.0, 0.0, 0.0],)),
        (lambda np, x: np.sum(np.sqrt(x)), (np.array([0.0]),), ([INF],)),
    ],
)
unary("abs", A, exact=[(lambda np, x: np.sum(np.abs(x)), (np.array([-2.0, 0.0, 3.0]),), ([-1.0, 0.0, 1.0],))])
unary("absolute", A)
row(
    "where",
    (lambda np, x, y: np.where(MASK, x, y), (A, B)),
    (lambda np, x, y: np.where(MASK, x, y), (ROW, COLUMN)),
    (lambda np, x: np.where(MASK, x, 0.0), (A,)),
    (lambda np, x: np.where(MASK, 1, x), (POINT,)),
    (lambda np, x: np.where(x > 0, x, x * 2), (A,)),
    exact=[
        (lambda np, x: np.sum(np.where(x < 100, x * np.exp(x), 0)), (np.array([1000.0, 0.0]),), ([0.0, 1.0],))
    ],
)

# ------------------------------------------------------------------------- reductions
for name in ("sum", "mean"):
    axes = [None, 0, 1, -1, (0, 2), (-1, 0), (), (0, 1, 2)]
    row(
        name,
        *[(lambda np, x, n=name, a=a, k=k: getattr(np, n)(x, axis=a, keepdims=k), (CUBE,)) for a in axes for k in (False, True)],
        (lambda np, x, n=name: getattr(np, n)(x), (POINT,)),
        (lambda np, x, n=name: getattr(np, n)(x, axis=1), (EMPTY,)),
        (lambda np, x, n=name: getattr(np, n)(x, where=MASK, axis=1), (B,)),
        (lambda np, x, n=name: getattr(x, n)(0), (CUBE,)),
        raises=[(lambda np, x, n=name: getattr(np, n)(x, axis=5), (A,)), (lambda np, x, n=name: getattr(np, n)(x, axis=(0, 0)), (A,))],
        exact=[] if name == "mean" else [(lambda np, x: np.sum(x), (np.zeros(0),), ([],))],
    )  # fmt: skip

# ---------------------------------------------------------------------- contractions
PAIRS = [
    ((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (3, 3, 4)),
    ((3,), (2, 3, 4)), ((2, 2, 3), (3,)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
]  # fmt: skip
row(
    "matmul",
    *[(lambda np, a, b: np.matmul(a, b), (R.standard_normal(s), R.standard_normal(t))) for s, t in PAIRS],
    (lambda np, a: a @ a.T, (A,)),
    (lambda np, a: np.matmul(np.ones((2, 2)), a), (A,)),
    raises=[(op("matmul"), (A, A)), (op("matmul"), (A, POINT))],
)
DOTS = [
    *PAIRS[:4],
    ((2, 3), (2, 3, 4)),
    ((2, 2, 3), (5, 3, 2)),
    ((), (2, 3)),
    ((3,), ()),
    ((2, 0), (0, 3)),
    ((0,), (0, 2)),
]
row(
    "dot",
    *[(lambda np, a, b: np.dot(a, b), (R.standard_normal(s), R.standard_normal(t))) for s, t in DOTS],
    (lambda np, a: a.dot(a.T), (A,)),
    raises=[(op("dot"), (A, A))],
)

# ----------------------------------------------------------------------------- shapes
row(
    "reshape",
    *[(lambda np, x, s=s: np.reshape(x, s), (CUBE,)) for s in [24, (4, 6), (-1, 2), (2, 3, 4, 1)]],
    *[(lambda np, x, o=o: np.reshape(x, (6, 4), order=o), (CUBE.transpose(2, 0, 1),)) for o in "CF"],
    (lambda np, x: x.reshape(3, 2), (A,)),
    (lambda np, x: x.ravel(), (A.T,)),
    (lambda np, x: np.reshape(x, (3, 0)), (EMPTY,)),
    raises=[
        (lambda np, x: np.reshape(x, (5,)), (A,)),
        (lambda np, x: np.reshape(x, (2, 3), order="Q"), (A,)),
    ],
)
row(
    "transpose",
    *[(lambda np, x, a=a: np.transpose(x, a), (CUBE,)) for a in [None, (2, 0, 1), (0, -1, 1), [1, 2, 0]]],
    (lambda np, x: x.T, (A,)),
    (lambda np, x: x.transpose(1, 0), (A,)),
    raises=[(lambda np, x: np.transpose(x, (0, 0)), (A,)), (lambda np, x: np.transpose(x, (0,)), (A,))],
)
row(
    "broadcast_to",
    *[(lambda np, x, s=s: np.broadcast_to(x, s), (v,)) for v, s in [(ROW, (2, 3)), (COLUMN, (4, 2, 3)), (POINT, (2,)), (ROW[:0], (2, 0))]],
    raises=[(lambda np, x: np.broadcast_to(x, (2, 4)), (ROW,))],
)  # fmt: skip
row(
    "squeeze",
    *[(lambda np, x, a=a: np.squeeze(x, a), (COLUMN[None],)) for a in [None, 0, -1, (0, 2)]],
    (lambda np, x: x.squeeze(), (COLUMN,)),
    raises=[(lambda np, x: np.squeeze(x, 0), (A,))],
)
row(
    "expand_dims",
    *[(lambda np, x, a=a: np.expand_dims(x, a), (A,)) for a in [0, 1, -1, (0, 2)]],
    raises=[(lambda np, x: np.expand_dims(x, 7), (A,))],
)
row(
    "concatenate",
    *[(lambda np, x, y, a=a: np.concatenate([x, y], axis=a), (A, B)) for a in [0, 1, -1, None]],
    (lambda np, x: np.concatenate([x, B, x], axis=1), (A,)),
    (lambda np, x, y: np.concatenate((x, y)), (A, EMPTY)),
    raises=[
        (lambda np, x, y: np.concatenate([x, y]), (A, ROW)),
        (lambda np, x: np.concatenate([x, x], axis=3), (A,)),
    ],
)
row(
    "stack",
    *[(lambda np, x, y, a=a: np.stack([x, y], axis=a), (A, B)) for a in [0, 1, 2, -1]],
    (lambda np, x, y: np.stack([x, 1.0, y]), (POINT, POINT)),
    raises=[(lambda np, x, y: np.stack([x, y]), (A, ROW))],
)
row(
    "astype",
    (lambda np, x: np.astype(x, np.float64), (A,)),
    (lambda np, x: x.astype(np.complex128), (A,)),
    complex=False,
)

# --------------------------------------------------------------------------- indexing
INDICES = [
    0, -1, slice(1, None), slice(None, None, -1), None, Ellipsis, (0, 1), (slice(None), 1), (Ellipsis, 0), (None, 1),
    [0, 0, 1], np.array([[1, 0], [1, 1]]), (np.array([0, 1, 1]), np.array([2, 2, 0])), (slice(None), [2, 0, 0]),
    (np.array([1, 0]), slice(0, 2)), (0, Ellipsis, [1, 1]), slice(0, 0), np.array([], dtype=int),
]  # fmt: skip
row(
    "getitem",
    *[(lambda np, x, i=i: x[i], (CUBE,)) for i in INDICES],
    (lambda np, x: x[MASK], (A,)),
    (lambda np, x: x[np.array([True, False])], (A,)),
    (lambda np, x: x[1], (ROW,)),
    (lambda np, x: x[...], (POINT,)),
    raises=[(lambda np, x: x[9], (A,)), (lambda np, x: x[0, 0, 0], (A,)), (lambda np, x: x["a"], (A,))],
    exact=[(lambda np, x: np.sum(x[[0, 0]]), (np.array([1.0, 5.0]),), ([2.0, 0.0],))],
)
