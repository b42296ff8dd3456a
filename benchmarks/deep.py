"""Whole models beside jax: tracing, StableHLO operations, compile time, run time, temporaries.

    python benchmarks/deep.py [--jax PYTHON] [--only TEXT] [--programs] [--rounds 1] [--json]
        [--fences off]

The interpreter that runs this has hlofront; PYTHON (by default $HLOFRONT_ORACLE_PYTHON) has jax.
Each model is measured in a process of its own for each library, in turns. Nothing is asserted.
With `--fences off` hlofront's own programs without fences take jax's place. The last line has the
geometric means over the models that compute a gradient. `--programs` leaves the deep models out.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import accelerator_models
import models

HERE = pathlib.Path(__file__).parent

# What is aimed at, as shares of jax's: compile time, run time, temporaries.
Aim = tuple[float | None, float | None, float | None]
PLAIN: Aim = (1.0, 1.05, 1.05)


def jitted(jax):
    return {"layer_of": jax.jit}


def kept(jax):
    return {"layer_of": jax.checkpoint}


def half(jax):
    import ml_dtypes

    return {"dtype": ml_dtypes.bfloat16}


def of(model, *arguments, options=lambda jax: {}, **keywords):
    return lambda jax: model(jax, *arguments, **keywords, **options(jax))


# name: (what makes (step, arguments) of a library, aims)
MODELS = {
    "GPT, 12 layers": (of(models.gpt, 12), (0.45, 0.8, 1.05)),
    "GPT, 24 layers": (of(models.gpt, 24), (0.15, 0.5, 1.05)),
    "GPT, 48 layers": (of(models.gpt, 48), (0.06, 0.2, 1.05)),
    "GPT, 12 layers, jitted layer": (of(models.gpt, 12, options=jitted), (0.45, 0.8, 1.05)),
    "GPT, 24 layers, jitted layer": (of(models.gpt, 24, options=jitted), (0.15, 0.5, 1.05)),
    "GPT, 48 layers, jitted layer": (of(models.gpt, 48, options=jitted), (0.06, 0.2, 1.05)),
    "GPT, 12 layers, checkpoint": (of(models.gpt, 12, options=kept), (None, None, 0.2)),
    "GPT, 24 layers, checkpoint": (of(models.gpt, 24, options=kept), (None, None, 0.2)),
    "GPT, 12 layers, bfloat16": (of(models.gpt, 12, options=half), PLAIN),
    "GPT, 12 layers, width 768": (of(models.gpt, 12, 768), PLAIN),
    "GPT, 12 layers, Adam": (of(models.gpt, 12, optimizer=models.adam), PLAIN),
    "ViT, 12 layers": (of(models.vit, 12), PLAIN),
    "LSTM, 50 steps unrolled": (of(models.lstm), (0.25, 0.7, 1.05)),
    "GRU, 50 steps unrolled": (of(models.gru), PLAIN),
    "neural ODE, 20 steps unrolled": (of(models.ode), PLAIN),
    "ResNet, 50 layers": (of(models.resnet), PLAIN),
    "UNet": (of(models.unet), PLAIN),
    "DenseNet": (of(models.densenet), PLAIN),
    "MLP, 8 layers": (of(models.mlp, 8), PLAIN),
    "MLP, 96 layers": (of(models.mlp, 96), PLAIN),
    "MLP, 96 layers, residual": (of(models.mlp, 96, residual=True), PLAIN),
    "1,000 multiplications": (of(models.chain), PLAIN),
    "simulation, 100 steps": (of(models.orbit), PLAIN),
}
DEEP = tuple(MODELS)

# Those of accelerator_models.py that run in 1 to 300 ms on a CPU.
PROGRAMS = """
    masked_attention position_biases sliding_windows running_softmax linear_attention
    checkpointed_layers sampled_words decoding mixture_of_experts selective_scan resnet_by_var
    diffusion unet_with_attention graph_network classifier normalizations hessian newton_step
    learned_start kalman_filter stencil gaussian_process transducer hamiltonian_monte_carlo
    ray_marching
""".split()
MODELS |= {name.replace("_", " "): (accelerator_models.MODELS[name], PLAIN) for name in PROGRAMS}

# Those that compute no gradient of a loss, or more than one.
NOT_TRAINING = (
    "1,000 multiplications",
    "sampled words",
    "decoding",
    "hessian",
    "hamiltonian monte carlo",
)

# What is aimed at for training, as geometric means of shares of jax's time.
MEAN_AIMS = {"compile": 0.5, "run": 0.6}


def repeated(function, least=0.3, most=20):
    """Seconds of several calls of a function: the median."""
    times = []
    while (sum(times) < least or len(times) < 3) and len(times) < most:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(library, name):
    """One model under one library, in this process: figures by name."""
    if library == "jax":
        import jax
    else:
        import hlofront as jax
    step, arguments = MODELS[name][0](jax)

    def anew(*arguments):
        return step(*arguments)

    def traced():
        # A function object of its own each time, so that no trace of it is kept.
        return jax.jit(functools.partial(anew)).trace(*arguments)

    figures = {"trace": repeated(traced, 0.2, 5)}
    lowered = traced().lower()
    figures["operations"] = sum(" = " in line for line in lowered.as_text().splitlines())
    if library != "jax":
        figures["fences"] = len(lowered.fences)
    start, spent = time.perf_counter(), time.process_time()
    compiled = lowered.compile()
    figures["compile"] = time.perf_counter() - start
    figures["compile, CPU"] = time.process_time() - spent
    figures["temporaries"] = compiled.memory_analysis().temp_size_in_bytes
    arguments = jax.device_put(arguments)
    jax.block_until_ready(compiled(*arguments))
    figures["run"] = repeated(lambda: jax.block_until_ready(compiled(*arguments)), 2.0, 5_000)
    return figures


def figures_of(python, library, name, fences):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(HERE.parent)}
    # Else a small program that was measured before would be read from disk instead of compiled.
    environment["HLOFRONT_CACHE"] = "0"
    if fences:
        environment["HLOFRONT_FENCES"] = fences
    command = [python, str(HERE / "deep.py"), "--measure", library, name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{library}, {name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def median(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


COLUMNS = (
    f"{'':32s}{'trace ms':>14s}{'operations':>14s}{'fences':>7s}{'compile s':>16s}"
    f"{'run ms':>18s}{'temporaries MB':>18s}   ratios (aims)"
)


def row(name, ours, theirs):
    def share(key, aim=None):
        ratio = ours[key] / theirs[key] if theirs[key] else float(ours[key] == 0)
        if aim is None:
            return f"{ratio:.2f}"
        return f"{ratio:.2f} ({aim:.2f}{'' if ratio <= aim else ' *'})"

    compiling, running, temporaries = MODELS[name][1]
    return (
        f"{name:32s}{1e3 * ours['trace']:6.0f} {1e3 * theirs['trace']:7.0f}"
        f"{ours['operations']:7.0f} {theirs['operations']:6.0f}{ours['fences']:7.0f}"
        f"{ours['compile']:8.2f} {theirs['compile']:7.2f}"
        f"{1e3 * ours['run']:9.1f} {1e3 * theirs['run']:8.1f}"
        f"{ours['temporaries'] / 1e6:9.1f} {theirs['temporaries'] / 1e6:8.1f}"
        f"   trace {share('trace')}, compile {share('compile', compiling)},"
        f" run {share('run', running)}, temporaries {share('temporaries', temporaries)}"
    )


def means(shares):
    """The last line: geometric means of shares of jax's time, and how many are over 1.05."""
    texts = []
    for key, aim in MEAN_AIMS.items():
        column = [share[key] for share in shares]
        mean = math.exp(statistics.fmean(map(math.log, column)))
        over = sum(share > 1.05 for share in column)
        texts.append(f"{key} {mean:.2f} ({aim:.2f}{'' if mean <= aim else ' *'}), {over} over 1.05")
    return f"geometric means of {len(shares)} models that train: {'; '.join(texts)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--only", default="", help="models whose name has this in it")
    parser.add_argument("--programs", action="store_true", help="leave the deep models out")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fences", help="off: hlofront without fences in jax's place")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    if not options.jax and not options.fences:
        sys.exit("give the interpreter that has jax: --jax PYTHON, or HLOFRONT_ORACLE_PYTHON")
    other = (sys.executable, "hlofront") if options.fences else (options.jax, "jax")
    if not options.json:
        print(COLUMNS)
    shares = []
    for name in MODELS:
        if options.only not in name or (options.programs and name in DEEP):
            continue
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(figures_of(sys.executable, "hlofront", name, None))
            theirs.append(figures_of(*other, name, options.fences))
        ours, theirs = median(ours), median(theirs)
        if options.json:
            print(json.dumps({"model": name, "hlofront": ours, "beside": theirs}), flush=True)
        else:
            print(row(name, ours, theirs), flush=True)
        if name not in NOT_TRAINING:
            shares.append({key: ours[key] / theirs[key] for key in MEAN_AIMS})
    if shares and not options.json:
        print(means(shares))


if __name__ == "__main__":
    main()
