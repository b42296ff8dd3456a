"""What accelerators get, beside jax: programs compiled by one compiler for absent devices.

    python benchmarks/accelerators.py --jax PYTHON [--target tpu:v5e:1x1] [MODEL ...]

Each program of `accelerator_models.py` is lowered by both libraries, in processes of their own, and
both modules are compiled for the target by this process. Printed are the ratios of hlofront's to
jax's: libtpu's `estimated_cycles` summed over the module (TPUs alone), and the bytes accessed, of
the compiler's cost analysis; temporaries; and the numbers of fusions and copies. A program whose
optimized HLO jaxlib cannot read, as some of libtpu's for a v6e, is named and left out.
"""

import argparse
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__)


def lower(library, name, platform, path):
    """Write a program's StableHLO, lowered by a library for a platform, to a file."""
    if library == "jax":
        import jax
    else:
        import hlofront as jax
    from accelerator_models import MODELS

    function, arguments = MODELS[name](jax)
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,))
    pathlib.Path(path).write_text(lowered.as_text(), encoding="utf-8")


def measures(path, target):
    """Compile a module for a target; return its figures by their names."""
    from hlofront.bridge import mlir, plugins
    from hlofront.pjrt.compile import compile_options

    devices = target.devices[:1]
    with mlir.context:
        module = mlir.ir.Module.parse(pathlib.Path(path).read_text(encoding="utf-8"))
    options = compile_options(devices, target.compiler_options({}))
    executable = plugins.compile_only(module, devices, options, False)
    text = "\n".join(module.to_string() for module in executable.hlo_modules())
    memory = executable.get_compiled_memory_stats()
    return {
        "cycles": sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', text))),
        "bytes": executable.cost_analysis()["bytes accessed"],
        "temporaries": memory.temp_size_in_bytes,
        "fusions": len(re.findall(r" fusion\(", text)),
        "copies": len(re.findall(r" copy\(", text)),
    }


def ratio(ours, theirs):
    return ours / theirs if theirs else (1.0 if not ours else math.inf)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--target", default="tpu:v5e:1x1")
    parser.add_argument("--lower", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.lower:
        lower(*options.lower)
        return
    if not options.jax:
        parser.error("pass --jax, a Python that has jax")
    from accelerator_models import MODELS

    import hlofront

    target = hlofront.target(options.target)
    rows = []
    print(f"{'':20}" + "".join(f"{name:>13}" for name in ("cycles", "bytes", "temporaries")))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or MODELS:
            figures = {}
            for library, python in (("hlofront", sys.executable), ("jax", options.jax)):
                path = f"{folder}/{name}.{library}"
                command = [python, str(HERE), "--lower", library, name, target.platform, path]
                environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
                subprocess.run(command, check=True, env=environment)
                try:
                    figures[library] = measures(path, target)
                except hlofront.errors.JaxRuntimeError as error:
                    print(f"{name:20} left out: {str(error).splitlines()[0]}", flush=True)
                    break
            if len(figures) < 2:
                continue
            ours, theirs = figures["hlofront"], figures["jax"]
            row = [ratio(ours[key], theirs[key]) for key in ("cycles", "bytes", "temporaries")]
            rows.append(row)
            counts = ", ".join(f"{ours[k]} {k} for {theirs[k]}" for k in ("fusions", "copies"))
            print(f"{name:20}" + "".join(f"{x:13.3f}" for x in row) + f"  {counts}", flush=True)
    for title, reduced in (
        ("geometric mean", lambda xs: math.exp(sum(map(math.log, xs)) / len(xs))),
        ("most", max),
    ):
        columns = [[x for x in column if 0 < x < math.inf] for column in zip(*rows, strict=True)]
        print(f"{title:20}" + "".join(f"{reduced(c) if c else 1:13.3f}" for c in columns))


if __name__ == "__main__":
    main()
