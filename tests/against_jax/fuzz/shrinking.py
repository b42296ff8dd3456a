"""Compares what came out of drawn programs on both sides; shrinks programs that differ."""

import copy
import re
from typing import Any

import numpy as np

from tests.against_jax import compare
from tests.against_jax.fuzz import excuses, generating, quirks
from tests.against_jax.fuzz.quirks import Imitations
from tests.support.closeness import assert_close, assert_same_results, is_exact
from tests.support.outcomes import Leaf

# Sums in another order, amplified by what follows them: of the largest number of an array.
CLOSE = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-3, "complex64": 1e-3}
COARSE = 0.1
# Programs with these are not counted: jax hides the equations of the first in a function, forgets
# that there was the second's derivative. What policies leave to be computed again,
# corpus_checkpoints counts.
UNCOUNTED = (
    "remat_opt",
    "custom_jvp_call",
    "policy=<function checkpointed_loop",
)
# Functions of jax whose formulas are shorter than ours and less exact; ours are no jits.
SHORTER = ("name=sinc", "name=quantile", "name=nanquantile", "name=slogdet", "name=det")


def difference(
    program: dict[str, Any],
    ours: dict[str, Any],
    theirs: dict[str, Any],
    imitations: Imitations = quirks.OF_RESULTS,
) -> str:
    """In what the results of a program differ; "" if in nothing, or by a quirk that is imitated.

    Weak types are compared if nothing is differentiated: which tangents are weak depends in jax on
    how many functions it jits.
    """
    weakly = not generating.differentiates(program)
    for mode, wanted in theirs.items():
        found = ours[mode]
        if excuses.excused(program, mode, found, wanted):
            continue
        if any(text in found.get("text", "") for text in UNCOUNTED):
            continue
        if any(text in wanted.get("text", "") for text in SHORTER):
            continue
        if excuses.warned_of_truncation(program, found, wanted):
            wanted = {key: value for key, value in wanted.items() if key != "warned"}
        if "count" in wanted and "count" in found and "warned" not in {*wanted, *found}:
            if found["count"] - wanted["count"] <= moved_axes(found, wanted):
                continue
        try:
            if "leaves" not in wanted or "leaves" not in found:
                compare.check({mode: found}, {mode: wanted})
            else:
                assert found.get("warned") == wanted.get("warned"), (
                    f"{mode}: warned {found.get('warned')}, the reference {wanted.get('warned')}"
                )
                check_values(mode, found, wanted, weakly)
        except AssertionError as error:
            results = "leaves" in wanted and "leaves" in found
            if results and excuses.excused_by_quirk(program, mode, wanted, imitations):
                continue
            return str(error)
    return ""


def moved_axes(found: dict[str, Any], wanted: dict[str, Any]) -> int:
    """How many more arrays are transposed than with jax, as the texts of programs show it.

    An axis that vmap maps stays where it is through operations, and is moved in each result; jax
    moves it to the front of an operand at once. Which moves fewer arrays depends on the program.
    A value that one program transposes twice in the same manner counts once: the second is none
    that a moved axis asks for.
    """
    return max(transposes(found["text"]) - transposes(wanted["text"]), 0)


def transposes(text: str) -> int:
    """How many values a program transposes, with those of the programs that it names."""
    counts: dict[str, int] = {}

    def counted(part: str) -> int:
        named = sum(counts[name] for name in re.findall(r"jaxpr=(\w+)", part) if name in counts)
        return len(set(_TRANSPOSE.findall(part))) + named

    for name, part in re.findall(r"^let (\w+) = (.*?) in$", text, re.MULTILINE | re.DOTALL):
        counts[name] = counted(part)
    return counted(re.sub(r"^let \w+ = .*? in$", "", text, flags=re.MULTILINE | re.DOTALL))


# The permutation and the operand.
_TRANSPOSE = re.compile(r"= transpose\[\s*permutation=\(([^)]*)\)\s*\] (\w+)")


def is_of_numbers(text: str) -> bool:
    """Whether a difference is one of numbers alone."""
    return text.strip().startswith("Not equal to tolerance")


def check_values(
    mode: str, found: dict[str, Any], wanted: dict[str, Any], weakly: bool = True
) -> None:
    ours, theirs = found["leaves"], wanted["leaves"]
    if not weakly and len(theirs) == len(ours):
        theirs = list(map(as_array, ours, theirs))
        ours = list(map(as_array, theirs, ours))
    assert_same_results(
        (found["structure"], ours),
        (wanted["structure"], theirs),
        assert_near,
        type_of=kind_of_leaf if weakly else kind_of_leaf_alone,
        mode=mode,
    )


def as_array(other: Leaf, one: Leaf) -> Leaf:
    """A Python number that came out of one side, as an array if it is one of the other side.

    While jax differentiates, what is known of operations on Python numbers, and what goes through
    jit as it was given, are Python numbers; with hlofront each result is an array. A weakly typed
    zero that is a literal of a program is a Python number with hlofront, and an array with jax.
    """
    if one[0] != "python" or other[0] == "python" or np.shape(other[2]):
        return one
    number = np.asarray(one[2])
    dtype = other[2].dtype
    return (other[0], other[1], number.astype(dtype)) if number.dtype.kind == dtype.kind else one


def kind_of_leaf(leaf: tuple[Any, ...]) -> tuple[str, str]:
    # What comes back as it was given is at times NumPy's array with jax.
    kind, text = leaf[:2]
    return ("array" if kind == "numpy" else kind), text.removesuffix(" weak=False")


def kind_of_leaf_alone(leaf: tuple[Any, ...]) -> tuple[str, str]:
    """What `kind_of_leaf` returns, without the weak type.

    Which tangents are weak depends in jax on how many functions it jits.
    """
    kind, text = kind_of_leaf(leaf)
    return kind, text.removesuffix(" weak=True")


def assert_near(found: np.ndarray, wanted: np.ndarray, where: str) -> None:
    """Assert that arrays are close, in comparison with the largest number of the reference."""
    relative = CLOSE.get(wanted.dtype.name, COARSE)
    scale = 1.0
    if not (wanted.dtype.names or is_exact(wanted.dtype)):
        size = np.abs(wanted.astype(np.complex128))
        scale = min(float(np.max(size, where=np.isfinite(size), initial=0.0)) or 1.0, 1e300)
    assert_close(found, wanted, relative, absolute=relative * scale + 1e-6, where=where)


# ---- shrinking -----------------------------------------------------------------------------------


def smaller(program: dict[str, Any]):
    """Programs with one thing less."""
    if len(program["modes"]) > 1:
        for mode in program["modes"]:
            yield {**program, "modes": [mode]}
    for key in ("layers", "steps", "args"):
        pieces = program[key]
        if key == "args" and len(pieces) == 1:
            continue
        sizes = [len(pieces) // 2, 1] if len(pieces) > 3 else [1]
        for size in sizes:
            for place in range(0, len(pieces), size or 1):
                yield {**program, key: pieces[:place] + pieces[place + size :]}
    for place, argument in enumerate(program["args"]):
        for leaf in range(len(argument["leaves"]) if len(argument["leaves"]) > 1 else 0):
            new = copy.deepcopy(program)
            del new["args"][place]["leaves"][leaf]
            yield new
    for place, step in enumerate(program["steps"]):
        for which, body in enumerate(step[2]):
            for inner in range(len(body)):
                new = copy.deepcopy(program)
                del new["steps"][place][2][which][inner]
                yield new


def kind_of_difference(text: str) -> str:
    """What stays the same of a difference's first words while a program is shrunk."""
    return re.sub(r"\d+|v\d+|\[.*?\]", "#", text.strip().split("\n")[0])[:60]


def shrunk(program: dict[str, Any], differs: Any, most: int = 150) -> dict[str, Any]:
    """The smallest program found that differs in the same manner."""
    kind = kind_of_difference(differs(program))
    tries = 0
    while True:
        for candidate in smaller(program):
            tries += 1
            if tries > most:
                return program
            if kind_of_difference(differs(candidate)) == kind:
                program = candidate
                break
        else:
            return program
