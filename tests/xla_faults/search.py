"""A search for faults of XLA on CPUs: random programs against NumPy's exact integers.

    python -m tests.xla_faults.search --first 0 --count 30000
    HLOFRONT_XLA_GUARDS=0 python -m tests.xla_faults.search --count 400
    python -m tests.xla_faults.search --devices 2

Many programs are compiled as one, in a process that may die. Most modules are compiled quickly, by
XLA's older emitters and without optimizations by LLVM; the programs of one that fails are compiled
one by one, as users' programs are. It prints each that fails, and the counts. With several devices
inputs are split over them, each along an axis that they divide.
"""

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.support.xla_options import PRESENT_EMITTERS, has_option

WRONG, DEAD, ENDLESS, ERROR = "wrong", "ends the process", "does not end", "is an error"
# Under the options by which most modules are compiled.
AMONG_OTHERS = "fails among others"
FAILURES = (WRONG, DEAD, ENDLESS, ERROR, AMONG_OTHERS)
PATIENCE_SECONDS = 600
QUICKLY = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_parallel_codegen_split_count": 1,
}
OLDER_EMITTERS = {PRESENT_EMITTERS: False}


class Settings(NamedTuple):
    """How programs are run.

    Attributes:
      together: how many of them are a module.
      slow_every: one module of so many is compiled as users' programs are.
      devices: over how many devices inputs are split.
    """

    together: int
    slow_every: int
    devices: int


def work(first: int, count: int, settings: Settings) -> None:
    """Run so many programs in this process; print a line before each module, and one after it."""
    import numpy as np

    import hlofront as jax
    from hlofront.sharding import AxisType, NamedSharding, PartitionSpec
    from tests.xla_faults.programs import arguments_of, exact, random_program, traced

    together, slow_every, devices = settings
    jax.config.update("jax_enable_x64", True)
    mesh = jax.make_mesh((devices,), ("x",), axis_types=(AxisType.Auto,))

    def split(x: np.ndarray, number: int):
        axes = [axis for axis, size in enumerate(x.shape) if size and size % devices == 0]
        if devices == 1 or not axes:
            return x
        spec = PartitionSpec(*[None] * axes[number % len(axes)], "x")
        return jax.device_put(x, NamedSharding(mesh, spec))

    has_older = has_option(jax.devices()[0].client, PRESENT_EMITTERS, False)
    fast = QUICKLY | OLDER_EMITTERS if has_older else QUICKLY
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for start in range(first, first + count, together):
        quickly = {} if (start // together) % slow_every == 0 else fast
        print(json.dumps({"start": start}), file=answers, flush=True)
        programs = [random_program(n) for n in range(start, min(start + together, first + count))]
        integers = [arguments_of(each) for each in programs]
        arguments = [
            [split(x.astype(jax.numpy.dtype(each.dtype)), each.number) for x in of_one]
            for each, of_one in zip(programs, integers, strict=True)
        ]

        def run(arguments, programs=programs):
            pairs = zip(programs, arguments, strict=True)
            return [traced(program, of_one) for program, of_one in pairs]

        wrong = []
        error = ""
        try:
            results = jax.device_get(jax.jit(run, compiler_options=quickly)(arguments))
        except Exception as raised:  # Any error is told.
            error = f"{type(raised).__name__}: {raised}"[:400]
        else:
            for program, of_one, got in zip(programs, integers, results, strict=True):
                truth = exact(program, of_one)
                if not all(
                    a.shape == b.shape and (np.asarray(a, np.float64) == b).all()
                    for a, b in zip(got, truth, strict=True)
                ):
                    wrong.append(program.number)
        print(json.dumps({"end": start, "wrong": wrong, "error": error}), file=answers, flush=True)
        jax.clear_caches()


def verdicts(first: int, count: int, settings: Settings) -> Iterator[tuple[int, str]]:
    """Yield the number of each program that fails, and how; the arguments are those of `work`."""
    stop = first + count
    together = settings.together
    by_itself = settings._replace(together=1, slow_every=1)
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": str(settings.devices)}
    while first < stop:
        command = [sys.executable, "-m", "tests.xla_faults.search", "--work", f"--first={first}"]
        command += [f"--count={stop - first}", f"--together={together}"]
        command += [f"--slow-every={settings.slow_every}", f"--devices={settings.devices}"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        assert process.stdout is not None
        started, how = first, DEAD
        while True:
            if not select.select([process.stdout], [], [], PATIENCE_SECONDS)[0]:
                process.kill()
                how = ENDLESS
            line = process.stdout.readline()
            if not line:
                break
            message = json.loads(line)
            if "start" in message:
                started = message["start"]
                continue
            first = min(started + together, stop)
            if not message["wrong"] and not message["error"]:
                continue
            if together == 1:
                yield started, f"{ERROR}: {message['error']}" if message["error"] else WRONG
                continue
            alone = list(verdicts(started, first - started, by_itself))
            yield from alone
            missed = set(message["wrong"]) - {number for number, _ in alone}
            yield from ((number, f"{AMONG_OTHERS} from {started}") for number in sorted(missed))
        process.stdout.close()
        process.wait()
        if first < stop:  # The process has died in the module that started last.
            first = min(started + together, stop)
            if together == 1:
                yield started, f"{how} ({process.returncode})"
            else:
                alone = list(verdicts(started, first - started, by_itself))
                yield from alone or [(started, f"{AMONG_OTHERS}, {how}")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, and return 1 if a program fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--together", type=int, default=40, help="programs that are one module")
    parser.add_argument(
        "--slow-every", type=int, default=10, help="one module of so many is compiled as users' are"
    )
    parser.add_argument("--devices", type=int, default=1, help="devices that inputs are split over")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    settings = Settings(options.together, options.slow_every, options.devices)
    if options.work:
        work(options.first, options.count, settings)
        return 0
    from tests.xla_faults.programs import random_program

    counts: dict[str, int] = {}
    started = time.perf_counter()
    for number, how in verdicts(options.first, options.count, settings):
        kind = next(each for each in FAILURES if how.startswith(each))
        counts[kind] = counts.get(kind, 0) + 1
        print(f"{how}: {random_program(number)}", flush=True)
    seconds = time.perf_counter() - started
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "all right"
    print(f"{options.count} programs from {options.first}, {seconds:.0f} s: {told}")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
