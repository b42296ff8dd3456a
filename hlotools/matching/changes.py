"""The changes between two programs, each with the sites of its operations."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hlotools.ir.hlo import Instruction, nearest_source
from hlotools.terminal_text import on_one_line


class OperationSite(NamedTuple):
    """The site of an operation in one program: the operation, and its source line.

    `at` is the parsed operation, if the program could be parsed; `as_dict` omits it.
    """

    name: str
    opcode: str
    type: str
    file: str = ""
    line: int = 0
    function: str = ""
    at: Instruction | None = None

    @property
    def source(self) -> str:
        """The name of the source file and the line, "" if unknown."""
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return on_one_line(f"{name}:{self.line}" if name and self.line else name)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "opcode": self.opcode,
            "type": self.type,
            "file": self.file or None,
            "line": self.line or None,
            "function": self.function or None,
        }


def site_of(instruction: Instruction, path: str) -> OperationSite:
    """Return the site of an operation; `path` names the fusions that contain it."""
    source = nearest_source(instruction)
    return OperationSite(
        path + instruction.name,
        instruction.opcode,
        instruction.shape.short_text(),
        source.file if source else "",
        source.line if source else 0,
        source.function if source else "",
        instruction,
    )


def operand_name(instruction: Instruction, caller: Instruction | None) -> str:
    """Return an operand's name; for a fusion's parameter, the name of the caller's operand."""
    number = instruction.number
    if caller is not None and instruction.opcode == "parameter" and number < len(caller.operands):
        return caller.operands[number].name
    return instruction.name


class Effect(NamedTuple):
    """The effect of a change: how much more the operations that it touches move and compute.

    `bytes` are bytes of memory, `operations` those of arithmetic, over all runs of loops. `seconds`
    is the difference of the operations' time bounds, None where a device's rates are not known.
    """

    bytes: int
    operations: int
    seconds: float | None = None

    def __str__(self) -> str:
        is_timed = self.seconds is not None and abs(self.seconds) > _MIN_SECONDS
        parts = [_scaled(1e9 * (self.seconds or 0.0), _SECONDS)] if is_timed else []
        parts += [
            _scaled(number, units, base)
            for number, units, base in (
                (self.bytes, ("B", "KiB", "MiB", "GiB", "TiB"), 1024),
                (self.operations, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"), 1000),
            )
            if number
        ]
        return ", ".join(parts)


_SECONDS = ("ns", "us", "ms", "s")
# Smaller differences of times are rounding errors.
_MIN_SECONDS = 1e-13


def _scaled(number: float, units: Sequence[str], base: int = 1000) -> str:
    """Return a number with sign and unit, such as `+1.2 MiB`; each unit is `base` smaller ones."""
    size = float(number)
    for unit in units[:-1]:
        if abs(size) < 999.5:
            return f"{size:+.3g} {unit}"
        size /= base
    return f"{size:+.3g} {units[-1]}"


class Change(NamedTuple):
    """A difference of two programs, with all sites at which it occurs.

    `kind` is "added", "removed", "changed", "split", "merged", "regrouped", "reordered",
    "exchanged", "scheduled", "flag" (of the compiler) or "module"; "retyped" and "refused" are
    findings (another dtype; other fusions of equal work), which consist of the changes in `parts`.
    "argument", "result", "operations", "recomputation" and "unrolled" are changes of the compiler's
    input, and "compiler" is a change of the compiler itself. If `is_cause`, `parts` are the changes
    that follow from this one; those of "shared" follow from several causes. "prefetched" changes
    are copies to the memory of a TPU's chip, and "configured" ones are configurations of the
    backend. `what` is the subject: "operation", "copy", "collective", "fusion", "dtype", "shape",
    "layout", "opcode", "constant", "operands", "body", "views", "schedule" or the name of an
    attribute. `before` and `after` are the subject's texts, and `note` is a remark. `count` is the
    number of occurrences, for changes with several sites each. Changes with the same `key`, if it
    is set, are grouped whatever their texts. `effect` is what the change adds to the costs of HLO
    programs.
    """

    kind: str
    what: str
    before: str
    after: str
    a: tuple[OperationSite, ...]
    b: tuple[OperationSite, ...]
    note: str = ""
    count: int = 1
    key: str = ""
    parts: "tuple[Change, ...]" = ()
    effect: Effect | None = None
    is_cause: bool = False

    @property
    def sentence(self) -> str:
        """The change as a sentence, without source lines."""
        names_a, names_b = listed(self.a), listed(self.b)
        note = f" ({self.note})" if self.note else ""
        match self.kind:
            case "split":
                parts = len(self.b) // self.count
                plain = all(site.opcode != "fusion" for site in self.b)
                what = "no longer fused but" if plain else "split in"
                if self.count == 1:
                    be = "is" if plain else "was"
                    return f"{names_a} {be} {what} {_number(parts)}: {self.after}{note}"
                be = "are" if plain else "were each"
                return (
                    f"{self.count} fusions ({names_a}) {be} {what} {_number(parts)}, such as "
                    f"{self.after}{note}"
                )
            case "merged":
                if self.count == 1:
                    return f"{self.before} were merged into {names_b}{note}"
                first = self.b[0].name
                return (
                    f"{self.before} were merged into {first}{note}; and likewise into "
                    f"{listed(self.b[1:])}"
                )
            case "regrouped":
                times = f", {self.count} times" if self.count > 1 else ""
                return f"fusions were regrouped{times}: {self.before} became {self.after}{note}"
            case "argument":
                several = "s" if len(self.a or self.b) > 1 else ""
                return f"argument{several} {names_a or names_b}: {self._of_argument}"
            case "result":
                return f"results: {self._removed_and_added}"
            case "operations":
                return self._removed_and_added + note
            case "recomputation":
                again = "run again" if self.what == "added" else "no longer run again"
                return f"recomputation {self.what}: {self.after} {again} in the gradient"
            case "unrolled":
                steps = f" of {self.before} steps" if self.before else ""
                return f"a loop{steps} was unrolled" + (
                    f": added {self.after}" if self.after else ""
                )
            case "kernel" if self.what == "operations":
                return f"kernel {names_a}: {self._removed_and_added}"
            case "kernel":
                both = f"{self.before or 'none'} -> {self.after or 'none'}"
                return f"kernel {names_a}, {self.what}: {both}"
            case "compiler":
                return f"compiler: {self.before} -> {self.after}"
            case "shared":
                return "what more than one of these causes may have a part in"
            case "prefetched":
                return f"prefetches: {self.before} -> {self.after} ({self.note})"
            case "configured":
                names = dict.fromkeys(site.name for site in self.a)
                noun = "operation" if len(names) == 1 else "operations"
                return f"how the backend computes {len(names)} {noun}: {self.after}"
            case "scheduled":
                return f"the schedule of {self.before}: {self.after}"
            case "reordered":
                return f"{self.what} of {names_a}: {self.before} -> {self.after}"
            case "exchanged":
                return f"{self.what} of {self.note} exchanged: {self.before} -> {self.after}"
            case "retyped":
                of = self.what.removeprefix("dtype")
                return f"dtype {self.before} -> {self.after}{of}: {self.note}"
            case "refused":
                return f"{self.before} became {self.after} {self.note}"
            case "added":
                return f"added {_many(self.what, len(self.b))}{names_b}: {self.after}"
            case "removed":
                return f"removed {_many(self.what, len(self.a))}{names_a}: {self.before}"
            case "flag":
                return f"flag {self.what}: {self.before or 'not set'} -> {self.after or 'not set'}"
            case "module":
                return (
                    f"the module's {self.what}: {self.before or 'none'} -> {self.after or 'none'}"
                )
        if self.what in _LISTS:
            both = [f"without {self.before}"] if self.before else []
            both += [f"with {self.after}"] if self.after else []
            return _LISTS[self.what].format(names_a or names_b, " and ".join(both))
        names = names_a
        if names_a != names_b and len(self.a) <= _BOTH:
            # For many sites the names on one side are enough; the other side's names often differ.
            names = f"{names_a} -> {names_b}"
        return f"{self.what} of {names}: {self.before or 'none'} -> {self.after or 'none'}{note}"

    @property
    def _removed_and_added(self) -> str:
        both = [f"removed {self.before}"] if self.before else []
        return "; ".join([*both, f"added {self.after}"] if self.after else both)

    @property
    def _of_argument(self) -> str:
        """The change of an argument, without its name."""
        match self.what:
            case "type":
                return f"{self.before} -> {self.after}"
            case "donation":
                return "now donated" if self.after else "no longer donated"
            case "captured":
                return f"now a constant, {self.after}"
            case "removed" | "added":
                return f"{self.what}, {self.before or self.after}"
        return f"{self.what} {self.before or 'none'} -> {self.after or 'none'}"

    @property
    def sources(self) -> list[str]:
        """The distinct source lines of the change's sites."""
        sites = [*self.a, *self.b] if self.kind != "changed" else (self.b or self.a)
        return list(dict.fromkeys(site.source for site in sites if site.source))

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "what": self.what,
            "before": self.before or None,
            "after": self.after or None,
            "a": [site.as_dict() for site in self.a],
            "b": [site.as_dict() for site in self.b],
            "text": self.sentence,
            "effect": self.effect._asdict() if self.effect is not None else None,
            "is_cause": self.is_cause,
            "parts": [part.as_dict() for part in self.parts],
        }


_NUMBERS = ("no parts", "one", "two", "three", "four", "five", "six")
_SHOWN = 4
_BOTH = 2
_LISTS = {"body": "inside {}: {}", "views": "views of values, other than those listed: {1}"}


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _many(what: str, count: int) -> str:
    return f"{what} " if count == 1 else f"{count} × {what}: "


def listed(sites: Iterable[OperationSite]) -> str:
    names = list(dict.fromkeys(site.name for site in sites))
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def grouped(changes: Iterable[Change]) -> list[Change]:
    """Group changes of equal texts into single changes with several sites."""
    groups: dict[Any, Change] = {}
    for change in changes:
        before, after = ("", change.key) if change.key else _nameless(change)
        key = (change.kind, change.what, change.note, before, after)
        known = groups.get(key)
        if known is not None:
            if change.key:
                if (known.before, known.after) != (change.before, change.after):
                    known = known._replace(note="of the first")
            elif change.kind not in _EXAMPLES:
                known = known._replace(before=before, after=after)
            change = known._replace(
                a=known.a + change.a, b=known.b + change.b, count=known.count + 1
            )
        groups[key] = change
    return list(groups.values())


# Grouped changes of these kinds have the names of the first one, as an example.
_EXAMPLES = ("split", "merged", "regrouped")
# The operands at the end of an operation's text, but not the literal of a constant or the number of
# a parameter.
_OPERANDS = re.compile(r"(?<!constant)(?<!parameter)\([^()]*\)$")
_NAMES = re.compile(r"[A-Za-z_][\w.\-]*")


def _nameless(change: Change) -> tuple[str, str]:
    """Return a change's texts before and after, with the names of operations removed."""
    texts = [change.before, change.after]
    if change.kind in _EXAMPLES:
        for site in (*change.a, *change.b):
            texts = [text.replace(site.name + " (", "(") for text in texts]
    elif change.kind in ("added", "removed"):
        texts = [_OPERANDS.sub("", text) for text in texts]
    elif change.kind == "reordered":
        letters: dict[str, str] = {}

        def letter(name: re.Match[str]) -> str:
            return letters.setdefault(name[0], chr(ord("a") + len(letters) % 26))

        texts = [_NAMES.sub(letter, text) for text in texts]
    return texts[0], texts[1]
