"""The worker process that compiles for compile-only devices; compile_process.py starts it.

Requests and answers are pickled, each preceded by its length. The worker exits at the end of its
input. This file imports nothing of hlofront: it is run as a script.
"""

import os
import pathlib
import pickle
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import IO, Any

LENGTH = struct.Struct("<Q")
_DIALECTS = ("stablehlo", "chlo", "sdy")
# (platform, topology name, settings) -> the topology's devices by their numbers.
_topologies: dict[tuple[str, str, str], dict[int, Any]] = {}


def write(stream: IO[bytes], message: object) -> None:
    """Write a message, any picklable object, preceded by its length."""
    data = pickle.dumps(message, protocol=5)
    stream.write(LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """Return the next message of a stream; None at its end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return pickle.loads(data) if len(data) == length else None


def main() -> None:
    """Answer the requests on standard input until it ends."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Text that libraries print to stdout must not mix with the answers.
    settings = read(requests)
    if settings is None:
        return
    # The parent process's path has jaxlib.
    sys.path[:] = settings["path"]
    _jax, xla_client = import_module("jaxlib._jax"), import_module("jaxlib.xla_client")
    ir = import_module("jaxlib.mlir.ir")
    _jax_mlir_ext = import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    dialects = [import_module(f"jaxlib.mlir.dialects.{name}") for name in _DIALECTS]

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.enable_multithreading(False)
    for dialect in dialects:
        dialect.register_dialect(context)

    write(answers, {"jaxlib": "is there"})
    while (request := read(requests)) is not None:
        try:
            answer = compiled(request, context, ir, xla_client, _jax)
        except Exception as error:  # The parent process raises it.
            kind = "JaxRuntimeError" if isinstance(error, _jax.JaxRuntimeError) else "ValueError"
            answer = {"error": str(error), "kind": kind}
        write(answers, answer)


def compiled(
    request: dict[str, Any], context: Any, ir: ModuleType, xla_client: ModuleType, _jax: ModuleType
) -> dict[str, Any]:
    """Compile the module of a request; return the properties that the parent process reads.

    Args:
      request: the topology, the numbers of the devices, the module as bytecode, and the options.
      context: the MLIR context that the module is parsed in.
      ir: the module `jaxlib.mlir.ir`.
      xla_client: the module `jaxlib.xla_client`.
      _jax: the module `jaxlib._jax`.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
    """
    devices_by_id = devices_of(request, xla_client)
    devices = [devices_by_id[number] for number in request["devices"]]
    options = xla_client.CompileOptions.ParseFromString(request["options"])
    device_list = _jax.DeviceList(tuple(devices))

    def compiled_with(options: Any) -> Any:
        with context:
            # compile() modifies the module.
            module = ir.Module.parse(request["module"])
            return devices[0].client.compile(module, device_list, options)

    executable = compiled_with(options)
    try:
        modules = [
            (module.name, module.to_string(), module.as_serialized_hlo_module_proto(), "")
            for module in executable.hlo_modules()
        ]
    except _jax.JaxRuntimeError as error:
        modules = [(*written_by_compiler(compiled_with, options), None, str(error))]
    memory = executable.get_compiled_memory_stats()
    names = [name for name in dir(memory) if not name.startswith("_")]
    return {
        "modules": modules,
        "cost": value_or_error(executable.cost_analysis, _jax),
        "memory": {name: getattr(memory, name) for name in names},
        "memory_text": str(memory),
        "serialized": value_or_error(executable.serialize, _jax),
        "parameter_layouts": value_or_error(executable.get_parameter_layouts, _jax),
        "output_layouts": value_or_error(executable.get_output_layouts, _jax),
        "parameter_shardings": value_or_error(executable.get_parameter_shardings, _jax),
        "output_shardings": value_or_error(executable.get_output_shardings, _jax),
        "output_memory_kinds": value_or_error(executable.get_output_memory_kinds, _jax),
    }


def written_by_compiler(compiled_with: Callable[[Any], object], options: Any) -> tuple[str, str]:
    """Return the name and text of an HLO module whose proto is too new for this jaxlib to read."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        mine = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        overrides = dict(options.env_option_overrides)
        options.env_option_overrides = list((overrides | mine).items())
        compiled_with(options)
        (path,) = pathlib.Path(folder).glob("*.after_codegen.txt")
        text = path.read_text()
    return text.partition("HloModule ")[2].partition(",")[0], text


def value_or_error(method: Callable[[], object], _jax: ModuleType) -> tuple[bool, object]:
    """Call an executable's method: return (True, its result), or (False, the reason it failed)."""
    try:
        return True, method()
    except _jax.JaxRuntimeError as error:
        return False, str(error)


def devices_of(request: dict[str, Any], xla_client: ModuleType) -> dict[int, Any]:
    """Return the devices of the topology that a request describes, by their numbers."""
    platform, library, name, settings = request["topology"]
    key = platform, name, repr(settings)
    devices_by_id = _topologies.get(key)
    if devices_by_id is None:
        if not xla_client.pjrt_plugin_loaded(platform):
            xla_client.load_pjrt_plugin_dynamically(platform, library)
        if not xla_client.pjrt_plugin_initialized(platform):
            xla_client.initialize_pjrt_plugin(platform)
        topology = xla_client.make_tfrt_tpu_c_api_device_topology(name, **settings)
        made = topology._make_compile_only_devices()
        devices_by_id = _topologies[key] = {device.id: device for device in made}
    return devices_by_id


if __name__ == "__main__":
    main()
