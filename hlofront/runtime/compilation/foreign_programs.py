"""Programs with parts from files that are not trusted, which another process compiles for CPUs."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofront.bridge import client as bridge
from hlofront.bridge import foreign
from hlofront.bridge.client import CompileOptions, Device, LoadedExecutable
from hlofront.bridge.kernels import load_host_kernels
from hlofront.pjrt.compile import mlir_lock
from hlofront.runtime.compilation.disk_cache import StoredCall

if TYPE_CHECKING:
    from hlofront.bridge.compile_process import SubprocessExecutable
    from hlofront.lowering.module import Module


def is_compiled_by_worker(module: "Module", devices: Sequence[Device]) -> bool:
    """Return whether another process compiles a module: a part is untrusted, and it is able to.

    That process has none of this process's functions, and no devices other than CPUs.
    """
    if not module.is_foreign or devices[0].platform != "cpu":
        return False
    if module.callbacks or module.partitioned_calls or module.keepalives or module.ordered:
        return False
    client = devices[0].client
    return all(device.process_index == client.process_index() for device in client.devices())


def compiled_by_worker(
    name: str, module: "Module", devices: Sequence[Device], options: CompileOptions
) -> "tuple[SubprocessExecutable, LoadedExecutable, StoredCall] | None":
    """Compile a module in another process, and load the executable.

    Returns:
      The other process's description of the executable, the executable, and the data for its calls;
      None if it calls functions that the user has registered in this process.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
      ValueError: if the module ends the compiler's process, or takes too much time or memory.
    """
    # Loads MLIR, which a process that compiles nothing does not need.
    from hlofront.bridge.mlir import bytecode_of

    with mlir_lock:
        bytecode = bytecode_of(module.ir_module)
    if foreign.calls_registered(bytecode):
        return None
    client = devices[0].client
    numbers = [device.id for device in devices]
    try:
        made = foreign.compiled(bytecode, len(client.devices()), numbers, options)
    except foreign.ForeignProgramError as error:
        raise ValueError(f"the program {name} is refused: {error}") from None
    serialized = made.serialize()
    if b"lapack_" in bytecode or b"tridiagonal_solve" in bytecode:
        load_host_kernels()
    loaded = bridge.deserialize(client, serialized, devices, options)
    hlo = "\n\n".join(part.to_string() for part in made.hlo_modules())
    call = StoredCall(
        module.kept_inputs,
        module.has_barriers,
        module.unusable,
        zlib.compress(hlo.encode()),
        lambda: serialized,
    )
    call.const_args = module.const_args
    return made, loaded, call
