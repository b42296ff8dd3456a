"""hlofront beside jax: a table of medians and ratios.

    python benchmarks/run.py [--jax PYTHON] [--rounds 3] [--json]

The interpreter that runs this has hlofront; PYTHON (by default $HLOFRONT_ORACLE_PYTHON) has jax
0.10.2. Each runs the cases of cases.py, and of devices.py on eight devices, in processes of its
own, in turns, so that both meet the same machine; a figure is the median over all of them. Nothing
here is asserted: machines differ.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

# What is aimed at: at most this share of jax's time.
AIMS = {
    "trace 5,000 lax equations": 0.3,
    "trace 5,000 of operators": 0.3,
    "lower 5,000 equations": 0.4,
    "trace value_and_grad of a GPT of 12 layers": 0.35,
    "trace value_and_grad of an LSTM over scan": 0.35,
    "trace hessian": 0.35,
    "eager grad of three operations": 0.3,
    "jit call, arrays": 1.0,
    "jit call, NumPy": 1.0,
    "jit call, Python scalar": 1.0,
    "jit call, 100-leaf pytree": 1.0,
    "Compiled call (beside jax's jit call)": 1.0,
    "eager x + x": 0.8,
    "eager x @ x": 0.8,
    "eager x.sum()": 0.8,
    "eager x[1]": 0.25,
    "eager x[1:3, ::2]": 0.25,
    "eager x[index]": 0.15,
    "eager x.at[1].set(2.)": 0.15,
    "eager jnp.zeros": 0.5,
    "eager jnp.asarray(NumPy)": 0.5,
    "eager reshape": 0.5,
    "eager jnp.where": 0.5,
    "eager jnp.concatenate": 0.5,
    "eager nn.softmax": 0.5,
    "8 devices: jit call, 1 array": 1.0,
    "8 devices: jit call, 10 arrays": 1.0,
    "8 devices: jit call, 100 arrays": 1.0,
    "8 devices: jit call, with a sum over devices": 1.0,
    "8 devices: device_put of a tree of NumPy arrays": 0.5,
    "8 devices: device_put of a tree of arrays": 0.5,
    "8 devices: trace and lower a shard_map GPT": 0.3,
}

# Seconds that importing `name` takes above what both stand on.
IMPORT = """
import time, numpy, ml_dtypes
from jaxlib import xla_client
start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
"""
FIRST = """
import time
start = time.perf_counter()
import {name} as jax, {name}.numpy as jnp
jax.jit(lambda x: jnp.sin(x) * 2.0 + x)(1.0).block_until_ready()
print(time.perf_counter() - start)
"""


def output(python, *arguments):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(HERE.parent)}
    # Without it each import would compile every file of ours anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        sys.exit(f"{python} {arguments[0]} failed:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


def measured(python, name):
    """{case: [seconds, ...]} of one run."""
    times = json.loads(output(python, str(HERE / "cases.py"), name))
    times |= json.loads(output(python, str(HERE / "devices.py"), name))
    times["import, above jaxlib"] = [float(output(python, "-c", IMPORT.format(name=name)))]
    times["import and first result"] = [float(output(python, "-c", FIRST.format(name=name)))]
    return times


def shown(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.jax:
        sys.exit("give the interpreter that has jax: --jax PYTHON, or HLOFRONT_ORACLE_PYTHON")
    ours, theirs = {}, {}
    for _ in range(options.rounds):
        for python, name, table in (
            (sys.executable, "hlofront", ours),
            (options.jax, "jax", theirs),
        ):
            for case, times in measured(python, name).items():
                table.setdefault(case, []).extend(times)
    theirs["Compiled call (beside jax's jit call)"] = theirs["jit call, arrays"]
    ours["Compiled call (beside jax's jit call)"] = ours["Compiled call"]
    rows = {case: (statistics.median(ours[case]), statistics.median(theirs[case])) for case in ours}
    if options.json:
        print(json.dumps({case: {"hlofront": a, "jax": b} for case, (a, b) in rows.items()}))
        return
    print(f"{'':44s}{'hlofront':>12s}{'jax':>12s}{'ratio':>8s}{'aim':>7s}")
    for case, (a, b) in rows.items():
        aim = AIMS.get(case)
        mark = "" if aim is None else f"{aim:7.2f}" + (" " if a / b <= aim else " *")
        print(f"{case:44s}{shown(a):>12s}{shown(b):>12s}{a / b:8.2f}{mark}")


if __name__ == "__main__":
    main()
