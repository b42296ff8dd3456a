"""Programs on this machine's device, beside jax: seconds of a run, by turns.

    python benchmarks/attached.py --jax PYTHON [MODEL ...]

Each library has a process of its own, which lowers and compiles the programs of
`accelerator_models.py` one by one, while the other library's waits. Then both run each program by
turns, in three rounds; the least time of a run counts, as the mean of four that are in flight.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__)
ROUNDS = 3
IN_FLIGHT = 4
SECONDS_OF_A_ROUND = 0.05


def serve(library):
    """Answer requests of the parent, a line each: compile or run a program; print JSON."""
    if library == "jax":
        import jax
    else:
        import hlofront as jax
    from accelerator_models import MODELS

    programs = {}
    for line in sys.stdin:
        request, name = line.split()
        if request == "compile":
            function, arguments = MODELS[name](jax)
            start = time.perf_counter()
            lowered = jax.jit(function).lower(*arguments)
            lowering = time.perf_counter() - start
            start = time.perf_counter()
            compiled = lowered.compile()
            seconds = time.perf_counter() - start
            programs[name] = compiled, jax.device_put(arguments)
            temporaries = compiled.memory_analysis().temp_size_in_bytes
            answer = {"lower": lowering, "compile": seconds, "temporaries": temporaries}
        else:
            answer = {"run": fastest_run(jax, *programs[name])}
        print(json.dumps(answer), flush=True)


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


class Server:
    """The process of a library."""

    def __init__(self, python, library):
        command = [python, "-W", "ignore", str(HERE), "--serve", library]
        # Both have the device's memory in common.
        environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment
        )

    def ask(self, request, name):
        self.process.stdin.write(f"{request} {name}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process ended at {request} {name}")
        return json.loads(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    if not options.jax:
        parser.error("pass --jax, a Python that has jax")
    from accelerator_models import MODELS

    pythons = {"hlofront": sys.executable, "jax": options.jax}
    servers = {library: Server(python, library) for library, python in pythons.items()}
    names = ("run", "temporaries", "lower", "compile")
    print(f"{'':20}" + "".join(f"{name:>13}" for name in names) + "   run, ms: hlofront, jax")
    ratios = {name: [] for name in names}
    for model in options.models or MODELS:
        figures = {library: servers[library].ask("compile", model) for library in servers}
        for _ in range(ROUNDS):
            for library, server in servers.items():
                run = server.ask("run", model)["run"]
                figures[library]["run"] = min(figures[library].get("run", math.inf), run)
        row = []
        for name in names:
            ours, theirs = (figures[library][name] for library in servers)
            row.append(ours / theirs if theirs else 1.0)
            ratios[name].append(row[-1])
        runs = "".join(f"{figures[library]['run'] * 1e3:10.3f}" for library in servers)
        print(f"{model:20}" + "".join(f"{x:13.3f}" for x in row) + runs, flush=True)
    means = [math.exp(sum(math.log(x) for x in r if x) / len(r)) for r in ratios.values()]
    print(f"{'geometric mean':20}" + "".join(f"{x:13.3f}" for x in means))


if __name__ == "__main__":
    main()
