"""How soon a new process has the first result of a GPT's training step, beside jax: wall and CPU.

    python benchmarks/starting.py [--jax PYTHON] [--rounds 5] [--layers 12] [--option NAME=VALUE]

Fresh processes, in turns, the import of the library included; the arguments are NumPy arrays, and
all results are computed. hlofront starts from a bundle without the model's code, from a bundle
attached to it, and from its cache on disk; jax from its cache on disk, filled by an earlier run and
told to keep everything. The least seconds of each side count, as others may use the machine.

`--option` is a compiler option for all of them: without the kernels that XLA makes in the first
call, xla_cpu_experimental_ynn_fusion_type= (empty), a first call is faster and later ones slower.
"""

import argparse
import importlib
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
MODES = ("bundle", "attached", "cache")


def run(mode, folder, layers, compiler_options):
    """Print the seconds until the first result: of the clock, and of the processor."""
    start = time.perf_counter()
    jax = importlib.import_module("jax" if mode == "jax" else "hlofront")
    if mode == "bundle":
        from hlofront import bundle

        with open(f"{folder}/arguments", "rb") as file:
            arguments = pickle.load(file)
        step = bundle.load(f"{folder}/step.hlob", trust=True)
    else:
        import models

        step, arguments = models.gpt(jax, layers, 64, length=32)
        step = jax.jit(step, compiler_options=compiler_options)
    if mode == "attached":
        from hlofront import bundle

        step = bundle.attach(step, f"{folder}/step.hlob", trust=True)
    elif mode == "save":
        from hlofront import bundle

        bundle.save(f"{folder}/step.hlob", step, *arguments)
        with open(f"{folder}/arguments", "wb") as file:
            pickle.dump(arguments, file)
        return
    jax.block_until_ready(step(*arguments))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(time.perf_counter() - start, used.ru_utime + used.ru_stime)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(*options.run, options.layers, dict(text.split("=", 1) for text in options.option))
        return
    if not options.jax:
        parser.error("pass --jax, a Python that has jax")
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }

        def seconds(mode):
            python = options.jax if mode == "jax" else sys.executable
            library = "jax" if mode == "jax" else "hlofront"
            own = {"JAX_COMPILATION_CACHE_DIR": f"{folder}/{library}-cache"}
            if mode in ("save", "bundle", "attached"):
                own = {"HLOFRONT_CACHE": "0"}
            command = [python, "-P", str(HERE / "starting.py"), "--run", mode, folder]
            command += ["--layers", str(options.layers)]
            command += [word for text in options.option for word in ("--option", text)]
            done = subprocess.run(
                command, capture_output=True, text=True, env={**environment, **own}, check=False
            )
            if done.returncode:
                sys.exit(f"{mode} failed:\n{done.stderr[-2000:]}")
            return [float(each) for each in done.stdout.split()]

        seconds("save")
        for mode in ("jax", "cache"):
            seconds(mode)
        sides = (*MODES, "jax")
        times = {mode: [] for mode in sides}
        for _ in range(options.rounds):
            for mode in sides:
                times[mode].append(seconds(mode))
        size = pathlib.Path(folder, "step.hlob").stat().st_size
        print(f"GPT of {options.layers} layers; the bundle has {size:,} bytes")
        least = {mode: [min(column) for column in zip(*times[mode], strict=True)] for mode in sides}
        print(f"{'to first result':24}{'wall':>9}{'of jax':>8}{'processor':>11}{'of jax':>8}")
        for mode, (wall, processor) in least.items():
            ratios = wall / least["jax"][0], processor / least["jax"][1]
            print(f"{mode:24}{wall:8.2f}s{ratios[0]:8.2f}{processor:10.2f}s{ratios[1]:8.2f}")


if __name__ == "__main__":
    main()
