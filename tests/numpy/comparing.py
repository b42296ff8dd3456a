"""What must be equal between our results and those of NumPy and jax, and how closely."""

from typing import Any

import numpy as np

from tests.against_jax import compare
from tests.numpy import catalogue_runner
from tests.systematic.closeness import assert_close

ULPS = 60


def kind(x: Any) -> str:
    """b, i, u, f or c: integers of either sign are one kind."""
    dtype = np.asarray(x).dtype
    if dtype.kind == "V":
        return "f" if "float" in dtype.name else "i"
    return {"u": "i"}.get(dtype.kind, dtype.kind)


def check_numpy(one: Any, values: list[Any], found: Any) -> None:
    """Our described result is NumPy's: its structure, shapes, kinds of dtypes, values."""
    if isinstance(one.numpy, str):
        return
    assert not isinstance(found, catalogue_runner.Raised), found
    wanted = catalogue_runner.by_numpy(one, values)
    _, leaves = found
    assert len(leaves) == len(wanted), f"{len(leaves)} results, NumPy has {len(wanted)}"
    for i, ((_, _, mine), theirs) in enumerate(zip(leaves, wanted, strict=True)):
        if not catalogue_runner.is_array(mine):
            assert mine == theirs or mine is theirs, f"result {i}: {mine}, NumPy: {theirs}"
            continue
        theirs = np.asarray(theirs)
        assert mine.shape == theirs.shape, f"result {i}: {mine.shape}, NumPy: {theirs.shape}"
        if not one.other_kind:
            assert kind(mine) == kind(theirs), f"result {i}: {mine.dtype}, NumPy: {theirs.dtype}"
        narrow = theirs.dtype == np.float16 and mine.dtype != np.float16
        with np.errstate(all="ignore"):
            theirs = theirs.astype(mine.dtype)
        if narrow:
            # NumPy computes with narrow integers in 16 bits.
            assert_close(mine.astype(np.float16), theirs.astype(np.float16), ULPS)
        else:
            assert_close(mine, theirs, one.ulps or ULPS)


def check_jax(one: Any, found: Any, wanted: Any) -> None:
    """Our described result is jax's: structure, types, weak types, values."""
    if one.unlike_jax and isinstance(wanted, catalogue_runner.Raised):
        return
    raised = [one for one in (found, wanted) if isinstance(one, catalogue_runner.Raised)]
    assert not raised, f"ours: {found}; jax: {wanted}"
    assert found[0] == wanted[0], f"structure {found[0]}, jax: {wanted[0]}"
    for i, (mine, theirs) in enumerate(zip(found[1], wanted[1], strict=True)):
        types = [
            (kind_, type_.removeprefix("weak ") if one.other_weakness else type_)
            for kind_, type_, _ in (mine, theirs)
        ]
        assert types[0] == types[1], f"result {i}: {mine[:2]}, jax: {theirs[:2]}"
        if mine[0] == "python" and not one.unlike_jax:
            assert mine[2] == theirs[2] or mine[2] != mine[2], (
                f"result {i}: {mine[2]}, jax: {theirs[2]}"
            )
        elif mine[0] != "python" and not one.unlike_jax:
            assert_close(mine[2], np.asarray(theirs[2]), one.ulps or ULPS)


def check_wrong(found: Any, wanted: Any) -> None:
    """Both raise one class of error, or both give results of the same types."""
    if isinstance(wanted, catalogue_runner.Raised):
        public = next(name for name in wanted.classes if name in compare.PUBLIC_ERRORS)
        assert isinstance(found, catalogue_runner.Raised), f"gives {found[1]}; jax raises {wanted}"
        assert public in found.classes, f"raises {found}; jax: {wanted}"
        assert found.message.strip(), "an error without a message"
    else:
        assert not isinstance(found, catalogue_runner.Raised), (
            f"raises {found}; jax gives {wanted[1]}"
        )
        assert found == wanted, f"gives {found}, jax {wanted}"
