"""The script of worker processes, which parse and compile; worker_process.py starts it.

Requests and answers are pickled, each preceded by its length. The worker reads files of strangers,
so the parent process takes only plain data and a few of jaxlib's classes from its answers. The
worker exits at the end of its input. This file imports nothing of hlofront: it is run as a script.
"""

import functools
import importlib.util
import io
import os
import pathlib
import pickle
import struct
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import IO, Any

LENGTH = struct.Struct("<Q")
_DIALECTS = ("_stablehlo", "_chlo", "_sdy")
# The classes in messages, by their package and name.
_CLASSES = {("jaxlib", "PjRtLayout"), ("jaxlib", "OpSharding"), ("jaxlib", "HloSharding")}
# (platform, topology name, settings) -> the topology's devices by their numbers.
_topologies: dict[tuple[str, str, str], dict[int, Any]] = {}
# The APIs of loaded plugins, by platform.
_plugins: dict[str, object] = {}


def write(stream: IO[bytes], message: object) -> None:
    """Write a message, any picklable object, preceded by its length."""
    data = pickle.dumps(message, protocol=5)
    stream.write(LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


class PlainUnpickler(pickle.Unpickler):
    """Reads plain data, and layouts and shardings of compiled programs: it calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module.partition(".")[0], name) not in _CLASSES:
            raise pickle.UnpicklingError(f"an answer of a worker has {module}.{name}")
        return super().find_class(module, name)


def read(stream: IO[bytes]) -> Any:
    """Return the next message of a stream; None at its end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return PlainUnpickler(io.BytesIO(data)).load() if len(data) == length else None


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
    tools = Tools()
    write(answers, {"jaxlib": "is there"})
    while (request := read(requests)) is not None:
        write(answers, answer_to(request, tools))


class Tools:
    """The modules of jaxlib, and an MLIR context with the dialects that XLA reads."""

    def __init__(self) -> None:
        self.ir: Any = import_module("jaxlib.mlir.ir")
        self.jax: Any = import_module("jaxlib._jax")
        self.xla_client: Any = import_module("jaxlib.xla_client")
        _jax_mlir_ext = import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
        dialects = [import_module(f"jaxlib.mlir._mlir_libs.{name}") for name in _DIALECTS]
        self.stablehlo: Any = dialects[0]
        registry = self.ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)
        self.context = self.ir.Context()
        self.context.append_dialect_registry(registry)
        self.context.load_all_available_dialects()
        self.context.enable_multithreading(False)
        for dialect in dialects:
            dialect.register_dialect(self.context)
        # Clients of CPUs, by the number of their devices.
        self.clients: dict[int, Any] = {}


def answer_to(request: dict[str, Any], tools: Tools) -> dict[str, Any]:
    """Return the answer to a request: what its function returns, or the error that it raises."""
    answer: dict[str, Any] = {}

    def act() -> None:
        try:
            if "memory" in request:
                limit_memory(request["memory"])
            answer.update(_FUNCTIONS[request["do"]](request, tools))
        except MemoryError:
            answer.update({"error": "it takes more memory than it may", "kind": "ValueError"})
        except Exception as error:  # The parent process raises it.
            is_xla = isinstance(error, tools.jax.JaxRuntimeError)
            kind = "JaxRuntimeError" if is_xla else "ValueError"
            answer.update({"error": str(error), "kind": kind})

    if "stack" in request:
        # Code that recurses as deeply as the program is nested overflows the stack of this process,
        # not that of the parent.
        threading.stack_size(request["stack"])
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
    else:
        act()
    return answer


def limit_memory(extra_bytes: int) -> None:
    """Limit this process to this many bytes more than it has now, if the system supports that."""
    try:
        import resource

        status = pathlib.Path("/proc/self/status").read_text()
    except (ImportError, OSError):
        return
    (now,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmData:"))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = int(now) * 1024 + extra_bytes
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


# ---- untrusted programs --------------------------------------------------------------------------


def verified(request: dict[str, Any], tools: Tools) -> dict[str, Any]:
    """Read a module in StableHLO's portable form, check it, and write it in this jaxlib's form.

    The result is bytecode that contains only StableHLO, which this process has parsed, verified,
    written and converted to HLO.
    """
    ir, passes = tools.ir, import_module("jaxlib.mlir.passmanager")
    checks = checks_of_modules()
    try:
        module = tools.stablehlo.deserialize_portable_artifact(tools.context, request["module"])
    except Exception as error:  # The class that jaxlib raises depends on its version.
        if "bad_alloc" in str(error):
            raise MemoryError from error
        return {"unreadable": str(error)}
    with tools.context:
        if "xla.sdy.meshes" in str(module.operation.attributes):
            # Modules from older versions of JAX hold their shardings in frontend attributes.
            for name in ("xla-sdy-round-trip-import-shardy-attrs", "sdy-lift-inlined-meshes"):
                manager = passes.PassManager.parse(f"builtin.module({name})", tools.context)
                manager.run(module.operation)
        checks.check_module(module, frozenset(request["registered"]), request["device_count"])
        bytecode = bytecode_of(module)
        # The parent process parses it as well, and prints it.
        again = ir.Module.parse(bytecode, tools.context)
        again.operation.verify()
        again.operation.get_asm(enable_debug_info=True, large_elements_limit=16)
    answer: dict[str, Any] = {"module": bytecode}
    try:
        tools.jax.mlir.mlir_module_to_xla_computation(bytecode)
    except Exception as error:  # XLA reports this when the program is compiled.
        answer["no HLO"] = str(error)
    return answer


def refined(request: dict[str, Any], tools: Tools) -> dict[str, Any]:
    """Infer the sizes of all values of a module, and check its custom calls again."""
    bytecode = tools.jax.mlir.refine_polymorphic_shapes(
        request["module"],
        enable_shape_assertions=True,
        validate_static_shapes=True,
        enable_shardy=True,
    )
    with tools.context:
        module = tools.ir.Module.parse(bytecode, tools.context)
        checks_of_modules().check_custom_calls(module, frozenset(request["registered"]))
        return {"module": bytecode_of(module)}


def compiled_for_cpus(request: dict[str, Any], tools: Tools) -> dict[str, Any]:
    """Compile a module for CPU devices like those of the parent process."""
    count = request["device_count"]
    client = tools.clients.get(count)
    if client is None:
        client = tools.clients[count] = tools.xla_client.make_cpu_client(num_devices=count)
    if b"lapack_" in request["module"] or b"tridiagonal_solve" in request["module"]:
        register_lapack(tools)
    by_number = {device.id: device for device in client.devices()}
    devices = [by_number[number] for number in request["devices"]]
    options = tools.xla_client.CompileOptions.ParseFromString(request["options"])
    device_list = tools.jax.DeviceList(tuple(devices))

    def compiled_with(options: Any) -> Any:
        with tools.context:
            module = tools.ir.Module.parse(request["module"], tools.context)
            return client.compile_and_load(module, device_list, options, [])

    return described(compiled_with(options), compiled_with, options, tools.jax)


@functools.cache
def register_lapack(tools: Tools) -> None:
    """Register jaxlib's kernels of LAPACK with XLA, once."""
    lapack = import_module("jaxlib.lapack")
    beside("registration").register(lapack, "cpu", tools.xla_client, tools.jax)
    lapack._lapack.initialize()


def bytecode_of(module: Any) -> bytes:
    """Return a module as MLIR bytecode of this version of jaxlib."""
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return bytecode.getvalue()


def checks_of_modules() -> ModuleType:
    """Return the module with the checks of programs, which imports the one for custom calls."""
    beside("custom_call_checks")
    return beside("module_checks")


def beside(name: str) -> ModuleType:
    """Return the module in a file next to this one."""
    if name not in sys.modules:
        path = pathlib.Path(__file__).with_name(f"{name}.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


# ---- kernels in custom calls --------------------------------------------------------------------

# Kind of a kernel -> the module with its dialect, and the pass that upgrades bytecode of earlier
# versions to this one.
_KERNEL_DIALECTS = {
    "Mosaic TPU": ("jaxlib.mlir._mlir_libs._tpu_ext", "mosaic-serde"),
    "Mosaic GPU": ("jaxlib.mlir._mlir_libs._mosaic_gpu_ext", "mosaic_gpu-serde"),
    "Triton": ("jaxlib.mlir._mlir_libs._triton_ext", ""),
}
# The maximum length of a text that `diff` reads line by line.
_LONGEST_KERNEL = 32 << 20


def decoded_kernel(request: dict[str, Any], tools: Tools) -> dict[str, Any]:
    """Return the MLIR text of a kernel's bytecode, with locations."""
    name, serde = _KERNEL_DIALECTS[request["kind"]]
    try:
        dialect = import_module(name)
    except ImportError as error:
        raise ValueError(
            f"this jaxlib has no {name}, whose dialect it is written in: install the jaxlib that "
            f"made it, or a newer one ({error})"
        ) from error
    _jax_mlir_ext = import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    # Use a separate context: untrusted programs are checked in one that lacks these dialects.
    registry = tools.ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = tools.ir.Context()
    context.append_dialect_registry(registry)
    context.enable_multithreading(False)
    dialect.register_dialect(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    with context:
        module = tools.ir.Module.parse(request["payload"], context)
        if serde and b"stable_mosaic" in request["payload"]:
            passes = import_module("jaxlib.mlir.passmanager")
            manager = passes.PassManager.parse(f"builtin.module({serde}{{serialize=false}})")
            manager.run(module.operation)
        text = module.operation.get_asm(enable_debug_info=True)
    if len(text) > _LONGEST_KERNEL:
        raise ValueError(f"its text is longer than {_LONGEST_KERNEL >> 20} MiB")
    return {"text": text}


def module_text(request: dict[str, Any], tools: Tools) -> dict[str, Any]:
    """Return the text of an HloModuleProto."""
    module = hlo_of(tools).HloModule.from_serialized_hlo_module_proto(request["payload"])
    return {"text": module.to_string()}


def hlo_of(tools: Tools) -> Any:
    """Return jaxlib's module with the functions of HLO, which depends on its version."""
    try:
        return import_module("jaxlib._hlo")
    except ImportError:
        return tools.jax


# ---- programs for compile-only devices -----------------------------------------------------------


def compiled_for_topology(request: dict[str, Any], tools: Tools) -> dict[str, Any]:
    """Compile the module of a request; return the properties that the parent process reads.

    Args:
      request: the topology, the numbers of the devices, the module as bytecode or text of
        StableHLO, or as text of HLO, and the options.
      tools: the modules of jaxlib.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
    """
    xla_client, _jax = tools.xla_client, tools.jax
    devices_by_id = devices_of(request, tools)
    devices = [devices_by_id[number] for number in request["devices"]]
    options = xla_client.CompileOptions.ParseFromString(request["options"])
    device_list = _jax.DeviceList(tuple(devices))
    program = request["module"]
    if isinstance(program, str) and program.lstrip().startswith("HloModule "):
        module = hlo_of(tools).hlo_module_from_text(program)
        program = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())

    def compiled_with(options: Any) -> Any:
        with tools.context:
            # compile() modifies the module.
            module = tools.ir.Module.parse(program)
            return devices[0].client.compile(module, device_list, options)

    return described(compiled_with(options), compiled_with, options, _jax)


def described(
    executable: Any, compiled_with: Callable[[Any], object], options: Any, _jax: ModuleType
) -> dict[str, Any]:
    """Return the properties of an executable that the parent process reads.

    Args:
      executable: the executable.
      compiled_with: compiles its program again with other options.
      options: the options with which it was compiled.
      _jax: the module `jaxlib._jax`.
    """
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
    """Call a method of an executable; return (True, result), or (False, reason of the failure)."""
    try:
        return True, method()
    except _jax.JaxRuntimeError as error:
        return False, str(error)


def devices_of(request: dict[str, Any], tools: Tools) -> dict[int, Any]:
    """Return the devices of the topology that a request describes, by their numbers."""
    platform, library, name, settings, kernel_package = request["topology"]
    xla_client = tools.xla_client
    key = platform, name, repr(settings)
    devices_by_id = _topologies.get(key)
    if devices_by_id is None:
        if platform not in _plugins:
            api = _plugins[platform] = xla_client.load_pjrt_plugin_dynamically(platform, library)
            if not xla_client.pjrt_plugin_initialized(platform):
                xla_client.initialize_pjrt_plugin(platform)
            if kernel_package:
                register = beside("registration").register_gpu_plugin
                register(platform.upper(), api, kernel_package, xla_client, tools.jax)
        if platform == "tpu":
            topology = xla_client.make_tfrt_tpu_c_api_device_topology(name, **settings)
        else:
            api = _plugins[platform]
            topology = xla_client.make_c_api_device_topology(api, name, **settings)
        made = topology._make_compile_only_devices()
        devices_by_id = _topologies[key] = {device.id: device for device in made}
    return devices_by_id


_FUNCTIONS: dict[str, Callable[[dict[str, Any], Tools], dict[str, Any]]] = {
    "decode a kernel": decoded_kernel,
    "print a module": module_text,
    "verify": verified,
    "refine": refined,
    "compile for CPUs": compiled_for_cpus,
    "compile for a topology": compiled_for_topology,
}

if __name__ == "__main__":
    main()
