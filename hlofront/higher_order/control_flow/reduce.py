"""The functions reduce, reduce_window and select_and_scatter, with a user-defined reducer."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.caches import weak_keyed
from hlofront.base.elements import NumPyDType
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, NumPyArray
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.sharding.requested_shardings import requested
from hlofront.core.sizes.dimensions import integers
from hlofront.core.trace import Tracer, process
from hlofront.higher_order.control_flow import (
    reduce_rules as reduce_rules,  # It registers the rules.
)
from hlofront.higher_order.control_flow.reduce_types import (
    reduce_p,
    reduce_window_p,
    select_and_scatter_p,
)
from hlofront.primitives.arrays import reducing as r
from hlofront.primitives.arrays import windowed as w
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.sharding.resharding import split_as
from hlofront.transforms.flatten import NO_KEYWORDS, check_hashable, stage_tree

# A reduction function of primitives/arrays/reducing.py or windowed.py.
Fold = Callable[..., Array]
# (initial value, dtype of the operand) -> whether the value is the identity of a reduction.
IsIdentity = Callable[[NumPyArray, NumPyDType], bool]


# ---- the user's function -------------------------------------------------------------------------


def _stage_scalars(
    function: Callable[..., PyTree],
    structures: tuple[PyTreeDef, ...],
    leaves: ArrayLikes,
    purpose: str,
) -> tuple[ClosedJaxpr, PyTreeDef]:
    """Trace a function of pytrees of scalars to a jaxpr.

    Args:
      function: the user's function.
      structures: the tree definition of each argument.
      leaves: arrays with the dtypes of each argument's leaves.
      purpose: the operation that the function is traced for, in messages.

    Returns:
      The closed jaxpr, and the tree definition of its result.

    Raises:
      TypeError: if `function` is not callable.
      NotImplementedError: if the function closes over tracers of an enclosing function.
    """
    avals: list[ShapedArray] = []
    for leaf in leaves:
        aval = typeof(leaf)
        avals.append(ShapedArray((), aval.dtype, aval.weak_type))
    if not callable(function):
        raise TypeError(f"{purpose} must be a function, got {function!r}")
    check_hashable(function)
    # A function without weak references cannot be a cache key, and is traced each time.
    kind: type = type(function)
    write = _write_down if kind.__weakrefoffset__ else _write_down.__wrapped__
    return write(function, structures, tuple(avals), purpose)


@weak_keyed(in_context=True)
def _write_down(
    function: Callable[..., PyTree],
    structures: tuple[PyTreeDef, ...],
    avals: tuple[ShapedArray, ...],
    purpose: str,
) -> tuple[ClosedJaxpr, PyTreeDef]:
    in_tree = tree.tree_structure(
        (tuple(tree.tree_unflatten(s, [0] * s.num_leaves) for s in structures), NO_KEYWORDS)
    )
    info = DebugInfo(purpose, source.describe_callable(function))
    program, out_tree = stage_tree(function, in_tree, list(avals) * len(structures), info)
    captured = [const for const in program.consts if isinstance(const, Tracer)]
    if captured:
        raise NotImplementedError(  # JAX raises this class.
            "Reduction computations can't close over Tracers: the function of a reduction uses the "
            f"traced value {captured[0]} of the function around it, which no device can hand to "
            "it. Combine with that value before or after the reduction, or reduce it as another "
            "operand."
        )
    return program, out_tree


# ---- reduce --------------------------------------------------------------------------------------


@boundary
def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[..., PyTree],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> PyTree:
    """Reduce axes of arrays by a function of two elements.

    Args:
      operands: an array, or a pytree of arrays of equal shapes.
      init_values: a pytree like `operands` of scalars, the initial values of the reduction.
      computation: combines two pytrees of scalars into one. It should be associative and
        commutative, because the order of elements is undefined, with `init_values` as its identity.
      dimensions: the axes to reduce.
      out_sharding: the sharding of the results over axes of type Explicit.

    Returns:
      A pytree like `operands`, without the reduced axes.

    Raises:
      ValueError: if the pytrees differ, an initial value is not a scalar, or axes are out of range.
      TypeError: if dtypes of operands and initial values differ.

    Example:
      >>> lax.reduce(jnp.array([[1, 2], [3, 4]]), 0, lax.add, dimensions=(1,))
      Array([3, 7], dtype=int32)
    """
    requested_sharding = requested("reduce", out_sharding)
    leaves, structure = tree.tree_flatten(operands)
    starts, start_structure = tree.tree_flatten(init_values)
    _check_trees(structure, start_structure)
    if not leaves:
        raise ValueError("reduce requires at least one operand, got none.")
    if len(leaves) == 1:
        fold = _known_reduction(computation, leaves[0], starts[0])
        if fold is not None:
            axes = integers(dimensions, "dimensions of reduce")
            if fold is r.reduce_sum:
                result = fold(leaves[0], axes, out_sharding=requested_sharding)
            else:
                result = split_as(fold(leaves[0], axes), requested_sharding)
            # The result is weakly typed if both operands are, like the result of a computation.
            weak = typeof(leaves[0]).weak_type and typeof(starts[0]).weak_type
            if typeof(result).weak_type != weak:
                result = convert(result, typeof(result).dtype, weak)
            return tree.tree_unflatten(structure, [result])
    program, out_tree = _stage_scalars(computation, (structure,) * 2, starts, "reduce comp")
    _check_result("reduce", out_tree, structure)
    params = {
        "computation": computation,
        "jaxpr": program,
        "dimensions": integers(dimensions, "dimensions of reduce"),
    }
    results = process(reduce_p, (*leaves, *starts), params)
    return tree.tree_unflatten(structure, [split_as(x, requested_sharding) for x in results])


def _check_trees(structure: PyTreeDef, start_structure: PyTreeDef) -> None:
    if structure != start_structure:
        raise ValueError(
            "Operands must have the same tree structure as init_values: "
            f"{structure} vs. {start_structure}"
        )


def _check_result(name: str, out_tree: PyTreeDef, structure: PyTreeDef) -> None:
    if out_tree != structure:
        raise ValueError(
            f"{name} computation must return the tree structure of the operands, {structure}; it "
            f"returned {out_tree}"
        )


def _known_reduction(
    computation: Callable[..., PyTree], operand: ArrayLike, init: ArrayLike
) -> Fold | None:
    """Return the reduction of a binary lax function if `init` is its identity, else None."""
    try:
        known = _REDUCTIONS.get(computation)
    except TypeError:  # The callable cannot be hashed.
        return None
    if known is None or isinstance(init, Tracer) or typeof(init).shape:
        return None
    fold, is_identity = known
    start = np.asarray(init, typeof(init).dtype)
    return fold if is_identity(start, typeof(operand).dtype) else None


def _is(value: float) -> IsIdentity:
    """Return a predicate of (initial value, dtype): whether the initial value is `value`."""

    def is_value(start: NumPyArray, dtype: NumPyDType) -> bool:
        return bool(start == value)

    return is_value


def _is_extreme(value: float, of_dtype: Callable[[NumPyDType], ArrayLike]) -> IsIdentity:
    """Return a predicate of (initial value, dtype): whether the initial value is an extreme.

    Args:
      value: the extreme of all dtypes.
      of_dtype: returns the extreme of a dtype, for initial values of that dtype.
    """

    def is_extreme(start: NumPyArray, dtype: NumPyDType) -> bool:
        return bool(start == value or (start.dtype == dtype and start == of_dtype(dtype)))

    return is_extreme


def _all_bits(dtype: NumPyDType) -> NumPyArray:
    return np.array(True) if dtype == np.bool_ else np.array(-1).astype(dtype)


# Binary lax function -> the reduction that it defines, and a test for its identity.
_REDUCTIONS: dict[Callable[..., PyTree], tuple[Fold, IsIdentity]] = {
    e.add: (r.reduce_sum, _is(0)),
    e.mul: (r.reduce_prod, _is(1)),
    e.max: (r.reduce_max, _is_extreme(-np.inf, r.least_value)),
    e.min: (r.reduce_min, _is_extreme(np.inf, r.greatest_value)),
    e.bitwise_and: (r.reduce_and, _is_extreme(-1, _all_bits)),
    e.bitwise_or: (r.reduce_or, _is(0)),
    e.bitwise_xor: (r.reduce_xor, _is(0)),
}


# ---- reduce_window -------------------------------------------------------------------------------


@boundary
def reduce_window(
    operand: PyTree,
    init_value: PyTree,
    computation: Callable[..., PyTree],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> PyTree:
    """Reduce the elements in each position of a sliding window by a function of two elements.

    Args:
      operand: an array, or a pytree of arrays of equal shapes.
      init_value: a pytree like `operand` of scalars: the initial values, also used for padding.
      computation: combines two pytrees of scalars into one; see `reduce`.
      window_dimensions: the window size of each axis.
      window_strides: the window stride of each axis; 1 by default.
      padding: pairs (before, after) for each axis, or "VALID", "SAME", "SAME_LOWER"; see
        `padtype_to_pads`.
      base_dilation: the dilation of the operand along each axis; 1 by default.
      window_dilation: the dilation of the window along each axis; 1 by default.

    Returns:
      A pytree like `operand`; each array has one element per window position.

    Raises:
      ValueError: if the pytrees differ, or there is not one padding per axis.
      TypeError: if numbers of axes differ, sizes are not positive, or dtypes differ.
      RuntimeError: if `padding` is not a known name.

    Example:
      >>> lax.reduce_window(jnp.arange(6.0), -jnp.inf, lax.max, (2,), (2,), "VALID")
      Array([1., 3., 5.], dtype=float32)
    """
    leaves, structure = tree.tree_flatten(operand)
    starts, start_structure = tree.tree_flatten(init_value)
    _check_trees(structure, start_structure)
    if not leaves:
        raise ValueError("reduce_window must have at least one operand, got none.")
    windows = w.canonical_windows(
        typeof(leaves[0]).shape,
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        padding=padding,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    if len(leaves) == 1:
        fold = _known_window_reduction(computation, leaves[0], starts[0])
        if fold is not None:
            return tree.tree_unflatten(structure, [fold(leaves[0], *windows)])
    program, out_tree = _stage_scalars(computation, (structure,) * 2, starts, "reduce_window comp")
    if out_tree != structure:
        raise ValueError(
            "reduce_window output must have the same tree structure as the operands "
            f"{structure} vs. {out_tree}"
        )
    params = {"jaxpr": program.jaxpr, "consts": tuple(program.consts), **windows._asdict()}
    results = process(reduce_window_p, (*leaves, *starts), params)
    return tree.tree_unflatten(structure, results)


def _known_window_reduction(
    computation: Callable[..., PyTree], operand: ArrayLike, init: ArrayLike
) -> Fold | None:
    """Return the windowed reduction of a binary lax function if `init` is its identity, or None."""
    fold = _known_reduction(computation, operand, init)
    return None if fold is None else _WINDOW_REDUCTIONS.get(fold)


_WINDOW_REDUCTIONS: dict[Fold, Fold] = {
    r.reduce_sum: w.reduce_window_sum,
    r.reduce_max: w.reduce_window_max,
    r.reduce_min: w.reduce_window_min,
}


# ---- select_and_scatter --------------------------------------------------------------------------


def select_and_scatter(
    operand: ArrayLike,
    select: Callable[..., ArrayLike],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    source: ArrayLike,
    init_value: ArrayLike,
    scatter: Callable[..., ArrayLike],
) -> Array:
    """Select an element of each window of `operand`; combine `source` into its position.

    Args:
      operand: the array that is windowed.
      select: a function of two scalars that returns whether the first is selected.
      window_dimensions: the window size of each axis.
      window_strides: the window stride of each axis.
      padding: pairs (before, after) for each axis.
      source: an array with one element per window position.
      init_value: a scalar: the initial value of each element of the result.
      scatter: a function of two scalars that combines the accumulated value and an element of
        `source`.

    Returns:
      An array of the shape and dtype of `operand`.
    """
    leaf = tree.tree_structure(0)
    selecting, _ = _stage_scalars(select, (leaf, leaf), [operand], "select")
    scattering, _ = _stage_scalars(scatter, (leaf, leaf), [source], "scatter")
    params = {
        "select_jaxpr": selecting.jaxpr,
        "select_consts": tuple(selecting.consts),
        "scatter_jaxpr": scattering.jaxpr,
        "scatter_consts": tuple(scattering.consts),
        "window_dimensions": integers(window_dimensions, "window_dimensions"),
        "window_strides": integers(window_strides, "window_strides"),
        "padding": w.canonical_pads(padding),
    }
    return process(select_and_scatter_p, (operand, source, init_value), params)
