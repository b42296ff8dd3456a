# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Sequence
from typing import Any

from hlofront import Array
from hlofront.typing import ArrayLike

def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array: ...
