"""The function pallas_call: a kernel that runs at each step of a grid, on blocks of arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from hlofront.base import caches, source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.bridge import state
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Value
from hlofront.core.references import AbstractRef, is_known_integer
from hlofront.core.trace import Tracer
from hlofront.pallas.block_specs import CostEstimate, NoBlockSpec, no_block_spec
from hlofront.pallas.compiler_params import CompilerParams
from hlofront.pallas.debug_checks import checking_indices, makes_checks
from hlofront.pallas.grid_indices import tracing_kernel
from hlofront.pallas.grid_mapping import GridMapping, GridSizes, block_mapping, dynamic_grid_dim
from hlofront.pallas.grid_specs import (
    BlockSpecTree,
    Grid,
    GridSpec,
    PrefetchScalarGridSpec,
    ScratchShapeTree,
    specs_for,
)
from hlofront.pallas.interpret_params import InterpretParams, forced_params
from hlofront.pallas.kernel_call import pallas_call_p
from hlofront.pallas.memory import MemoryRef, TpuMemorySpace, buffer_type, ref_aval_of
from hlofront.transforms.arguments import Signature
from hlofront.transforms.stage import StagingTrace, stage

_trace_context = state.trace_context


class CapturedValues(ValueError):
    """The error for a kernel that reads values of the program around it.

    Attributes:
      program: the traced kernel, whose constants these values are.
    """

    def __init__(self, message: str, program: ClosedJaxpr):
        super().__init__(message)
        self.program = program

    @property
    def has_arrays(self) -> bool:
        """Whether some of the values are neither references nor scalars."""
        avals = [var.aval for var in self.program.jaxpr.constvars]
        return any(isinstance(aval, ShapedArray) and aval.shape for aval in avals)


@boundary
def pallas_call(
    kernel: Callable[..., None],
    out_shape: PyTree,
    *,
    grid_spec: GridSpec | None = None,
    grid: Grid = (),
    in_specs: BlockSpecTree = no_block_spec,
    out_specs: BlockSpecTree = no_block_spec,
    scratch_shapes: ScratchShapeTree = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: bool | InterpretParams = False,
    name: str | None = None,
    compiler_params: CompilerParams | None = None,
    cost_estimate: CostEstimate | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., PyTree]:
    """Return a function of arrays that runs a kernel at each step of a grid.

    Args:
      kernel: a function of references: to prefetched scalars, to the blocks of inputs, to the
        blocks of outputs, and to scratch buffers. It writes to outputs and returns None.
      out_shape: a pytree of the shapes and dtypes of the results: `jax.ShapeDtypeStruct`s.
      grid_spec: the grid with all specs, instead of the parameters below.
      grid: the sizes of the grid: an integer or a tuple, whose entries may be traced. Steps run in
        order; the last axis varies fastest.
      in_specs: a pytree of BlockSpecs for the operands; by default each step sees whole arrays.
      out_specs: a pytree of BlockSpecs for the results.
      scratch_shapes: the types of buffers that keep their contents from step to step, such as
        `pltpu.VMEM((8, 128), jnp.float32)`; a dictionary gives parameters by name.
      input_output_aliases: a dictionary from the numbers of operands to those of the results that
        share their memory and start with their values.
      debug: whether the compiler prints the kernel.
      interpret: True to run the kernel as XLA's operations, on any device; a
        `pltpu.InterpretParams` for a model of a TPU on the host, which finds races and deadlocks.
      name: the name of the kernel, for profiles; by default the function's.
      compiler_params: options of the compiler, such as a `pltpu.CompilerParams`.
      cost_estimate: the cost of a call, for the compiler's scheduling.
      metadata: strings by name, for tools.

    Returns:
      A function of pytrees of arrays, with a result of the structure of `out_shape`.

    Raises:
      ValueError: if specs or aliases do not fit the arrays, or the kernel returns a value or
        captures an array.
      TypeError: if the kernel is not callable.

    Example:
      >>> def double(x_ref, o_ref):
      ...     o_ref[...] = x_ref[...] * 2
      >>> x = jnp.arange(4.0)
      >>> pl.pallas_call(double, jax.ShapeDtypeStruct((4,), jnp.float32), interpret=True)(x)
      Array([0., 2., 4., 6.], dtype=float32)
    """
    if not callable(kernel):
        raise TypeError(f"pallas_call requires a kernel that can be called, got {kernel!r}")
    if not isinstance(interpret, bool | InterpretParams):
        raise TypeError(f"interpret is True, False or a pltpu.InterpretParams: got {interpret!r}")
    if name is not None and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"the name of a kernel is a string, got {name!r}")
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        given = {"in_specs": in_specs, "out_specs": out_specs, "scratch_shapes": scratch_shapes}
        _refuse_both(grid=grid, **given)
    call = _Call(kernel, out_shape, grid_spec, dict(input_output_aliases))
    params = {
        "debug": bool(debug),
        "interpret": interpret,
        "name": name,
        "compiler_params": compiler_params,
        "cost_estimate": cost_estimate,
        "metadata": None if metadata is None else tuple(sorted(metadata.items())),
        "mesh": None,
    }

    @boundary
    def wrapped(*args: PyTree) -> PyTree:
        return call(args, params)

    return wrapped


def _refuse_both(**specs: object) -> None:
    for name, spec in specs.items():
        if not isinstance(spec, NoBlockSpec) and spec != ():
            default = "no_block_spec" if name.endswith("specs") else "()"
            raise ValueError(
                f"If `grid_spec` is specified, then `{name}` must be `{default}`. It is {spec!r}: "
                "give it to the grid spec"
            )


class _Call:
    """A kernel with the description of its arrays, which traces and binds."""

    __slots__ = ("aliases", "grid_spec", "kernel", "out_avals", "out_tree", "signature", "table")

    def __init__(
        self,
        kernel: Callable[..., None],
        out_shape: PyTree,
        grid_spec: GridSpec,
        aliases: Mapping[int, int],
    ):
        if isinstance(out_shape, list):
            out_shape = tuple(out_shape)
        leaves, self.out_tree = tree.tree_flatten(out_shape)
        self.out_avals = tuple(map(_out_aval, leaves))
        self.kernel = kernel
        self.grid_spec = grid_spec
        self.aliases = aliases
        self.signature = Signature(kernel)
        # The kernels traced by earlier calls, by the types of the operands.
        self.table = caches.CacheTable()

    def __call__(self, args: tuple[PyTree, ...], params: Mapping[str, Any]) -> PyTree:
        leaves, in_tree = tree.tree_flatten(args)
        avals = tuple([ShapedArray(aval.shape, aval.dtype) for aval in map(typeof, leaves)])
        interpret = forced_params() or params["interpret"]
        # Models of TPUs make their own checks.
        checks = interpret is True and makes_checks()
        key = (in_tree, avals, checks, _trace_context())
        traced = self.table.get(key)
        if traced is None:
            with checking_indices(checks):
                traced = self.table[key] = self._traced(in_tree, avals)
        sizes = [size for size in self.grid_spec.grid if not is_known_integer(size)]
        results = pallas_call_p.bind(
            *sizes,
            *leaves,
            **traced,
            out_avals=self.out_avals,
            **{**params, "interpret": interpret},
        )
        return self.out_tree.unflatten(results)

    # ---- tracing ---------------------------------------------------------------------------------

    def _traced(self, in_tree: PyTreeDef, avals: Sequence[ShapedArray]) -> dict[str, object]:
        """Return the parameters of a call that follow from the types of its operands."""
        spec = self.grid_spec
        prefetched = spec.num_scalar_prefetch if isinstance(spec, PrefetchScalarGridSpec) else 0
        args = in_tree.unflatten(avals)
        if prefetched > len(args):
            raise ValueError(
                f"the grid spec has num_scalar_prefetch={prefetched}, and {len(args)} operands "
                "were given: prefetched scalars are the first operands"
            )
        scalars, inputs = args[:prefetched], args[prefetched:]
        paths = [f"args{tree.keystr(path)}" for path, _ in tree.tree_leaves_with_path(args)]
        scalar_refs = tree.tree_map(_scalar_ref, scalars)
        count = len(tree.tree_leaves(scalars))
        index_map_avals, index_map_tree = tree.tree_flatten(
            ((*[ShapedArray((), "int32")] * len(spec.grid), *scalar_refs), {})
        )
        outputs = self.out_tree.unflatten(self.out_avals)
        out_paths = [f"outputs{tree.keystr(p)}" for p, _ in tree.tree_leaves_with_path(outputs)]
        in_avals = avals[count:]
        specs = [
            *specs_for("in_specs", spec.in_specs, inputs, "inputs"),
            *specs_for("out_specs", spec.out_specs, outputs, "out_shape"),
        ]
        mappings = [
            block_mapping(each, origin, aval, index_map_tree, index_map_avals)
            for each, origin, aval in zip(
                specs,
                (*paths[count:], *out_paths),
                (*in_avals, *self.out_avals),
                strict=True,
            )
        ]
        scratch, named_scratch = self._scratch()
        blocks = [each.block_aval for each in mappings]
        in_refs = tree.tree_structure(inputs).unflatten(blocks[: len(in_avals)])
        out_refs = self.out_tree.unflatten(blocks[len(in_avals) :])
        # The kernel has a parameter for each result of a tuple.
        out_args = out_refs if isinstance(out_refs, tuple) else (out_refs,)
        positional = (*scalar_refs, *in_refs, *out_args, *scratch)
        grid = tuple([s if is_known_integer(s) else dynamic_grid_dim for s in spec.grid])
        jaxpr = self._kernel_jaxpr(positional, named_scratch, grid)
        scratch_refs = jaxpr.invars[count + len(mappings) :]
        mapping = GridMapping(
            grid=grid,
            grid_names=spec.grid_names,
            block_mappings=tuple(mappings),
            index_map_tree=index_map_tree,
            index_map_avals=tuple(index_map_avals),
            vmapped_dims=(),
            num_index_operands=count,
            num_inputs=len(in_avals),
            num_outputs=len(self.out_avals),
            # Those after the parameters of the kernel are its own: see own_reference.
            scratch_avals=tuple([cast(AbstractRef, var.aval) for var in scratch_refs]),
        )
        return {
            "jaxpr": jaxpr,
            "grid_mapping": mapping,
            "input_output_aliases": self._checked_aliases(avals, paths),
        }

    def _scratch(self) -> tuple[tuple[PyTree, ...], dict[str, PyTree]]:
        """Return the types of references to scratch buffers, by position and by name."""
        shapes = self.grid_spec.scratch_shapes
        refs = tree.tree_map(lambda shape: ref_aval_of(shape, "an entry of scratch_shapes"), shapes)
        if isinstance(refs, dict):
            return (), refs
        return (tuple(refs), {}) if isinstance(refs, tuple) else ((refs,), {})

    def _kernel_jaxpr(
        self, positional: tuple[PyTree, ...], named: dict[str, PyTree], grid: GridSizes
    ) -> Jaxpr:
        avals, in_tree = tree.tree_flatten((positional, named))
        signature = self.signature
        info = DebugInfo(
            "pallas_call kernel",
            signature.find_where,
            lambda: signature.argument_names(in_tree.unflatten(range(len(avals)))),
            (),
        )
        trace = StagingTrace(info)

        def flat(*refs: Value) -> list[Value]:
            args, kwargs = in_tree.unflatten(refs)
            result = self.kernel(*args, **kwargs)
            if result is not None:
                raise ValueError(
                    f"The kernel function in the pallas_call {signature.where} should return None. "
                    f"It returns a PyTree: {tree.tree_structure(result)}. Write results to the "
                    "references of outputs."
                )
            return []

        # vmap adds axes only to the grids of traced kernels, so these are all axes.
        with tracing_kernel(trace, grid, self.grid_spec.grid_names or ()):
            program = stage(flat, avals, info, trace=trace)
        if program.consts:
            raise CapturedValues(_captures(signature.where, program), program)
        return program.jaxpr

    def _checked_aliases(
        self, avals: Sequence[ShapedArray], paths: Sequence[str]
    ) -> tuple[tuple[int, int], ...]:
        for position, result in self.aliases.items():
            pair = f"input_output_aliases contains the mapping '{position}:{result}'"
            if not 0 <= position < len(avals):
                raise ValueError(
                    f"{pair} with input index {position} outside the range [0, {len(avals)})"
                )
            if not 0 <= result < len(self.out_avals):
                raise ValueError(
                    f"{pair} with output index {result} outside the range "
                    f"[0, {len(self.out_avals)})"
                )
            operand, output = avals[position], self.out_avals[result]
            if (operand.shape, operand.dtype) != (output.shape, output.dtype):
                raise ValueError(
                    f"{pair} referring to input{paths[position].removeprefix('args')} with "
                    f"abstract value {operand.str_short()} and to output with a different "
                    f"abstract value {output.str_short()}. An output that takes the memory of an "
                    "input has its shape and dtype."
                )
        return tuple(self.aliases.items())


def _out_aval(leaf: Any) -> ShapedArray:
    """Return the type of a result that an entry of `out_shape` describes."""
    if isinstance(leaf, MemoryRef):
        if isinstance(leaf.memory_space, TpuMemorySpace):
            return leaf.inner_aval.update(memory_space=leaf.memory_space)
        return leaf.inner_aval
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise ValueError(
            f"Invalid out_shape type: {type(leaf)}. Give a jax.ShapeDtypeStruct(shape, dtype) per "
            f"result, got {leaf!r}"
        )
    return buffer_type(leaf.shape, leaf.dtype, None).inner_aval


def _scalar_ref(aval: ShapedArray) -> AbstractRef:
    return AbstractRef(aval, TpuMemorySpace.SMEM)


def _captures(where: str, program: ClosedJaxpr) -> str:
    """Return the error message for captured arrays, with the lines that read them."""
    constvars = program.jaxpr.constvars
    types = ", ".join(var.aval.str_short(True) for var in constvars)
    lines = [
        source.summarize(equation.traceback)
        for equation in program.jaxpr.eqns
        if any(atom in constvars for atom in equation.invars)
    ]
    read = f" They are read at {', '.join(dict.fromkeys(lines))}." if lines else ""
    traced = any(isinstance(const, Tracer) for const in program.consts)
    kind = "values of the function around the call" if traced else "arrays from outside"
    return (
        f"The kernel function in the pallas_call {where} captures constants [{types}]. You should "
        f"pass them as inputs. Those are {kind}, and a kernel reads only its references.{read}"
    )
