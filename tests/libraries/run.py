"""Runs programs of libraries that are written for jax under jax and under hlofront, and compares.

    python tests/libraries/run.py [NAME ...] [--python PYTHON] [--verbose]

Each program in `programs/` is named after its library; NAME is the beginning of a program's name.
PYTHON, or HLOFRONT_LIBRARIES_PYTHON, is a Python with jax and the libraries of requirements.txt.
hlofront runs them unmodified, by `python -m hlofront as-jax`, in the same environment. The outputs
must agree line by line: text exactly, numbers to the tolerances of the program's line
`# tolerance: RELATIVE ABSOLUTE`, by default 1e-4 and 1e-5. The exit status is 1 if one differs.
"""

import argparse
import difflib
import math
import os
import pathlib
import re
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).parent / "programs"
ROOT = pathlib.Path(__file__).parents[2]
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)(?![\w])")
TOLERANCE = re.compile(r"^# tolerance: (\S+) (\S+)$", re.MULTILINE)


def output_of(python: str, program: pathlib.Path, *options: str) -> tuple[list[str], float]:
    """Return what a program prints, with its last error lines if it fails, and its seconds."""
    start = time.perf_counter()
    result = subprocess.run(
        [python, "-W", "ignore", *options, str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT) if options else "", "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    seconds = time.perf_counter() - start
    failure = ["failed:", *result.stderr.splitlines()[-12:]] if result.returncode else []
    return [*result.stdout.splitlines(), *failure], seconds


def numbers_and_texts(line: str) -> tuple[list[float], list[str]]:
    """Return the numbers of a line, and the text between them without changes of space."""
    texts = [" ".join(text.split()) for text in NUMBER.split(line)]
    return [float(number) for number in NUMBER.findall(line)], texts


def agree(mine: str, theirs: str, relative: float, absolute: float) -> bool:
    """Return whether two lines have one text, and numbers that are close."""
    (our_numbers, our_texts), (their_numbers, their_texts) = map(numbers_and_texts, (mine, theirs))
    return our_texts == their_texts and all(
        math.isclose(a, b, rel_tol=relative, abs_tol=absolute) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(our_numbers, their_numbers)
    )


def joined(lines: list[str]) -> list[str]:
    """Return lines with the rows of arrays, which begin with a space, joined to their first."""
    whole: list[str] = []
    for line in lines:
        if whole and line.startswith(" "):
            whole[-1] += line
        else:
            whole.append(line)
    return whole


def compare(python: str, program: pathlib.Path, verbose: bool) -> bool:
    """Run a program on both sides; print a row, and the lines that differ; return if none does."""
    theirs, their_seconds = output_of(python, program)
    ours, our_seconds = output_of(python, program, "-m", "hlofront", "as-jax")
    match = TOLERANCE.search(program.read_text(encoding="utf-8"))
    relative, absolute = (float(match[1]), float(match[2])) if match else (1e-4, 1e-5)
    pairs = list(zip(joined(ours), joined(theirs)))
    different = [pair for pair in pairs if not agree(*pair, relative, absolute)]
    equal = not different and len(joined(ours)) == len(joined(theirs)) and theirs[-1:] != []
    failed = any(line == "failed:" for line in theirs)
    print(
        f"{program.stem:28} {'equal' if equal and not failed else 'DIFFERS':8} "
        f"{len(pairs) - len(different)}/{len(joined(theirs))} lines "
        f"  jax {their_seconds:5.1f} s   hlofront {our_seconds:5.1f} s",
        flush=True,
    )
    if not equal or failed or verbose:
        print("\n".join(difflib.unified_diff(theirs, ours, "jax", "hlofront", "", "", 0, "")))
    return equal and not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=[""], metavar="NAME")
    parser.add_argument("--python", default=os.environ.get("HLOFRONT_LIBRARIES_PYTHON"))
    parser.add_argument("--verbose", action="store_true", help="print all lines that differ at all")
    options = parser.parse_args()
    if options.python is None:
        parser.error("give --python, or HLOFRONT_LIBRARIES_PYTHON: a Python with the libraries")
    programs = sorted(p for p in FOLDER.glob("*.py") if p.name.startswith(tuple(options.names)))
    if not programs:
        parser.error(f"no program in {FOLDER} is called {' or '.join(options.names)}")
    equal = [compare(options.python, program, options.verbose) for program in programs]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
