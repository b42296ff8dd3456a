"""The report of `find_miscompile`, and its text."""

from dataclasses import dataclass, field

from hlofront.inspect.miscompile.trials import Kind
from hlofront.inspect.stepwise.report_parts import (
    Inside,
    OperationStep,
    SourceLine,
    folded,
    source_excerpt,
)
from hlotools.html.report import text_html
from hlotools.terminal_text import counted

_WORDS: dict[Kind, str] = {
    "values": "computes wrong values for",
    "crash": "ends the process on",
    "hang": "does not come to an end with",
    "error": "raises an error for",
}


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A wrong result: the number of wrong elements, and the first of them."""

    name: str
    """The path of the result, as in "result['loss']", or "" inside of the program."""
    type: str
    """Its dtype and shape, as in "float32[3,4]"."""
    count: int
    """The number of wrong elements."""
    size: int
    index: tuple[int, ...]
    """The index of the first wrong element."""
    found: str
    """That element as XLA computes it."""
    stepwise: str
    """That element, computed operation by operation."""
    float64: str
    """That element in float64; "" if that is the same text."""

    def __str__(self) -> str:
        where = f" at [{', '.join(map(str, self.index))}]" if self.index else ""
        part = f" in {self.count:,} of {self.size:,} elements" if self.size > 1 else ""
        wide = f" ({self.float64} in float64)" if self.float64 else ""
        return f"{self.name or 'it'} is wrong{part}: {self.found}, not {self.stepwise}{wide}{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MiscompileReport:
    """The result of `find_miscompile`, which is true if XLA compiles the program wrongly.

    `str()` of the report is its full text.
    """

    function: str
    """The name of the function and its source line, as in "step at model.py:12"."""
    jaxlib: str
    """The version of jaxlib that was tried."""
    kind: Kind | None
    """What is wrong; None if nothing is."""
    failure: str = ""
    """The error, or how the process ended; "" for wrong values."""
    results: tuple[WrongValue, ...] = ()
    """The wrong results of the function."""
    undetermined: tuple[str, ...] = ()
    """The results that rounding may move by so much that nothing is known of them."""
    operations: tuple[OperationStep, ...] = ()
    """The operations of the smallest part that is wrong, in order."""
    is_alone: bool = False
    """Whether a single operation is wrong even when it is compiled by itself."""
    inside: tuple[Inside, ...] = ()
    """The loops and branches around that part."""
    part: tuple[WrongValue, ...] = ()
    """The results of that part that are wrong."""
    program: str = ""
    """The jaxpr of that part."""
    fusions: tuple[str, ...] = ()
    """The fusions and calls of libraries that XLA makes of that part."""
    passes: tuple[str, ...] = ()
    """The passes of XLA without any one of which that part is right."""
    cures: tuple[tuple[str, object], ...] = ()
    """Options of XLA's compiler with any one of which the whole program is right."""
    jaxlibs: tuple[tuple[str, str], ...] = ()
    """Versions of jaxlib, and what that part is in each: "right", "wrong", or the failure."""
    files: tuple[str, ...] = ()
    """The files that reproduce it."""
    trials: int = field(default=0, compare=False)
    """The number of programs that were compiled."""

    @property
    def source_line(self) -> SourceLine | None:
        """The user's line of the last operation of the part; None where there is none."""
        return self.operations[-1].source_line if self.operations else None

    def __bool__(self) -> bool:
        return self.kind is not None

    def __str__(self) -> str:
        if self.kind is None:
            text = (
                f"XLA compiles {self.function} right: its results are what its operations give "
                "one by one, up to rounding"
            )
            if self.undetermined:
                text += (
                    f", but rounding may move {', '.join(self.undetermined)} by so much that "
                    "nothing is known of them. find_error says where they lose their digits"
                )
            return text
        title = f"XLA of jaxlib {self.jaxlib} {_WORDS[self.kind]} {self.function}"
        lines = [title + (f": {self.failure}" if self.failure else "")]
        lines += [f"  {result}" for result in self.results[:3]]
        lines += self._part() + self._reasons() + self._advice()
        return "\n".join(lines)

    def _part(self) -> list[str]:
        count = counted(len(self.operations), "operation")
        if not self.operations:
            return ["No part of it is wrong by itself: only the program as a whole is."]
        if self.is_alone:
            lines = ["This operation is wrong even when it is compiled by itself:"]
        else:
            lines = [f"The smallest part that is wrong when it is compiled has {count}:"]
        lines += source_excerpt(self.source_line)
        lines += [f"  {text}" for text in folded(self.operations)]
        lines += [f"  inside {each}" for each in reversed(self.inside)]
        lines += [f"  {value}" for value in self.part]
        return lines

    def _reasons(self) -> list[str]:
        lines = [f"XLA makes of it: {text}" for text in self.fusions[:3]]
        if self.passes:
            lines.append(f"It is right without one of these passes: {', '.join(self.passes)}")
        return lines + [f"jaxlib {version}: {verdict}" for version, verdict in self.jaxlibs]

    def _advice(self) -> list[str]:
        lines: list[str] = []
        if self.cures:
            name, value = self.cures[0]
            lines.append(
                f"What to do: jit(f, compiler_options={{{name!r}: {value!r}}}), with which the "
                "whole program is right"
            )
            rest = ", ".join(f"{other}={setting!r}" for other, setting in self.cures[1:])
            lines += [f"  or: {rest}"] if rest else []
        elif self.operations:
            right = [version for version, verdict in self.jaxlibs if verdict == "right"]
            advice = "put lax.optimization_barrier between these operations"
            if len(self.operations) == 1:
                advice = "write this operation otherwise, by others"
            if right:
                advice = f"use jaxlib {right[-1]}, in which it is right"
            lines.append(f"What to do: no option cures it: {advice}")
        if self.files:
            lines.append(f"To report it: {', '.join(self.files)}")
        return lines

    def _repr_html_(self) -> str:
        title, _, text = str(self).partition("\n")
        return text_html(text, title)

    __repr__ = __str__
