# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Sequence
from typing import Any

from hlofront import Array
from hlofront.typing import ArrayLike

def dct(
    x: ArrayLike, type: Any = 2, n: ArrayLike | None = None, axis: int = -1, norm: str | None = None
) -> Array: ...
def dctn(
    x: ArrayLike,
    type: Any = 2,
    s: ArrayLike | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array: ...
def idct(
    x: ArrayLike, type: Any = 2, n: ArrayLike | None = None, axis: int = -1, norm: str | None = None
) -> Array: ...
def idctn(
    x: ArrayLike,
    type: Any = 2,
    s: ArrayLike | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array: ...
