"""Runs a generator over seeds, and enters the run into the ledger: see the package."""

import argparse
import contextlib
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import NoReturn

# Programs are compiled once and run once on few elements: with the flags that this import sets,
# which jax's process inherits, XLA compiles in a fraction of the time.
from tests.support import quick_code

# Rounds what is between two operations, as one after the other does.
ROUNDING = "--xla_allow_excess_precision=false"
SILENT_SECONDS = 300


def set_environment(generator: str) -> None:
    """Set what hlofront reads when it is imported, and what jax's process inherits."""
    if generator == "itself":
        os.environ["JAX_NUM_CPU_DEVICES"] = "8"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ROUNDING}".strip()
    os.environ["HLOFRONT_CACHE"] = "off"
    os.environ["HLOFRONT_WARN_RECOMPILES"] = "0"
    os.environ["PYTHONWARNINGS"] = "ignore"


def seeds_of(text: str) -> range:
    first, _, stop = text.partition(":")
    return range(int(first), int(stop or int(first) + 1))


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m tests.fuzz")
    generators = top.add_subparsers(dest="generator", required=True)
    for name in ("itself", "jax", "files"):
        each = generators.add_parser(name)
        each.add_argument("--seeds", type=seeds_of, default=range(100), metavar="FIRST:STOP")
        each.add_argument("--minutes", type=float, default=1e9, help="stop then")
        each.add_argument("--no-ledger", action="store_true", help="add no row to the ledger")
        if name == "jax":
            if "jax" in sys.argv:  # The environment is set before hlofront is imported.
                set_environment("jax")
                from tests.against_jax.fuzz import hunting

                hunting.add_options(each)
            continue
        each.add_argument("--here", action="store_true", help="in this process")
        each.add_argument("--show", action="store_true", help="in this process, and print finds")
        each.add_argument("--only", default="", help="one way, or one kind of files")
    return top


def tried_here(options: argparse.Namespace) -> Iterator[tuple[int, str]]:
    from tests.fuzz import files, programs

    # The collector of garbage walks over what stays each time, unless it is told not to.
    gc.freeze()
    for seed in options.seeds:
        if options.generator == "files":
            yield seed, files.find(seed, options.only)
            if options.show:
                print(files.mutant(seed, options.only))
        else:
            yield seed, programs.find(seed, options.only, options.show)


def in_processes(options: argparse.Namespace) -> Iterator[tuple[int, str]]:
    from tests.support import mortal_processes

    def command(start: int, stop: int) -> list[str]:
        return [
            sys.executable, "-m", "tests.fuzz", options.generator, "--here", "--seeds",
            f"{start}:{stop}", f"--only={options.only}",
        ]  # fmt: skip

    for seed, said in mortal_processes.outcomes(command, options.seeds, SILENT_SECONDS):
        yield seed, json.loads(said) if said.startswith('"') else said


def main() -> None:
    options = parser().parse_args()
    set_environment(options.generator)
    with contextlib.ExitStack() as stack:
        if options.generator == "jax":
            from tests.against_jax.fuzz import hunting

            stack.enter_context(quick_code.compiling_quickly())
            outcomes = hunting.hunt(options, options.seeds)
        elif options.here or options.show:
            stack.enter_context(quick_code.compiling_quickly())
            for seed, said in tried_here(options):
                print(seed, said if options.show else json.dumps(said), sep="\t", flush=True)
            return
        else:
            outcomes = in_processes(options)
        record(options, outcomes)


def record(options: argparse.Namespace, outcomes: Iterator[tuple[int, str]]) -> NoReturn:
    """Print the finds, add the run to the ledger, and exit with 1 if there were any."""
    started, programs, finds, last = time.monotonic(), 0, 0, options.seeds.start
    try:
        for last, said in outcomes:
            programs, finds = programs + 1, finds + bool(said)
            if said and options.generator != "jax":
                print(f"==== {last}: {said[:600]}", flush=True)
            if time.monotonic() - started > 60 * options.minutes:
                break
    except KeyboardInterrupt:
        print("stopped")
    from tests.fuzz import ledger

    if not options.no_ledger and programs:
        print(*ledger.add(options.generator, options.seeds.start, last, programs, finds))
    sys.exit(finds > 0)


if __name__ == "__main__":
    main()
