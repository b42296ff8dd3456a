"""The function scatter_apply, which applies a function to the indexed elements of an array."""

import functools
import weakref
from collections.abc import Callable

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.caches import weak_keyed
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, DType, ShapeLike
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Value, Var
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.core.trace import Tracer
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.gathering import GatherScatterMode
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, bind_scatter, scatter_p
from hlofront.transforms.stage import stage


@boundary
def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[PyTree], PyTree],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: ShapeLike = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Apply `func` to the indexed elements of an array.

    An element that is indexed several times has `func` applied as often.

    Args:
      operand: the array.
      scatter_indices: integers; the last axis is the index vector of a window's first element.
      func: takes a scalar and returns one of the same dtype.
      dimension_numbers: the dimension numbers of a scatter with updates of `update_shape`.
      update_shape: the shape of the updates in the equivalent scatter.
      indices_are_sorted: a promise that the indices ascend. It is not checked.
      unique_indices: a promise that no two windows overlap. It is not checked.
      mode: the treatment of windows that are out of bounds: a GatherScatterMode or its name;
        None is FILL_OR_DROP.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      TypeError: if the shapes and dimension numbers do not match, or func does not return a
        scalar of the operand's dtype, or closes over tracers of an enclosing function.
      ValueError: if the mode is unknown, the indices are not integers, or func does not return an
        array.
    """
    if not callable(func):
        raise TypeError(f"func of scatter_apply must be callable, got {func!r}")
    try:
        weakref.ref(func)
        hash(func)
    except TypeError:
        func = functools.partial(func)
    dtype = typeof(operand).dtype
    program, constants = _program(func, dtype)
    updates = full(canonical_shape(update_shape), 0, dtype)
    return bind_scatter(
        scatter_p,
        (operand, scatter_indices, updates),
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
        program,
        constants,
    )


@weak_keyed(in_context=True, typed=False)
def _program(func: Callable[[PyTree], PyTree], dtype: DType) -> tuple[Jaxpr, tuple[ArrayLike, ...]]:
    """Trace `func` to a jaxpr of (scalar, unused update); return the jaxpr and its constants."""
    scalar = ShapedArray((), dtype)

    def update(old: ArrayLike, _: ArrayLike) -> list[Value]:
        result = func(old)
        if not is_value(result):
            raise ValueError(
                f"Invalid return type from reduction function: {type(result)}. func of "
                "scatter_apply should return one scalar array."
            )
        return [result]

    program = stage(update, (scalar, scalar))
    for constant in program.consts:
        if isinstance(constant, Tracer):
            raise TypeError(
                "func of scatter_apply uses a value of an enclosing traced function, "
                f"{constant!r}: it may only use its argument and constants. Gather the elements, "
                "compute, and scatter the results instead."
            )
    (out,) = program.out_avals
    if out.shape or out.dtype != dtype:
        raise TypeError(
            f"func of scatter_apply must return a scalar of dtype {dtype}, as the operand's "
            f"elements are, got {out.str_short()}."
        )
    return _with_literals(program)


def _with_literals(program: ClosedJaxpr) -> tuple[Jaxpr, tuple[ArrayLike, ...]]:
    """Turn scalar constants of a program into literals; return the jaxpr and other constants."""
    literals: dict[Atom, Literal] = {}
    constants: dict[Var, ArrayLike] = {}
    for var, value in zip(program.jaxpr.constvars, program.consts, strict=True):
        if typeof(value).shape:
            constants[var] = value
        else:
            literals[var] = Literal(np.asarray(value)[()], var.aval)
    equations = [
        equation.replace(invars=[literals.get(atom, atom) for atom in equation.invars])
        for equation in program.eqns
    ]
    jaxpr = program.jaxpr.replace(
        constvars=list(constants),
        eqns=equations,
        outvars=[literals.get(atom, atom) for atom in program.jaxpr.outvars],
    )
    return jaxpr, tuple(constants.values())
