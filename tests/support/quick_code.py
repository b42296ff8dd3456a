"""A plugin of pytest that lets XLA write code quickly: `pytest -p tests.support.quick_code`.

Most tests compile thousands of programs of a few operations, each run once, to test what hlofront
says to XLA. Two settings more than halve the time of such a compilation: no optimizations by LLVM,
and, in jaxlibs that have them, XLA's older emitters of loops, which write LLVM's instructions where
the present ones write MLIR and transform it. Programs with an operation that the older emitters
write wrongly keep the present ones. `check` names the tests that run the code that users get.

Code without fusions, `--xla_disable_hlo_passes=fusion,fusion-wrapper`, would take a fifth of the
time for dots and convolutions, but has wrong results for samples of comparisons, and takes seven
times as long for polynomials.
"""

import contextlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from tests.support.xla_options import PRESENT_EMITTERS, has_option

if TYPE_CHECKING:
    from hlofront.bridge.client import Client, CompileOptions, Device, LoadedExecutable
    from hlofront.bridge.mlir import ir

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    # One module for LLVM, not one for each few loops, which takes two thirds to four fifths of the
    # time: for each module LLVM sets up its target anew.
    "--xla_cpu_parallel_codegen_split_count=1",
)

# XLA reads the variable once, when the first client starts.
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS]).strip()

# The operations that the older emitters may write wrongly: see `is_wrong_by_older_emitters`.
SUSPECTS = (b"scatter", b"clamp", b"reduce_window", b"reduce_precision", b"pad")
OF_TWO_BITS = ("i2", "ui2")
NARROW_INTEGERS = (*OF_TWO_BITS, "i4", "ui4", "i8", "ui8", "i16", "ui16")


@contextlib.contextmanager
def compiling_quickly() -> Iterator[None]:
    """Compile programs by XLA's older emitters, but for those that these write wrongly."""
    # Not imported above: tests/conftest.py sets what hlofront reads when it is imported.
    from hlofront.bridge import client as bridge

    compile_and_load = bridge.compile_and_load

    def compile_quickly(
        client: "Client",
        ir_module: "ir.Module",
        devices: "Iterable[Device]",
        options: "CompileOptions",
        callbacks: Sequence[object],
    ) -> "LoadedExecutable":
        flags = options.env_option_overrides
        named = {name for name, _ in flags}
        if (
            client.platform == "cpu"
            and PRESENT_EMITTERS not in named
            and has_option(client, PRESENT_EMITTERS, False)
            and not needs_present_emitters(ir_module)
        ):
            options.env_option_overrides = [*flags, (PRESENT_EMITTERS, False)]
        try:
            return compile_and_load(client, ir_module, devices, options, callbacks)
        finally:
            options.env_option_overrides = flags

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bridge, "compile_and_load", compile_quickly)
        yield


@pytest.fixture(scope="session", autouse=True)
def older_emitters() -> Iterator[None]:
    with compiling_quickly():
        yield


def needs_present_emitters(ir_module: "ir.Module") -> bool:
    """Return whether a module has an operation that the older emitters write wrongly."""
    from hlofront.bridge.mlir import ir

    # Bytecode holds the name of each operation.
    bytecode = io.BytesIO()
    ir_module.operation.write_bytecode(bytecode)
    if not any(name in bytecode.getvalue() for name in SUSPECTS):
        return False
    wrong = False

    def visit(operation: "ir.Operation") -> "ir.WalkResult":
        nonlocal wrong
        wrong = is_wrong_by_older_emitters(operation)
        return ir.WalkResult.INTERRUPT if wrong else ir.WalkResult.ADVANCE

    ir_module.operation.walk(visit)
    return wrong


def is_wrong_by_older_emitters(operation: "ir.Operation") -> bool:
    """Return whether the older emitters cannot write an operation, or write it wrongly.

    They write out of bounds for scatters with indices of less than 32 bits, cannot compile clamps
    of booleans and clamps and windows of complex numbers, round wrongly to floats of one bit, and
    end the process for padding of integers of two bits.
    """
    from hlofront.bridge.mlir import ir

    def element_type(place: int) -> "ir.Type":
        return ir.ShapedType(operation.operands[place].type).element_type

    match operation.name:
        case "stablehlo.scatter":
            return str(element_type(len(operation.operands) // 2)) in NARROW_INTEGERS
        case "stablehlo.clamp":
            bounded = str(element_type(1))
            return bounded == "i1" or bounded.startswith("complex")
        case "stablehlo.reduce_window":
            return str(element_type(0)).startswith("complex")
        case "stablehlo.pad":
            return str(element_type(0)) in OF_TWO_BITS
        case "stablehlo.reduce_precision":
            return True
    return False
