"""A script that compiles a StableHLO artifact under the jaxlib that runs it, from 0.6 on.

    python worker.py --about            prints the versions of this jaxlib, as JSON
    python worker.py REQUEST.json       compiles, and writes the answer to the file that it names
    python worker.py --serve            compiles and runs programs, a request on each line of input
    python worker.py --run FILE ARGUMENTS.npz [FLAG=VALUE ...]    runs a program, and prints results

A request names the artifact, the compiler's options, the arguments to run with and the file for the
answer. This file imports nothing of hlofront: it is copied into environments that lack it.
"""

import base64
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import jaxlib.version
import numpy as np


def load(name: str, earlier: "str | ModuleType") -> ModuleType:
    """Import a module of jaxlib, or the module that had its members in earlier versions."""
    try:
        return import_module(f"jaxlib.{name}")
    except ImportError:
        return import_module(f"jaxlib.{earlier}") if isinstance(earlier, str) else earlier


xla_client = import_module("jaxlib.xla_client")
_jax = load("_jax", "xla_extension")
# The option cells, which C++ does not keep alive.
cells: list[object] = []


def prepare() -> None:
    """Set the process-wide options that jaxlib's C++ reads, which depend on its version."""
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


def about() -> dict[str, Any]:
    """Return the versions of jaxlib, of the StableHLO that it reads, and of Python."""
    try:
        version = import_module("jaxlib.mlir.dialects.stablehlo").get_current_version()
    except (ImportError, AttributeError):
        version = None
    return {
        "jaxlib": jaxlib.version.__version__,
        "stablehlo": version,
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": np.__version__,
    }


def compile_options(request: dict[str, Any], device: Any) -> Any:
    """Return XLA's compile options for one device, with the flags of a request."""
    options = xla_client.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = 1
    ids = np.array([[device.id]], np.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    flags = [tuple(pair) for pair in request.get("options", [])]
    if flags:
        options.env_option_overrides = flags
    return options


def load_lapack() -> None:
    """Register the kernels of linear algebra that this jaxlib has, as JAX does."""
    lapack = import_module("jaxlib.lapack")
    for platform, targets in lapack.registrations().items():
        for name, capsule, api_version in targets:
            xla_client.register_custom_call_target(
                name, capsule, platform=platform, api_version=api_version
            )
    lapack._lapack.initialize()


def compiled(client: Any, device: Any, artifact: bytes, options: Any) -> Any:
    """Compile a StableHLO artifact by the method of this jaxlib; return the executable."""
    if hasattr(client, "compile_and_load"):
        return client.compile_and_load(artifact, _jax.DeviceList((device,)), options)
    return client.compile(artifact, options)


def recorded(compile_program: Callable[[], Any]) -> tuple[Any, str]:
    """Compile under XLA's profiler; return the executable, and the recording in base64."""
    profiler: Any = load("_profiler", getattr(_jax, "profiler", _jax))
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    session = profiler.ProfilerSession(options)
    try:
        executable = compile_program()
    finally:
        recording = session.stop()
    return executable, base64.b64encode(recording).decode()


def memory_of(executable: Any) -> dict[str, Any]:
    """Return the bytes that an executable needs, by kind; or "unknown" with the reason."""
    try:
        stats = executable.get_compiled_memory_stats()
    except Exception as error:  # Not all plugins support this: the answer says why.
        return {"unknown": str(error)}
    names = ("argument", "output", "temp", "alias", "generated_code")
    return {name: getattr(stats, name + "_size_in_bytes", None) for name in names}


def cost_of(executable: Any) -> dict[str, Any]:
    """Return XLA's cost estimate of an executable; or "unknown" with the reason."""
    try:
        cost: Any = executable.cost_analysis()
    except Exception as error:  # Not all plugins support this: the answer says why.
        return {"unknown": str(error)}
    # Earlier versions return a list with an estimate per device.
    costs: list[Any] = [cost] if hasattr(cost, "keys") else [*cost, {}]
    cost = costs[0]
    return {
        name: cost[name] for name in ("flops", "bytes accessed", "transcendentals") if name in cost
    }


class Aval:
    """The type of an array, with the attributes that jaxlib reads."""

    weak_type = False

    def __init__(self, value: "np.ndarray[Any, Any]"):
        self.shape = value.shape
        self.dtype = value.dtype


def arguments_of(path: str, device: object) -> list[Any]:
    """Load the arguments in a NumPy file as arrays on a device."""
    values = np.load(path)
    types = json.loads(str(values["types"]))
    sharding_of = _jax.SingleDeviceSharding
    if not hasattr(sharding_of, "_to_xla_hlo_sharding"):
        replicated = load("_hlo", _jax).HloSharding.replicate()

        def to_hlo_sharding(sharding: object, ndim: int) -> object:
            return replicated

        sharding_of._to_xla_hlo_sharding = to_hlo_sharding

    def unchanged(self: object, arrays: object, *_: object) -> object:
        return arrays

    xla_client.ArrayImpl._check_and_rearrange = unchanged
    sharding = sharding_of(device)
    device_arrays: list[Any] = []
    for i, (dtype, shape) in enumerate(types):
        value = values[f"a{i}"]
        if value.dtype.name != dtype:
            value = value.view(getattr(import_module("ml_dtypes"), dtype))
        value = value.reshape(shape)
        device_arrays.append(
            _jax.batched_device_put(Aval(value), sharding, [value], [device], True)
        )
    return device_arrays


def run_seconds(
    executable: Any, arguments: Sequence[Any], least: float = 0.2, most: int = 50
) -> float:
    """Return the median seconds of several runs of an executable.

    Args:
      executable: jaxlib's executable.
      arguments: the arrays to run it on.
      least: the minimum total seconds of all runs.
      most: the maximum number of runs.
    """
    times: list[float] = []
    while len(times) < 3 or (sum(times) < least and len(times) < most):
        start = time.perf_counter()
        results = executable.execute_sharded(arguments, with_tokens=True)
        results.consume_token().block_until_ready()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def artifact_of(request: dict[str, Any]) -> bytes:
    """Read the artifact that a request names, and register the kernels that it calls."""
    with open(request["artifact"], "rb") as file:
        artifact = file.read()
    if b"lapack" in artifact:
        load_lapack()
    return artifact


def results_of(executable: Any, arguments: Sequence[Any]) -> "list[np.ndarray[Any, Any]]":
    """Run an executable, and return its results, which have NumPy dtypes, as NumPy arrays."""
    results = executable.execute_sharded(arguments, with_tokens=True)
    arrays = [shards[0] for shards in results.disassemble_into_single_device_arrays()]
    results.consume_token().block_until_ready()
    return [np.array(memoryview(array), copy=True) for array in arrays]


def serve() -> None:
    """Run programs until the input ends; each request, and each answer, is a line.

    A request has the key of a program, its artifact if the key is new, the path of its arguments,
    and the path for its results.
    """
    answers = os.fdopen(os.dup(1), "w")
    # XLA may print text, which belongs on standard error.
    os.dup2(2, 1)
    prepare()
    client = xla_client.make_cpu_client()
    device = client.local_devices()[0]
    executables: dict[int, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = request["key"]
        reply: dict[str, Any] = {}
        try:
            if key not in executables:
                options = compile_options(request, device)
                executables[key] = compiled(client, device, artifact_of(request), options)
            arguments = arguments_of(request["arguments"], device)
            values = results_of(executables[key], arguments)
            np.savez(request["results"], *values)
        except Exception as error:  # Report any error of that jaxlib to the user.
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answers, flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Compile the artifact of a request, run it on its arguments if any, and return the results."""
    result = about()
    prepare()
    client = xla_client.make_cpu_client()
    device = client.local_devices()[0]
    artifact = artifact_of(request)
    options = compile_options(request, device)
    start = time.perf_counter()
    executable, result["recording"] = recorded(lambda: compiled(client, device, artifact, options))
    result["compile_seconds"] = time.perf_counter() - start
    result["hlo"] = "\n\n".join(module.to_string() for module in executable.hlo_modules())
    result["cost"] = cost_of(executable)
    result["memory"] = memory_of(executable)
    result["run_seconds"] = None
    if request.get("arguments"):
        result["run_seconds"] = run_seconds(executable, arguments_of(request["arguments"], device))
    return result


def run_file(path: str, arguments: str, flags: Sequence[str]) -> None:
    """Run a program in StableHLO's text on arguments in a NumPy file, and print the results.

    Args:
      path: the path of the text.
      arguments: the path of the arguments.
      flags: options of XLA's compiler, such as "xla_backend_optimization_level=0".
    """
    prepare()
    client = xla_client.make_cpu_client()
    device = client.local_devices()[0]
    words = {"true": True, "false": False}
    pairs = [flag.partition("=")[::2] for flag in flags]
    typed = [
        (name, words.get(text.lower(), int(text) if text.lstrip("-").isdigit() else text))
        for name, text in pairs
    ]
    options = compile_options({"options": typed}, device)
    executable = compiled(client, device, artifact_of({"artifact": path}), options)
    for result in results_of(executable, arguments_of(arguments, device)):
        print(result)


def main() -> None:
    """Answer the request that the command line names."""
    if sys.argv[1] == "--run":
        run_file(sys.argv[2], sys.argv[3], sys.argv[4:])
        return
    if sys.argv[1] == "--about":
        print(json.dumps(about()))
        return
    if sys.argv[1] == "--serve":
        serve()
        return
    with open(sys.argv[1]) as file:
        request = json.load(file)
    try:
        result = answer(request)
    except Exception as error:  # Report any error of that jaxlib to the user.
        result = dict(about(), error=f"{type(error).__name__}: {error}")
    with open(request["answer"], "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
