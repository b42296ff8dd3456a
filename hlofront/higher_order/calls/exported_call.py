"""Calls of exported programs: their types, derivatives and batching."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import float0
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.tree_prefixes import prefix_errors
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import AbstractValue, Avals, ShapedArray, typeof
from hlofront.core.effects import Effect, Effects
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, batch, effects, infer, infers_whole_types
from hlofront.core.sizes.equations import Solution, check_sizes, solve
from hlofront.core.sizes.symbolic import SizeExpression, has_symbolic_size, value_of
from hlofront.core.symbolic_zeros import BatchAxes
from hlofront.higher_order.control_flow.scan import scan
from hlofront.higher_order.custom_rules.custom_vjp import custom_vjp
from hlofront.higher_order.selecting import where
from hlofront.primitives.rules.batching import move_axis


class ExportedProgram(Protocol):
    """A protocol of exported programs to call; `runtime/export/exported.py` has the class."""

    @property
    def fun_name(self) -> str: ...
    @property
    def in_tree(self) -> PyTreeDef: ...
    @property
    def out_tree(self) -> PyTreeDef: ...
    @property
    def in_avals(self) -> tuple[ShapedArray, ...]: ...
    @property
    def out_avals(self) -> tuple[ShapedArray, ...]: ...
    @property
    def unknown_sizes(self) -> Solution | None: ...
    @property
    def ordered_effects(self) -> tuple[Effect, ...]: ...
    @property
    def unordered_effects(self) -> tuple[Effect, ...]: ...
    def vjp(self) -> "ExportedProgram": ...


# Operands: the flat arguments that are not of dtype float0. Results: those of the module, which has
# booleans instead of float0.
call_exported_p = Primitive("call_exported", multiple_results=True)
# The types of an exported program's results include their shardings.
infers_whole_types.add(call_exported_p)


def real_inputs(avals: Avals) -> list[int]:
    """Return the positions of the arguments of an exported program that are not of dtype float0."""
    return [position for position, aval in enumerate(avals) if aval.dtype != float0]


@infer(call_exported_p)
def _(*avals: AbstractValue, exported: ExportedProgram) -> list[AbstractValue]:
    positions = real_inputs(exported.in_avals)
    for position, aval in zip(positions, avals, strict=True):
        _check_type(exported, position, aval)
    out_avals = exported.out_avals
    solution = exported.unknown_sizes
    if solution is not None:
        shapes = {p: cast(ShapedArray, a).shape for p, a in zip(positions, avals, strict=True)}
        out_avals = with_sizes(out_avals, variable_values(solution, shapes))
    return [
        ShapedArray(aval.shape, np.dtype(np.bool_)) if aval.dtype == float0 else aval
        for aval in out_avals
    ]


def variable_values(
    solution: Solution, shapes: Mapping[int, Sequence[int | SizeExpression]]
) -> dict[str, int | SizeExpression]:
    """Return the values of an exported program's size variables for the shapes of arguments.

    Args:
      solution: the variables as functions of the sizes of arguments.
      shapes: by position, the shapes of the arguments.

    Raises:
      ValueError: if the shapes do not fit those that the program was exported for.
    """
    sizes = {
        dimension.name: shapes[dimension.argument][dimension.axis]
        for dimension in solution.dimensions
    }
    check_sizes(solution.checks, sizes)
    return {name: value_of(value, sizes) for name, value in solution.values.items()}


def with_sizes(avals: Avals, values: Mapping[str, int | SizeExpression]) -> tuple[ShapedArray, ...]:
    """Return avals with values substituted for the variables in their sizes."""
    return tuple(
        aval.update(shape=tuple(value_of(size, values) for size in aval.shape)) for aval in avals
    )


@effects(call_exported_p)
def _(*_: AbstractValue, exported: ExportedProgram) -> Effects:
    return frozenset((*exported.ordered_effects, *exported.unordered_effects))


@batch(call_exported_p)
def _(values: ArrayLikes, axes: BatchAxes, *, exported: ExportedProgram) -> BatchResult:
    """Call the program, whose types are fixed, for one example after the other."""
    mapped = [axis is not None for axis in axes]
    moved = [x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes, strict=True)]

    def step(carry: tuple[()], examples: ArrayLikes) -> tuple[tuple[()], list[ArrayLike]]:
        rest = iter(examples)
        operands = [next(rest) if m else x for m, x in zip(mapped, moved, strict=True)]
        return carry, call_exported_p.bind(*operands, exported=exported)

    _, results = scan(step, (), where(moved, mapped))
    return results, [0] * len(results)


def _check_type(exported: ExportedProgram, position: int, aval: AbstractValue) -> None:
    """Raise a ValueError unless an argument has the type that the program was exported for."""
    aval_in = exported.in_avals[position]

    def name() -> str:
        # # Names are only needed for errors: naming one argument takes time linear in the number of
        # all.
        return leaf_name(exported.in_tree, position)

    if not isinstance(aval, ShapedArray):
        raise ValueError(
            f"Expected ShapedArray but got: {aval} for {name()} of {exported.fun_name}"
        )
    actual, expected = aval.shape, aval_in.shape
    if len(actual) != len(expected):
        raise ValueError(
            f"Rank mismatch for {name()}: expected {expected} and called with {actual}"
        )
    if aval.dtype != aval_in.dtype:
        raise ValueError(
            f"Dtype mismatch for {name()}: expected {aval_in.dtype} and called with {aval.dtype}"
        )
    for axis, (size, expected_size) in enumerate(zip(actual, expected, strict=True)):
        if not isinstance(expected_size, SizeExpression) and size != expected_size:
            raise ValueError(
                f"Shape mismatch for {name()}.shape[{axis}] (expected same constant): expected "
                f"{expected} and called with {actual}"
            )


def unknown_sizes_of(avals: Avals, in_tree: PyTreeDef) -> Solution | None:
    """Return the size variables of arguments as functions of their sizes; None if there are none.

    Arguments of dtype float0, which are not passed to programs, are ignored.

    Raises:
      ValueError: if the sizes do not determine a variable.
    """
    shapes = [() if aval.dtype == float0 else aval.shape for aval in avals]
    if not any(map(has_symbolic_size, shapes)):
        return None
    return solve(shapes, lambda position: leaf_name(in_tree, position))


def leaf_name(in_tree: PyTreeDef, position: int) -> str:
    """Return the name of a leaf of (args, kwargs), such as `args[0]['w']`."""
    whole = in_tree.unflatten(range(in_tree.num_leaves))
    path, _ = tree.tree_leaves_with_path(whole)[position]
    return path_name(path)


def path_name(path: tree.KeyPath) -> str:
    """Return a path into (args, kwargs) as Python code: `args[0]['w']`, `kwargs['scale']`."""
    if not path:
        return "args, kwargs"
    start = "args" if path[0] == tree.SequenceKey(0) else "kwargs"
    return start + tree.keystr(path[1:])


def call_of(exported: ExportedProgram) -> Callable[..., PyTree]:
    """Return the function that calls an exported program, which may be traced and differentiated.

    Its reverse-mode derivative calls `exported.vjp()`. Under vmap it is called for each example.
    """
    real_in = [aval.dtype != float0 for aval in exported.in_avals]
    real_out = [aval.dtype != float0 for aval in exported.out_avals]

    @custom_vjp
    def call_exported(*arguments: ArrayLike) -> list[Any]:
        return where(call_exported_p.bind(*arguments, exported=exported), real_out)

    def forward(*arguments: ArrayLike) -> tuple[list[Any], tuple[ArrayLike, ...]]:
        return call_exported(*arguments), arguments

    def backward(residuals: tuple[ArrayLike, ...], cotangents: list[ArrayLike]) -> tuple[Any, ...]:
        derivative = exported.vjp()
        in_avals, out_avals = _actual_types(exported, residuals)
        arriving = iter(cotangents)
        count = len(exported.in_avals)
        values = iter(residuals)
        primals = [
            next(values) if is_real else np.zeros(aval.shape, float0)
            for aval, is_real in zip(in_avals, real_in, strict=True)
        ]
        tangents = [
            next(arriving) if is_real else np.zeros(aval.shape, float0)
            for aval, is_real in zip(out_avals, real_out, strict=True)
        ]
        tangents = [
            np.zeros(out_aval.shape, float0) if aval.dtype == float0 else x
            for aval, out_aval, x in zip(
                derivative.in_avals[count:], out_avals, tangents, strict=True
            )
        ]
        results = call_of(derivative)(*primals, *tangents)
        return tuple(where(results, real_in))

    call_exported.defvjp(forward, backward)

    @boundary
    def call(*args: PyTree, **kwargs: PyTree) -> PyTree:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if in_tree != exported.in_tree:
            raise _another_tree(exported, in_tree)
        for position, is_real in enumerate(real_in):
            if not is_real and typeof(leaves[position]).dtype != float0:
                _check_type(exported, position, typeof(leaves[position]))
        operands = where(leaves, real_in)
        results = iter(call_exported(*operands))
        _, out_avals = _actual_types(exported, operands)
        return exported.out_tree.unflatten(
            [
                next(results) if is_real else np.zeros(aval.shape, float0)
                for aval, is_real in zip(out_avals, real_out, strict=True)
            ]
        )

    return call


def _actual_types(exported: ExportedProgram, operands: ArrayLikes) -> tuple[Avals, Avals]:
    """Return the types of the arguments and results of an exported program in a call of it."""
    solution = exported.unknown_sizes
    if solution is None:
        return exported.in_avals, exported.out_avals
    positions = real_inputs(exported.in_avals)
    shapes = {p: typeof(x).shape for p, x in zip(positions, operands, strict=True)}
    values = variable_values(solution, shapes)
    return with_sizes(exported.in_avals, values), with_sizes(exported.out_avals, values)


def _another_tree(exported: ExportedProgram, in_tree: PyTreeDef) -> ValueError:
    actual = in_tree.unflatten([0] * in_tree.num_leaves)
    expected = exported.in_tree.unflatten([0] * exported.in_tree.num_leaves)
    names = "the invocation's arguments", "the exported function's arguments"
    errors = prefix_errors(actual, expected, name=names[0], full_name=names[1]) or prefix_errors(
        expected, actual, name=names[1], full_name=names[0]
    )
    return ValueError(
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they have the following structural differences:\n"
        + "\n".join(f"   - {error}" for error in errors)
    )
