from typing import Any, final

from numpy.typing import ArrayLike, NDArray

@final
class Reduce:
    def sum(
        self, x: ArrayLike, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
    ) -> NDArray[Any]: ...

reduce: Reduce
