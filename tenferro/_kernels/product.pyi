from typing import Any, final

from numpy.typing import ArrayLike, NDArray

@final
class Product:
    def times(self, g: ArrayLike, d: ArrayLike, scale: float = 1.0, conj: bool = False) -> NDArray[Any]: ...
    def times_into(
        self, out: NDArray[Any], g: ArrayLike, d: ArrayLike, scale: float = 1.0, conj: bool = False
    ) -> bool: ...

product: Product
