"""The command `python -m hlofront replacements`: operations lowered to other code than XLA's."""

import argparse
import json
from typing import TextIO

from hlofront.base.named_tuple import NamedTuple
from hlofront.cli.options import Commands

_HELP = """\
Prints the table of replacements: the operations that hlofront lowers to code of its own for one
platform, where that is faster or more exact than XLA's. In a program each is a private function,
such as @sin_f32. HLOFRONT_CPU_FORMULAS=0 turns those for CPUs off.

columns: the primitive, the dtype or form, the platform, the least size from which it is used, how
many times as fast it is at a size of 2**20, how many milliseconds longer it takes to compile (as
`python benchmarks/calibrate.py` measured), and what it is.

example:
  python -m hlofront replacements
  python -m hlofront replacements sin sort --json
"""


class TableRow(NamedTuple):
    """A line of the table; numbers are None where they do not apply or are not measured."""

    primitive: str
    form: str
    platform: str
    min_size: int | None
    speedup: float | None
    compile_ms: int | None
    description: str


def rows() -> list[TableRow]:
    """Return the table, sorted by primitive."""
    from hlofront.lowering import rules
    from hlofront.lowering.min_sizes import GAINS, MIN_SIZES
    from hlofront.lowering.replacements import REPLACEMENTS

    rules.import_all()
    found: list[TableRow] = []
    for row in REPLACEMENTS:
        name = row.primitive.name
        sizes = MIN_SIZES[row.sizes] if row.platform == "cpu" else {}
        for form in [row.form] if row.form else list(sizes) or [""]:
            kind = form if form in sizes or not sizes else "integers"
            speedup, compile_ms = GAINS.get(row.sizes, {}).get(kind, (None, None))
            found.append(
                TableRow(
                    name,
                    form,
                    row.platform,
                    sizes.get(kind),
                    speedup,
                    compile_ms,
                    row.description,
                )
            )
    return sorted(found, key=lambda row: (row.primitive, row.platform, row.form))


def table(lines: list[TableRow]) -> str:
    """Return rows as aligned text."""
    header = ("primitive", "form", "platform", "from size", "faster", "compile", "replacement")
    cells = [header]
    for row in lines:
        size = "" if row.min_size is None else f"{row.min_size:,}"
        speedup = "" if row.speedup is None else f"{row.speedup:.1f}x"
        compile_ms = "" if row.compile_ms is None else f"{row.compile_ms:+} ms"
        texts = row.primitive, row.form, row.platform, size, speedup, compile_ms, row.description
        cells.append(texts)
    widths = [max(len(line[i]) for line in cells) for i in range(len(header) - 1)]
    right = {3, 4, 5}
    return "\n".join(
        "  ".join(
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths))
        )
        + f"  {line[-1]}"
        for line in cells
    )


def add_parser(commands: Commands) -> None:
    """Add the command `replacements` to the command line's parser."""
    parser = commands.add_parser(
        "replacements",
        help="what is lowered to other code than XLA's operation",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("primitives", nargs="*", help="the names of primitives; by default all")
    parser.add_argument("--json", action="store_true", help="print a list of JSON objects")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    names = set(options.primitives)
    lines = [row for row in rows() if not names or row.primitive in names]
    if options.json:
        print(json.dumps([row._asdict() for row in lines], indent=1), file=out)
    elif lines:
        print(table(lines), file=out)
    else:
        print(f"no replacement of {', '.join(sorted(names))}", file=out)
    return 0 if lines else 1
