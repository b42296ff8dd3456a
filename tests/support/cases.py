"""The case that the frameworks of tests share: a call of one function, and specs of its operands.

Samples, the calls of the catalogue and the programs of the corpora are cases. Both sides import
this module, hlofront's and jax's, so it names neither.
"""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np


class Spec:
    """The dtype and shape of an operand, and the range that its random values are from."""

    def __init__(self, dtype: Any, shape: tuple[int, ...], low: float = -3.0, high: float = 3.0):
        self.dtype = np.dtype(dtype)
        self.shape = shape
        self.low = low
        self.high = high

    def between(self, low: float, high: float) -> "Spec":
        return Spec(self.dtype, self.shape, low, high)

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        if self.dtype == np.bool_:
            return generator.integers(0, 2, self.shape).astype(np.bool_)
        kind = self.dtype.kind
        low, high = self.low, self.high
        if kind == "u" or self.dtype.name.startswith("uint"):
            low = max(low, 0)
        if kind in "iu" or self.dtype.name in ("int2", "int4", "uint2", "uint4"):
            if self.dtype.name in ("int2", "uint2"):
                low, high = max(low, -1), min(high, 1)
            return generator.integers(int(low), int(high) + 1, self.shape).astype(self.dtype)
        values = generator.uniform(low, high, self.shape)
        if kind == "c":
            values = values + 1j * generator.uniform(low, high, self.shape)
        return np.asarray(values).astype(self.dtype)

    def __repr__(self):
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


class Maker:
    """A dtype that makes specs: `f32[2, 3]` is the spec of a float32 array of shape (2, 3)."""

    def __init__(self, dtype: Any):
        self.dtype = dtype

    def __getitem__(self, shape: Any) -> Spec:
        return Spec(self.dtype, shape if isinstance(shape, tuple) else (shape,))


f16, f32, f64 = Maker(np.float16), Maker(np.float32), Maker(np.float64)
bf16, f8 = Maker(ml_dtypes.bfloat16), Maker(ml_dtypes.float8_e4m3fn)
c64, c128 = Maker(np.complex64), Maker(np.complex128)
b1 = Maker(np.bool_)
i4, u4 = Maker(ml_dtypes.int4), Maker(ml_dtypes.uint4)
i8, i16, i32, i64 = Maker(np.int8), Maker(np.int16), Maker(np.int32), Maker(np.int64)
u8, u16, u32 = Maker(np.uint8), Maker(np.uint16), Maker(np.uint32)


@dataclasses.dataclass
class Case:
    """A call of one function, and what is known of its result.

    A subclass whose cases have specs gives each a `name`, which seeds the values. Operands and
    keywords are arrays, numbers, specs of arrays, or tuples, lists and dictionaries of them.
    """

    function: Any
    operands: tuple[Any, ...]
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)
    # How many units in the last place results may be off, where that is more than usual.
    ulps: int | None = None
    # Why the values are not those of jax, or of another reference.
    unlike_jax: str | None = None
    # Why numerical differences say nothing of the derivative: ties, steps.
    not_smooth: str | None = None

    def specs(self) -> list[Spec]:
        """Return the specs among operands and keywords, in order."""
        specs: list[Spec] = []
        replaced((self.operands, self.keywords), specs.append)
        return specs

    def values(self, variant: int = 0) -> list[np.ndarray]:
        """Return values of the specs, equal ones for each call; each variant has others."""
        generator = np.random.default_rng(zlib.crc32(self.name.encode()) + variant)
        return [spec.draw(generator) for spec in self.specs()]

    def arguments(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return operands and keywords with these values instead of the specs."""
        remaining = iter(values)
        return replaced((self.operands, self.keywords), lambda _: next(remaining))

    def needs_x64(self) -> bool:
        """Return whether a spec has 64 bits; NumPy's arrays often have by accident."""
        return any(spec.dtype.name in ("float64", "int64", "complex128") for spec in self.specs())


def replaced(tree: Any, change: Callable[[Spec], Any]) -> Any:
    """Return a tree of tuples, lists and dictionaries with its specs changed."""
    if isinstance(tree, Spec):
        return change(tree)
    if type(tree) in (tuple, list):
        return type(tree)([replaced(branch, change) for branch in tree])
    if isinstance(tree, dict):
        return {key: replaced(branch, change) for key, branch in tree.items()}
    return tree
