"""pl.kernel: a function of references that each core of a mesh of cores runs."""

import dataclasses
import enum
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.core.axes import axis_size
from hlofront.pallas.block_specs import BlockSpec, CostEstimate
from hlofront.pallas.compiler_params import CompilerParams
from hlofront.pallas.control import when
from hlofront.pallas.grid_specs import GridSpec, ScratchShapeTree
from hlofront.pallas.interpret_params import InterpretParams
from hlofront.pallas.memory import ANY, MemoryRef
from hlofront.pallas.pallas_call import pallas_call
from hlofront.pallas.semaphores import semaphore_signal, semaphore_wait
from hlofront.pallas.tpu_info import traced_for
from hlofront.primitives.collectives.collectives import axis_index
from hlofront.primitives.references.references import RefLike


class CoreType(enum.Enum):
    """The kinds of cores of a TPU: TensorCores, on which kernels run, and parts of SparseCores."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"

    def __str__(self) -> str:
        return self.value


def _cores_of_a_device() -> int:
    return getattr(traced_for(), "num_cores", None) or 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorCoreMesh:
    """The TensorCores of a device, each of which runs a kernel of `pl.kernel`.

    Attributes:
      axis_name: the name of the axis of cores, for `jax.lax.axis_index`.
      num_cores: the number of cores; by default those of the device that programs are traced for,
        1 unless it is a TPU.
    """

    axis_name: str
    num_cores: int = dataclasses.field(default_factory=_cores_of_a_device)

    @property
    def core_type(self) -> CoreType:
        """The kind of the cores."""
        return CoreType.TC

    @property
    def shape(self) -> "OrderedDict[str, int]":
        """The number of cores by the name of the axis."""
        return OrderedDict({self.axis_name: self.num_cores})


Body = Callable[..., None]


def kernel(
    body: Body | Sequence[Body] | None = None,
    out_type: PyTree = (),
    *,
    mesh: TensorCoreMesh | Sequence[TensorCoreMesh],
    scratch_types: ScratchShapeTree = (),
    compiler_params: CompilerParams | None = None,
    interpret: bool | InterpretParams = False,
    cost_estimate: CostEstimate | None = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """Return a function of arrays that each core of a mesh runs, on references to whole arrays.

    The arrays are not moved, and are mostly in HBM: the kernel copies parts to its own buffers.

    Args:
      body: a function of references: to inputs, outputs and scratch buffers. Without it, the result
        is a decorator of such functions.
      out_type: a pytree of the shapes and dtypes of the results: `jax.ShapeDtypeStruct`s.
      mesh: the cores. `jax.lax.axis_index` of its axis is the number of the core.
      scratch_types: the types of buffers of each core, such as `pltpu.VMEM((8, 128), jnp.float32)`.
      compiler_params: options of the compiler, without `dimension_semantics`.
      interpret: True to run the work of the cores in sequence, as XLA's operations; a
        `pltpu.InterpretParams` for a model of a TPU.
      cost_estimate: the cost of a call, for the compiler's scheduling.
      debug: whether the compiler prints the kernel.
      name: the name of the kernel, for profiles; by default the function's.
      metadata: strings by name, for tools.

    Returns:
      A function of pytrees of arrays, with a result of the structure of `out_type`.

    Raises:
      ValueError: for several functions or meshes, and for `dimension_semantics`.

    Example:
      >>> def body(x_ref, o_ref):
      ...     core = jax.lax.axis_index("core")
      ...     half = pl.ds(4 * core, 4)
      ...     pltpu.sync_copy(x_ref.at[half], o_ref.at[half])
      >>> mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
      >>> x = jnp.arange(8.0)
      >>> pl.kernel(body, x, mesh=mesh, interpret=True)(x)
      Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    if isinstance(mesh, Sequence) or isinstance(body, Sequence):
        raise ValueError(
            f"pl.kernel was given several functions or meshes, {body!r} and {mesh!r}: those are "
            "for SparseCores next to TensorCores, and hlofront has kernels for TensorCores only. "
            "Give one function, and one pltpu.TensorCoreMesh"
        )
    options = CompilerParams() if compiler_params is None else compiler_params
    if options.dimension_semantics is not None:
        raise ValueError(
            "pl.kernel does not support dimension_semantics= in compiler_params=: all cores of the "
            f"mesh run at the same time. Got {options.dimension_semantics}"
        )
    options = options.replace(dimension_semantics=("parallel",))
    grid = ((mesh.axis_name, mesh.num_cores),)

    def make(body: Body) -> Callable[..., Any]:
        # A call caches its traced kernels, and is for one structure of operands.
        calls: dict[PyTreeDef, Callable[..., Any]] = {}

        def run(*args: Any) -> Any:
            structure = tree.tree_structure(args)
            if structure not in calls:
                specs = tree.tree_map(lambda _: BlockSpec(memory_space=ANY), args)
                out_specs = tree.tree_map(_out_spec, out_type)
                calls[structure] = pallas_call(
                    body,
                    out_type,
                    grid_spec=GridSpec(grid, specs, out_specs, scratch_types),
                    compiler_params=options,
                    interpret=interpret,
                    cost_estimate=cost_estimate,
                    debug=debug,
                    name=name,
                    metadata=metadata,
                )
            return calls[structure](*args)

        return run

    return make if body is None else make(body)


def _out_spec(result: Any) -> BlockSpec:
    return BlockSpec(memory_space=result.memory_space if isinstance(result, MemoryRef) else ANY)


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Return a decorator that immediately runs a function of no arguments, on the first core.

    Args:
      core_axis_name: the name of the axis of cores of a `pl.kernel`.
    """
    if axis_size(core_axis_name) == 1:
        return when(True)
    return when(axis_index(core_axis_name) == 0)


def core_barrier(sem: RefLike, *, core_axis_name: str) -> None:
    """Wait until all cores of a mesh have reached this point.

    Args:
      sem: a reference to a semaphore of type REGULAR, which each core has.
      core_axis_name: the name of the axis of cores of a `pl.kernel`.
    """
    cores = axis_size(core_axis_name)
    own = axis_index(core_axis_name)
    for core in range(cores):

        @when(own != core if cores > 1 else False)
        def _(core: int = core) -> None:
            semaphore_signal(sem, core_index=core)

    if cores > 1:
        semaphore_wait(sem, cores - 1)
