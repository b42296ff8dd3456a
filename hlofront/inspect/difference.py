"""The differences of two programs: traced, lowered, compiled, or functions to compile."""

from collections.abc import Callable
from typing import overload

from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.inspect import kernel_decoding  # noqa: F401  # Reads texts with their kernels.
from hlofront.inspect.cost import description_for
from hlofront.inspect.jitted import jitted
from hlofront.pjrt.targets import target_of
from hlofront.runtime.dispatch.stages import Compiled, Lowered, Traced
from hlotools.ir.program_text import KINDS
from hlotools.matching.difference import Diff as Diff
from hlotools.matching.difference import Side, diff_of_sides, side_of
from hlotools.matching.flags import flags_of
from hlotools.profiles.comparison import ProfileDiff, compare_profiles
from hlotools.profiles.profile import Profile


@overload
def diff(a: Profile, b: Profile) -> ProfileDiff: ...
@overload
def diff(
    a: object,
    b: object,
    *,
    stage: str | None = None,
    schedule: bool = False,
    labels: tuple[str, str] | None = None,
) -> Diff: ...
def diff(
    a: object,
    b: object,
    *,
    stage: str | None = None,
    schedule: bool = False,
    labels: tuple[str, str] | None = None,
) -> Diff | ProfileDiff:
    """Return the differences between two programs, or between two profiles of a program.

    Names, source lines, install paths and irrelevant orders do not count as differences; nor does
    the schedule of a compiled program, unless `schedule` is True. Differing XLA flags are among the
    changes, even of equal programs. Two results of `profile` differ in the source lines that take
    longer, or less time, than their repeats explain.

    Args:
      a: text of a jaxpr, StableHLO or HLO; the path of a file of such text; a result of `trace`,
        `lower`, `compile` or `parse`; a ClosedJaxpr; or a function
        with its arguments as a tuple, (f, x, y); or a result of `profile` or `profiles_in`.
      b: the other program, of the same kind as `a`.
      stage: the stage at which functions are compared: "jaxpr", "stablehlo" or "hlo"; by default
        the other program's, and "hlo" where both are functions.
      schedule: whether operations that run earlier or later in a compiled program differ, with one
        change per computation, which names the moved operations.
      labels: the names of the two programs; by default taken from the programs.

    Raises:
      HloSyntaxError: if HLO text cannot be parsed.
      TypeError: if an argument is not a program.
      ValueError: if the programs are of two kinds, or a text is not a program.
    """
    if isinstance(a, Profile) and isinstance(b, Profile):
        return compare_profiles(a, b)
    if stage is not None and stage not in KINDS:
        raise ValueError(f"a stage is one of {', '.join(KINDS)}: got {stage!r}")
    wanted = stage
    if wanted is None:
        known = [_side(side, None).kind for side in (a, b) if not _is_call(side)]
        wanted = known[0] if known else "hlo"
    return diff_of_sides(_side(a, wanted), _side(b, wanted), schedule, labels)


def _is_call(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and callable(value[0])


def _side(value: object, stage: str | None) -> Side:
    if _is_call(value):
        return _of_call(value[0], value[1:], stage or "hlo")
    if isinstance(value, Traced):
        return side_of_traced(value, stage, f"{value.fun_name}, traced")
    if isinstance(value, Lowered):
        if stage == "hlo":
            return Side("hlo", "a lowered function, before optimization", value.as_text("hlo"))
        return Side("stablehlo", "a lowered function", value.as_text(debug_info=True))
    if isinstance(value, Compiled):
        return side_of_compiled(value, "a compiled function")
    if isinstance(value, ClosedJaxpr | Jaxpr):
        text = value.pretty_print(source_info=True, use_color=False)
        return Side("jaxpr", "a jaxpr", text)
    return side_of(value)


def _of_call(function: Callable[..., object], args: tuple[object, ...], stage: str) -> Side:
    name = getattr(function, "__name__", "a function")
    return side_of_traced(jitted(function).trace(*args), stage, name)


def side_of_traced(traced: Traced, stage: str | None, label: str) -> Side:
    """Return a traced function as a side of a diff at a stage, by default as a jaxpr."""
    if stage in (None, "jaxpr"):
        text = traced.jaxpr.pretty_print(source_info=True, use_color=False)
        return Side("jaxpr", label, text)
    lowered = traced.lower()
    if stage == "stablehlo":
        return Side("stablehlo", label, lowered.as_text(debug_info=True))
    return side_of_compiled(lowered.compile(), label)


def side_of_compiled(compiled: Compiled, label: str) -> Side:
    """Return a compiled program as a side of a diff, with its flags and its device's rates."""
    options = compiled._compiler_options
    flags = None if options is None else flags_of(options)
    rates = description_for(compiled, None)
    module = compiled._module
    return Side(
        "hlo",
        label,
        compiled.as_text() or "",
        flags=flags,
        rates=rates,
        source=None if module is None else lambda: module.text(True),
        compiler=None if module is None else compiler_of(compiled),
    )


def compiler_of(stage: Compiled | Lowered) -> str:
    """Return the name of the device that a program is compiled for: one process has one XLA."""
    target = target_of(stage._first_device)
    return stage._platform if target is None else str(target.name)
