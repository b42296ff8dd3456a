"""The changes inside the kernels of two matching custom calls, with the cause first.

A kernel's parameters come first: block sizes, memory spaces, precision, grid; then branches and
loops that only one of the kernels has, such as one that skips blocks; then the rest of its code,
line by line, because operands do not determine the order of loads and stores.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hlotools.ir.attribute_text import dictionary
from hlotools.ir.custom_kernels import CustomKernel
from hlotools.ir.digests import Hashes, digest
from hlotools.ir.hlo import HloModule, Instruction
from hlotools.ir.kernel_parameters import Parameters, kernels_of, parameters_of
from hlotools.ir.mlir_lines import Line, line_changes, stablehlo_lines
from hlotools.matching.changes import Change, OperationSite, grouped

# Subjects of changes, those that cause others first.
_FIRST = ("block sizes", "windows", "memory spaces", "dtypes", "precision", "grid", "index maps",
          "control")  # fmt: skip
_SHOWN = 4
_CONTROL = frozenset({"if", "for", "while", "index_switch", "parallel", "cond_br"})
_SIZES = re.compile(r"\b((?:vector|memref|tensor|array)<)((?:\d+x)+)")
_ATTRIBUTES = re.compile(r"<?\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}>?")
_RESULTS = re.compile(r"^%[^=]* = ")
_DIALECT = re.compile(r"(?:= )?\"?\b([a-z]\w*\.[\w.]+)")


def hashes_of(a: HloModule, b: HloModule) -> tuple[Hashes, Hashes]:
    """Return the digests of two modules, with kernels by their code rather than its encoding."""
    kernels = [
        {id(call): _digest_of(kernel) for call, kernel in kernels_of(module) if kernel.mlir}
        for module in (a, b)
    ]
    first = Hashes(a, kernels[0])
    return first, Hashes(b, kernels[1], first)


def _digest_of(kernel: CustomKernel) -> str:
    lines = [line.text for line in stablehlo_lines(kernel.mlir)]
    # The head of the module has the version of the encoding; its other parts are parameters.
    code = "\n".join(line for line in lines if not line.startswith("module"))
    return digest([str(parameters_of(kernel)).encode(), code.encode("utf-8", "replace")]).hex()


def kernel_change(
    a: Instruction, b: Instruction, sites: tuple[OperationSite, OperationSite]
) -> Change | None:
    """Return the change of the kernels of two custom calls, None if their code is equal.

    Its parts are the other differences of the kernels.

    Args:
      a: a custom call whose kernel is decoded.
      b: the matching custom call of the other program.
      sites: the sites of both.
    """
    kernels = a.kernel, b.kernel
    if kernels[0] is None or kernels[1] is None:
        return None
    x, y = (site._replace(name=kernel.name) for site, kernel in zip(sites, kernels, strict=True))
    changes = sorted(
        _changes(kernels[0], kernels[1], x, y), key=lambda each: (_rank(each), _is_of_scalars(each))
    )
    if not changes:
        return None
    heading, *parts = changes
    what, before, after = heading.what, heading.before, heading.after
    if heading.kind in ("added", "removed"):
        what = "operations"
        alike = [change for change in changes if _rank(change) == _rank(heading)]
        before, after = _names(change.a for change in alike), _names(change.b for change in alike)
        parts = parts if len(alike) == 1 else changes
    elif heading.kind == "changed":
        what = f"{what} of {heading.a[0].name}"
    at = _at_call(x, heading.a), _at_call(y, heading.b)
    return Change("kernel", what, before, after, *at, parts=tuple(parts), is_cause=bool(parts))


def are_decoded(a: Instruction, b: Instruction) -> bool:
    """Return whether two custom calls have kernels whose code is known."""
    kernels = a.kernel, b.kernel
    return all(kernel is not None and kernel.mlir for kernel in kernels)


def why_not_decoded(a: Instruction, b: Instruction) -> str:
    """Return why kernels of two custom calls are compared only by digest; "" if there are none."""
    problems = dict.fromkeys(k.problem for k in (a.kernel, b.kernel) if k is not None and k.problem)
    return "; ".join(f"the kernel is not decoded: {problem}" for problem in problems)


def _at_call(call: OperationSite, inside: Sequence[OperationSite]) -> tuple[OperationSite, ...]:
    """Return the site of a call, with the source line of the change inside it."""
    line = next((site for site in inside if site.file), call)
    return (call._replace(file=line.file, line=line.line, function=line.function),)


def _rank(change: Change) -> int:
    subject = change.what.partition(" of ")[0]
    if change.kind in ("added", "removed") and _is_control(change):
        subject = "control"
    if subject in _FIRST:
        return _FIRST.index(subject)
    return len(_FIRST) + (change.kind != "kernel") + (change.kind == "changed")


def _is_of_scalars(change: Change) -> bool:
    """Return whether a change is of prefetched scalars, whose sizes follow from those of blocks."""
    return " of prefetched" in change.what


def _names(sides: Iterable[Sequence[OperationSite]]) -> str:
    """Return a few names of operations with their counts as text."""
    counts = Counter(site.name for side in sides for site in side)
    named = [f"{count} × {name}" if count > 1 else name for name, count in counts.items()]
    more = [f"{len(named) - _SHOWN} more"] if len(named) > _SHOWN else []
    return ", ".join(named[:_SHOWN] + more)


def _is_control(change: Change) -> bool:
    return any(site.opcode in _CONTROL for site in (*change.a, *change.b))


def _changes(
    a: CustomKernel, b: CustomKernel, x: OperationSite, y: OperationSite
) -> Iterator[Change]:
    given = parameters_of(a), parameters_of(b)
    yield from _given_changes(*given, x, y)
    # Other block sizes change the sizes of nearly all values: then sizes are not compared.
    resized = any(given[0].get(what) != given[1].get(what) for what in ("block sizes", "windows"))
    lines = _lines(a, resized), _lines(b, resized)
    if [line.text for line in lines[0]] != [line.text for line in lines[1]]:
        yield from grouped(_in_terms_of_attributes(line_changes(*lines)))


def _given_changes(
    a: Parameters, b: Parameters, x: OperationSite, y: OperationSite
) -> Iterator[Change]:
    for subject in dict.fromkeys((*a, *b)):
        before, after = a.get(subject, {}), b.get(subject, {})
        alike: dict[tuple[str, str], list[str]] = {}
        for of in dict.fromkeys((*before, *after)):
            alike.setdefault((before.get(of, ""), after.get(of, "")), []).append(of)
        for (old, new), names in alike.items():
            if old != new:
                what = f"{subject} of {', '.join(names)}" if any(names) else subject
                yield Change("kernel", what, old, new, (x,), (y,))


def _lines(kernel: CustomKernel, resized: bool) -> list[Line]:
    """Return a kernel's lines, without sizes if these follow from its block sizes."""
    text = kernel.mlir
    if resized:
        text = _SIZES.sub(lambda sized: sized[1] + "?x" * sized[2].count("x"), text)
    lines = stablehlo_lines(text)
    opened: list[int] = []
    for n, line in enumerate(lines):
        lines[n] = line._replace(site=line.site._replace(name=_name(line)))
        # The location of an operation with regions is after the last region.
        if line.written.startswith("}") and opened and not line.written.endswith("{"):
            first = opened.pop()
            site = lines[first].site._replace(file=line.site.file, line=line.site.line)
            lines[first] = lines[first]._replace(site=site)
        elif line.written.endswith("{") and not line.written.startswith("}"):
            opened.append(n)
    # The parameters of a Mosaic kernel cover its head.
    heads = ("module", "func.func") if kernel.kind == "Mosaic TPU" else ("module",)
    return [line for line in lines if not line.written.startswith(heads)]


def _name(line: Line) -> str:
    """Return the name of a line's operation with its dialect."""
    found = _DIALECT.search(line.written)
    return found[1] if found else line.site.opcode


def _in_terms_of_attributes(changes: Iterator[Change]) -> Iterator[Change]:
    """Yield changes of lines; for operations with changed attributes, only the attributes."""
    for change in changes:
        if not any(site.opcode for site in (*change.a, *change.b)):
            continue  # The lines between two regions.
        if change.kind != "changed":
            yield change
            continue
        both = [_ATTRIBUTES.search(text) for text in (change.before, change.after)]
        before, after = (dictionary(found[1]) if found else {} for found in both)
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        if change.a[0].opcode != change.b[0].opcode or not keys:
            texts = (_RESULTS.sub("", text) for text in (change.before, change.after))
            yield Change("changed", change.what, *texts, change.a, change.b)
        for key in keys if change.a[0].opcode == change.b[0].opcode else ():
            values = (_word(side.get(key, "")) for side in (before, after))
            what = "precision" if "precision" in key.lower() else key
            yield Change("changed", what, *values, change.a, change.b)


def _word(value: str) -> str:
    """Return an attribute's value without its dialect: fp32 of #tpu.contract_precision<fp32>."""
    word = re.fullmatch(r"#[\w.]+<(\w+)>", value)
    return word[1] if word else value
