"""Runs the searches and prints a table: `python -m tests.against_jax.kinds [KIND ...]`."""

import argparse
import importlib
import os
import re
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

# Programs are compiled once and run once on few elements; set before hlofront is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import hlofront
import hlofront.numpy
from hlofront import lax
from tests.against_jax import compare, describe
from tests.against_jax.oracle import Oracle, find_interpreter

KINDS = (
    "integers",
    "indices",
    "orders",
    "derivatives",
    "linear_algebra",
    "domains",
    "complex_parts",
    "options",
    "line_searches",
    "weak_types",
    "varying",
    "settings",
)
AT_ONCE = 10
# What was compiled is kept for so many programs: those of a kind often compile the same.
KEPT = 100
# Seconds for an answer of jax, whose process hung for 1,200 s in questions of 50 programs.
LONGEST = 300.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.against_jax.kinds")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--only", default="", help="a regular expression for names of programs")
    parser.add_argument("--first", type=int, default=0, help="pass over so many programs")
    parser.add_argument("--count", type=int, help="of programs that are run after those")
    parser.add_argument("--every", type=int, default=1, help="run each so-many-th program alone")
    options = parser.parse_args()
    interpreter = find_interpreter()
    if interpreter is None:
        parser.error("set HLOFRONT_ORACLE_PYTHON to a Python that has jax")
    rows, unexplained = [], 0
    end = None if options.count is None else options.first + options.count
    chosen = slice(options.first, end, options.every)
    for kind in options.kinds or KINDS:
        started = time.monotonic()
        reference = Reference(interpreter)
        try:
            tried, known, unknown = search(kind, re.compile(options.only), chosen, reference)
        finally:
            reference.close()
        unexplained += unknown
        seconds = time.monotonic() - started
        rows.append(f"| {kind} | {tried} | {known + unknown} | {unknown} | {seconds:.0f} s |")
    print("| kind | programs tried | differ from jax | without a known reason | time |")
    print("|---|---|---|---|---|", *rows, sep="\n")
    return 1 if unexplained else 0


class Reference:
    """The process of jax, started again after a question that it does not answer in time."""

    def __init__(self, interpreter: str):
        self.interpreter = interpreter
        self.oracle: Oracle | None = None

    def ask(self, corpus: str, names: Sequence[str]) -> dict[str, Any]:
        """Return what came out by name, without the programs that do not end under jax."""
        self.oracle = self.oracle or Oracle(self.interpreter)
        try:
            return self.oracle.ask("corpus", corpus, dict.fromkeys(names), timeout=LONGEST)
        except RuntimeError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
        self.close()
        if len(names) == 1:
            print(f"==== {corpus} {names[0]}: no answer of jax in {LONGEST:.0f} s\n", flush=True)
            return {}
        middle = len(names) // 2
        return self.ask(corpus, names[:middle]) | self.ask(corpus, names[middle:])

    def close(self) -> None:
        if self.oracle is not None:
            self.oracle.process.kill()
            self.oracle.close()
            self.oracle = None


def search(
    kind: str, only: re.Pattern[str], chosen: slice, reference: Reference
) -> tuple[int, int, int]:
    """Print how programs of a kind differ from jax without a reason that is known.

    Args:
      kind: the name of a file here.
      only: what the name of a program contains.
      chosen: the programs among these that are run.
      reference: the process of jax.

    Returns:
      How many programs were tried, how many differ for a known reason, how many for none.
    """
    corpus = f"kinds/{kind}"
    reasons = importlib.import_module(f"tests.against_jax.kinds.{kind}").KNOWN
    programs = describe.load(corpus, hlofront, hlofront.numpy, lax).programs
    names = [name for name in programs if only.search(name)][chosen]
    known = unknown = 0
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        theirs = reference.ask(corpus, some)
        for name in theirs:
            program = programs[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours = describe.describe(program, hlofront)
            try:
                compare.check(ours, theirs[name], program.tolerance, program.instead)
            except AssertionError as error:
                if reason_of(name, reasons) is not None:
                    known += 1
                    continue
                unknown += 1
                print(f"==== {kind} {name}\n{error}\n", flush=True)
        if start % KEPT == 0:
            hlofront.clear_caches()
        found = f"{known} differ as is known, {unknown} else"
        print(f"{kind}: {start + len(some)} of {len(names)} tried, {found}", flush=True)
    return len(names), known, unknown


def reason_of(name: str, reasons: Mapping[str, str]) -> str | None:
    """Return why a program is known to differ; None where it is not."""
    return next((reason for part, reason in reasons.items() if re.search(part, name)), None)


if __name__ == "__main__":
    sys.exit(main())
