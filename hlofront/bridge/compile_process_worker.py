"""The worker that compiles for devices that are not attached; compile_process.py starts it.

Requests and answers are pickled, each after its length. It ends with its input. This file imports
nothing of hlofront: it is run as a script.
"""

import os
import pathlib
import pickle
import struct
import sys
import tempfile

LENGTH = struct.Struct("<Q")
_topologies = {}


def write(stream, message):
    data = pickle.dumps(message, protocol=5)
    stream.write(LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read(stream):
    """Return the next message; None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return pickle.loads(data) if len(data) == length else None


def main():
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What libraries print is no answer.
    settings = read(requests)
    if settings is None:
        return
    # As where it was started from, where jaxlib was found.
    sys.path[:] = settings["path"]
    from jaxlib import _jax, xla_client
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.enable_multithreading(False)
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)

    write(answers, {"jaxlib": "is there"})
    while (request := read(requests)) is not None:
        try:
            answer = compiled(request, context, ir, xla_client, _jax)
        except Exception as error:  # the one who value_or_error raises it
            kind = "JaxRuntimeError" if isinstance(error, _jax.JaxRuntimeError) else "ValueError"
            answer = {"error": str(error), "kind": kind}
        write(answers, answer)


def compiled(request, context, ir, xla_client, _jax):
    devices = devices_of(request, xla_client)
    devices = [devices[number] for number in request["devices"]]
    options = xla_client.CompileOptions.ParseFromString(request["options"])
    device_list = _jax.DeviceList(tuple(devices))

    def compiled_with(options):
        with context:
            # compile() changes the module.
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


def written_by_compiler(compiled_with, options):
    """Return the name and text of a module that is newer than what this jaxlib reads."""
    with tempfile.TemporaryDirectory() as folder:
        mine = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        overrides = dict(options.env_option_overrides)
        options.env_option_overrides = list((overrides | mine).items())
        compiled_with(options)
        (path,) = pathlib.Path(folder).glob("*.after_codegen.txt")
        text = path.read_text()
    return text.partition("HloModule ")[2].partition(",")[0], text


def value_or_error(what, _jax):
    """Return (whether it is known, what it is or why it is not)."""
    try:
        return True, what()
    except _jax.JaxRuntimeError as error:
        return False, str(error)


def devices_of(request, xla_client):
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
