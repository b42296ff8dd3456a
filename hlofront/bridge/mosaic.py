"""Mosaic's dialect `tpu`, for TPU kernels, and the form in which libtpu reads them."""

import functools
import importlib
from types import ModuleType

from hlofront.bridge.mlir import bytecode_of, context, ir, run_passes

_dialect: ModuleType = importlib.import_module("jaxlib.mlir._mlir_libs._tpu_ext")


@functools.cache
def load_dialect() -> None:
    """Register the dialect with the context of modules; most programs have no kernels."""
    _dialect.register_dialect(context)
    context.load_all_available_dialects()


def has_operation(name: str) -> bool:
    """Return whether this jaxlib's Mosaic has an operation, such as "tpu.logistic"."""
    return context.is_registered_operation(name)


def serialized(module: ir.Module) -> bytes:
    """Return a kernel as bytecode of Mosaic's stable form, which later versions of libtpu read.

    The module itself is changed to that form.

    Raises:
      MLIRError: if an operation has no stable form.
    """
    unregistered = context.allow_unregistered_dialects
    # The stable form uses names of a dialect that is not registered.
    context.allow_unregistered_dialects = True
    try:
        run_passes(module, "mosaic-serde{serialize=true}")
        return bytecode_of(module)
    finally:
        context.allow_unregistered_dialects = unregistered
