"""What must be equal between our result and the reference's, and how closely."""

import builtins
import difflib

import numpy as np

from tests.against_jax import units

# What sums of a few hundred terms in another order may differ by.
TOLERANCES = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 2e-6,
    "complex64": 2e-6,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
SMALL_FLOATS = 0.26

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


def check(ours, theirs, tolerance=None, instead=None):
    """Raises AssertionError that says how our description of a program differs from theirs.

    `instead` names a class of errors that ours may raise where the reference raises another.
    """
    for mode, wanted in theirs.items():
        found = ours[mode]
        assert found.get("warned") == wanted.get("warned"), (
            f"{mode}: warned {found.get('warned')}, the reference {wanted.get('warned')}"
        )
        if "error" in wanted:
            check_error(mode, found, wanted, instead)
        elif "error" in found:
            raise AssertionError(
                f"{mode}: raised {found['error'][0]}; the reference gives "
                f"{_brief(wanted)}\n{found['traceback']}"
            )
        elif "count" in wanted:
            check_count(mode, found, wanted)
        elif "text" in wanted:
            check_text(mode, found["text"], wanted["text"])
        else:
            check_values(mode, found, wanted, tolerance)


def check_error(mode, found, wanted, instead):
    public = next(name for name in wanted["error"] if name in PUBLIC_ERRORS)
    if "error" not in found:
        raise AssertionError(
            f"{mode}: gave {_brief(found)}; the reference raises {public}: {wanted['message']}"
        )
    assert {public, instead} & set(found["error"]), (
        f"{mode}: raised {found['error'][0]}, the reference {public}: {wanted['message']}\n"
        f"{found['traceback']}"
    )
    assert found["message"].strip(), f"{mode}: {found['error'][0]} without a message"


def check_text(mode, found, wanted):
    if found != wanted:
        lines = difflib.unified_diff(
            wanted.splitlines(), found.splitlines(), "reference", "hlofront", lineterm="", n=4
        )
        raise AssertionError(f"{mode}: the text differs\n" + "\n".join(lines))


def check_count(mode, found, wanted):
    assert found["count"] <= wanted["count"], (
        f"{mode}: {found['count']} equations, the reference has {wanted['count']}\n"
        f"{found['text']}\nthe reference:\n{wanted['text']}"
    )


def check_values(mode, found, wanted, tolerance):
    assert found["structure"] == wanted["structure"], (
        f"{mode}: structure {found['structure']}, the reference {wanted['structure']}"
    )
    for i, (mine, theirs) in enumerate(zip(found["leaves"], wanted["leaves"], strict=True)):
        where = f"{mode}, output {i}"
        assert mine[:2] == theirs[:2], (
            f"{where}: {mine[0]} {mine[1]}, the reference {theirs[0]} {theirs[1]}"
        )
        if isinstance(theirs[2], np.ndarray):
            check_arrays(where, mine[2], theirs[2], tolerance)
        else:
            assert mine[2] == theirs[2] or mine[2] != mine[2], f"{where}: {mine[2]}, {theirs[2]}"


def check_arrays(where, found, wanted, tolerance):
    name = wanted.dtype.name
    if wanted.dtype.names:  # float0, which holds nothing
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), where
        return
    if wanted.dtype.kind in "biuSUMm" or name.startswith(("int", "uint")):
        np.testing.assert_array_equal(found, wanted, err_msg=where)
        return
    if isinstance(tolerance, units.Units):
        distance, allowed = units.distance(found, wanted), tolerance.of(wanted.dtype)
        assert distance <= allowed, (
            f"{where}: {distance} units in the last place apart, {allowed} are allowed\n"
            f"{found}\nthe reference:\n{wanted}"
        )
        return
    allowed = tolerance or TOLERANCES.get(name, SMALL_FLOATS)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        found.astype(wide), wanted.astype(wide), rtol=allowed, atol=allowed, err_msg=where
    )
    assert found.dtype == wanted.dtype


def _brief(description):
    if "text" in description:
        return description["text"][:400]
    return f"{description['structure']} {[leaf[:2] for leaf in description['leaves']]}"
