"""The primitive of pallas_call, its types, derivatives and batches."""

import dataclasses
import math
from collections.abc import Hashable, Sequence
from typing import Any, NoReturn

from hlofront.base import tree
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, Avals, MemorySpace, ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import Subprogram
from hlofront.core.references import RefEffect
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Tangent, Tangents, Zero
from hlofront.higher_order.control_flow.mapping import map as map_in_order
from hlofront.higher_order.selecting import where, with_zeros
from hlofront.pallas.block_specs import CostEstimate, squeezed
from hlofront.pallas.grid_mapping import BlockMapping, GridMapping
from hlofront.pallas.hints import KernelEffect
from hlofront.pallas.memory import has_tangent
from hlofront.primitives.arrays.creation import empty
from hlofront.primitives.rules.batching import to_front
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.jvp import jvp_program

# Operands: the dynamic sizes of the grid, prefetched scalars, and inputs. Parameters: `jaxpr`, the
# kernel as a program of references, without constants or results; `grid_mapping`, a GridMapping;
# `input_output_aliases`, pairs of an operand, not counting sizes of the grid, and a result;
# `out_avals`, the types of the results; `compiler_params`, `cost_estimate`, `name` and `metadata`,
# which compilers read; `interpret`, whether XLA's operations do what a compiled kernel would;
# `debug`; `mesh`, which is None.
pallas_call_p = Primitive("pallas_call", multiple_results=True, carries_programs=True)
# The first lowering imports the modules with its rules.
rules.lower.modules[pallas_call_p.name] = [
    "hlofront.pallas.interpret.kernel",
    "hlofront.pallas.mosaic.call_tpu",
]


@rules.infer(pallas_call_p)
def _(*avals: AbstractValue, out_avals: Avals, **_: object) -> list[ShapedArray]:
    # Inside shard_map, results vary along all manual axes that an operand varies along. Their
    # memories are those of the call alone.
    varying = frozenset[Hashable]().union(*[aval.manual_axis_type.varying for aval in avals])
    results = [aval.update(memory_space=MemorySpace.Device) for aval in out_avals]
    if not varying:
        return results
    return [
        aval.update(manual_axis_type=aval.manual_axis_type.with_varying(varying))
        for aval in results
    ]


@rules.effects(pallas_call_p)
def _(*avals: AbstractValue, jaxpr: Jaxpr, **_: object) -> Effects:
    return frozenset(
        effect for effect in jaxpr.effects if not isinstance(effect, RefEffect | KernelEffect)
    )


@rules.subprograms(pallas_call_p)
def _(*, jaxpr: Jaxpr, grid_mapping: GridMapping, **_: object) -> tuple[Subprogram]:
    sizes = [size for size in grid_mapping.grid if isinstance(size, int)]
    steps = math.prod(sizes) if len(sizes) == len(grid_mapping.grid) else None
    return (Subprogram(jaxpr, "jaxpr", "body", iterations=steps),)


# ---- tangents: the kernel of primals and tangents ------------------------------------------------


@rules.jvp(pallas_call_p)
def _(
    primals: ArrayLikes, tangents: Tangents, **params: Any
) -> tuple[list[ArrayLike], list[Tangent]]:
    mapping: GridMapping = params["grid_mapping"]
    aliases: tuple[tuple[int, int], ...] = params["input_output_aliases"]
    out_avals: tuple[ShapedArray, ...] = params["out_avals"]
    sizes = mapping.num_dynamic_grid_bounds
    scalars = mapping.num_index_operands
    aliased = {position - scalars for position, _ in aliases}
    inputs = mapping.num_inputs
    of_inputs = tangents[sizes + scalars :]
    # An output starts with the value of the input that shares its memory; so does its tangent.
    moving_in = [
        type(tangent) is not Zero or (number in aliased and has_tangent(typeof(primal)))
        for number, (primal, tangent) in enumerate(
            zip(primals[sizes + scalars :], of_inputs, strict=True)
        )
    ]
    moving_out = [has_tangent(aval) for aval in out_avals]
    moving_scratch = [has_tangent(aval.inner_aval) for aval in mapping.scratch_avals]
    kernel = _kernel_of_tangents(
        params["jaxpr"], scalars, inputs, moving_in, moving_out, moving_scratch
    )
    ins, outs = mapping.block_mappings[:inputs], mapping.block_mappings[inputs:]
    new_ins, new_outs = where(ins, moving_in), where(outs, moving_out)
    new_mapping = mapping._replace(
        block_mappings=(
            *ins,
            *map(_of_tangent, new_ins),
            *outs,
            *map(_of_tangent, new_outs),
        ),
        num_inputs=inputs + len(new_ins),
        num_outputs=len(outs) + len(new_outs),
        scratch_avals=(
            *mapping.scratch_avals,
            *[aval.to_tangent_aval() for aval in where(mapping.scratch_avals, moving_scratch)],
        ),
    )
    of_tangents = tuple(
        [
            (
                scalars + inputs + sum(moving_in[: position - scalars]),
                len(outs) + sum(moving_out[:result]),
            )
            for position, result in aliases
            if position >= scalars and moving_in[position - scalars]
        ]
    )
    results = pallas_call_p.bind(
        *primals,
        *[instantiate(tangent) for tangent in where(of_inputs, moving_in)],
        **{
            **params,
            "jaxpr": kernel,
            "grid_mapping": new_mapping,
            "input_output_aliases": (*aliases, *of_tangents),
            "out_avals": (
                *out_avals,
                *[aval.to_tangent_aval() for aval in where(out_avals, moving_out)],
            ),
            "cost_estimate": _times(params["cost_estimate"], 2),
        },
    )
    count = len(out_avals)
    return results[:count], with_zeros(results[count:], moving_out, out_avals)


def _kernel_of_tangents(
    kernel: Jaxpr,
    scalars: int,
    inputs: int,
    moving_in: Sequence[bool],
    moving_out: Sequence[bool],
    moving_scratch: Sequence[bool],
) -> Jaxpr:
    """Return a kernel of references to primals and tangents of inputs, outputs and scratch."""
    flags = [*[False] * scalars, *moving_in, *moving_out, *moving_scratch]
    program, _ = jvp_program(ClosedJaxpr(kernel), flags)
    refs = program.jaxpr.invars
    outs = scalars + inputs
    scratch = outs + len(moving_out)
    primals, moving = refs[: len(flags)], refs[len(flags) :]
    count_in, count_out = sum(moving_in), sum(moving_out)
    invars = (
        *primals[:outs],
        *moving[:count_in],
        *primals[outs:scratch],
        *moving[count_in : count_in + count_out],
        *primals[scratch:],
        *moving[count_in + count_out :],
    )
    return program.jaxpr.replace(invars=invars)


def _of_tangent(mapping: BlockMapping) -> BlockMapping:
    return mapping._replace(
        block_aval=mapping.block_aval.to_tangent_aval(),
        array_aval=mapping.array_aval.to_tangent_aval(),
        origin=f"the tangent of {mapping.origin}",
    )


def _times(cost: CostEstimate | None, number: int) -> CostEstimate | None:
    """Return the cost of several equal calls."""
    if cost is None:
        return None
    fields = {name: value * number for name, value in vars(cost).items()}
    return dataclasses.replace(cost, **fields)


@rules.transpose(pallas_call_p)
def _(cotangents: object, *operands: object, **params: Any) -> NoReturn:
    info = params["jaxpr"].debug_info
    name = params["name"] or (info.func_src_info if info else "a kernel")
    raise ValueError(
        f"The kernel {name} has forward derivatives and no reverse ones. Define them by "
        "jax.custom_vjp around pallas_call, whose backward function may call another kernel."
    )


# ---- batches: another axis of the grid -----------------------------------------------------------


@rules.batch_with_axis(pallas_call_p)
def _(axis: AxisData, values: ArrayLikes, axes: BatchAxes, **params: Any) -> BatchResult:
    mapping: GridMapping = params["grid_mapping"]
    out_avals: tuple[ShapedArray, ...] = params["out_avals"]
    if not axis.size:
        results = [empty((0, *aval.shape), aval.dtype) for aval in out_avals]
        return results, [0] * len(results)
    first = mapping.num_dynamic_grid_bounds + mapping.num_index_operands
    if any(batch_axis is not None for batch_axis in axes[:first]):
        results = _one_after_another(axis, values, axes, params)
        return results, [0] * len(results)
    aliased = {
        position + mapping.num_dynamic_grid_bounds for position, _ in params["input_output_aliases"]
    }
    is_batched = [
        batch_axis is not None or position in aliased for position, batch_axis in enumerate(axes)
    ]
    operands = [
        to_front(value, batch_axis, axis.size) if flag else value
        for value, batch_axis, flag in zip(values, axes, is_batched, strict=True)
    ]
    results = pallas_call_p.bind(
        *operands,
        **{
            **params,
            "grid_mapping": _over_batch(mapping, axis.size, is_batched[first:]),
            "out_avals": tuple([aval.update(shape=(axis.size, *aval.shape)) for aval in out_avals]),
            "cost_estimate": _times(params["cost_estimate"], axis.size),
        },
    )
    return results, [0] * len(results)


def _one_after_another(
    axis: AxisData, values: ArrayLikes, axes: BatchAxes, params: dict[str, Any]
) -> list[ArrayLike]:
    """Return the results of one call per example of a batch that has its own grids or scalars."""
    is_batched = [batch_axis is not None for batch_axis in axes]
    batched = [
        to_front(value, batch_axis, axis.size)
        for value, batch_axis in zip(values, axes, strict=True)
        if batch_axis is not None
    ]

    def call(examples: ArrayLikes) -> list[ArrayLike]:
        rest = iter(examples)
        operands = [
            next(rest) if flag else value for value, flag in zip(values, is_batched, strict=True)
        ]
        return pallas_call_p.bind(*operands, **params)

    return map_in_order(call, batched)


_INDEX = ShapedArray((), "int32")


def _over_batch(mapping: GridMapping, size: int, is_batched: Sequence[bool]) -> GridMapping:
    """Return the grid of a batch, whose first axis counts the examples."""
    args, _ = mapping.index_map_tree.unflatten(mapping.index_map_avals)
    avals, structure = tree.tree_flatten(((_INDEX, *args), {}))
    flags = [*is_batched, *[True] * mapping.num_outputs]
    names = mapping.grid_names
    return mapping._replace(
        grid=(size, *mapping.grid),
        grid_names=None if names is None else (None, *names),
        block_mappings=tuple(
            [
                _block_over_batch(each, size, flag)
                for each, flag in zip(mapping.block_mappings, flags, strict=True)
            ]
        ),
        index_map_tree=structure,
        index_map_avals=tuple(avals),
        vmapped_dims=(0, *[dim + 1 for dim in mapping.vmapped_dims]),
    )


def _block_over_batch(mapping: BlockMapping, size: int, is_batched: bool) -> BlockMapping:
    """Return a block mapping whose index map takes the number of an example first."""
    jaxpr = mapping.index_map_jaxpr
    example = Var(_INDEX)
    if not is_batched:
        return mapping._replace(index_map_jaxpr=jaxpr.replace(invars=(example, *jaxpr.invars)))
    array_aval = mapping.array_aval
    return mapping._replace(
        block_shape=(squeezed, *mapping.block_shape),
        index_map_jaxpr=jaxpr.replace(
            invars=(example, *jaxpr.invars), outvars=(example, *jaxpr.outvars)
        ),
        array_aval=array_aval.update(shape=(size, *array_aval.shape)),
    )
