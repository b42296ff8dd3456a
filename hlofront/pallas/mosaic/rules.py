"""The table of Mosaic rules: which operations of a TPU's kernel a primitive becomes."""

from collections.abc import Callable
from typing import Any, Concatenate

from hlofront.core.rules import RuleTable

# The arguments are a KernelBuilder and the operands: values of MLIR and references (KernelRef).
MosaicRule = Callable[Concatenate[Any, ...], Any]

mosaic: RuleTable[MosaicRule] = RuleTable(
    "mosaic", "pallas/mosaic/", "Which operations of Mosaic is it, in a kernel of a TPU?"
)
