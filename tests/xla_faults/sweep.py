"""A sweep of extreme parameters: no program ends the process, hangs, or takes all memory.

    python -m tests.xla_faults.sweep                      # for CPUs, and run where that is small
    python -m tests.xla_faults.sweep --target tpu:v5e:1x1
    python -m tests.xla_faults.sweep --only reduce_window --pairs 500
    HLOFRONT_XLA_GUARDS=0 python -m tests.xla_faults.sweep

Each program of tests/xla_faults/extremes is one of hlofront's public functions with one or two
parameters that are as large, small, empty or odd as types allow. It is lowered and compiled, and
run if it needs little memory, in a process that may die and has limits on time and memory. It must
compile or raise an error. `--write` records the counts and what failed in SWEEP.md.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from types import ModuleType
from typing import NamedTuple

RUNS, COMPILES, REFUSED, UNCLEAR = "runs", "compiles", "is refused", "has an unclear error"
BY_XLA, INTERNAL = "is refused by XLA", "is an internal error of XLA"
DEAD, ENDLESS, LARGE = "ends the process", "does not end", "takes too much memory"
OTHERS = (RUNS, COMPILES, REFUSED, BY_XLA, INTERNAL)
FAILURES = (DEAD, ENDLESS, LARGE, UNCLEAR)
SECONDS = 60
# On a busy machine.
SECONDS_TO_START = 300
MEMORY_BYTES = 8 << 30
LARGEST_RUN_BYTES = 1 << 28
RECORD = pathlib.Path(__file__).with_name("SWEEP.md")
# What a user can act on: what Python, JAX and hlofront raise for wrong parameters, and XLA's
# refusals. Others are bugs of ours, or failed checks of XLA's.
CLEAR = (
    ValueError,
    TypeError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    IndexError,
    ZeroDivisionError,
)
FAILED_CHECKS = re.compile(r"INTERNAL|RET_CHECK|Check failed")


class Verdict(NamedTuple):
    """What became of a program."""

    name: str
    kind: str
    detail: str = ""


def _limit_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def work(names: Sequence[str], target: str) -> None:
    """Try these programs in this process: print a line before each, and its verdict after it."""
    import hlofront as jax
    from tests.xla_faults.extremes import catalog

    warnings.simplefilter("ignore")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("hlofront_cache", False)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def told(message: dict[str, str]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    for name in names:
        told({"start": name})
        kind, detail = _tried(name, catalog, target, lambda: told({"stage": "while it runs: "}))
        told({"kind": kind, "detail": detail})
        jax.clear_caches()


def _tried(
    name: str, catalog: ModuleType, target: str, runs: Callable[[], None]
) -> tuple[str, str]:
    """Return what becomes of a program, and the text of its error; call `runs` before it runs."""
    import contextlib

    import numpy as np

    import hlofront as jax

    def chosen():
        return contextlib.nullcontext() if target == "cpu" else jax.target(target)

    try:
        with chosen():
            function, arguments = catalog.program(name)
            types = [jax.ShapeDtypeStruct(np.shape(x), x.dtype) for x in arguments]
            compiled = jax.jit(function).lower(*types).compile()
        memory = compiled.memory_analysis()
        parts = ("argument", "output", "temp", "generated_code")
        total = sum(getattr(memory, f"{part}_size_in_bytes") for part in parts)
        if target != "cpu" or total > LARGEST_RUN_BYTES or not catalog.is_run(name):
            return COMPILES, ""
        values = [
            np.ones(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x
            for x in arguments
        ]
        runs()
        jax.block_until_ready(compiled(*values))
    except Exception as error:  # Any error is told.
        text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        if "VerificationError" in text or not isinstance(
            error, (jax.errors.JaxRuntimeError, *CLEAR)
        ):
            return UNCLEAR, text
        if isinstance(error, jax.errors.JaxRuntimeError):
            return INTERNAL if FAILED_CHECKS.search(text) else BY_XLA, text
        return REFUSED, text
    return RUNS, ""


def verdicts(names: Sequence[str], target: str) -> Iterator[Verdict]:
    """Yield what becomes of each program, in order; processes that die are replaced."""
    waiting = list(names)
    command = [sys.executable, "-m", "tests.xla_faults.sweep", "--work", "--target", target]
    while waiting:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin and process.stdout and process.stderr
        os.set_blocking(process.stderr.fileno(), False)
        process.stdin.write(json.dumps(waiting))
        process.stdin.close()
        words, started, last, stage, is_late = "", "", "", "", False
        deadline = time.monotonic() + SECONDS_TO_START
        while True:
            patience = max(deadline - time.monotonic(), 0)
            ready, _, _ = select.select([process.stdout, process.stderr], [], [], patience)
            if process.stderr in ready:
                words = (words + (process.stderr.read() or ""))[-20_000:]
            if process.stdout in ready:
                line = process.stdout.readline()
                if not line:
                    break
                message = json.loads(line)
                deadline = time.monotonic() + SECONDS
                if "start" in message:
                    started, words, stage = message["start"], "", ""
                    continue
                if "stage" in message:
                    stage = message["stage"]
                    continue
                waiting.remove(started)
                yield Verdict(started, message["kind"], message["detail"])
                last, started = started, ""
            elif not ready:
                process.kill()
                is_late = True
                break
        code = process.wait()
        words += process.stderr.read() or ""
        process.stdout.close()
        process.stderr.close()
        if not waiting:
            return
        if not started and not last:
            raise RuntimeError(f"the process does not start: {words}")
        if started:
            waiting.remove(started)
        yield Verdict(started or f"after {last}", *_end_of(is_late, code, words, stage))


def _end_of(is_late: bool, code: int, words: str, stage: str) -> tuple[str, str]:
    """Return how a program ended its process, and what that said: its last words, by stage."""
    if is_late:
        return ENDLESS, stage
    if re.search("bad_alloc|out of memory|Cannot allocate", words, re.IGNORECASE):
        return LARGE, ""
    failed = re.search(r"^F\d+ \S+ +\d+ (.*)$", words, re.MULTILINE)
    return DEAD, f"{stage}{code}: {failed.group(1) if failed else words[-300:]}"[:400]


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep, and return 1 if a program fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="cpu", help="what programs are compiled for")
    parser.add_argument("--only", default="", help="a regular expression of programs' names")
    parser.add_argument("--pairs", type=int, default=0, help="programs of two, for each function")
    parser.add_argument("--verbose", action="store_true", help="print all verdicts")
    parser.add_argument("--write", action="store_true", help="add a row to SWEEP.md")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        _limit_memory()
        names = json.loads(sys.stdin.read())
        work(names, options.target)
        return 0
    from tests.xla_faults.extremes import catalog

    names = [name for name in catalog.names(options.pairs) if re.search(options.only, name)]
    started = time.perf_counter()
    counts: collections.Counter[str] = collections.Counter()
    for verdict in verdicts(names, options.target):
        counts[verdict.kind] += 1
        if options.verbose or verdict.kind in FAILURES:
            print(*verdict, sep=" | ", flush=True)
    seconds = time.perf_counter() - started
    told = ", ".join(f"{counts[kind]} {kind}" for kind in (*OTHERS, *FAILURES) if counts[kind])
    print(f"{len(names)} programs for {options.target}, {seconds:.0f} s: {told}")
    if options.write:
        escaped = options.only.replace("|", "\\|")
        chosen = f"`{escaped}`" if escaped else "all"
        with RECORD.open("a") as record:
            record.write(
                f"| {time.strftime('%Y-%m-%d')} | {metadata.version('jaxlib')} | {options.target} "
                f"| {chosen}, {options.pairs} pairs | {len(names)} | {told} |\n"
            )
    return 1 if any(counts[kind] for kind in FAILURES) else 0


if __name__ == "__main__":
    sys.exit(main())
