"""Transformations of functions and programs with the signatures of `jax.interpreters`.

Other packages call them in rules of operations that hold programs. A program is a jaxpr, with
the values of its constants or without constants; results are closed jaxprs.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLikes
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.axes import AxisData, axes_in_scope, unmapped_aval
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Value, Var
from hlofront.core.names import JVP, TRANSPOSE, transformed
from hlofront.core.programs.subprograms import Program, closed, opened
from hlofront.core.symbolic_zeros import Cotangent, Tangents, Zero
from hlofront.primitives.rules.batching import move_axis, to_front
from hlofront.primitives.rules.derivatives import instantiate as instantiated
from hlofront.transforms import jvp as forward
from hlofront.transforms.batch import Axes, batch_flat, batch_jaxpr
from hlofront.transforms.linear_util import AuxiliaryStore, WrappedFun, transformation_with_aux2
from hlofront.transforms.linearize import linearize_flat
from hlofront.transforms.partial_eval import partial_eval_program
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_jaxpr

# A function of pytrees of arrays, or a wrapped one.
Function = Callable[..., PyTree] | WrappedFun


def _called(fun: Function) -> Callable[..., PyTree]:
    return fun.call_wrapped if isinstance(fun, WrappedFun) else fun


class _FlatFunction:
    """A function of pytrees as a function of flat values, which keeps the result's structure."""

    __slots__ = ("auxiliary", "fun", "has_aux", "out_tree", "structure")

    def __init__(self, fun: Function, structure: tree.PyTreeDef, has_aux: bool):
        self.fun = _called(fun)
        self.structure = structure
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.auxiliary: tuple[list[Value], Any] = [], None

    def __call__(self, *leaves: Value) -> list[Value]:
        result = self.fun(*self.structure.unflatten(leaves))
        auxiliary: list[Value] = []
        if self.has_aux:
            result, more = result
            auxiliary, aux_tree = tree.tree_flatten(more)
            self.auxiliary = auxiliary, aux_tree
        results, self.out_tree = tree.tree_flatten(result)
        return [*results, *auxiliary]

    def split(self, flat: Sequence[Value]) -> tuple[list[Value], tuple[PyTree, ...]]:
        """Return the results of the function, and a tuple of its auxiliary output, or ()."""
        count = len(flat) - len(self.auxiliary[0])
        if not self.has_aux:
            return list(flat), ()
        return list(flat[:count]), (self.auxiliary[1].unflatten(flat[count:]),)


# ---- derivatives ---------------------------------------------------------------------------------


def jvp(
    fun: Function,
    primals: ArrayLikes,
    tangents: Tangents,
    has_aux: bool = False,
    instantiate: bool | Sequence[bool] = True,
    transform_stack: bool = True,
) -> PyTree:
    """Run a function and its derivative, with symbolic zeros among the tangents.

    Args:
      fun: a function of pytrees, or a wrapped one.
      primals: its arguments.
      tangents: a tangent per primal; leaves may be `Zero`s.
      has_aux: whether it returns a pair, whose second member is not differentiated.
      instantiate: per leaf of the result, or for all, whether its tangent is an array where it is a
        symbolic zero.
      transform_stack: whether the name stacks of its operations show that they are differentiated.

    Returns:
      The result and its tangent, and with `has_aux` the second member.

    Raises:
      ValueError: if primals and tangents do not have the same structure.
    """
    leaves, structure = tree.tree_flatten(tuple(primals))
    tangent_leaves, tangent_structure = tree.tree_flatten(
        tuple(tangents), is_leaf=lambda x: isinstance(x, Zero)
    )
    if tangent_structure != structure:
        raise ValueError(
            f"tangents have the structure of the primals, {structure}: got {tangent_structure}"
        )
    flat = _FlatFunction(fun, structure, has_aux)
    with transformed(JVP) if transform_stack else nullcontext():
        outputs, tangents_out = forward.jvp_flat(flat, leaves, tangent_leaves)
    results, auxiliary = flat.split(outputs)
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * len(results)
    result_tangents = [
        instantiated(t) if flag else t
        for t, flag in zip(tangents_out[: len(results)], instantiate, strict=True)
    ]
    return flat.out_tree.unflatten(results), flat.out_tree.unflatten(result_tangents), *auxiliary


def linearize(
    traceable: Function,
    primals_ft: ArrayLikes,
    has_aux: bool = False,
    is_vjp: bool = False,
    in_nzs: Sequence[bool] | None = None,
) -> PyTree:
    """Run a function, and record its derivative as a program that is linear in tangents.

    Args:
      traceable: a function of pytrees, or a wrapped one.
      primals_ft: its arguments, as a sequence.
      has_aux: whether it returns a pair, whose second member is not differentiated.
      is_vjp: whether the program is transposed later, which rules of HiPrims need to know.
      in_nzs: per leaf of the arguments, whether its tangent may be other than zero; None if all
        may.

    Returns:
      The result; per leaf of the result, whether its tangent is a symbolic zero; the jaxpr from the
      tangents of all argument leaves to the nonzero tangents of the result; the residuals, which
      are the values of its constants; and with `has_aux` the second member.
    """
    leaves, structure = tree.tree_flatten(tuple(primals_ft))
    flat = _FlatFunction(traceable, structure, has_aux)
    linear = linearize_flat(flat, leaves, runs_forward=not is_vjp, nonzero=in_nzs)
    results, auxiliary = flat.split(linear.outputs)
    program = linear.program
    inputs = iter(program.jaxpr.invars)
    avals: list[ShapedArray] = [aval.to_tangent_aval() for aval in linear.in_avals]
    invars = [next(inputs) if m else Var(a) for a, m in zip(avals, linear.has_tangent, strict=True)]
    present = linear.present[: len(results)]
    jaxpr = program.jaxpr.replace(invars=invars, outvars=program.jaxpr.outvars[: sum(present)])
    zero = [not there for there in present]
    return flat.out_tree.unflatten(results), zero, jaxpr, program.consts, *auxiliary


def jvp_jaxpr(
    jaxpr: Program, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program of primals and tangents of a program.

    Args:
      jaxpr: the program.
      nonzeros: per input, whether it has a tangent.
      instantiate: per output, or for all, whether its tangent is an output even if it is zero.

    Returns:
      The program from (*primals, *tangents) to (*results, *their tangents), and per result whether
      its tangent is among the outputs.
    """
    program, present = forward.jvp_program(closed(jaxpr), nonzeros, instantiate)
    return program, list(present)


def backward_pass(
    jaxpr: Jaxpr,
    transform_stack: bool,
    consts: ArrayLikes,
    primals_in: ArrayLikes,
    cts_in: Sequence[Cotangent],
    *,
    return_logs: bool = False,
) -> PyTree:
    """Return the cotangents of the inputs of a program that is linear in some of them.

    Args:
      jaxpr: the program.
      transform_stack: whether the name stacks of its operations show that they are transposed.
      consts: the values of its constants.
      primals_in: per input its value, or an UndefinedPrimal where the program is linear in it.
      cts_in: the cotangents of the outputs, which may be `Zero`s.
      return_logs: whether to return a pair of the cotangents and the logs of operations; the logs
          are always empty here.

    Returns:
      A cotangent per input; those of inputs with a value are `Zero`s.
    """
    with transformed(TRANSPOSE) if transform_stack else nullcontext():
        cotangents = transpose_jaxpr(jaxpr, consts, primals_in, cts_in)
    complete = [
        Zero(var.aval.to_cotangent_aval()) if cotangent is None else cotangent
        for var, cotangent in zip(jaxpr.invars, cotangents, strict=True)
    ]
    return (complete, {}) if return_logs else complete


# ---- batching ------------------------------------------------------------------------------------


class ZeroIfMapped:
    """A request for batch axis 0 if an output is batched, and for no batch axis if it is not."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "zero_if_mapped"


zero_if_mapped = ZeroIfMapped()


def batch_jaxpr_axes(
    closed_jaxpr: Program,
    axis_data: AxisData,
    in_axes: Axes,
    out_axes_dest: Sequence[int | ZeroIfMapped | None],
) -> tuple[ClosedJaxpr, list[bool]]:
    """Return a batched program whose outputs have the requested batch axes.

    Args:
      closed_jaxpr: the program of one example.
      axis_data: the size and name of the batch axis.
      in_axes: per input its batch axis, or None.
      out_axes_dest: per output its batch axis; `zero_if_mapped`; or None for an output that does
        not vary over the batch.

    Returns:
      The program, and per output whether it has the batch axis.

    Raises:
      ValueError: if an output varies over the batch and its requested axis is None.
    """
    program = closed(closed_jaxpr)
    batched: list[bool] = []

    def over_axis(*values: Value) -> list[Value]:
        outputs, axes = batch_jaxpr(program.jaxpr, program.consts, axis_data, values, in_axes)
        axis_out = [
            (None if axis is None else 0) if isinstance(want, ZeroIfMapped) else want
            for axis, want in zip(axes, out_axes_dest, strict=True)
        ]
        batched[:] = [want is not None for want in axis_out]
        return list(map(_with_axis, outputs, axes, axis_out))

    def _with_axis(x: Value, axis: int | None, axis_out: int | None) -> Value:
        if axis_out is None:
            if axis is not None:
                raise ValueError(
                    f"vmap has mapped output (axis_name={axis_data.name}) but out_axes is None"
                )
            return x
        return move_axis(to_front(x, axis, axis_data.size), 0, axis_out)

    avals = [
        unmapped_aval(axis_data.size, a, aval, axis_data.explicit_mesh_axis, axis_data.mesh)
        for aval, a in zip(program.in_avals, in_axes, strict=True)
    ]
    named = () if axis_data.name is None else ((axis_data.name, axis_data.size),)
    with axes_in_scope(named):
        made = stage(over_axis, avals, program.jaxpr.origin)
    return made, batched


@transformation_with_aux2
def batch_subtrace(
    fun: Callable[..., Sequence[Value]],
    store: AuxiliaryStore[object],
    tag: object,
    axis_data: AxisData,
    in_dims: Axes,
    *in_vals: Value,
) -> list[Value]:
    """Transform a wrapped function of flat values to a batched one.

    The batched function takes a `TraceTag`, an AxisData, the batch axes of the values, and the
    values. The auxiliary output of the transformation is the batch axes of the results.
    """
    results, axes = batch_flat(fun, axis_data.tagged(tag), in_vals, in_dims)
    store.store(tuple(axes))
    return results


# ---- programs ------------------------------------------------------------------------------------


def abstract_eval_fun(
    fun: Callable[..., PyTree], *avals: AbstractValue, debug_info: DebugInfo, **params: object
) -> list[AbstractValue]:
    """Return the avals of a function's results, by tracing it.

    Args:
      fun: `fun(*arrays, **params)` returns a pytree of arrays.
      avals: the avals of the arrays.
      debug_info: the debug info of the function, for messages.
      params: passed on to the function.
    """
    return stage(lambda *xs: tree.tree_leaves(fun(*xs, **params)), avals, debug_info).out_avals


def close_jaxpr(jaxpr: Program) -> ClosedJaxpr:
    """Return a program without constants as a closed jaxpr."""
    return closed(jaxpr)


def convert_constvars_jaxpr(jaxpr: Program) -> Jaxpr:
    """Return a jaxpr whose constants are its first inputs."""
    own = opened(jaxpr)
    return own.replace(constvars=(), invars=(*own.constvars, *own.invars))


def move_binders_to_back(closed_jaxpr: Program, to_move: Sequence[bool]) -> ClosedJaxpr:
    """Return a program with some of its inputs moved after the others."""
    program = closed(closed_jaxpr)
    pairs = list(zip(program.jaxpr.invars, to_move, strict=True))
    invars = [var for var, flag in pairs if not flag] + [var for var, flag in pairs if flag]
    return program.replace(jaxpr=program.jaxpr.replace(invars=invars))


def prune_closed_jaxpr_outputs(jaxpr: Program, used_outputs: Sequence[bool]) -> ClosedJaxpr:
    """Return a program with only some of its outputs, and all of its equations."""
    program = closed(jaxpr)
    outvars = [atom for atom, used in zip(program.jaxpr.outvars, used_outputs, strict=True) if used]
    return program.replace(jaxpr=program.jaxpr.replace(outvars=outvars))


def partial_eval_jaxpr_nounits(
    jaxpr: Program, unknowns: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[AbstractValue]]:
    """Split a program into a part that needs only the known inputs, and the rest.

    Args:
      jaxpr: the program.
      unknowns: per input, whether it is unknown.
      instantiate: per output, or for all, whether the second part computes it in any case.

    Returns:
      The program from known inputs to (*known outputs, *residuals); the program from (*residuals,
      *unknown inputs) to unknown outputs; per output, whether it is unknown; the residuals' avals.
    """
    split = partial_eval_program(closed(jaxpr), unknowns, instantiate)
    known = split.known.jaxpr
    residuals = [
        known.invars[~source] if source < 0 else known.outvars[source] for source in split.residuals
    ]
    outputs = known.outvars[: split.unknown_out.count(False)]
    complete = split.known.replace(jaxpr=known.replace(outvars=(*outputs, *residuals)))
    avals = [atom.aval for atom in residuals]
    return complete, split.unknown, list(split.unknown_out), avals
