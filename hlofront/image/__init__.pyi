# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Sequence
from typing import TypeAlias

from hlofront import Array
from hlofront.image.resizing import ResizeMethod as ResizeMethod
from hlofront.primitives.contracting import PrecisionLike
from hlofront.typing import ArrayLike

Shape: TypeAlias = Sequence[int]

def resize(
    image: ArrayLike,
    shape: Shape,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = ...,
) -> Array: ...
def scale_and_translate(
    image: ArrayLike,
    shape: Shape,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = ...,
) -> Array: ...
