"""Options of the compiler of kernels for TPUs."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol


class LoweringException(Exception):
    """An error for a kernel that cannot be compiled for TPUs, because of its blocks' pipelines."""


class KernelCompilerParams(Protocol):
    """A protocol of options of a compiler of kernels: dataclasses like `pltpu.CompilerParams`."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


class GridDimensionSemantics(enum.Enum):
    """How the steps along an axis of a grid may run."""

    # In any order, and on any core.
    PARALLEL = "parallel"
    # On the cores of a chip, each of which runs a part of the steps.
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    # One after another.
    ARBITRARY = "arbitrary"


PARALLEL = GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY


class SideEffectType(enum.Enum):
    """The side effects of a kernel, which determine whether a call may be removed."""

    # None: a call may be removed, repeated and moved.
    PURE = "pure"
    # A call is removed if no result is used, and is never repeated.
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    # A call is never removed.
    SIDE_EFFECTING = "side_effecting"


_SEMANTICS = frozenset(member.value for member in GridDimensionSemantics)


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of the compiler of kernels for TPUs.

    Attributes:
      dimension_semantics: per axis of the grid, how its steps may run: "parallel", "arbitrary", or
        a GridDimensionSemantics.
      allow_input_fusion: per operand, whether XLA may fuse its computation into the kernel.
      vmem_limit_bytes: the amount of VMEM that the kernel may use.
      collective_id: the number of the barrier semaphore, for kernels on several devices.
      has_side_effects: the kernel's side effects; True if a call is never removed.
      flags: options of the compiler by name.
      internal_scratch_in_bytes: the size of the compiler's own buffer.
      serialization_format: the version of the format in which the kernel is passed to XLA.
      disable_bounds_checks: whether accesses are not checked on the device.
      disable_semaphore_checks: whether semaphores are not checked at the kernel's end.
      skip_device_barrier: whether the kernel starts without waiting for other devices.
      allow_collective_id_without_custom_barrier: whether `collective_id` may be given to a kernel
        without a barrier.
      shape_invariant_numerics: whether the results of operations are independent of shapes.
      use_tc_tiling_on_sc: whether SparseCores see the tiles of TensorCores.
      needs_layout_passes: whether the compiler infers layouts of vectors.
      fuse_transposed_lhs_in_matmul: whether a transposed left operand of a product is not copied.
      opt_level: how much the compiler optimizes.

    Raises:
      ValueError: if an entry of `dimension_semantics` is unknown.
    """

    dimension_semantics: Sequence[str | GridDimensionSemantics] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, bool | float | str] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False
    opt_level: object = None

    def __post_init__(self) -> None:
        for name in ("dimension_semantics", "allow_input_fusion"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        for entry in self.semantics or ():
            if entry not in _SEMANTICS:
                raise ValueError(
                    f"an entry of dimension_semantics is one of {sorted(_SEMANTICS)}: got {entry!r}"
                )

    @property
    def semantics(self) -> list[str] | None:
        """The entries of `dimension_semantics` as strings."""
        if self.dimension_semantics is None:
            return None
        return [
            entry.value if isinstance(entry, GridDimensionSemantics) else entry
            for entry in self.dimension_semantics
        ]

    def __hash__(self) -> int:
        fields = {**vars(self), "flags": tuple(sorted((self.flags or {}).items()))}
        return hash(tuple(fields.items()))

    def replace(self, **changes: Any) -> "CompilerParams":
        """Return a copy with some options replaced."""
        return dataclasses.replace(self, **changes)
