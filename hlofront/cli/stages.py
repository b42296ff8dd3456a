"""The stages of one function as text: source, jaxpr, StableHLO, optimized HLO, cost."""

import inspect
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.inspect import kernel_decoding  # noqa: F401  # Reads texts with their kernels.
from hlofront.inspect.jitted import jitted
from hlofront.pjrt.targets import Target
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlotools.cost.memory_use import memory_use
from hlotools.ir.kernel_parameters import kernels_text

STAGES = ("source", "jaxpr", "stablehlo", "kernels", "hlo", "sharding", "cost", "memory")
# The stages that are shown by default.
SHOWN = STAGES[:-1]
_COMPILED = frozenset({"hlo", "sharding", "cost", "memory"})
TITLE_OF_KERNELS = "Kernels in custom calls"
_TITLES = {
    "source": "Source",
    "jaxpr": "Jaxpr",
    "stablehlo": "StableHLO",
    "kernels": TITLE_OF_KERNELS,
    "hlo": "Optimized HLO",
    "sharding": "Shardings and collectives",
    "cost": "Cost and memory",
    "memory": "Memory over time",
}


class StageText(NamedTuple):
    """The text of one stage of a function, with its title and the language for highlighting."""

    stage: str
    title: str
    text: str
    language: str


def sections(
    function: Callable[..., object],
    args: tuple[object, ...],
    wanted: tuple[str, ...] = SHOWN,
    targets: Sequence[Target] = (),
    style: str = "raw",
) -> Iterator[StageText]:
    """Yield the text of each requested stage of `function(*args)`, computed lazily.

    Args:
      wanted: the names of stages, from `STAGES`.
      targets: the targets to compile for; by default the current device. Stages that depend on
        the target are yielded once per target.
      style: of StableHLO and HLO, as in `as_text`.
    """
    staged = jitted(function)
    if "source" in wanted:
        yield StageText("source", _TITLES["source"], _source(function), "python")
    if all(stage == "source" for stage in wanted):
        return
    traced = staged.trace(*args)
    if "jaxpr" in wanted:
        yield StageText("jaxpr", _TITLES["jaxpr"], str(traced.jaxpr), "jaxpr")
    if not {"stablehlo", "kernels", *_COMPILED} & set(wanted):
        return
    made = {"": traced.lower()} if not targets else {}
    for target in targets:
        with target:
            made[f" for {target.name}"] = staged.trace(*args).lower()
    if "stablehlo" in wanted:
        for which, lowered in made.items():
            title = _TITLES["stablehlo"] + which + _fences(lowered)
            yield StageText("stablehlo", title, lowered.as_text(style=style).rstrip(), "mlir")
    if "kernels" in wanted:
        for which, lowered in made.items():
            text = kernels_text(lowered.as_text(debug_info=True), _style_of_kernels(style))
            if text or len(wanted) == 1:
                text = text or "no kernels of Mosaic or Triton"
                yield StageText("kernels", _TITLES["kernels"] + which, text, "mlir")
    if not _COMPILED & set(wanted):
        return
    compiled = {}
    for which, lowered in made.items():
        compiled[which] = lowered.compile()
        if "hlo" in wanted:
            text = (compiled[which].as_text(style=style) or "").rstrip()
            title = _TITLES["hlo"] + which + _guards(compiled[which])
            yield StageText("hlo", title, text, "hlo")
    if "sharding" in wanted:
        for (which, lowered), target in zip(made.items(), targets or (None,), strict=True):
            # For one device there is nothing to show, unless only this stage is requested.
            from hlofront.inspect.sharding import is_split, sharding_text

            if is_split(lowered) or len(wanted) == 1:
                text = sharding_text(lowered, compiled[which], target, len(wanted) == 1)
                yield StageText("sharding", _TITLES["sharding"] + which, text, "text")
    if "cost" in wanted:
        yield StageText("cost", _TITLES["cost"], cost_text(compiled), "text")
    if "memory" in wanted:
        for which, each in compiled.items():
            text = memory_use(each).text()
            yield StageText("memory", _TITLES["memory"] + which, text, "text")


def _style_of_kernels(style: str) -> str:
    """Return the style of kernels: "short" for "raw", which has a location after each operation."""
    return "short" if style == "raw" else style


def _fences(lowered: Lowered) -> str:
    """Return a phrase that counts a module's fences and lists their source lines; "" for none."""
    fences = lowered.fences
    if not fences:
        return ""
    lines = Counter(
        f"{os.path.basename(fence.file)}:{fence.line}" if fence.file else "an unknown line"
        for fence in fences
    )
    where = ", ".join(
        f"{line} ({count} times)" if count > 1 else line for line, count in lines.items()
    )
    return f", with {len(fences)} fences: {where}" if len(fences) > 1 else f", fenced at {where}"


def _guards(compiled: Compiled) -> str:
    """Return a phrase that lists a program's guards against known faults of XLA; "" for none."""
    guards = compiled.xla_guards
    return f", guarded against faults of XLA: {'; '.join(map(str, guards))}" if guards else ""


def _source(function: Callable[..., object]) -> str:
    plain = inspect.unwrap(function)
    try:
        return textwrap.dedent(inspect.getsource(plain)).rstrip()
    except (OSError, TypeError):
        return f"(the source of {getattr(plain, '__name__', plain)!r} is not to be had)"


def cost_text(compiled: Mapping[str, Compiled]) -> str:
    """Return a table of XLA's estimates of work and memory, with a column per target."""
    tables = [_cost_rows(program) for program in compiled.values()]
    titles = list(dict.fromkeys(title for table in tables for title in table))
    columns = [[table.get(title, "") for title in titles] for table in tables]
    if len(columns) > 1:
        titles.insert(0, "")
        for which, column in zip(compiled, columns, strict=True):
            column.insert(0, which.removeprefix(" for "))
    left = max(map(len, titles))
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  ".join([f"{title:<{left}}", *(f"{v:>{w}}" for v, w in zip(row, widths, strict=True))])
        for title, *row in zip(titles, *columns, strict=True)
    )


def _cost_rows(compiled: Compiled) -> dict[str, str]:
    cost = compiled.cost_analysis() or {}
    memory = compiled.memory_analysis()
    rows: dict[str, str] = {}
    for key, title in (
        ("flops", "floating-point operations"),
        ("transcendentals", "transcendental operations"),
        ("bytes accessed", "bytes accessed"),
    ):
        if key in cost:
            rows[title] = f"{cost[key]:,.0f}"
    if cost.get("flops") and cost.get("bytes accessed"):
        rows["operations per byte"] = f"{cost['flops'] / cost['bytes accessed']:.2f}"
    for attribute, title in (
        ("argument_size_in_bytes", "bytes of arguments"),
        ("output_size_in_bytes", "bytes of results"),
        ("temp_size_in_bytes", "bytes of temporaries"),
        ("alias_size_in_bytes", "bytes shared by arguments and results"),
        ("generated_code_size_in_bytes", "bytes of code"),
    ):
        rows[title] = f"{getattr(memory, attribute):,}"
    return rows
