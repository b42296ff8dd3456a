"""The warning about large captured constants: arrays that a function closes over."""

import heapq
from collections.abc import Iterator

from hlofront.base import source
from hlofront.base.config import options
from hlofront.base.typing import Array
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from hlofront.core.programs.subprograms import all_programs

_warn_bytes = options["jax_captured_constants_warn_bytes"]
_report_frames = options["jax_captured_constants_report_frames"]
# The warning lists the largest constants, at most this many.
_MAX_REPORTED = 5


def warn_of_constants(program: ClosedJaxpr) -> None:
    """Warn if the constants of a program have more bytes than the option allows; -1 is never."""
    limit = _warn_bytes.value
    if limit < 0:
        return
    unique = {id(const): (const, where) for const, where in _constants(program)}
    sizes = [getattr(const, "nbytes", 0) for const, _ in unique.values()]
    if sum(sizes) < limit:
        return
    message = (
        f"A large amount of constants were captured during lowering ({sum(sizes):,} bytes in all). "
        "Hand them to the function as arguments, or, where this is intended, set "
        "JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1."
    )
    frames = _report_frames.value
    if frames:
        largest = heapq.nlargest(_MAX_REPORTED, unique.values(), key=lambda pair: pair[0].nbytes)
        message += "".join([_reported(const, where, frames) for const, where in largest])
    else:
        message += " JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1 reports where they are used."
    source.warn(message)


def _constants(program: ClosedJaxpr) -> Iterator[tuple[Array, tuple[Jaxpr, Var]]]:
    """Yield the constants of a program and its subprograms, each with its jaxpr and variable."""
    for inner in all_programs(program):
        if isinstance(inner, ClosedJaxpr):
            jaxpr = inner.jaxpr
            for var, const in zip(jaxpr.constvars, inner.consts, strict=True):
                yield const, (jaxpr, var)


def _reported(const: Array, where: tuple[Jaxpr, Var], frames: int) -> str:
    """Return the lines of the warning that show where a constant is used."""
    jaxpr, var = where
    lines = [
        f"\n  Constant {type(const)}, {var.aval.str_short()}, {const.nbytes:,} bytes, used at:"
    ]
    for equation in jaxpr.eqns:
        if any(atom is var for atom in equation.invars):
            text = source.summarize(equation.traceback, frames if frames > 0 else 100)
            lines += [f"    {line}" for line in text.splitlines()]
    return "\n".join(lines)
