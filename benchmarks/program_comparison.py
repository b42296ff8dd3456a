"""The cost of comparing programs between processes: `python benchmarks/program_comparison.py`.

Each process of a group on this machine runs 60 programs for the first time, and each of them ten
more times. Printed are the medians of process 0 in milliseconds, with and without the comparison:
the first run (tracing, lowering and XLA included), the comparison alone, and a later run.
"""

import os
import statistics
import sys
import time

PROGRAMS = 60


def main() -> None:
    """Run as one process of the group."""
    import numpy as np

    import hlofront as jax
    import hlofront.numpy as jnp
    from hlofront.pjrt.program_comparison import ProgramComparisons

    jax.distributed.initialize()
    compare = ProgramComparisons.compare
    seconds: list[float] = []

    def timed(*args: object) -> None:
        started = time.perf_counter()
        compare(*args)  # pyright: ignore[reportArgumentType]
        seconds.append(time.perf_counter() - started)

    ProgramComparisons.compare = timed  # pyright: ignore[reportAttributeAccessIssue]
    devices = jax.device_count()
    mesh = jax.make_mesh((devices,), ("x",), (jax.sharding.AxisType.Auto,))
    split = jax.NamedSharding(mesh, jax.P("x"))
    ones = np.ones((devices, 8), np.float32)
    x = jax.make_array_from_callback(ones.shape, split, lambda index: ones[index])
    first: list[float] = []
    later: list[float] = []
    for number in range(PROGRAMS):
        step = jax.jit(lambda a, number=number: jnp.sum(jnp.tanh(a * number) @ a.T))
        started = time.perf_counter()
        step(x).block_until_ready()
        first.append(time.perf_counter() - started)
        for _ in range(10):
            started = time.perf_counter()
            step(x).block_until_ready()
            later.append(time.perf_counter() - started)
    if jax.process_index() == 0:
        figures = [statistics.median(each) * 1e3 for each in (first, seconds, later)]
        print("first run {:.1f} ms, comparison {:.2f} ms, later run {:.3f} ms".format(*figures))


def start() -> None:
    """Start groups of 2 and 4 processes, with and without the comparison."""
    import io

    from hlofront.cli.run import run_group

    os.environ["HLOFRONT_CACHE"] = "0"
    for processes in (2, 4):
        for is_on in ("1", "0"):
            os.environ["HLOFRONT_COMPARE_PROGRAMS"] = is_on
            out = io.StringIO()
            run_group([sys.executable, __file__, "process"], processes, 1, out)
            said = [line for line in out.getvalue().splitlines() if "first run" in line]
            print(f"{processes} processes, comparison {'on' if is_on == '1' else 'off'}:", *said)


if __name__ == "__main__":
    main() if sys.argv[1:] == ["process"] else start()
