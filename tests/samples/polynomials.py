"""Samples of polynomials."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import bf16, c64, f16, f32, f64, i32, u8


def polynomial(x, *coeffs, unroll=None):
    return lax.polynomial(x, coeffs, unroll=unroll)


def reference(x, *coeffs, unroll=None):
    wide = np.asarray(x).astype(np.promote_types(np.asarray(x).dtype, np.float64))
    return sum(np.asarray(c).astype(wide.dtype) * wide**k for k, c in enumerate(coeffs))


def integer_reference(x, *coeffs):
    return np.asarray(reference(x, *coeffs)).astype(np.asarray(x).dtype)


sample(polynomial, f32[3], 1.0, -2.0, 0.5, reference=reference)
sample(polynomial, f32[2, 3], f32[2, 3], f32[1, 3], f32[2, 1], 2, reference=reference)
sample(polynomial, f32[()], f32[3], 0.5, f32[3], reference=reference)
sample(polynomial, f32[2, 1], 2.0, f32[1, 3], reference=reference)
sample(polynomial, f32[2], f32[2], reference=reference)
sample(polynomial, c64[3], 1j, c64[3], 2, reference=reference)
sample(polynomial, f64[3], *[0.5] * 3, reference=reference)
sample(polynomial, bf16[4].between(0, 1), 1, 2, 3)
sample(polynomial, f16[4].between(0, 1), 1, 2, f16[4])
sample(polynomial, i32[4], 3, -2, 1, reference=integer_reference)
sample(polynomial, u8[4].between(0, 4), 1, u8[4].between(0, 4), reference=integer_reference)
sample(polynomial, f32[0, 2], 1.0, 2.0, reference=reference)
NEAR_ONE = f32[2, 3].between(-1, 1)
# Loops of 9 steps and one left over, with coefficients that are scalars, and that are arrays.
sample(polynomial, NEAR_ONE, *np.float32(np.linspace(-1, 1, 11)), reference=reference)
sample(polynomial, NEAR_ONE, f32[1, 3], *[0.5] * 8, f32[2, 1], reference=reference)
sample(polynomial, NEAR_ONE, 1.0, 2.0, f32[2, 3], 0.5, unroll=1, reference=reference)
sample(polynomial, NEAR_ONE, 1.0, 2.0, 0.5, 3.0, unroll=3, reference=reference)
