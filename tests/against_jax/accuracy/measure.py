"""How far numbers are from the truth."""

import zlib

import ml_dtypes
import numpy as np

from tests.against_jax.accuracy.points import dtype_of


def digest(args) -> int:
    """What tells whether something is of these points."""
    return zlib.crc32(b"".join(np.ascontiguousarray(x).tobytes() for x in args))


def errors(found: np.ndarray, truth: np.ndarray, dtype: str) -> np.ndarray:
    """In units of the last place of the truth; infinite where one is no number, or no finite one.

    Nothing where both are below what the dtype has in full digits, or beyond its greatest number.
    """
    limits = ml_dtypes.finfo(dtype_of(dtype))
    eps, tiny, most = (float(x) for x in (limits.eps, limits.tiny, limits.max))
    if np.iscomplexobj(truth):
        parts = np.abs(found - truth) / (eps * np.maximum(np.abs(truth), tiny))
        return np.where(np.isfinite(found), parts, np.inf)
    with np.errstate(all="ignore"):
        truth = np.where(np.abs(truth) > most * (1 + eps / 4), np.sign(truth) * np.inf, truth)
        size = np.abs(truth)
        apart = np.abs(found - truth) / (eps * np.maximum(size, tiny))
        apart = np.where((size < 4 * tiny) & (np.abs(found) < 8 * tiny), 0.0, apart)
        # At the edge of what overflows, a few units in the last place decide.
        edge = (size > most * (1 - 64 * eps)) & (np.abs(found) > most * (1 - 64 * eps))
        apart = np.where(edge & (np.sign(found) == np.sign(truth)), 0.0, apart)
        special = ~np.isfinite(truth)
        same = (found == truth) | (np.isnan(found) & np.isnan(truth))
        apart = np.where(special, np.where(same, 0.0, np.inf), apart)
        return np.where(np.isnan(apart), np.inf, apart)
