"""Buffers that a kernel allocates for a part of its run: run_scoped."""

from collections.abc import Callable, Hashable
from functools import partial

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import AbstractValue
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Equation, Jaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.subprograms import Subprogram
from hlofront.core.symbolic_zeros import Tangent, Tangents
from hlofront.core.trace import is_eager
from hlofront.higher_order.selecting import nonzero, nonzero_flags, with_zeros
from hlofront.pallas.memory import has_tangent, ref_aval_of, uninitialized
from hlofront.primitives.references.rules import Discharged
from hlofront.transforms.arguments import Signature
from hlofront.transforms.discharge import discharge_program
from hlofront.transforms.flatten import result_paths, stage_tree
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.simplify import constants_as_inputs

# Operands: the values that the function closes over. Parameters: `jaxpr`, an open jaxpr, whose
# constants are the operands, and whose inputs are references to the new buffers;
# `collective_axes`, the axes of a mesh whose devices allocate together.
run_scoped_p = Primitive("run_scoped", multiple_results=True, carries_programs=True)
run_scoped_p.ref_primitive = True


@boundary
def run_scoped(
    f: Callable[..., PyTree],
    *types: PyTree,
    collective_axes: Hashable | tuple[Hashable, ...] = (),
    **kw_types: PyTree,
) -> PyTree:
    """Call a function of references to new buffers, which exist until it returns.

    Args:
      f: the function; it may also read and write the kernel's references.
      *types: the types of its arguments, such as `pltpu.VMEM((8, 128), jnp.float32)`.
      collective_axes: the axes of a mesh whose devices allocate the buffers together.
      **kw_types: the types of its keyword arguments.

    Returns:
      The result of the function: a pytree of arrays.

    Raises:
      TypeError: if a type is not that of a buffer.
      ValueError: outside of kernels, or if the function returns a reference.
    """
    if is_eager():
        raise ValueError(
            "run_scoped can only be called in a kernel, which pallas_call traces: arrays outside "
            "need no buffers"
        )
    refs = tree.tree_map(
        lambda each: ref_aval_of(each, "an argument of run_scoped"), (types, kw_types)
    )
    avals, in_tree = tree.tree_flatten(refs)
    signature = Signature(f)
    out_tree: PyTreeDef | None = None
    info = DebugInfo(
        "run_scoped",
        signature.find_where,
        lambda: signature.argument_names(in_tree.unflatten(range(len(avals)))),
        lambda: result_paths(out_tree),
    )
    program, out_tree = stage_tree(f, in_tree, avals, info)
    if not isinstance(collective_axes, tuple):
        collective_axes = (collective_axes,)
    results = run_scoped_p.bind(
        *program.consts, jaxpr=program.jaxpr, collective_axes=collective_axes
    )
    return out_tree.unflatten(results)


def with_scoped(
    *types: PyTree,
    collective_axes: Hashable | tuple[Hashable, ...] = (),
    **kw_types: PyTree,
) -> Callable[[Callable[..., PyTree]], Callable[..., PyTree]]:
    """Return a decorator of functions of references to new buffers: see run_scoped.

    Args:
      *types: the types of the last positional arguments of the function.
      collective_axes: the axes of a mesh whose devices allocate the buffers together.
      **kw_types: the types of its keyword arguments.

    Returns:
      A decorator that returns functions of the other arguments.
    """

    def decorator(f: Callable[..., PyTree]) -> Callable[..., PyTree]:
        def run(*args: object, **kwargs: object) -> PyTree:
            function = partial(f, *args, **kwargs)
            return run_scoped(function, *types, collective_axes=collective_axes, **kw_types)

        return run

    return decorator


@rules.infer(run_scoped_p)
def _(*avals: AbstractValue, jaxpr: Jaxpr, **_: object) -> list[AbstractValue]:
    return jaxpr.out_avals


@rules.effects(run_scoped_p)
def _(*avals: AbstractValue, jaxpr: Jaxpr, **_: object) -> Effects:
    return jaxpr.effects


@rules.subprograms(run_scoped_p)
def _(*, jaxpr: Jaxpr, **_: object) -> tuple[Subprogram]:
    return (Subprogram(jaxpr, "jaxpr", "alternative"),)


@rules.discharge(run_scoped_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    jaxpr = equation.params["jaxpr"]
    opened = constants_as_inputs(ClosedJaxpr(jaxpr, [None] * len(jaxpr.constvars)))
    program, written = discharge_program(ClosedJaxpr(opened))
    buffers = [uninitialized(var.aval.inner_aval) for var in jaxpr.invars]
    results = jaxpr_as_fun(program, *operands, *buffers)
    count = len(equation.outvars)
    rest = iter(results[count:])
    new_arrays = [next(rest) if is_written else None for is_written in written]
    return new_arrays[: len(operands)], results[:count]


@rules.jvp(run_scoped_p)
def _(
    primals: ArrayLikes, tangents: Tangents, *, jaxpr: Jaxpr, **params: object
) -> tuple[list[ArrayLike], list[Tangent]]:
    moving = [*nonzero_flags(tangents), *[has_tangent(var.aval) for var in jaxpr.invars]]
    opened = constants_as_inputs(ClosedJaxpr(jaxpr, [None] * len(jaxpr.constvars)))
    program, present = jvp_program(ClosedJaxpr(opened), moving)
    inner = program.jaxpr
    # Values that the function closes over, new buffers, and the tangents of both.
    closed, all_ = len(primals), len(moving)
    moved = all_ + sum(moving[:closed])
    inputs = inner.invars
    with_tangents = inner.replace(
        constvars=(*inner.constvars, *inputs[:closed], *inputs[all_:moved]),
        invars=(*inputs[closed:all_], *inputs[moved:]),
    )
    results = run_scoped_p.bind(
        *program.consts, *primals, *nonzero(tangents), jaxpr=with_tangents, **params
    )
    count = len(present)
    return results[:count], with_zeros(results[count:], present, jaxpr.out_avals)
