"""Exporting the training step of a GPT, beside jax: fresh processes, wall time of tracing to bytes.

    python benchmarks/exporting.py [--jax PYTHON] [--rounds 5] [--layers 12]

Timed is `export(jit(step))(*arguments)`, up to the portable artifact, after the export of a small
function has loaded what every export needs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time


def run(library, layers):
    if library == "jax":
        import jax
        from jax import export
    else:
        import hlofront as jax
        from hlofront import export
    import models

    jax.block_until_ready(jax.numpy.zeros(3))
    export.export(jax.jit(jax.numpy.sin))(jax.numpy.zeros(3))
    step, arguments = models.gpt(jax, layers, 64, length=32)
    start = time.perf_counter()
    exported = export.export(jax.jit(step))(*arguments)
    print(time.perf_counter() - start, len(exported.mlir_module_serialized))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.run, options.layers)
        return
    if not options.jax:
        parser.error("pass --jax, a Python that has jax")
    pythons = {"hlofront": sys.executable, "jax": options.jax}
    seconds = {library: [] for library in pythons}
    size = {}
    # In turns, so that both meet the same load of the machine.
    for _ in range(options.rounds):
        for library, python in pythons.items():
            command = [python, "-P", __file__, "--run", library, "--layers", str(options.layers)]
            environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
            output = subprocess.run(command, check=True, capture_output=True, env=environment)
            taken, size[library] = output.stdout.split()
            seconds[library].append(float(taken))
    for library, runs in seconds.items():
        least, median = min(runs), statistics.median(runs)
        print(f"{library:9} {least:.3f} s, median {median:.3f} s, {int(size[library]):,} bytes")
    print(f"ratio {min(seconds['hlofront']) / min(seconds['jax']):.2f}")


if __name__ == "__main__":
    main()
