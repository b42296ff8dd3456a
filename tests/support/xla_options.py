"""Asks which options XLA's compiler has: they come and go from one jaxlib to the next."""

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlofront.bridge.client import Client

# With the value False, XLA compiles loops for CPUs by its older emitters, until these were removed.
PRESENT_EMITTERS = "xla_cpu_use_fusion_emitters"


@functools.cache
def has_option(client: "Client", name: str, value: object) -> bool:
    """Return whether the compiler of a client has an option with such values."""
    # Not imported above: tests/conftest.py sets what hlofront reads when it is imported.
    from hlofront.base.errors import JaxRuntimeError
    from hlofront.bridge import client as bridge
    from hlofront.bridge.mlir import context, ir

    module = ir.Module.parse("func.func public @main() { return }", context)
    options = bridge.CompileOptions()
    options.env_option_overrides = [(name, value)]
    try:
        bridge.compile_and_load(client, module, client.local_devices()[:1], options, ())
    except JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True
