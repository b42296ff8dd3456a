"""StableHLO and jaxprs as lines without names and source lines, so that two programs compare.

MLIR's own parser is not used: the text may come from any version. A line is identified by its text
with values numbered in the order of definition, and by a digest that includes the digests of its
operands.
"""

import difflib
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlotools.ir.hlo import HloSyntaxError
from hlotools.ir.payloads import sorted_map, without_paths
from hlotools.matching.changes import Change, OperationSite


class Line(NamedTuple):
    """A line of a program: its canonical text, its shape, its digest and its values."""

    text: str  # with values renumbered
    shape: str  # without values
    digest: str  # with the digests of its operands
    defined: tuple[str, ...]
    used: tuple[str, ...]
    site: OperationSite
    written: str  # the original text without its location
    stack: str = ""  # the name stack of the operation, where the location has one


# The maximum size of a program, without long string constants, in bytes.
_LARGEST = 32 << 20
_LONG_STRING = re.compile(r'"[^"\\\n]{1000,}+"')


def bounded(text: str) -> str:
    """Return the text with long strings, which constants and kernels have, replaced by digests.

    Raises:
      HloSyntaxError: if the remaining text is too large to be read line by line.
    """
    if len(text) > _LARGEST:
        text = _LONG_STRING.sub(_digest_of, text)
    if len(text) > _LARGEST:
        start = text.rfind("\n", 0, _LARGEST) + 1
        raise HloSyntaxError(
            f"more than {_LARGEST >> 20} MiB of text, constants aside",
            text.count("\n", 0, start) + 1,
            _LARGEST - start + 1,
            text[start : _LARGEST + 100].partition("\n")[0],
        )
    return text


def _digest_of(string: re.Match[str]) -> str:
    return (
        f'"<{hashlib.blake2b(string[0].encode("utf-8", "replace"), digest_size=12).hexdigest()}>"'
    )


def canonical_stablehlo(text: str) -> str:
    """Return StableHLO text without locations, with values and private functions renumbered."""
    return "\n".join(line.text for line in stablehlo_lines(text)) + "\n"


def canonical_jaxpr(text: str) -> str:
    """Return a jaxpr's text with variables renumbered in order, without notes of source lines."""
    return "\n".join(line.text for line in jaxpr_lines(text)) + "\n"


_STRING = r'"(?:[^"\\]++|\\.)*+"'
_LOCATION_LINE = re.compile(r"\s*#loc\d*\s*=\s*loc\(")
_ALIAS = re.compile(r"#loc\d*\b")
_FILE = re.compile(r'"([^"\n]+)":(\d{1,9})(?::\d+)?')
_LOC = re.compile(r"\s*\bloc\(")
_BRACKET = re.compile(_STRING + r"|[()]", re.DOTALL)
_VALUE = re.compile(r"%[\w$.\-]+")
_SYMBOL = re.compile(r"@([\w$.\-]+)")
_ATTRIBUTES = re.compile(r"\{[^{}%\n]*+\}")
_COMMUTATIVE = re.compile(
    r"(\bstablehlo\.(?:add|multiply|maximum|minimum|and|or|xor) )(%[\w#]+), (%[\w#]+)(?= )"
)
_OPERATION = re.compile(r"(?:= )?\"?(?<!\w)([a-z]\w*+\.[\w.]++|(?:call|return)\b)\"?")
_TYPE = re.compile(r"(?:->|:) ([^:>{}]*tensor<[^\n{]*?)\s*\{?$")


def _in_order(attributes: re.Match[str]) -> str:
    return sorted_map(attributes[0]) if " = " in attributes[0] else attributes[0]


def _without_locations(line: str) -> tuple[str, str]:
    """Return a line without `loc(...)`, and the content of the last location."""
    location = ""
    parts: list[str] = []
    at = 0
    while True:
        location_start = _LOC.search(line, at)
        if location_start is None:
            return "".join([*parts, line[at:]]), location
        depth = 0
        end = len(line)
        for bracket in _BRACKET.finditer(line, location_start.end() - 1):
            if bracket[0] == "(":
                depth += 1
            elif bracket[0] == ")":
                depth -= 1
                if depth == 0:
                    end = bracket.end()
                    break
        location = line[location_start.start() : end].strip()
        parts.append(line[at : location_start.start()])
        at = end


def _source(location: str, aliases: dict[str, str]) -> tuple[str, int]:
    """Return the file and line of a location, which may refer to others through aliases."""
    for _ in range(20):
        file = _FILE.search(location)
        if file:
            return file[1], int(file[2])
        alias = _ALIAS.search(location)
        if alias is None or alias[0] not in aliases:
            break
        location = aliases[alias[0]]
    return "", 0


def stablehlo_lines(text: str, renamed: bool = True) -> list[Line]:
    """Return the lines of a StableHLO module, with locations in their sites, not in their texts.

    Args:
      renamed: whether names and orders become canonical.
    """
    aliases: dict[str, str] = {}
    located: list[tuple[str, str]] = []
    for line in bounded(text).splitlines():
        if _LOCATION_LINE.match(line):
            name, _, value = line.partition("=")
            aliases[name.strip()] = value.strip()
            continue
        if line.startswith("//"):
            continue
        plain, location = _without_locations(line) if "loc(" in line else (line, "")
        if plain.strip():
            located.append((plain.rstrip(), location))
    if not renamed:
        return [_as_written(line, location, aliases) for line, location in located]
    located = _functions_in_order(located)
    # The module is named after the function; functions are numbered in the order of first use.
    symbols: dict[str, str] = {"main": "main"}
    lines: list[Line] = []
    values = _Values("%")
    for plain, location in located:
        stripped = plain.lstrip()
        if stripped.startswith("module "):
            plain = re.sub(r"^(\s*module) @[\w$.\-]+", r"\1", plain)
        if stripped.startswith("func.func"):
            values = _Values("%", values.count)

        def named(match: re.Match[str]) -> str:
            if match[1] not in symbols:
                symbols[match[1]] = f"f{len(symbols)}"
            return "@" + symbols[match[1]]

        custom_target = "custom_call @" in plain
        if "@" in plain and not custom_target:
            plain = "".join(
                part if part.startswith('"') else _SYMBOL.sub(named, part)
                for part in re.split(f"({_STRING})", plain)
            )
        if "{" in plain:
            plain = _ATTRIBUTES.sub(_in_order, plain)
        if '"' in plain:
            plain = without_paths(plain)
        opcode = _OPERATION.search(plain)
        type_ = _TYPE.search(plain)
        file, number = _source(location, aliases) if location else ("", 0)
        if ", %" in plain:
            plain = _COMMUTATIVE.sub(values.in_order, plain)
        definitions = _mlir_definitions(plain)
        defined, used, new, shape, digest = values.line(plain, definitions, _VALUE)
        first = _VALUE.match(plain, min(definitions)) if definitions else None
        name = first[0] if first else opcode[1] if opcode else ""
        if stripped.startswith("func.func") and (symbol := _SYMBOL.search(stripped)):
            name = symbol[0]
        site = OperationSite(
            name,
            opcode[1].rpartition(".")[2] if opcode else "",
            type_[1].strip() if type_ else "",
            file,
            number,
        )
        lines.append(Line(new, shape, digest, defined, used, site, stripped))
    return lines


def _as_written(line: str, location: str, aliases: dict[str, str]) -> Line:
    file, number = _source(location, aliases) if location else ("", 0)
    site = OperationSite("", "", "", file, number)
    return Line(line, "", "", (), (), site, line.strip(), _name_stack(location, aliases))


_STACK = re.compile(r'loc\("([^"\n]*)"(?!:\d)')


def _name_stack(location: str, aliases: dict[str, str]) -> str:
    """Return the name of a location, such as jit(f)/dot_general; "" if it has none."""
    stack = _STACK.match(aliases.get(location[4:-1], location))
    return stack[1] if stack else ""


_MAIN = re.compile(r"^ *func\.func (?:public )?@main\(.*$", re.MULTILINE)
_ARGUMENT = re.compile(r'(%[\w$.\-]+): [^%]*?\bloc\((?:"([^"\n]*)"|(#loc\d*)\))')


def argument_names(text: str) -> dict[str, str]:
    """Return the user's names of the arguments of a module's main function, by their values.

    The names are those of the locations, such as `params[0]` for `%arg0`; others have none.
    """
    main = _MAIN.search(text) if "loc(" in text else None
    names: dict[str, str] = {}
    for value, name, alias in _ARGUMENT.findall(main[0]) if main else ():
        if alias:
            defined = re.search(rf'^{alias} = loc\("([^"\n]*)"(?!:\d)', text, re.MULTILINE)
            name = defined[1] if defined else ""
        if name:
            names[value] = name
    return names


_FUNCTION = re.compile(r"(\s*)func\.func .*?@([\w$.\-]+)")


def _functions_in_order(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the lines with private functions ordered by their first call."""
    starts: list[tuple[int, str, str]] = []
    for n, (line, _) in enumerate(lines):
        head = _FUNCTION.match(line) if "func.func" in line else None
        if head:
            starts.append((n, head[2], head[1]))
    if len(starts) < 3:
        return lines
    # The last function ends at a line that is indented no further than the module.
    first, margin = starts[0][0], len(starts[-1][2])
    end = next(
        (
            n
            for n in range(starts[-1][0] + 1, len(lines))
            if len(lines[n][0]) - len(lines[n][0].lstrip()) < margin
        ),
        len(lines),
    )
    ends = [n for n, _, _ in starts[1:]] + [end]
    blocks = {name: lines[n:stop] for (n, name, _), stop in zip(starts, ends, strict=True)}
    if len(blocks) < len(starts):
        # Functions of several modules may have the same name.
        return lines
    public = [name for n, name, _ in starts if " private " not in lines[n][0]]
    order: dict[str, None] = {}
    waiting = list(reversed(public))
    while waiting:
        name = waiting.pop()
        if name not in order:
            order[name] = None
            called = [
                symbol
                for line, _ in blocks[name][1:]
                if "@" in line
                for symbol in _SYMBOL.findall(line)
                if symbol in blocks
            ]
            waiting += reversed(called)
    for name in blocks:
        order.setdefault(name)
    return lines[:first] + [line for name in order for line in blocks[name]] + lines[end:]


# A value before its type or `=` is defined there; `%0:3 =` defines three values.
_DEFINED = re.compile(r"%[\w$.\-]+(?=:\s+[\w!(]|(?::\d+)?\s*=)")
_SEVERAL = re.compile(r"\s*%[\w$.\-]+(?::\d+)?(?:, %[\w$.\-]+(?::\d+)?)+ =")


def _mlir_definitions(line: str) -> set[int]:
    starts = {defined.start() for defined in _DEFINED.finditer(line)}
    several = _SEVERAL.match(line)
    if several:
        starts |= {value.start() for value in _VALUE.finditer(line, 0, several.end())}
    return starts


class _Values:
    """The values of a program by name: their new names, and their digests."""

    def __init__(self, sign: str, count: int = 0):
        self.sign = sign
        self.count = count
        self.names: dict[str, str] = {}
        self.digests: dict[str, str] = {}

    def in_order(self, operation: re.Match[str]) -> str:
        """Return the operands of a commutative operation in the order of their definitions."""

        def number(value: str) -> tuple[int, str]:
            name = self.names.get(value.partition("#")[0], "")
            return int(name[2:]) if name else -1, value

        first, second = sorted((operation[2], operation[3]), key=number)
        return f"{operation[1]}{first}, {second}"

    def line(
        self, line: str, definitions: set[int], pattern: re.Pattern[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...], str, str, str]:
        """Return (defined, used, renamed text, text without values, digest) of a line."""
        defined: list[str] = []
        used: list[str] = []
        new: list[str] = []
        bare: list[str] = []
        meant: list[str] = []
        at = 0
        fresh: list[tuple[str, str]] = []
        for value in pattern.finditer(line):
            old = value[0]
            if value.start() not in definitions and old not in self.names and self.sign != "%":
                continue
            before = line[at : value.start()]
            at = value.end()
            new.append(before)
            bare.append(before)
            meant.append(before)
            bare.append(self.sign or "_")
            if value.start() in definitions:
                name = f"{self.sign}v{self.count}"
                self.count += 1
                fresh.append((old, name))
                defined.append(name)
                new.append(name)
                meant.append("=")
            else:
                name = dict(fresh).get(old) or self.names.get(old, old)
                used.append(name)
                new.append(name)
                meant.append(self.digests.get(name, name))
        rest = line[at:]
        parts = [part + rest for part in ("".join(new), "".join(bare), "".join(meant))]
        digest = hashlib.blake2b(
            " ".join(parts[2].split()).encode("utf-8", "replace"), digest_size=9
        ).hexdigest()
        for n, (old, name) in enumerate(fresh):
            self.names[old] = name
            self.digests[name] = f"{digest}.{n}"
        return tuple(defined), tuple(used), parts[0], " ".join(parts[1].split()), digest


# ---- jaxprs -------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"(?<![\w.@'\"=])[a-z]{1,6}(?![\w('\"=])")
_DEFINED_VARIABLE = re.compile(
    r"(?<![\w.])([a-z]{1,6}):(?=(?:[a-z]\w*\[|[a-z]\w*<|Ref|MutableRef|AbstractToken|Token))"
)
_NOTE = re.compile(r"\s+# .*$")
_PRIMITIVE = re.compile(r"= ([a-z]\w*)")
_NOT_VARIABLES = frozenset({"inf", "nan", "lambda", "let", "in"})


def jaxpr_lines(text: str) -> list[Line]:
    """Return the lines of a jaxpr in order, with notes of source lines as sites."""
    values = _Values("")
    lines: list[Line] = []
    for line in bounded(text).splitlines():
        note = _NOTE.search(line)
        plain = line[: note.start()] if note else line.rstrip()
        if not plain.strip():
            continue
        file_note = _FILE_NOTE.search(note[0]) if note else None
        definitions = {
            d.start() for d in _DEFINED_VARIABLE.finditer(plain) if d[1] not in _NOT_VARIABLES
        }
        primitive = _PRIMITIVE.search(plain)
        # The primitive's name is not a variable, though it may have the form of one.
        shielded = plain
        if primitive:
            name = primitive[1]
            shielded = plain[: primitive.start(1)] + name.upper() + plain[primitive.end(1) :]
        defined, used, new, shape, digest = values.line(shielded, definitions, _VARIABLE)
        if primitive:
            upper, name = "= " + primitive[1].upper(), "= " + primitive[1]
            new, shape = new.replace(upper, name, 1), shape.replace(upper, name, 1)
        type_ = re.search(r":(\S+)", plain)
        first = _VARIABLE.match(plain, min(definitions)) if definitions else None
        site = OperationSite(
            first[0] if first else "",
            primitive[1] if primitive else "",
            type_[1] if type_ else "",
            file_note[1] if file_note else "",
            int(file_note[2]) if file_note else 0,
        )
        lines.append(Line(new, shape, digest, defined, used, site, plain.strip()))
    return lines


_FILE_NOTE = re.compile(r"(\S+?):(\d{1,9})\b")


# ---- comparing ----------------------------------------------------------------------------------

_LARGE = 1500


def aligned(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Return index pairs of equal items of two sequences, in order: roughly the most possible."""
    pairs: list[tuple[int, int]] = []
    waiting = [(0, len(a), 0, len(b))]
    while waiting:
        i, j, k, m = waiting.pop()
        while i < j and k < m and a[i] == b[k]:
            pairs.append((i, k))
            i, k = i + 1, k + 1
        while i < j and k < m and a[j - 1] == b[m - 1]:
            j, m = j - 1, m - 1
            pairs.append((j, m))
        if i == j or k == m:
            continue
        if j - i <= _LARGE and m - k <= _LARGE:
            matcher = difflib.SequenceMatcher(None, a[i:j], b[k:m], autojunk=False)
            for block in matcher.get_matching_blocks():
                pairs += [(i + block.a + n, k + block.b + n) for n in range(block.size)]
            continue
        # Too long for a full comparison: items that occur once on both sides are the anchors.
        once_b = _once(b, k, m)
        anchors = [
            (site, once_b[value]) for value, site in _once(a, i, j).items() if value in once_b
        ]
        anchors.sort()
        anchors = [anchors[n] for n in rising([site for _, site in anchors])]
        if not anchors:
            continue
        start = (i, k)
        for x, y in anchors:
            pairs.append((x, y))
            waiting.append((start[0], x, start[1], y))
            start = (x + 1, y + 1)
        waiting.append((start[0], j, start[1], m))
    return sorted(pairs)


def _once(values: Sequence[str], first: int, end: int) -> dict[str, int]:
    seen: dict[str, int] = {}
    for n in range(first, end):
        seen[values[n]] = -1 if values[n] in seen else n
    return {value: n for value, n in seen.items() if n >= 0}


def rising(numbers: Sequence[int]) -> list[int]:
    """Return the indices of a longest increasing subsequence."""
    tails: list[int] = []
    back: list[int] = []
    for n, number in enumerate(numbers):
        low, high = 0, len(tails)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if numbers[tails[middle]] < number else (low, middle)
        back.append(tails[low - 1] if low else -1)
        tails[low : low + 1] = [n]
    run: list[int] = []
    n = tails[-1] if tails else -1
    while n >= 0:
        run.append(n)
        n = back[n]
    return run[::-1]


def line_changes(a: Sequence[Line], b: Sequence[Line]) -> Iterator[Change]:
    """Yield the differences between two programs as lines."""
    pairs: dict[int, int] = {}
    start = (0, 0)
    # Lines match by digest first, and between these matches by shape.
    for x, y in [*aligned([i.digest for i in a], [i.digest for i in b]), (len(a), len(b))]:
        block_a, block_b = a[start[0] : x], b[start[1] : y]
        for n, m in aligned([i.shape for i in block_a], [i.shape for i in block_b]):
            pairs[start[0] + n] = start[1] + m
        if x < len(a):
            pairs[x] = y
        start = (x + 1, y + 1)
    taken = set(pairs.values())
    # Lines in one gap with equal opcodes, or else equal types, have changed.
    changed: dict[int, int] = {}
    free = [m for m in range(len(b)) if m not in taken]
    for key in (lambda line: line.site.opcode, lambda line: line.site.type):
        bounds = sorted({**pairs, **changed}.items())
        at = 0
        for n in range(len(a)):
            if n in pairs or n in changed:
                continue
            while at < len(bounds) and bounds[at][0] < n:
                at += 1
            low = bounds[at - 1][1] if at else -1
            high = bounds[at][1] if at < len(bounds) else len(b)
            identity = key(a[n])
            fitting = next((m for m in free if low < m < high and key(b[m]) == identity), None)
            if identity and fitting is not None:
                changed[n] = fitting
                free.remove(fitting)
    names: dict[str, str] = {}
    for n, m in {**pairs, **changed}.items():
        names.update(zip(a[n].defined, b[m].defined, strict=False))
    known = set(names.values())
    for n in range(len(a)):
        x = a[n]
        if n in pairs:
            y = b[pairs[n]]
            moved = [
                (u, v)
                for u, v in zip(x.used, y.used, strict=False)
                if u in names and names[u] != v and v in known
            ]
            if moved and x.digest != y.digest:
                yield Change(
                    kind="changed",
                    what="operands",
                    before=x.written,
                    after=y.written,
                    a=(x.site,),
                    b=(y.site,),
                )
        elif n in changed:
            y = b[changed[n]]
            yield Change(
                kind="changed",
                what="operation",
                before=x.written,
                after=y.written,
                a=(x.site,),
                b=(y.site,),
            )
        elif x.shape not in ("}", "{", "})"):
            yield Change(
                kind="removed", what="operation", before=x.written, after="", a=(x.site,), b=()
            )
    for m in free:
        y = b[m]
        if y.shape not in ("}", "{", "})"):
            yield Change(
                kind="added", what="operation", before="", after=y.written, a=(), b=(y.site,)
            )
