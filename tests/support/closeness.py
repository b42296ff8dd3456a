"""The comparer of the tests: what must be equal of results, and how close floats are, by dtype."""

import builtins
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import hlofront
from tests import on_platforms
from tests.support import units
from tests.support.outcomes import Leaf
from tests.support.units import Units

# The relative and absolute tolerance of results: what sums of a few hundred terms in another order
# may differ by. Narrower floats than these have SMALL_FLOATS.
TOLERANCES = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 2e-6,
    "complex64": 2e-6,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
SMALL_FLOATS = 0.26
# Decompositions and solutions of small systems, by whether they are of 64 bits.
OF_SYSTEMS = {True: 1e-8, False: 2e-5}

# The classes a user can name in an `except`.
PUBLIC_ERRORS = {name for name in dir(builtins) if name.endswith("Error")} | {
    "Exception",
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
}


def is_exact(dtype: np.dtype) -> bool:
    """Return whether values of a dtype are compared exactly: booleans, integers, texts, times."""
    return dtype.kind in "biuSUMm" or dtype.name.startswith(("int", "uint"))


def assert_close(
    found: np.ndarray,
    wanted: np.ndarray,
    tolerance: float | Units | None = None,
    *,
    absolute: float | None = None,
    where: str = "",
) -> None:
    """Assert that two arrays have one dtype and shape, and values that are equal or close.

    Args:
      found, wanted: the arrays. Integers, booleans and texts must be equal, whatever the tolerance.
      tolerance: relative and absolute, or `Units` in the last place; that of the dtype in
        `TOLERANCES` by default.
      absolute: the absolute tolerance, where it is another one.
      where: begins the message.
    """
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), where
    if wanted.dtype.names:  # float0, which holds nothing
        return
    if is_exact(wanted.dtype):
        np.testing.assert_array_equal(found, wanted, err_msg=where)
        return
    if isinstance(tolerance, Units):
        distance, allowed = units.distance(found, wanted), tolerance.of(wanted.dtype)
        assert distance <= allowed, (
            f"{where}: {distance} units in the last place apart, {allowed} are allowed\n"
            f"{found}\nthe reference:\n{wanted}"
        )
        return
    allowed = tolerance or TOLERANCES.get(wanted.dtype.name, SMALL_FLOATS)
    absolute = allowed if absolute is None else absolute
    is_complex = wanted.dtype.kind == "c"
    wide = np.complex128 if is_complex else np.float64
    pairs = [(found.astype(wide), wanted.astype(wide))]
    if is_complex:
        # NumPy compares complex infinities exactly, also their finite parts: so by their parts.
        finite = np.isfinite(found) & np.isfinite(wanted)
        ((one, other),) = pairs
        pairs = [(one[finite], other[finite])]
        pairs += [(part(one[~finite]), part(other[~finite])) for part in (np.real, np.imag)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=allowed, atol=absolute, err_msg=where)


def assert_within(found: np.ndarray, wanted: np.ndarray, ulps: float) -> None:
    """Assert that arrays are equal or off by so many units in the last place, or of those of 1.

    Narrow dtypes, which have few bits to differ in, may be off by 4 at most; platforms other than
    CPUs by some times as many.
    """
    tolerance = None
    if not (is_exact(wanted.dtype) or wanted.dtype.names):
        eps = float(ml_dtypes.finfo(wanted.dtype).eps)
        tolerance = eps * (ulps * on_platforms.slack() if eps < 1e-5 else min(ulps, 4))
    assert_close(found, wanted, tolerance)


def assert_zeros_alike(found: np.ndarray, wanted: np.ndarray) -> None:
    """Assert that real zeros which both arrays have at one index are of one sign."""
    if not is_exact(wanted.dtype) and wanted.dtype.kind != "c":
        zeros = (found == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


def assert_trees_close(found: Any, wanted: Any, tolerance: float | None = None) -> None:
    """Assert that the leaves of two pytrees of arrays are close, whatever their dtypes.

    The tolerance is relative and absolute; that of `OF_SYSTEMS` for the narrower dtype by default.
    """
    leaves = hlofront.tree.leaves
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        wide = {one.dtype.name, other.dtype.name} <= {"float64", "complex128"}
        allowed = tolerance or OF_SYSTEMS[wide]
        np.testing.assert_allclose(one, other, rtol=allowed, atol=allowed)


def public_class(classes: list[str]) -> str:
    """Return the first of an error's classes that a user can name."""
    return next(name for name in classes if name in PUBLIC_ERRORS)


def assert_same_results(
    found: tuple[str, list[Leaf]],
    wanted: tuple[str, list[Leaf]],
    assert_close: Callable[[np.ndarray, np.ndarray, str], None] | None,
    *,
    type_of: Callable[[Leaf], tuple[str, str]] = lambda leaf: leaf[:2],
    mode: str = "result",
) -> None:
    """Assert that two results have one structure, leaves of the same types, and close values.

    Args:
      found, wanted: the structure and the leaves of our result, and those of the reference.
      assert_close: compares two arrays, and is told where they are; None leaves values out.
      type_of: what must be equal of a leaf's kind and type.
      mode: how the result was made, for messages.
    """
    assert found[0] == wanted[0], f"{mode}: structure {found[0]}, the reference {wanted[0]}"
    for i, (mine, theirs) in enumerate(zip(found[1], wanted[1], strict=True)):
        where = f"{mode}, output {i}"
        assert type_of(mine) == type_of(theirs), f"{where}: {mine[:2]}, the reference {theirs[:2]}"
        if assert_close is None:
            continue
        if isinstance(theirs[2], np.ndarray):
            assert_close(mine[2], theirs[2], where)
        else:
            assert mine[2] == theirs[2] or mine[2] != mine[2], f"{where}: {mine[2]}, {theirs[2]}"
