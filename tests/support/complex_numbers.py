"""What the tests of functions of many complex numbers share: numbers, errors, and ends."""

from collections.abc import Callable

import mpmath
import numpy as np

import hlofront
from hlofront import lax
from hlofront.base.config import options
from tests.support.large_arrays import ENOUGH

DTYPES = ["complex64", "complex128"]
# The greatest digits before and after the point that the exact values are computed with.
DIGITS = 80


def points(random: np.random.Generator, count: int, scale: float, dtype: str) -> np.ndarray:
    """Return numbers whose parts are normally distributed."""
    parts = random.normal(size=(2, count)) * scale
    return (parts[0] + 1j * parts[1]).astype(dtype)


def assert_parts_near(
    result: np.ndarray,
    exact: Callable[..., mpmath.mpc],
    x: np.ndarray,
    units: float,
    least: float = 0.0,
    of_size: bool = False,
) -> None:
    """Assert that the errors of both parts are few units in the last places of that part.

    Args:
      result: the values of the function.
      exact: the function, of numbers of mpmath.
      x: its arguments.
      units: the greatest error.
      least: the size of a unit of parts that are nearly zero, if it is not that of their dtype.
      of_size: whether the units are those of the size of the value, not of the part.
    """
    assert result.dtype == x.dtype
    limits = np.finfo(x.dtype)
    with mpmath.workdps(DIGITS):
        for number, value in zip(x.tolist(), result):
            wanted = exact(mpmath.mpc(number))
            for part, of_wanted in ((value.real, wanted.real), (value.imag, wanted.imag)):
                known = min(abs(wanted if of_size else of_wanted), 0.999 * float(limits.max))
                unit = max(np.spacing(limits.dtype.type(known)), limits.tiny, least)
                if abs(of_wanted) > float(limits.max):
                    assert np.isinf(part), (number, value, complex(wanted))
                    continue
                error = abs(mpmath.mpf(float(part)) - of_wanted)
                assert error <= units * float(unit), (number, value, complex(wanted))


def ends(dtype: str) -> np.ndarray:
    """Return numbers whose parts are zeros, infinite, NaN, tiny, huge or usual ones."""
    tiny, huge = (1e-30, 1e20) if dtype == "complex64" else (1e-200, 1e200)
    numbers = [0.0, -0.0, 1, -1, 0.5, 3, -3, np.inf, -np.inf, np.nan, tiny, -tiny, huge, -huge]
    numbers += [100, -1000]
    return np.array([complex(a, b) for a in numbers for b in numbers], dtype)


def assert_same_parts(result: np.ndarray, wanted: np.ndarray) -> None:
    """Assert that both parts are nearly equal, and zeros have the same signs."""
    close, least = (1e-6, 1e-37) if result.dtype == np.complex64 else (1e-14, 1e-300)
    for part, of_wanted in ((result.real, wanted.real), (result.imag, wanted.imag)):
        np.testing.assert_allclose(part, of_wanted, rtol=close, atol=least)
        is_zero = of_wanted == 0
        np.testing.assert_array_equal(np.signbit(part)[is_zero], np.signbit(of_wanted)[is_zero])


def assert_for_many_on_cpus(name: str, dtype: str) -> None:
    """Assert that the rule is used for many numbers on CPUs, and for nothing else."""

    def text(x: np.ndarray, platforms: list[str], formulas: bool = True) -> str:
        with options["hlofront_cpu_formulas"](formulas):
            function = hlofront.jit(lambda x: getattr(lax, name)(x))
            return function.trace(x).lower(lowering_platforms=platforms).as_text()

    def is_used(x: np.ndarray, platforms: list[str]) -> bool:
        return text(x, platforms) != text(x, platforms, formulas=False)

    x = np.full(ENOUGH, 0.5, dtype)
    assert is_used(x, ["cpu"])
    for platforms in (["tpu"], ["cuda"], ["cpu", "tpu"]):
        assert not is_used(x, platforms)
    for few in (x[:10], x[:0], x[0]):
        assert not is_used(few, ["cpu"])
    np.testing.assert_allclose(
        getattr(lax, name)(x), np.full(ENOUGH, getattr(lax, name)(x[0])), rtol=1e-5
    )
