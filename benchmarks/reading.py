"""How long it takes to read, compare and show a large module of HLO: seconds of CPU.

    python benchmarks/reading.py [OPERATIONS]

The module is a training step's HLO of tests/inspect/texts, repeated under other names up to that
many operations (50,000 by default); the other side has one operation changed, and then a third of
its additions.
"""

import pathlib
import re
import sys
import time

from hlofront.inspect import canonical, diff, page, parse

TEXT = pathlib.Path(__file__).parents[1] / "tests" / "inspect" / "texts" / "gpt_block.hlo"


def grown(text, operations):
    """The module with its entry's operations repeated, each time with fusions of their own."""
    head, entry = text[: text.index("\nENTRY")], text[text.index("\nENTRY") :]
    start = head.index("\n\n%") if "\n\n%" in head else head.rindex("\n\n")
    tables, computations = head[:start], head[start:]
    signature, _, body = entry.partition("{\n")
    body = body[: body.rindex("}")]
    given = set(re.findall(r"%([\w.-]+) = \S+ parameter\(", body))
    again = [line for line in body.splitlines() if " parameter(" not in line]
    again = "\n".join(again).replace("  ROOT ", "  ") + "\n"
    parts, bodies = [computations], []
    per_copy = computations.count(" = ") + again.count(" = ")
    for number in range(1, -(-(operations - text.count(" = ")) // per_copy) + 1):
        parts.append(re.sub(r"%([\w.-]+)", rf"%\1.c{number}", computations))
        bodies.append(
            re.sub(
                r"%([\w.-]+)",
                lambda name: name[0] if name[1] in given else f"{name[0]}.c{number}",  # noqa: B023
                again,
            )
        )
    return f"{tables}{''.join(parts)}{signature}{{\n{''.join(bodies)}{body}}}\n"


def seconds(function, *arguments):
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    text = grown(TEXT.read_text(), wanted)
    changed = text.replace(" add(", " subtract(", 1)
    pieces = text.split(" add(")
    third = "".join(
        piece + (" subtract(" if n % 3 == 0 else " add(") for n, piece in enumerate(pieces[:-1])
    )
    third += pieces[-1]
    spent, module = seconds(parse, text)
    count = sum(len(computation.instructions) for computation in module.computations)
    print(f"{count:,} operations, {len(text):,} characters")
    print(f"parse      {spent:6.2f} s")
    print(f"canonical  {seconds(canonical, text)[0]:6.2f} s")
    print(f"diff, same {seconds(diff, text, text)[0]:6.2f} s")
    for other in (changed, third):
        spent, found = seconds(diff, text, other)
        places = sum(len(change.a) for change in found.changes)
        print(f"diff       {spent:6.2f} s, {len(found.changes)} change(s) in {places} place(s)")
        print(f"diff page  {seconds(found.html)[0]:6.2f} s")
    print(f"page       {seconds(page, text)[0]:6.2f} s")


if __name__ == "__main__":
    main()
