"""Runs the searches and prints a table: `python -m tests.against_jax.kinds [KIND ...]`."""

import argparse
import importlib
import os
import re
import sys
import time
import warnings
from collections.abc import Mapping

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
)
AT_ONCE = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.against_jax.kinds")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--only", default="", help="a regular expression for names of programs")
    parser.add_argument("--every", type=int, default=1, help="run each so-many-th program alone")
    options = parser.parse_args()
    interpreter = find_interpreter()
    if interpreter is None:
        parser.error("set HLOFRONT_ORACLE_PYTHON to a Python that has jax")
    rows, unexplained = [], 0
    for kind in options.kinds or KINDS:
        started = time.monotonic()
        oracle = Oracle(interpreter)
        try:
            tried, known, unknown = search(kind, re.compile(options.only), options.every, oracle)
        finally:
            oracle.close()
        unexplained += unknown
        seconds = time.monotonic() - started
        rows.append(f"| {kind} | {tried} | {known + unknown} | {unknown} | {seconds:.0f} s |")
    print("| kind | programs tried | differ from jax | without a known reason | time |")
    print("|---|---|---|---|---|", *rows, sep="\n")
    return 1 if unexplained else 0


def search(kind: str, only: re.Pattern[str], every: int, oracle: Oracle) -> tuple[int, int, int]:
    """Print how programs of a kind differ from jax without a reason that is known.

    Returns:
      How many programs were tried, how many differ for a known reason, how many for none.
    """
    corpus = f"kinds/{kind}"
    reasons = importlib.import_module(f"tests.against_jax.kinds.{kind}").KNOWN
    programs = describe.load(corpus, hlofront, hlofront.numpy, lax).programs
    names = [name for name in programs if only.search(name)][::every]
    known = unknown = 0
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        theirs = oracle.ask("corpus", corpus, dict.fromkeys(some))
        for name in some:
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
        hlofront.clear_caches()
    return len(names), known, unknown


def reason_of(name: str, reasons: Mapping[str, str]) -> str | None:
    """Return why a program is known to differ; None where it is not."""
    return next((reason for part, reason in reasons.items() if re.search(part, name)), None)


if __name__ == "__main__":
    sys.exit(main())
