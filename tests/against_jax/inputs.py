"""Small inputs that the corpora share: never random, so that both sides see the same."""

import math

import ml_dtypes
import numpy as np

bf16 = ml_dtypes.bfloat16
f8_e4m3 = ml_dtypes.float8_e4m3fn
f8_e5m2 = ml_dtypes.float8_e5m2


def floats(*shape, dtype=np.float32):
    """Numbers between -2 and 2, none of them whole."""
    return (np.sin(np.arange(1, 1 + math.prod(shape)) * 1.7) * 2).reshape(shape).astype(dtype)


def unit(*shape, dtype=np.float32):
    """Numbers between 0 and 1, ends left out."""
    return (
        (np.sin(np.arange(1, 1 + math.prod(shape)) * 1.3) * 0.49 + 0.5).reshape(shape).astype(dtype)
    )


def ints(*shape, dtype=np.int32):
    """Whole numbers between -5 and 5; between 0 and 10 where unsigned."""
    low = 0 if np.dtype(dtype).kind == "u" else -5
    return (np.arange(math.prod(shape)) * 7 % 11 + low).reshape(shape).astype(dtype)


def bools(*shape):
    return (np.arange(math.prod(shape)) * 7 % 3 == 0).reshape(shape)


def complexes(*shape, dtype=np.complex64):
    return (floats(*shape) + 1j * unit(*shape)).astype(dtype)
