"""Cython kernels: typed loops that release the GIL, behind one object per kind.

Nothing above this package imports one of its modules at run time: the names are here.
"""

from .accumulate import accumulate
from .fingerprint import fingerprint
from .layout import layout
from .loops import Loop
from .product import product
from .read import TensorRead
from .reduce import reduce

__all__ = ["Loop", "TensorRead", "accumulate", "fingerprint", "layout", "product", "reduce"]
