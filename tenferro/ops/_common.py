"""Small questions that several families ask of plain and tracked operands alike."""

from __future__ import annotations

import numpy as np

from ..recording import Tracked


def plain(x):
    """The values of an operand, as an array without history."""
    return x._value if isinstance(x, Tracked) else np.asarray(x)


def dtype_of(x):
    """An operand's dtype; a Python number's default one."""
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def is_complex(x):
    """Whether an operand is complex."""
    return dtype_of(x).kind == "c"


def real_dtype(x):
    """The dtype of an operand's real part."""
    return np.real(np.empty(0, dtype_of(x))).dtype


def refuse(name, **given):
    """Raise for a keyword that a NumPy function has and the tracked one does not support."""
    from ..errors import InvalidArgumentError

    for keyword, value in given.items():
        if value is not None and value is not np._NoValue:
            raise InvalidArgumentError(
                given=f"{keyword}={value!r:.40}", expected=f"no {keyword}= with a tracked operand", op=name,
                remedy=f"leave {keyword}= out and use what {name} returns",
            )  # fmt: skip
