"""Hunts for programs that hlofront and jax disagree on: `python -m tests.against_jax.fuzz`."""

import argparse
import concurrent.futures
import json
import os
import time
from collections.abc import Iterator
from typing import Any

# Programs are compiled once and run once on few elements: with these flags, which jax's process
# inherits, XLA compiles in a fifth of the time. They must be set before hlofront is imported.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
)

import hlofront
from tests.against_jax.fuzz import generating, running, shrinking
from tests.against_jax.oracle import Oracle, find_interpreter

AT_ONCE = 25


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.against_jax.fuzz")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--looks", default="", help="written, jit, value: how all are looked at")
    parser.add_argument("--show", action="store_true", help="print each program's calls")
    parser.add_argument("--whole", action="store_true", help="do not shrink")
    options = parser.parse_args()
    interpreter = find_interpreter()
    if interpreter is None:
        parser.error("set HLOFRONT_ORACLE_PYTHON to a Python that has jax")
    oracle = Oracle(interpreter)
    differing = raised = 0
    started = time.monotonic()
    for programs, theirs in batches_with_answers(oracle, options):
        ours = {name: running.described(one, hlofront) for name, one in programs.items()}
        for name, modes in theirs.result().items():
            raised += any("error" in one for one in modes.values())
            if options.show:
                calls = running.calls_of(programs[name], hlofront)
                print(f"---- {name}\n{calls}\n", flush=True)
            if shrinking.difference(ours[name], modes):
                differing += 1
                tell(oracle, programs[name], whole=options.whole)
        spent = time.monotonic() - started
        print(f"up to {name}: {differing} differ, {raised} raise, {spent:.0f} s", flush=True)
    oracle.close()


def batches_with_answers(
    oracle: Oracle, options: argparse.Namespace
) -> Iterator[tuple[dict[str, Any], concurrent.futures.Future]]:
    """Yield batches of programs by name, each with jax's answers to come.

    The next batch is asked for before the one in hand is yielded: jax's process never waits.
    """
    seeds = range(options.seed, options.seed + options.count)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        previous = None
        for first in range(0, len(seeds), AT_ONCE):
            batch = seeds[first : first + AT_ONCE]
            programs = {str(seed): generating.draw(seed, options.looks) for seed in batch}
            answers = thread.submit(oracle.ask, "fuzz", "", programs)
            if previous:
                yield previous
            previous = programs, answers
        if previous:
            yield previous


def tell(oracle, program, whole):
    """Print the smallest program that differs in the same manner."""

    def differs(one):
        return shrinking.difference(
            running.described(one, hlofront), oracle.ask("fuzz", "", {"one": one})["one"]
        )

    if not differs(program):
        print(f"==== {program['seed']}: differed, and then no more\n")
        return
    small = program if whole else shrinking.shrunk(program, differs)
    print(f"==== {program['seed']}: {small['modes']}, x64={small['x64']}")
    print([step[0] for step in small["layers"]], [[s[0], *s[3:]] for s in small["steps"]])
    print(running.calls_of(small, hlofront))
    print(json.dumps(small))
    print("--", differs(small)[:9000], "\n", flush=True)


if __name__ == "__main__":
    main()
