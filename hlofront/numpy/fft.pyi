# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Sequence
from typing import Any, TypeAlias

from hlofront import Array
from hlofront.typing import ArrayLike, DTypeLike

Sharding: TypeAlias = Any
Device: TypeAlias = Any

def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...
def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array: ...
def fftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | Sharding | None = None,
) -> Array: ...
def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array: ...
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array: ...
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...
def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array: ...
def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array: ...
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array: ...
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...
def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array: ...
def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array: ...
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...
def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array: ...
def rfftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | Sharding | None = None,
) -> Array: ...
def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array: ...
