# The engine's attributes, for the modules above it; what is not here is internal and untyped.
from typing import Any

from numpy.typing import NDArray

class Tracked:
    _value: NDArray[Any]
    _node: Any
    _runtime: Any
    _borrowed: bool
    _like: Any
    _id: Any
    _slot: Any
    def blank(self) -> Tracked: ...

def __getattr__(name: str) -> Any: ...
