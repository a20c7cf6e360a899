"""The operations, one file per family; importing this fills the registry."""

from . import contract, elementwise, index, reduce, shape

__all__ = ["contract", "elementwise", "index", "reduce", "shape"]
