"""jaxlib's MLIR: contexts with the dialects that XLA reads, and parts of `ir`."""

import importlib
import io
import re
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hlofront.bridge import state
from hlofront.bridge.client import hlo

# isort: split
from jaxlib.mlir import ir

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import HloModule, XlaComputation

# Type checkers do not see the true members of these modules.
_jax_mlir_ext: ModuleType = importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
_passmanager: ModuleType = importlib.import_module("jaxlib.mlir.passmanager")
# The C++ parts of the dialects. MLIR imports the Python classes of a dialect's operations, which
# takes a while for StableHLO, when it first returns an instance of such a class.
_stablehlo: ModuleType = importlib.import_module("jaxlib.mlir._mlir_libs._stablehlo")
_DIALECTS: tuple[ModuleType, ...] = (
    _stablehlo,
    importlib.import_module("jaxlib.mlir._mlir_libs._chlo"),
    importlib.import_module("jaxlib.mlir._mlir_libs._sdy"),
)


class JaxIrContext(ir.Context):
    """An MLIR context with the dialects that XLA reads."""


# jaxlib registers MLIR's own dialects.
upstream_dialects = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(upstream_dialects)


def _make_context() -> ir.Context:
    context = JaxIrContext()
    context.append_dialect_registry(upstream_dialects)
    context.load_all_available_dialects()
    # One thread lowers each program; a thread pool per context only costs start-up time.
    context.enable_multithreading(False)
    for dialect in _DIALECTS:
        dialect.register_dialect(context)
    return context


context = _make_context()
Operation = ir.Operation
_globals: Any = importlib.import_module("jaxlib.mlir._mlir_libs._mlir").globals
_search_lock = threading.Lock()
if TYPE_CHECKING:
    # A value of any type: jaxlib's stubs make the class generic in the type of the value.
    Value = ir.Value[ir.Type]
else:
    Value = ir.Value
Values = Sequence[Value]
TracebackToLocationCache: Any = _jax_mlir_ext.TracebackToLocationCache


# Contexts that no thread uses. They are kept here and not per thread, because XLA's own threads,
# which run callbacks, end their Python state in a way that a context does not survive.
_idle_contexts: list[ir.Context] = []


def take_context() -> ir.Context:
    """Return a context that no other thread uses, until `return_context`."""
    try:
        return _idle_contexts.pop()
    except IndexError:
        return _make_context()


def return_context(context: ir.Context) -> None:
    """Return a context, whose modules are gone, to the pool: contexts are not thread-safe."""
    _idle_contexts.append(context)


def copied_to(context: ir.Context, module: ir.Module) -> ir.Module:
    """Return a copy of a module in another context; the caller must have both to itself."""
    return ir.Module.parse(bytecode_of(module), context)  # pyright: ignore[reportUnknownMemberType]


def parsed_attribute(text: str) -> ir.Attribute:
    """Parse an attribute without importing the Python classes of its dialect.

    MLIR looks for a dialect's classes in a process-wide list of modules; while that is empty it
    returns an instance of `Attribute` itself. Threads take turns to empty and restore the list.
    """
    with _search_lock:
        search_modules = _globals.dialect_search_modules
        _globals.dialect_search_modules = []
        try:
            return ir.Attribute.parse(text, context)  # pyright: ignore[reportUnknownMemberType]
        finally:
            _globals.dialect_search_modules = search_modules


def has_more_operations(module: ir.Module, limit: int) -> bool:
    """Return whether a module contains more than `limit` operations."""
    count = 0

    def visited(_: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        # The last operation of a walk is the module itself.
        return ir.WalkResult.INTERRUPT if count > limit + 1 else ir.WalkResult.ADVANCE

    module.operation.walk(visited)
    return count > limit + 1


def operation_names(module: ir.Module) -> set[str]:
    """Return the names of the operations of a module."""
    names: set[str] = set()

    def visited(operation: ir.Operation) -> ir.WalkResult:
        names.add(operation.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visited)
    return names


def bytecode_of(module: ir.Module) -> bytes:
    """Return a module as MLIR bytecode of this version of jaxlib."""
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return bytecode.getvalue()


def to_xla_computation(module: ir.Module) -> "XlaComputation":
    """Convert a StableHLO module to an XLA computation, before any optimization."""
    return state.extension.mlir.mlir_module_to_xla_computation(bytecode_of(module))


def hlo_text(module: "HloModule", metadata: bool) -> str:
    """Return an HLO module as text, with or without the metadata of its operations."""
    options = hlo.HloPrintOptions()
    options.print_metadata = metadata
    return module.to_string(options)


def unreduced_word(kind: str) -> str:
    """Return the word that precedes unreduced axes of a kind in the text of a Shardy attribute.

    Args:
      kind: "sum", "max" or "min".

    Raises:
      ValueError: if jaxlib's Shardy supports only sums.
    """
    if kind == "sum":
        return ""
    if not hasattr(importlib.import_module("jaxlib.mlir.dialects.sdy"), "ReductionOp"):
        installed = ".".join(map(str, state.jaxlib_version))
        raise ValueError(
            f"arrays with unreduced_kind={kind} need the Shardy of jaxlib 0.11 or newer; the "
            f"installed jaxlib {installed} supports only sums: combine the values along unreduced "
            "axes first, or install a newer jaxlib"
        )
    return kind


def stablehlo_version() -> str:
    """Return the newest version of StableHLO's portable form that this jaxlib writes."""
    return _stablehlo.get_current_version()


def portable_artifact(
    module: ir.Module, version: str | None = None, keep_shardings: bool = False
) -> bytes:
    """Serialize a StableHLO module in its portable form, which other versions of jaxlib read.

    Args:
      module: the module to serialize.
      version: the version of StableHLO to write, by default this jaxlib's.
      keep_shardings: whether shardings remain Shardy's operations and attributes, which do not have
        a portable form; otherwise they become custom calls.

    Raises:
      ValueError: if an operation of the module is newer than that version.
    """
    target = version or stablehlo_version()
    serialize = state.extension.mlir.serialize_portable_artifact
    return serialize(bytecode_of(module), target, keep_shardings)


def lasting_artifact(module: ir.Module) -> bytes:
    """Serialize a StableHLO module in its portable form, for readers as old as possible.

    It is written in the version that readers of two years ago know or, if a type or an operation is
    newer, in that of four weeks ago. Shardings remain Shardy's.

    Raises:
      JaxRuntimeError: if a type or an operation of the module is newer still.
    """
    requirement = _stablehlo.StablehloCompatibilityRequirement
    oldest, old = map(
        _stablehlo.get_version_from_compatibility_requirement, (requirement.MAX, requirement.WEEK_4)
    )
    try:
        return portable_artifact(module, oldest, keep_shardings=True)
    except state.JaxRuntimeError:
        return portable_artifact(module, old, keep_shardings=True)


def version_of_artifact(artifact: bytes) -> str:
    """Return the StableHLO version of a portable artifact, or "" if the bytes are not one."""
    written = re.search(rb"StableHLO_v([\d.]+)\0", artifact[:64])
    return written.group(1).decode() if written else ""


def module_of_artifact(artifact: bytes) -> ir.Module:
    """Parse a StableHLO module in its portable form.

    Raises:
      ValueError: if the bytes are not a portable artifact, or have a version that this jaxlib does
          not read.
    """
    try:
        return _stablehlo.deserialize_portable_artifact(context, artifact)
    except Exception as error:  # jaxlib raises classes that differ between its versions.
        raise ValueError(why_unreadable(artifact, str(error))) from None


def why_unreadable(artifact: bytes, error: str) -> str:
    """Return why jaxlib cannot read a portable artifact, given its `error`."""
    version = version_of_artifact(artifact)
    if version:
        return (
            f"the module is written in version {version} of StableHLO, and this jaxlib, whose own "
            f"is {stablehlo_version()}, cannot read it: {error}. Take a newer jaxlib, or export "
            "the program again"
        )
    return f"the bytes are no StableHLO that this jaxlib reads: {error}"


def module_of_bytecode(bytecode: bytes) -> ir.Module:
    """Parse a module that this version of jaxlib wrote, here or in a worker."""
    return ir.Module.parse(bytecode, context)  # pyright: ignore[reportUnknownMemberType]


def with_known_sizes(module: ir.Module) -> ir.Module:
    """Return a module with the sizes of all values, as determined by those of main's arguments.

    Args:
      module: a module whose main function takes arrays of known sizes.

    Raises:
      ValueError: if a size depends on the elements of arrays, or a shape assertion fails.
    """
    refine = state.extension.mlir.refine_polymorphic_shapes
    try:
        refined = refine(
            bytecode_of(module),
            enable_shape_assertions=True,
            validate_static_shapes=True,
            enable_shardy=True,
        )
    except Exception as error:  # jaxlib raises classes that differ between its versions.
        reasons = re.findall(r"error: (.*)", str(error))
        raise ValueError(reasons[0] if reasons else str(error)) from error
    return ir.Module.parse(refined, context)  # pyright: ignore[reportUnknownMemberType]


def run_passes(module: ir.Module, *names: str) -> None:
    """Run passes of MLIR on a module in place, in order.

    Raises:
      MLIRError: if a pass fails.
    """
    text = f"builtin.module({','.join(names)})"
    pipeline = _passmanager.PassManager.parse(text, context=context)
    pipeline.run(module.operation)
