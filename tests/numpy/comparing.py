"""What must be equal between our results and those of NumPy and jax, and how closely."""

import re
from typing import Any

import numpy as np

from tests.numpy import catalogue_runner
from tests.support.closeness import assert_same_results, assert_within, public_class
from tests.support.outcomes import Leaf, Raised

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
    assert not isinstance(found, Raised), found
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
            assert_within(mine.astype(np.float16), theirs.astype(np.float16), ULPS)
        else:
            assert_within(mine, theirs, one.ulps or ULPS)


def check_jax(one: Any, found: Any, wanted: Any) -> None:
    """Our described result is jax's: structure, types, weak types, values."""
    if one.unlike_jax and isinstance(wanted, Raised):
        return
    raised = [one for one in (found, wanted) if isinstance(one, Raised)]
    assert not raised, f"ours: {found}; jax: {wanted}"
    assert_same_results(
        found,
        wanted,
        None
        if one.unlike_jax
        else lambda mine, theirs, _: assert_within(mine, theirs, one.ulps or ULPS),
        type_of=without_weakness if one.other_weakness else lambda leaf: leaf[:2],
    )


def without_weakness(leaf: Leaf) -> tuple[str, str]:
    return leaf[0], re.sub(" weak=.*", "", leaf[1])


def check_wrong(found: Any, wanted: Any) -> None:
    """Both raise one class of error, or both give results of the same types."""
    if isinstance(wanted, Raised):
        public = public_class(wanted.classes)
        assert isinstance(found, Raised), f"gives {found[1]}; jax raises {wanted}"
        assert public in found.classes, f"raises {found}; jax: {wanted}"
        assert found.message.strip(), "an error without a message"
    else:
        assert not isinstance(found, Raised), f"raises {found}; jax gives {wanted[1]}"
        assert found == wanted, f"gives {found}, jax {wanted}"
