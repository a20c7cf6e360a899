"""Grad mode: whether operations are recorded, per thread."""

from __future__ import annotations

import functools

from .tape import grad_mode


class no_grad:
    """A context manager, and a decorator, under which this thread records nothing.

    Examples
    --------
    >>> import tenferro as tn
    >>> x = tn.tensor(2.0, requires_grad=True)
    >>> with tn.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    __slots__ = ("before",)
    to = False

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __enter__(self):
        self.before.append(grad_mode.set(self.to))
        return self

    def __exit__(self, *exc: object) -> None:
        grad_mode.set(self.before.pop())

    def __call__(self, fn):
        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with type(self)():
                return fn(*args, **kwargs)

        return wrapped


class enable_grad(no_grad):
    """The opposite of `no_grad`, for a part of such a block."""

    __slots__ = ()
    to = True
