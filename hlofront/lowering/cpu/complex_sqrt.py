"""Replacements of square roots of complex numbers on CPUs.

XLA's CPU code calls scalar functions of the C library, and loses all bits of the real part of
inverse roots of negative numbers. Formulas for complex64 compute in float64.
"""

from typing import NamedTuple

import numpy as np

from hlofront.base.elements import float64, int64
from hlofront.lowering.core.formulas import Formula, clip, sqrt, where
from hlofront.lowering.cpu.complex_exp_log import of_parts, parts_of
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    as_dtype,
    filled_like,
    inverse_square_root,
    magnitude,
    reinterpreted,
    wide,
    with_sign_of,
)
from hlofront.primitives.elementwise import elementwise as e

_complex64, _complex128 = np.dtype(np.complex64), np.dtype(np.complex128)


class _Root(NamedTuple):
    """The parts of the square root of |a| + |b| i, the larger one first."""

    long: Formula
    short: Formula
    inverse_size: Formula
    """1 / |a + b i|."""


# A number whose square is finite in float64, and whose root is infinite in float32.
_INFINITE = 1e150


def _narrow_root(real: Formula, imag: Formula) -> _Root:
    one, other = (clip(0, magnitude(part), _INFINITE) for part in (real, imag))
    square = one * one + other * other
    inverse_size = inverse_square_root(square)
    half = (one + square * inverse_size) * 0.5
    inverse = inverse_square_root(half)
    is_along_axis = one.equals(_INFINITE) & (other < _INFINITE)
    short = where(is_along_axis, 0, other * 0.5 * inverse)
    return _Root(half * inverse, short, inverse_size)


def _wide_root(real: Formula, imag: Formula) -> _Root:
    one, other = abs(real), abs(imag)
    # Scale extreme numbers, so that their squares are normal.
    greatest = where(one > other, one, other)
    is_small, is_large = greatest < 2.0**-400, greatest > 2.0**400
    like = filled_like(one, 1, float64)
    scale = where(is_small, 2.0**600, where(is_large, 2.0**-600, like))
    scaled, other_scaled = one * scale, other * scale
    size = sqrt(scaled * scaled + other_scaled * other_scaled)
    root_of_scale = where(is_small, 2.0**-300, where(is_large, 2.0**300, like))
    long = sqrt((scaled + size) * 0.5) * root_of_scale
    # XLA's arithmetic flushes half of the least normal number to zero.
    short = where(long.equals(0), other, other / (long * 2))
    # The products are NaN if the other part is.
    is_infinite = one.equals(np.inf)
    long = where(other.equals(np.inf), other, where(is_infinite, one, long))
    short = where(other.equals(np.inf), other, where(is_infinite, other * 0, short))
    return _Root(long, short, 1 / size * scale)


def _in_quadrant(x: Formula, long: Formula, short: Formula) -> tuple[Formula, Formula]:
    """Return the parts of a root of x, exchanged where the real part of x is negative."""
    real, imag = parts_of(x)
    is_left = reinterpreted(wide(real), int64) < 0
    root, other = where(is_left, short, long), where(is_left, long, short)
    return as_dtype(root, real.dtype), as_dtype(with_sign_of(wide(imag), other), real.dtype)


def _root(x: Formula) -> _Root:
    return (_narrow_root if x.dtype == _complex64 else _wide_root)(*parts_of(x))


@replaced_by_formula(e.sqrt_p, _complex128)
def _square_root(x: Formula) -> Formula:
    root = _root(x)
    return of_parts(*_in_quadrant(x, root.long, root.short))


@replaced_by_formula(e.rsqrt_p, _complex64)
@replaced_by_formula(e.rsqrt_p, _complex128)
def _inverse_root(x: Formula) -> Formula:
    long, short, inverse_size = _root(x)
    is_zero, is_infinite = long.equals(0), long.equals(np.inf)
    long, short = (where(is_infinite, 0, part * inverse_size) for part in (long, short))
    real, imag = _in_quadrant(x, long, short)
    return of_parts(where(is_zero, np.inf, real), where(is_zero, np.nan, -imag))
