"""MLIR as jaxlib ships it: the context with its dialects, and the parts of `ir` that we use."""

import io

from hlofront.bridge import state
from hlofront.bridge.client import hlo

# isort: split
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo


def _make_context():
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    # One program is lowered by one thread; a pool per context only costs start-up time.
    context.enable_multithreading(False)
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context


context = _make_context()
Operation = ir.Operation
TracebackToLocationCache = _jax_mlir_ext.TracebackToLocationCache


def to_xla_computation(module: ir.Module):
    """Return a StableHLO module as XLA's computation, before any optimization."""
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return state.extension.mlir.mlir_module_to_xla_computation(bytecode.getvalue())


def hlo_text(module, metadata: bool) -> str:
    """Return an HLO module as text, with or without the metadata of its operations."""
    options = hlo.HloPrintOptions()
    options.print_metadata = metadata
    return module.to_string(options)


def stablehlo_version() -> str:
    """Return the newest version of StableHLO's portable form that this jaxlib writes."""
    return stablehlo.get_current_version()


def portable_artifact(module: ir.Module, version: str | None = None) -> bytes:
    """Return a StableHLO module in its portable form, which other versions of jaxlib read.

    Args:
      version: the version of StableHLO to write, by default this jaxlib's.

    Raises:
      ValueError: if an operation of the module is newer than that version.
    """
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    wanted = version or stablehlo_version()
    return state.extension.mlir.serialize_portable_artifact(bytecode.getvalue(), wanted)
