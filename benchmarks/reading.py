"""How long it takes to read, canonicalise and compare a large module of HLO: seconds.

    python benchmarks/reading.py [OPERATIONS]

The module is a training step's HLO of tests/inspect/texts, its computations repeated under other
names up to that many operations (50,000 by default); the other side has one operation changed.
"""

import pathlib
import re
import sys
import time

from hlofront.inspect import canonical, diff, parse

TEXT = pathlib.Path(__file__).parents[1] / "tests" / "inspect" / "texts" / "gpt_block.hlo"


def grown(text, operations):
    """The module with copies of its fused computations, each called once from the entry."""
    head, entry = text[: text.index("\nENTRY")], text[text.index("\nENTRY") :]
    start = head.index("\n\n%") if "\n\n%" in head else head.rindex("\n\n")
    tables, computations = head[:start], head[start:]
    copies = [computations]
    while sum(part.count(" = ") for part in copies) < operations:
        number = len(copies)
        copies.append(re.sub(r"%([\w.-]+)", rf"%\1.c{number}", computations))
    return tables + "".join(copies) + entry


def seconds(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    text = grown(TEXT.read_text(), wanted)
    changed = text.replace(" add(", " subtract(", 1)
    spent, module = seconds(parse, text)
    count = sum(len(computation.instructions) for computation in module.computations)
    print(f"{count:,} operations, {len(text):,} characters")
    print(f"parse      {spent:6.2f} s")
    print(f"canonical  {seconds(canonical, text)[0]:6.2f} s")
    print(f"diff, same {seconds(diff, text, text)[0]:6.2f} s")
    spent, found = seconds(diff, text, changed)
    print(f"diff       {spent:6.2f} s, {len(found.changes)} change(s)")


if __name__ == "__main__":
    main()
