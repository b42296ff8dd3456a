"""pl.kernel: a function of references that each core of a mesh of cores runs."""

import dataclasses
import enum
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from hlofront.base import tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike
from hlofront.bridge.client import Device
from hlofront.core.aval import typeof
from hlofront.core.axes import axis_size
from hlofront.core.jaxpr import ClosedJaxpr, Value
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.references import AbstractRef, is_reference
from hlofront.pallas.block_specs import BlockSpec, CostEstimate
from hlofront.pallas.compiler_params import CompilerParams
from hlofront.pallas.control import when
from hlofront.pallas.grid_indices import own_reference
from hlofront.pallas.grid_specs import GridSpec, ScratchShapeTree
from hlofront.pallas.interpret_params import InterpretParams
from hlofront.pallas.memory import ANY, SMEM, MemoryRef
from hlofront.pallas.pallas_call import CapturedValues, pallas_call
from hlofront.pallas.semaphores import semaphore_signal, semaphore_wait
from hlofront.pallas.tpu_info import traced_for
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.collectives.collectives import axis_index
from hlofront.primitives.references.references import RefLike, get, swap
from hlofront.transforms.reference_checks import check_references


class CoreType(enum.Enum):
    """The kinds of cores of a TPU: TensorCores, on which kernels run, and parts of SparseCores."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"

    def __str__(self) -> str:
        return self.value


def _cores_of(device: object) -> int:
    return getattr(device, "num_cores", None) or 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorCoreMesh:
    """The TensorCores of a device, each of which runs a kernel of `pl.kernel`.

    Attributes:
      axis_name: the name of the axis of cores, for `jax.lax.axis_index`.
      num_cores: the number of cores; by default those of the device that programs are traced for,
        1 unless it is a TPU.
    """

    axis_name: str
    num_cores: int = dataclasses.field(default_factory=lambda: _cores_of(traced_for()))

    @property
    def core_type(self) -> CoreType:
        """The kind of the cores."""
        return CoreType.TC

    @property
    def shape(self) -> "OrderedDict[str, int]":
        """The number of cores by the name of the axis."""
        return OrderedDict({self.axis_name: self.num_cores})


def create_tensorcore_mesh(
    axis_name: str, devices: Sequence[Device] | None = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """Return `TensorCoreMesh(axis_name=axis_name)`, of the cores of the first of some devices.

    Args:
      axis_name: the name of the axis of cores.
      devices: devices, whose first one has the cores.
      num_cores: instead, the number of cores.

    Raises:
      ValueError: if both are given.
    """
    if devices is not None and num_cores is not None:
        raise ValueError("cannot specify both devices and num_cores: leave one of them out")
    if devices is not None:
        num_cores = _cores_of(devices[0])
    return TensorCoreMesh(axis_name=axis_name, num_cores=num_cores or _cores_of(traced_for()))


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
) -> Callable[..., PyTree]:
    """Return a function of arrays that each core of a mesh runs, on references to whole arrays.

    The arrays are not moved, and are mostly in HBM: the kernel copies parts to its own buffers.

    Args:
      body: a function of references: to inputs, outputs and scratch buffers. It may also read and
        write references of the program around it, and read its scalars. Without it, the result is
        a decorator of such functions.
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
      A function of pytrees of arrays, and of references, which the kernel may write to. Its result
      has the structure of `out_type`.

    Raises:
      ValueError: for several functions or meshes, for `dimension_semantics`, and if the kernel
        closes over an array that is not a scalar.

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

    def call(
        body: Body, out_type: PyTree, specs: PyTree, aliases: dict[int, int], name: str | None
    ):
        return pallas_call(
            body,
            out_type,
            grid_spec=GridSpec(grid, specs, tree.tree_map(_out_spec, out_type), scratch_types),
            input_output_aliases=aliases,
            compiler_params=options,
            interpret=interpret,
            cost_estimate=cost_estimate,
            debug=debug,
            name=name,
            metadata=metadata,
        )

    def make(body: Body) -> Callable[..., PyTree]:
        # A call caches its traced kernels, and is for one structure of operands.
        calls: dict[PyTreeDef, Callable[..., PyTree]] = {}

        def run(*args: PyTree) -> PyTree:
            leaves, structure = tree.tree_flatten(args)
            if not any(map(_is_reference, leaves)):
                if structure not in calls:
                    specs = tree.tree_map(lambda _: _ANYWHERE, args)
                    calls[structure] = call(body, out_type, specs, {}, name)
                try:
                    return calls[structure](*args)
                except CapturedValues as error:
                    if error.has_arrays:
                        raise
            around = _Around(body, out_type, leaves, structure)
            return around.run(partial(call, name=name or body.__name__))

        return run

    return make if body is None else make(body)


_ANYWHERE = BlockSpec(memory_space=ANY)


def _is_reference(x: object) -> bool:
    return is_reference(typeof(cast(Any, x)))


class _Around(NamedTuple):
    """A kernel on references of the program around it, which are results that share its operands.

    Attributes:
      body: the kernel, a function of references.
      out_type: the types of its other results.
      leaves: its operands: arrays, and references of the program around it.
      structure: their structure.
      program: `on_parts` as a traced kernel, whose constants are references and scalars that the
        kernel closes over; None if it closes over nothing.
    """

    body: Body
    out_type: PyTree
    leaves: Sequence[Value]
    structure: PyTreeDef
    program: ClosedJaxpr | None = None

    def run(self, call: Callable[..., Callable[..., PyTree]]) -> PyTree:
        """Run the kernel, and write its results to the references; return the others."""
        program, count = self.program, len(self.leaves)
        captured = () if program is None else program.consts
        check_references(None, self.leaves, captured)
        operands: list[ArrayLike] = []
        specs: list[BlockSpec] = []
        refs: dict[int, RefLike] = {}
        for place, value in enumerate((*self.leaves, *captured)):
            if _is_reference(value):
                refs[place] = value
                value = get(value)
            is_scalar = place >= count and place not in refs
            operands.append(reshape(value, (1,)) if is_scalar else value)
            specs.append(BlockSpec(memory_space=SMEM) if is_scalar else _ANYWHERE)
        first = len(tree.tree_leaves(self.out_type))
        aliases = {place: first + number for number, place in enumerate(refs)}
        types = tuple([cast(Any, typeof)(ref).inner_aval for ref in refs.values()])
        on_parts = partial(self.on_parts, list(refs))
        try:
            results, new = call(on_parts, (self.out_type, types), [specs], aliases)(operands)
        except CapturedValues as error:
            if error.has_arrays:
                raise
            return self._replace(program=error.program).run(call)
        for ref, array in zip(refs.values(), new, strict=True):
            swap(ref, None, array)
        return results

    def on_parts(
        self,
        places: list[int],
        operands: Sequence[RefLike],
        results: PyTree,
        mutated: Sequence[RefLike],
        *scratch: PyTree,
        **named: PyTree,
    ) -> None:
        """Run the kernel's function on its references, in the kernel that is being traced."""
        refs = {**dict(enumerate(operands)), **dict(zip(places, mutated, strict=True))}
        count = len(self.leaves)
        if self.program is None:
            args = self.structure.unflatten(refs.values())
            outs = results if isinstance(self.out_type, tuple | list) else (results,)
            return self.body(*args, *outs, *scratch, **named)
        passed = [ref for place, ref in zip(places, mutated, strict=True) if place < count]
        flat = tree.tree_leaves(((operands[:count], results, passed, *scratch), named))
        consts = [
            ref if place in places else get(ref, 0) for place, ref in refs.items() if place >= count
        ]
        jaxpr = self.program.jaxpr
        own = [
            own_reference(f"buffer {number} of a kernel", cast(AbstractRef, var.aval))
            for number, var in enumerate(jaxpr.invars[len(flat) :])
        ]
        eval_jaxpr(jaxpr, consts, *flat, *own)


def core_map(
    mesh: TensorCoreMesh,
    *,
    compiler_params: CompilerParams | None = None,
    interpret: bool | InterpretParams = False,
    debug: bool = False,
    cost_estimate: CostEstimate | None = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: ScratchShapeTree = (),
) -> Callable[[Body], None]:
    """Return a decorator that runs a function immediately on each core of a mesh.

    The function reads and writes references of the program around it, such as those of
    `jax.new_ref`, and returns None. `pl.kernel` does the same for functions that are called.

    Args:
      mesh: the cores.
      compiler_params: options of the compiler, without `dimension_semantics`.
      interpret: True to run the work of the cores in sequence, as XLA's operations; a
        `pltpu.InterpretParams` for a model of a TPU.
      debug: whether the compiler prints the kernel.
      cost_estimate: the cost, for the compiler's scheduling.
      name: the name of the kernel, for profiles; by default the function's.
      metadata: strings by name, for tools.
      scratch_shapes: the types of buffers of each core, which are the function's parameters.

    Raises:
      ValueError: if the function closes over an array that is not a scalar, and for
        `dimension_semantics`.

    Example:
      >>> ref = jax.new_ref(jnp.zeros(4))
      >>> mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
      >>> @pl.core_map(mesh, interpret=True, scratch_shapes=[pltpu.VMEM((2,), jnp.float32)])
      ... def _(buffer):
      ...     core = jax.lax.axis_index("core")
      ...     buffer[...] = jnp.full(2, core, jnp.float32)
      ...     pltpu.sync_copy(buffer, ref.at[pl.ds(2 * core, 2)])
      >>> ref[...]
      Array([0., 0., 1., 1.], dtype=float32)
    """

    def run(body: Body) -> None:
        kernel(
            body,
            mesh=mesh,
            scratch_types=scratch_shapes,
            compiler_params=compiler_params,
            interpret=interpret,
            cost_estimate=cost_estimate,
            debug=debug,
            name=name,
            metadata=metadata,
        )()

    return run


def _out_spec(result: object) -> BlockSpec:
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
