"""Programs on devices: the executable of each, made once."""

import threading
from collections.abc import Sequence
from typing import Any

from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.lowering import rules as _every_rule  # noqa: F401  (registers them)
from hlofront.lowering.module import Module, lower_program
from hlofront.pjrt.compile import mlir_lock
from hlofront.runtime.executable import Executable

_making = threading.RLock()


def lowered(
    program: ClosedJaxpr,
    name: str,
    platform: str,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    names: bool = True,
) -> Module:
    """The module of a program for a platform."""
    key = ("module", platform, name, donated, keep_unused)
    found = program.derived.get(key)
    if found is None:
        info = program.debug_info if names else None
        with mlir_lock:
            found = program.derived.get(key)
            if found is None:
                found = program.derived[key] = lower_program(
                    program,
                    name,
                    platform,
                    donated=donated,
                    keep_unused=keep_unused,
                    arg_names=info.arg_names if info else None,
                    result_paths=info.result_paths if info else None,
                )
    return found


def executable_for(
    program: ClosedJaxpr,
    name: str,
    device: Any,
    committed: bool = False,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    compiler_options: Sequence[tuple[str, Any]] = (),
) -> Executable:
    """The executable of a program for a device; compiled on first use, by one thread."""
    key = (device, committed, donated, keep_unused, compiler_options)
    found = program.derived.get(key)
    if found is None:
        with _making:
            found = program.derived.get(key)
            if found is None:
                module = lowered(program, name, device.platform, donated, keep_unused)
                found = program.derived[key] = Executable(
                    program, module, device.client, device, committed, dict(compiler_options)
                )
    return found
