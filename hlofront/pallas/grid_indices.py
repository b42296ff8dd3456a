"""The index of a step in the grid of a kernel: program_id and num_programs."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

from hlofront.base.elements import int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.axes import indexed_axes_in_scope
from hlofront.core.primitive import Primitive
from hlofront.core.references import AbstractRef
from hlofront.core.trace import interpreting_with
from hlofront.pallas.grid_mapping import DynamicGridDim, GridSizes
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import div, rem
from hlofront.transforms.stage import JitTracer, StagingTrace

# The index of the step along the axis `axis` of the grid that the kernel sees.
program_id_p = Primitive("program_id")
# The size of the grid along the axis `axis`, for sizes that are dynamic.
num_programs_p = Primitive("num_programs")

for _primitive in (program_id_p, num_programs_p):
    rules.lower.modules[_primitive.name] = ["hlofront.pallas.interpret.kernel"]

_INDEX = ShapedArray((), "int32")
# A size of a grid, which a program may compute.
GridSize = ArrayLike | DynamicGridDim


@rules.infer(program_id_p, num_programs_p)
def _(*, axis: int) -> ShapedArray:
    return _INDEX


class _Kernel(NamedTuple):
    """The kernel that is being traced, or a pipeline inside of it.

    Attributes:
      trace: the interpreter that writes the kernel's jaxpr.
      grid: the sizes of the grid.
      own: references to buffers that are not parameters of the kernel, by their purpose.
      indices: the index of the step along each axis of a pipeline; None for the kernel's own grid.
    """

    trace: StagingTrace
    grid: tuple[GridSize, ...]
    own: dict[str, JitTracer]
    indices: tuple[Array, ...] | None = None


_kernel: ContextVar[_Kernel | None] = ContextVar("the kernel that is being traced", default=None)


@contextmanager
def tracing_kernel(
    trace: StagingTrace, grid: GridSizes, names: Sequence[Hashable]
) -> Iterator[None]:
    """Make `program_id` an operation of the kernel whose jaxpr an interpreter writes.

    Args:
      trace: the interpreter.
      grid: the sizes of the grid that the kernel sees.
      names: the names of its axes, for `axis_index`; None for axes without names.
    """

    def index(axis: int) -> Array:
        with interpreting_with(trace):
            return program_id_p.bind(axis=axis)

    token = _kernel.set(_Kernel(trace, grid, {}))
    named = {name: axis for axis, name in enumerate(names) if name is not None}
    axes = [(name, grid[axis]) for name, axis in named.items()]
    functions = {name: partial(index, axis) for name, axis in named.items()}
    try:
        with indexed_axes_in_scope(axes, functions):
            yield
    finally:
        _kernel.reset(token)


@contextmanager
def tracing_pipeline(grid: tuple[ArrayLike, ...], indices: tuple[Array, ...]) -> Iterator[None]:
    """Make `program_id` return the index of a step of a pipeline inside the current kernel.

    Raises:
      ValueError: outside of kernels.
    """
    token = _kernel.set(_current("emit_pipeline")._replace(grid=grid, indices=indices))
    try:
        yield
    finally:
        _kernel.reset(token)


def indices_of_step(number: ArrayLike, sizes: Sequence[ArrayLike]) -> list[ArrayLike]:
    """Return the indices of a step of a grid by its number: the last axis varies fastest."""
    number = convert(number, int32, False)
    indices: list[ArrayLike] = []
    for size in reversed(sizes):
        size = convert(size, int32, False)
        indices.append(rem(number, size))
        number = div(number, size)
    return indices[::-1]


def is_tracing_kernel() -> bool:
    """Return whether a kernel is being traced."""
    kernel = _kernel.get()
    return kernel is not None and kernel.trace.alive


def own_reference(purpose: str, aval: AbstractRef) -> JitTracer:
    """Return a reference to a hidden buffer of the current kernel, created when first requested.

    It is a scratch buffer after those that the kernel takes, so it keeps its contents from step to
    step.

    Args:
      purpose: the function that requests it, for messages; each function has its own buffer.
      aval: the type of the reference.

    Raises:
      ValueError: outside of kernels.
    """
    kernel = _current(purpose)
    if purpose not in kernel.own:
        kernel.own[purpose] = kernel.trace.new_arg(aval)
    return kernel.own[purpose]


def _current(name: str) -> _Kernel:
    """Return the kernel that is being traced.

    Raises:
      ValueError: if there is none, with the name of the function that requires it.
    """
    kernel = _kernel.get()
    if kernel is None or not kernel.trace.alive:
        raise ValueError(
            f"`{name}` can only be called in a kernel, which pallas_call traces: there is no grid "
            "here. Index maps take the indices of the grid as arguments."
        )
    return kernel


def _kernel_of(name: str, axis: int) -> _Kernel:
    kernel = _current(name)
    if isinstance(axis, bool) or not isinstance(axis, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"`{name}` requires an axis of the grid as an int, got {axis!r}")
    if not 0 <= axis < len(kernel.grid):
        raise ValueError(
            f"Axis {axis} is out of bounds for grid {kernel.grid}: `{name}` takes the number of an "
            f"axis of the grid, from 0 to {len(kernel.grid) - 1}"
            if kernel.grid
            else f"Axis {axis} is out of bounds for grid (): give pallas_call a grid=..."
        )
    return kernel


def program_id(axis: int) -> Array:
    """Return the index of the current step along an axis of the kernel's grid.

    It is computed at the beginning of the kernel, so branches and loops of the kernel may read it.

    Args:
      axis: the number of the axis.

    Raises:
      ValueError: outside of kernels, or if the grid has no such axis.
    """
    kernel = _kernel_of("program_id", axis)
    if kernel.indices is not None:
        return kernel.indices[axis]
    with interpreting_with(kernel.trace):
        return program_id_p.bind(axis=axis)


def num_programs(axis: int) -> ArrayLike:
    """Return the size of the kernel's grid along an axis: an int, or an array if it is dynamic.

    Args:
      axis: the number of the axis.

    Raises:
      ValueError: outside of kernels, or if the grid has no such axis.
    """
    kernel = _kernel_of("num_programs", axis)
    size = kernel.grid[axis]
    if not isinstance(size, DynamicGridDim):
        return size
    with interpreting_with(kernel.trace):
        return num_programs_p.bind(axis=axis)
