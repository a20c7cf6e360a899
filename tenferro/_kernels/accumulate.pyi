from typing import Any, final

from numpy.typing import ArrayLike, NDArray

@final
class Accumulate:
    def add_into(self, out: NDArray[Any], g: ArrayLike) -> None: ...
    def add_at(self, out: NDArray[Any], index: Any, g: ArrayLike) -> None: ...
    def add_item(self, out: NDArray[Any], index: int, g: ArrayLike) -> None: ...

accumulate: Accumulate
