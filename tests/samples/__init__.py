"""Inputs for every primitive: one file per file of hlofront/primitives, each a list of samples.

A sample names a function of `lax` (or any function of arrays), its operands and its parameters:

    sample(lax.sin, f32[3, 4], reference=np.sin)
    sample(lax.cumsum, f32[3, 4], axis=1, reference=lambda x, axis: np.cumsum(x, axis))
    sample(lax.sqrt, f32[3].between(0, 9))
    sample(lax.gather, f32[4, 5], np.array([[0], [2]]), dimension_numbers=..., ...)

Operands are specs (dtype and shape; values are drawn from a seeded generator) or values. The
systematic tests try each sample in every way: infer = run, jit = eager, against `reference`, ...
"""

import sys
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

ALL: list["Sample"] = []
# An error's class, and words that its message has.
Refusal = tuple[type[Exception], str]


class Spec:
    """The dtype and shape of an operand, and the range that its values are drawn from."""

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


class _Maker:
    def __init__(self, dtype: Any):
        self.dtype = dtype

    def __getitem__(self, shape: Any) -> Spec:
        return Spec(self.dtype, shape if isinstance(shape, tuple) else (shape,))


f16, f32, f64 = _Maker(np.float16), _Maker(np.float32), _Maker(np.float64)
bf16, f8 = _Maker(ml_dtypes.bfloat16), _Maker(ml_dtypes.float8_e4m3fn)
c64 = _Maker(np.complex64)
b1 = _Maker(np.bool_)
i4, u4 = _Maker(ml_dtypes.int4), _Maker(ml_dtypes.uint4)
i8, i16, i32 = _Maker(np.int8), _Maker(np.int16), _Maker(np.int32)
u8, u16, u32 = _Maker(np.uint8), _Maker(np.uint16), _Maker(np.uint32)


class Sample:
    """One way to call one function."""

    def __init__(
        self,
        function: Callable[..., Any],
        operands: tuple[Any, ...],
        params: dict[str, Any],
        reference: Callable[..., Any] | None,
        name: str,
        unlike_jax: str | None,
        ulps: int | None,
        not_smooth: str | None,
        computes_in: str | None,
        unlike_loop: str | None,
        refused: dict[str, "Refusal"],
        file: str,
    ):
        self.function = function
        self.operands = operands
        self.params = params
        self.reference = reference
        self.name = name
        self.unlike_jax = unlike_jax
        self.ulps = ulps
        self.not_smooth = not_smooth
        self.computes_in = computes_in
        self.unlike_loop = unlike_loop
        self.refused = refused
        self.file = file

    def values(self) -> list[Any]:
        """The operands, the same ones each time."""
        generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [x.draw(generator) if isinstance(x, Spec) else x for x in self.operands]

    def call(self, *values: Any) -> Any:
        return self.function(*values, **self.params)

    def __repr__(self):
        return self.name


def sample(
    function: Callable[..., Any],
    *operands: Any,
    reference: Callable[..., Any] | None = None,
    name: str | None = None,
    unlike_jax: str | None = None,
    ulps: int | None = None,
    not_smooth: str | None = None,
    computes_in: str | None = None,
    unlike_loop: str | None = None,
    not_differentiable: Refusal | None = None,
    not_transposed: Refusal | None = None,
    not_twice: Refusal | None = None,
    not_batched: Refusal | None = None,
    **params: Any,
) -> None:
    """Register a sample.

    Args:
      function: a function of arrays, and its operands.
      reference: takes the operands and parameters and computes with NumPy.
      name: of the sample, where that of the function with its operands is not distinct.
      unlike_jax: why values differ from jax's, where they should.
      ulps: how many units in the last place results may be off, where that is more than usual.
      not_smooth: why numerical differences say nothing of the derivative: ties, steps.
      computes_in: the dtype that says how far derivatives may be off, where digits are lost inside.
      unlike_loop: why `vmap` gives other values, and maybe shapes, than a loop, as jax's does.
      not_differentiable: what `jvp` raises, where it refuses as jax does: the class, and words of
        the message.
      not_transposed: what `vjp` raises, where `jvp` does not refuse.
      not_twice: what derivatives of derivatives raise, where the first ones do not refuse.
      not_batched: what `vmap` raises.
      params: given to the function by name.
    """
    if name is None:
        shown = [repr(x) if isinstance(x, Spec) else _shown(x) for x in operands]
        shown += [f"{key}={_shown(value)}" for key, value in params.items()]
        name = f"{function.__name__}({', '.join(shown)})"
    # The file that calls us; files may import one another.
    file = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
    refused = {
        "jvp": not_differentiable,
        "vjp": not_transposed,
        "twice": not_twice,
        "vmap": not_batched,
    }
    ALL.append(
        Sample(
            function=function,
            operands=operands,
            params=params,
            reference=reference,
            name=name[:150],
            unlike_jax=unlike_jax,
            ulps=ulps,
            not_smooth=not_smooth,
            computes_in=computes_in,
            unlike_loop=unlike_loop,
            refused={what: refusal for what, refusal in refused.items() if refusal},
            file=file,
        )
    )


def _shown(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype.name}{list(x.shape)}"
    return getattr(x, "__name__", None) or repr(x)
