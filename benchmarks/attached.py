"""Programs on this machine's device, beside jax: seconds of a run, by turns.

    python benchmarks/attached.py --jax PYTHON [MODEL ...]

Each library has a process of its own, which lowers and compiles the programs of
`accelerator_models.py` one by one, while the other library's waits. Then both run each program by
turns, in three rounds; the least time of a run counts, as the mean of four that are in flight.
"""

import argparse
import importlib
import math
import os
import pathlib
import sys
import time

from library_processes import LibraryProcess, answer_requests

HERE = pathlib.Path(__file__)
ROUNDS = 3
IN_FLIGHT = 4
SECONDS_OF_A_ROUND = 0.05


class Programs:
    """The compiled programs of a library, in its own process."""

    def __init__(self, library):
        self.jax = importlib.import_module(library)
        self.compiled = {}

    def prepared(self, name):
        """Lower and compile a program; return the seconds of both, and its temporaries."""
        from accelerator_models import MODELS

        function, arguments = MODELS[name](self.jax)
        start = time.perf_counter()
        lowered = self.jax.jit(function).lower(*arguments)
        lowering = time.perf_counter() - start
        start = time.perf_counter()
        compiled = lowered.compile()
        seconds = time.perf_counter() - start
        self.compiled[name] = compiled, self.jax.device_put(arguments)
        temporaries = compiled.memory_analysis().temp_size_in_bytes
        return {"lower": lowering, "compile": seconds, "temporaries": temporaries}

    def measured(self, name):
        return fastest_run(self.jax, *self.compiled[name])


def fastest_run(jax, compiled, arguments):
    """Return the least seconds of a run, over runs that take SECONDS_OF_A_ROUND in all."""
    jax.block_until_ready(compiled(*arguments))
    least, whole = math.inf, 0.0
    while whole < SECONDS_OF_A_ROUND:
        start = time.perf_counter()
        jax.block_until_ready([compiled(*arguments) for _ in range(IN_FLIGHT)])
        seconds = time.perf_counter() - start
        least, whole = min(least, seconds / IN_FLIGHT), whole + seconds
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        programs = Programs(options.inside)
        answer_requests(lambda method, name: getattr(programs, method)(name))
        return
    if not options.jax:
        parser.error("pass --jax, a Python that has jax")
    from accelerator_models import MODELS

    pythons = {"hlofront": sys.executable, "jax": options.jax}
    # The processes have the device's memory in common.
    settings = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    workers = {
        library: LibraryProcess(HERE, library, python, **settings)
        for library, python in pythons.items()
    }
    names = ("run", "temporaries", "lower", "compile")
    print(f"{'':20}" + "".join(f"{name:>13}" for name in names) + "   run, ms: hlofront, jax")
    ratios = {name: [] for name in names}
    for model in options.models or MODELS:
        figures = {library: worker.ask("prepared", model) for library, worker in workers.items()}
        for _ in range(ROUNDS):
            for library, worker in workers.items():
                run = worker.ask("measured", model)
                figures[library]["run"] = min(figures[library].get("run", math.inf), run)
        row = []
        for name in names:
            ours, theirs = (figures[library][name] for library in workers)
            row.append(ours / theirs if theirs else 1.0)
            ratios[name].append(row[-1])
        runs = "".join(f"{figures[library]['run'] * 1e3:10.3f}" for library in workers)
        print(f"{model:20}" + "".join(f"{x:13.3f}" for x in row) + runs, flush=True)
    means = [math.exp(sum(math.log(x) for x in r if x) / len(r)) for r in ratios.values()]
    for worker in workers.values():
        worker.close()
    print(f"{'geometric mean':20}" + "".join(f"{x:13.3f}" for x in means))


if __name__ == "__main__":
    main()
