"""What accelerators get, beside jax: programs compiled by one compiler for absent devices.

    python benchmarks/accelerators.py --jax PYTHON [--target tpu:v5e:1x1] [MODEL ...]

Each program of `accelerator_models.py` is lowered by both libraries, in processes of their own, and
both modules are compiled for the target by this process. Printed are the ratios of hlofront's to
jax's: libtpu's `estimated_cycles` summed over the module, and the bytes accessed, of the compiler's
cost analysis; temporaries; and the numbers of fusions, copies and custom calls. Compilers for GPUs
estimate neither cycles nor bytes, and some optimized HLO of libtpu's for a v6e is such that jaxlib
cannot read it: a dash stands for what is not known.
"""

import argparse
import contextlib
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__)
RATIOS = ("cycles", "bytes", "temporaries")
# The operations that are counted, as they are printed and in HLO.
COUNTS = {"fusions": "fusion", "copies": "copy", "custom calls": "custom-call"}


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
    """Compile a module for a target; return those of its figures that are known, by their names."""
    import hlofront
    from hlofront.bridge import mlir, plugins
    from hlofront.pjrt.compile import compile_options

    devices = target.devices[:1]
    with mlir.context:
        module = mlir.ir.Module.parse(pathlib.Path(path).read_text(encoding="utf-8"))
    options = compile_options(devices, target.compiler_options({}))
    executable = plugins.compile_only(module, devices, options, False)
    figures = {"temporaries": executable.get_compiled_memory_stats().temp_size_in_bytes}
    with contextlib.suppress(hlofront.errors.JaxRuntimeError):
        figures["bytes"] = executable.cost_analysis()["bytes accessed"]
    with contextlib.suppress(hlofront.errors.JaxRuntimeError):
        text = "\n".join(module.to_string() for module in executable.hlo_modules())
        figures |= {name: text.count(f" {name}(") for name in COUNTS.values()}
        if target.platform == "tpu":
            figures["cycles"] = sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', text)))
    return figures


def ratio(ours, theirs):
    """Return the ratio of two figures, which is NaN if one is not known."""
    if ours is None or theirs is None:
        return math.nan
    return ours / theirs if theirs else (1.0 if not ours else math.inf)


def shown(ratio):
    return f"{'-':>13}" if math.isnan(ratio) else f"{ratio:13.3f}"


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
    print(f"{'':20}" + "".join(f"{name:>13}" for name in RATIOS))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or MODELS:
            figures = {}
            for library, python in (("hlofront", sys.executable), ("jax", options.jax)):
                path = f"{folder}/{name}.{library}"
                command = [python, str(HERE), "--lower", library, name, target.platform, path]
                environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
                subprocess.run(command, check=True, env=environment)
                figures[library] = measures(path, target)
            ours, theirs = figures["hlofront"], figures["jax"]
            rows.append([ratio(ours.get(key), theirs.get(key)) for key in RATIOS])
            counts = ", ".join(
                f"{ours.get(key, '-')} {title} for {theirs.get(key, '-')}"
                for title, key in COUNTS.items()
            )
            print(f"{name:20}" + "".join(map(shown, rows[-1])) + f"  {counts}", flush=True)
    for title, reduced in (
        ("geometric mean", lambda xs: math.exp(sum(map(math.log, xs)) / len(xs))),
        ("most", max),
    ):
        columns = [[x for x in column if 0 < x < math.inf] for column in zip(*rows, strict=True)]
        means = [reduced(column) if column else math.nan for column in columns]
        print(f"{title:20}" + "".join(map(shown, means)))


if __name__ == "__main__":
    main()
