"""Compiles a StableHLO artifact under whichever jaxlib it is run with, from 0.6 on.

    python worker.py --about            prints what this jaxlib is, as JSON
    python worker.py REQUEST.json       compiles, and writes what came of it to the file it names

A request names the artifact, the compiler's options, the arguments to run with and the file for the
answer. This file imports nothing of hlofront: it is copied into environments that have none of it.
"""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import jaxlib.version
import numpy as np
from jaxlib import xla_client

try:
    from jaxlib import _jax
except ImportError:  # before 0.6
    from jaxlib import xla_extension as _jax


cells = []  # C++ does not


def prepare():
    """Set what jaxlib's C++ needs before it holds an array; newer versions need less."""
    jit = _jax.jax_jit
    if hasattr(jit, "set_thread_local_state_initialization_callback"):
        jit.set_thread_local_state_initialization_callback(lambda: None)
    if hasattr(jit, "set_enable_x64_state"):
        make = _jax.config.Config
        for name in ("enable_x64", "disable_jit", "post_hook"):
            value = None if name == "post_hook" else name == "enable_x64"
            try:
                cell = make(name, value, include_in_jit_key=True, include_in_trace_context=True)
            except TypeError:
                cell = make(name, value, include_in_jit_key=True)
            cells.append(cell)
            getattr(jit, f"set_{name}_state")(cell)
    elif hasattr(jit, "global_state"):
        state = jit.global_state()
        state.enable_x64 = True
        state.disable_jit = False
        if hasattr(state, "enable_memories"):
            state.enable_memories = False


def about():
    """Return the versions of jaxlib, of the StableHLO that it reads, and of Python."""
    try:
        from jaxlib.mlir.dialects import stablehlo

        version = stablehlo.get_current_version()
    except (ImportError, AttributeError):
        version = None
    return {
        "jaxlib": jaxlib.version.__version__,
        "stablehlo": version,
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": np.__version__,
    }


def compile_options(request, device):
    options = xla_client.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = 1
    ids = np.array([[device.id]], np.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    flags = [tuple(pair) for pair in request.get("options", [])]
    if flags:
        options.env_option_overrides = flags
    return options


def compiled(client, device, artifact, options):
    if hasattr(client, "compile_and_load"):
        return client.compile_and_load(artifact, _jax.DeviceList((device,)), options)
    return client.compile(artifact, options)


def memory_of(executable):
    try:
        stats = executable.get_compiled_memory_stats()
    except Exception as error:  # a plugin may not know: the answer says why there is no number
        return {"unknown": str(error)}
    names = ("argument", "output", "temp", "alias", "generated_code")
    return {name: getattr(stats, name + "_size_in_bytes", None) for name in names}


def cost_of(executable):
    try:
        cost = executable.cost_analysis()
    except Exception as error:  # as above
        return {"unknown": str(error)}
    if isinstance(cost, (list, tuple)):
        cost = cost[0] if cost else {}
    return {
        name: cost[name] for name in ("flops", "bytes accessed", "transcendentals") if name in cost
    }


class Aval:
    """The type of an array, with the attributes that jaxlib reads."""

    weak_type = False

    def __init__(self, value):
        self.shape = value.shape
        self.dtype = value.dtype


def arguments_of(path, device):
    values = np.load(path)
    types = json.loads(str(values["types"]))
    sharding_of = _jax.SingleDeviceSharding
    if not hasattr(sharding_of, "_to_xla_hlo_sharding"):
        try:
            from jaxlib import _hlo as hlo
        except ImportError:
            hlo = _jax
        replicated = hlo.HloSharding.replicate()
        sharding_of._to_xla_hlo_sharding = lambda self, ndim: replicated
    xla_client.ArrayImpl._check_and_rearrange = lambda self, arrays, *_: arrays
    sharding = sharding_of(device)
    device_arrays = []
    for i, (dtype, shape) in enumerate(types):
        value = values[f"a{i}"]
        if value.dtype.name != dtype:
            import ml_dtypes

            value = value.view(getattr(ml_dtypes, dtype))
        value = np.ascontiguousarray(value.reshape(shape))
        device_arrays.append(
            _jax.batched_device_put(Aval(value), sharding, [value], [device], True)
        )
    return device_arrays


def run_seconds(executable, arguments, least=0.2, most=50):
    """Return the seconds of a run, the median of several."""
    times = []
    while len(times) < 3 or (sum(times) < least and len(times) < most):
        start = time.perf_counter()
        results = executable.execute_sharded(arguments, with_tokens=True)
        results.consume_token().block_until_ready()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def answer(request):
    result = about()
    prepare()
    client = xla_client.make_cpu_client()
    device = client.local_devices()[0]
    with open(request["artifact"], "rb") as file:
        artifact = file.read()
    options = compile_options(request, device)
    start = time.perf_counter()
    executable = compiled(client, device, artifact, options)
    result["compile_seconds"] = time.perf_counter() - start
    result["hlo"] = "\n\n".join(module.to_string() for module in executable.hlo_modules())
    result["cost"] = cost_of(executable)
    result["memory"] = memory_of(executable)
    result["run_seconds"] = None
    if request.get("arguments"):
        result["run_seconds"] = run_seconds(executable, arguments_of(request["arguments"], device))
    return result


def main():
    if sys.argv[1] == "--about":
        print(json.dumps(about()))
        return
    with open(sys.argv[1]) as file:
        request = json.load(file)
    try:
        result = answer(request)
    except Exception as error:  # whatever XLA of that day says is what the user wants to read
        result = dict(about(), error=f"{type(error).__name__}: {error}")
    with open(request["answer"], "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
