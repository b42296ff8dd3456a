"""The functions `cond` and `switch`, which run one of several branches, and their primitive."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, SupportsInt, cast

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import lattice_result
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, Avals, ShapedArray, is_value, typeof
from hlofront.core.effects import Effects, no_effects
from hlofront.core.jaxpr import ClosedJaxpr, Value, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.check import types_match
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import Subprogram
from hlofront.core.references import touches_references
from hlofront.core.trace import Tracer, is_eager
from hlofront.higher_order.control_flow.bodies import (
    MEMORY_ADVICE,
    NO_KEYWORDS,
    SPLIT_ADVICE,
    bullets,
    cast_advice,
    debug_info_of,
    different_structures,
    refuse_effects,
    type_in_words,
    written_once,
)
from hlofront.higher_order.selecting import Flags, where
from hlofront.primitives.elementwise.compare import ne
from hlofront.primitives.elementwise.converting import (
    convert,
    convert_element_type,
    convert_element_type_p,
)
from hlofront.primitives.elementwise.elementwise import clamp
from hlofront.primitives.references.mutable_values import closing_over_states
from hlofront.transforms.flatten import check_hashable, result_paths, stage_tree
from hlofront.transforms.reference_checks import check_references
from hlofront.transforms.simplify import forwarded

# Operands: the int32 index of the branch, and then the operands of all branches. The branches are
# closed jaxprs without constants, of equal types. The parameter `branches_platforms`, if present,
# is a tuple with the platforms of each branch, or None for the default branch; then the platform
# selects the branch, and the index agrees with it.
cond_p = Primitive("cond", multiple_results=True, carries_programs=True)

_disable_jit = state.disable_jit
_not_passed: Any = object()


@rules.subprograms(cond_p)
def _(*, branches: Sequence[ClosedJaxpr], **_: object) -> list[Subprogram]:
    operands, results = range(1, 1 + len(branches[0].in_avals)), range(len(branches[0].out_avals))
    return [
        Subprogram(branch, "branches", "branch", operands, results, path=(index,))
        for index, branch in enumerate(branches)
    ]


@rules.infer(cond_p)
def _(
    index: ShapedArray, *avals: ShapedArray, branches: Sequence[ClosedJaxpr], **_: object
) -> list[ShapedArray]:
    if index.shape or index.dtype != np.int32:
        raise TypeError(f"cond requires an int32 that selects a branch, got {index.str_short()}")
    for number, branch in enumerate(branches):
        if not all(map(types_match, avals, branch.in_avals)) or len(avals) != len(branch.in_avals):
            raise TypeError(
                f"branch {number} of cond takes operands of types {_short(branch.in_avals)}, and "
                f"got {_short(avals)}"
            )
        if not all(map(types_match, branch.out_avals, branches[0].out_avals)):
            raise TypeError(
                f"branch {number} of cond returns {_short(branch.out_avals)}, and the first "
                f"returns {_short(branches[0].out_avals)}"
            )
    return branches[0].out_avals


def _short(avals: Avals) -> str:
    return f"[{', '.join(aval.str_short() for aval in avals)}]"


@rules.effects(cond_p)
def _(*avals: ShapedArray, branches: Sequence[ClosedJaxpr], **_: object) -> Effects:
    return effects_of(branches)


def effects_of(branches: Sequence[ClosedJaxpr]) -> Effects:
    """Return the union of the effects of the branches."""
    return no_effects.union(*[branch.effects for branch in branches])


@boundary
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., PyTree],
    false_fun: Callable[..., PyTree],
    *operands: PyTree,
    operand: PyTree = _not_passed,
) -> PyTree:
    """Call `true_fun` if `pred` is true, else `false_fun`.

    Both functions are traced and compiled, and one of them runs. Under `vmap` over `pred` both run,
    and `select` chooses between their results.

    Args:
      pred: a boolean scalar, or a numeric scalar, which is true if it is not zero.
      true_fun: a function of the operands.
      false_fun: a function of the operands, whose result has the structure and types of
        `true_fun`'s.
      operands: pytrees of arrays. The functions may also close over values.
      operand: the only operand, as a keyword argument.

    Returns:
      The result of the called function.

    Raises:
      TypeError: if `pred` is not a boolean or number, or not a scalar, if functions cannot be
        called, or if they return different structures or types.

    Example:
      >>> jax.jit(lambda x: lax.cond(x > 0, jnp.sqrt, jnp.zeros_like, x))(4.0)
      Array(2., dtype=float32, weak_type=True)
    """
    if operand is not _not_passed:
        operands = _only_operand(operand, operands)
    elif len(operands) == 2 and callable(operands[1]) and callable(false_fun):
        if not callable(true_fun):
            # JAX's old signature: pred, true_operand, true_fun, false_operand, false_fun.
            return _of_own_operands(pred, true_fun, false_fun, *operands)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError(
            "lax.cond: true_fun and false_fun arguments should be callable; got "
            f"{_brief(true_fun)} and {_brief(false_fun)}."
        )
    check_hashable(true_fun, false_fun)
    dtype = _predicate_dtype(pred)
    if _disable_jit.value and _is_known(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    if dtype.kind != "b":
        pred = bool(pred) if _is_plain(pred) else ne(pred, _zero(pred))
    branches = Branches("cond", (true_fun, false_fun), ("true_fun", "false_fun"), operands)
    # The index is 0 for False, so `false_fun` comes first.
    return branches.bind(convert_element_type(pred, np.int32), (1, 0))


def _zero(x: ArrayLike) -> Array:
    aval = typeof(x)
    return convert(0, aval.dtype, aval.weak_type)


def _of_own_operands(
    pred: ArrayLike,
    x: PyTree,
    true_fun: Callable[[PyTree], PyTree],
    y: PyTree,
    false_fun: Callable[[PyTree], PyTree],
) -> PyTree:
    def when_true(x: PyTree, y: PyTree) -> PyTree:
        return true_fun(x)

    def when_false(x: PyTree, y: PyTree) -> PyTree:
        return false_fun(y)

    return cond(pred, when_true, when_false, x, y)


def _only_operand(operand: PyTree, operands: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
    if operands:
        raise TypeError(
            "if 'operand' keyword is passed then no positional operands can be passed, got "
            f"operand={_brief(operand)} and positional operands {operands}"
        )
    return (operand,)


def _predicate_dtype(pred: object) -> "np.dtype[Any]":
    """Return the dtype of a predicate.

    Raises:
      TypeError: if the predicate is not a scalar of booleans or real numbers.
    """
    if pred is None:
        raise TypeError("cond predicate is None: give a boolean scalar")
    if not is_value(pred):
        kind = type(pred)
        if issubclass(kind, str | list | tuple):
            raise TypeError(
                f"Pred must be a scalar, got {_brief(pred)} of type {kind}: give a boolean "
                "scalar, such as jnp.all(...) of many"
            )
        raise TypeError(f"Pred type must be either boolean or number, got {_brief(pred)}.")
    aval = array_type(pred)
    if aval.shape:
        raise TypeError(
            f"Pred must be a scalar, got {_brief(pred)} of shape {aval.shape}. Give "
            "jnp.all(pred) or jnp.any(pred); to choose element by element, use jnp.where."
        )
    if isinstance(aval.dtype, ExtendedDType) or aval.dtype.kind not in "biuf":
        raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype}.")
    return aval.dtype


def array_type(x: ArrayLike) -> ShapedArray:
    """Return the aval of an array.

    Raises:
      TypeError: if `x` is not an array.
    """
    aval = typeof(x)
    if type(aval) is not ShapedArray:  # Such as a token.
        raise TypeError(f"expected an array, got a value of type {aval.str_short()}")
    return aval


@boundary
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., PyTree]],
    *operands: PyTree,
    operand: PyTree = _not_passed,
) -> PyTree:
    """Call the function at position `index` of `branches`.

    All branches are traced and compiled, and one of them runs. Under `vmap` over `index` all run,
    and `select_n` chooses among their results.

    Args:
      index: an integer scalar, clamped to the range of `branches`.
      branches: functions of the operands, whose results have equal structures and types.
      operands: pytrees of arrays. The functions may also close over values.
      operand: the only operand, as a keyword argument.

    Returns:
      The result of the called function.

    Raises:
      TypeError: if `index` is not an integer, or not a scalar, if branches cannot be called, or if
        they return different structures or types.
      ValueError: if there are no branches.

    Example:
      >>> jax.jit(lambda i, x: lax.switch(i, [jnp.sin, jnp.negative, jnp.square], x))(2, 3.0)
      Array(9., dtype=float32, weak_type=True)
    """
    branches = tuple(branches)
    if not all(callable(branch) for branch in branches):
        raise TypeError(
            "lax.switch: branches argument should be a sequence of callables; got "
            f"{_brief(branches)}."
        )
    if operand is not _not_passed:
        operands = _only_operand(operand, operands)
    if not is_value(index):
        raise TypeError(f"Index type must be an integer, got {_brief(index)}.")
    aval = array_type(index)
    if aval.shape:
        raise TypeError(
            f"Branch index must be scalar, got {_brief(index)} of shape {aval.shape}. To choose "
            "for each element, use vmap."
        )
    if isinstance(aval.dtype, ExtendedDType) or aval.dtype.kind not in "iu":
        raise TypeError(f"Index type must be an integer, got {_brief(index)} as {aval.dtype}")
    if not branches:
        raise ValueError("Empty branch sequence: switch requires at least one function")
    if len(branches) == 1:
        return branches[0](*operands)
    check_hashable(*branches)
    last = len(branches) - 1
    if _disable_jit.value and _is_known(index):
        return branches[min(max(int(cast(SupportsInt, index)), 0), last)](*operands)
    clamped = clamp(np.int32(0), convert_element_type(index, np.int32), np.int32(last))
    names = [f"branch {i}" for i in range(last + 1)]
    return Branches("switch", branches, names, operands).bind(clamped, range(last + 1))


def _brief(x: object) -> str:
    return source.shortened(repr(x))


def _is_plain(x: object) -> bool:
    """Return whether a value is a Python or NumPy scalar, which is known while tracing."""
    return isinstance(x, bool | int | float | np.generic | np.ndarray)


def _is_known(x: object) -> bool:
    return not isinstance(x, Tracer) or x.to_concrete_value() is not None


# ---- the functions as programs -------------------------------------------------------------------


class TracedFunction:
    """A user's function traced to a closed jaxpr.

    Attributes:
      program: the closed jaxpr.
      out_tree: the tree definition of the function's result.
      consts: the values that the function closes over.
    """

    __slots__ = ("consts", "out_tree", "program")

    def __init__(self, program: ClosedJaxpr, out_tree: PyTreeDef):
        self.program = program
        self.out_tree = out_tree
        self.consts = program.consts


def trace_function(
    function: Callable[..., PyTree],
    purpose: str,
    args_tree: PyTreeDef,
    avals: Sequence[AbstractValue],
    static: Mapping[str, object] | None = None,
) -> TracedFunction:
    """Trace a function of positional arguments to a closed jaxpr.

    Args:
      function: the user's function.
      purpose: the operation that the function is traced for, in messages.
      args_tree: the tree definition of the tuple of the arguments.
      avals: the avals of the arguments' leaves.
      static: further arguments to call the function with, by keyword.
    """
    in_tree = tree.treedef_tuple([args_tree, NO_KEYWORDS])
    out_tree: PyTreeDef | None = None
    info = debug_info_of(function, purpose, args_tree, lambda: out_tree)
    called = partial(function, **static) if static else function
    program, result_tree = stage_tree(called, in_tree, avals, info)
    out_tree = result_tree
    return TracedFunction(program, result_tree)


def trace_function_once(
    function: Callable[..., PyTree],
    purpose: str,
    args_tree: PyTreeDef,
    avals: tuple[AbstractValue, ...],
) -> TracedFunction:
    """Trace a function to a closed jaxpr, cached by function, purpose and argument types."""
    return written_once(
        function,
        (purpose, args_tree, avals),
        lambda: trace_function(function, purpose, args_tree, avals),
    )


def with_shared_constants(
    programs: Sequence[ClosedJaxpr],
) -> tuple[list[ClosedJaxpr], list[ArrayLike]]:
    """Turn the constants of programs into shared first inputs; return programs and constants."""
    values: dict[int, ArrayLike] = {}
    avals: dict[int, AbstractValue] = {}
    for program in programs:
        for var, const in zip(program.jaxpr.constvars, program.consts, strict=True):
            if id(const) not in values:
                values[id(const)] = const
                avals[id(const)] = var.aval
    if not values:
        return list(programs), []
    numbers = {key: number for number, key in enumerate(values)}
    types = tuple(avals.values())
    opened = [
        _with_inputs(program, types, tuple([numbers[id(const)] for const in program.consts]))
        for program in programs
    ]
    return opened, list(values.values())


@once_per_program
def _with_inputs(
    program: ClosedJaxpr, avals: Sequence[AbstractValue], positions: tuple[int, ...]
) -> ClosedJaxpr:
    """Return a program with new first inputs of types `avals`, which include its constants.

    Args:
      program: the closed jaxpr.
      avals: the types of the new inputs.
      positions: per constant, the index of its new input.
    """
    jaxpr = program.jaxpr
    inputs = [Var(aval) for aval in avals]
    for position, var in zip(positions, jaxpr.constvars, strict=True):
        inputs[position] = var
    return ClosedJaxpr(jaxpr.replace(constvars=(), invars=(*inputs, *jaxpr.invars)))


@once_per_program
def _with_outputs(program: ClosedJaxpr, flags: Flags) -> ClosedJaxpr:
    """Return a program with only the outputs whose flag in `flags` is set."""
    jaxpr = program.jaxpr.replace(outvars=where(program.jaxpr.outvars, flags))
    return ClosedJaxpr(jaxpr, program.consts)


class Branches:
    """The traced functions of a cond or switch, and the operands.

    Args:
      what: the operation, for messages.
      functions: the user's functions.
      names: the name of each function, for messages.
      operands: the arguments of all functions: pytrees of arrays.

    Raises:
      TypeError: if the functions' results differ in structure or types.
    """

    __slots__ = ("functions", "leaves", "names", "out_tree", "traced", "what")

    def __init__(
        self,
        what: str,
        functions: Sequence[Callable[..., PyTree]],
        names: Sequence[str],
        operands: tuple[PyTree, ...],
    ):
        self.functions = functions
        functions, operands = closing_over_states(functions, operands)
        leaves, args_tree = tree.tree_flatten(operands)
        avals = tuple([typeof(x) for x in leaves])
        self.what = what
        self.names = names
        self.leaves = leaves
        self.traced = [trace_function_once(f, what, args_tree, avals) for f in functions]
        self.out_tree = self.traced[0].out_tree
        self._check()

    def bind(self, index: Value, order: Sequence[int], **params: object) -> list[Value]:
        """Bind `cond_p`, and return the result of the branch at `index`.

        Args:
          index: the int32 index of the branch.
          order: per branch, the index of its function.
          params: further parameters of the equation.
        """
        for traced in self.traced:
            if touches_references(traced.program.effects):
                info = traced.program.debug_info
                check_references(info, self.leaves, traced.program.consts)
        programs, consts = with_shared_constants([t.program for t in self.traced])
        operands = [*consts, *self.leaves]
        # An input that all branches return unchanged is not a result of the cond.
        origins = [
            indices[0] if len(set(indices)) == 1 else None
            for indices in zip(*[forwarded(p.jaxpr) for p in programs], strict=True)
        ]
        if any(index is not None for index in origins):
            computed = tuple([index is None for index in origins])
            programs = [_with_outputs(p, computed) for p in programs]
        branches = tuple([programs[i] for i in order])
        refuse_effects("cond", effects_of(branches))
        rest = iter(cond_p.bind(index, *operands, branches=branches, **params))
        results = [
            next(rest) if origin is None else as_array(operands[origin]) for origin in origins
        ]
        return self.out_tree.unflatten(results)

    def _check(self) -> None:
        """Raise TypeError unless the results of all branches have equal structures and types."""
        first = self.traced[0]
        for number, other in enumerate(self.traced[1:], 1):
            if first is other:
                continue
            if first.out_tree != other.out_tree:
                raise TypeError(self._different_structures(number))
            if not all(map(types_match, first.program.out_avals, other.program.out_avals)):
                raise TypeError(self._different_types(number))

    def _descriptions(self, number: int) -> str:
        return "".join(
            f"{self.names[i]} is {source.describe_callable(self.functions[i])}\n"
            for i in (0, number)
        )

    def _different_structures(self, number: int) -> str:
        first_name, other = self.names[0], self.names[number]
        lines = different_structures(
            self.traced[0].out_tree,
            f"the output of {first_name}",
            self.traced[number].out_tree,
            f"the output of {other}",
        )
        return (
            f"{self.what} branch outputs must have the same pytree structure, but they differ:\n"
            f"{self._descriptions(number)}{bullets(lines)}\n"
            f"Revise {first_name} or {other} so that they return the same containers."
        )

    def _different_types(self, number: int) -> str:
        first_name, other = self.names[0], self.names[number]
        lines: list[str] = []
        paths = result_paths(self.out_tree, "")
        pair = self.traced[0].program.out_avals, self.traced[number].program.out_avals
        for path, first, second in zip(paths, *pair, strict=True):
            if types_match(first, second):
                continue
            at = f" at path {path}" if path else ""
            text = f"the output of {first_name}{at} has type {type_in_words(first)}, and that of "
            text += f"{other} {type_in_words(second)}, so the "
            if first.shape != second.shape:
                lines.append(f"{text}shapes differ: make them equal")
            elif first.dtype == second.dtype and first.split != second.split:
                lines.append(f"{text}splits over the mesh differ: {SPLIT_ADVICE}")
            elif first.dtype == second.dtype and first.memory_space is not second.memory_space:
                lines.append(f"{text}memories differ: {MEMORY_ADVICE}")
            elif first.dtype == second.dtype:
                kinds = first.manual_axis_type.varying, second.manual_axis_type.varying
                advice = cast_advice(kinds[0] ^ kinds[1])
                lines.append(f"{text}manual axis types differ: {advice}")
            else:
                lines.append(f"{text}dtypes differ: return both as {_common(first, second)}")
        return (
            f"{self.what} branches must have equal output types but they differ.\n"
            f"{self._descriptions(number)}{bullets(lines)}\n"
            f"Revise {first_name} or {other} so that all output types match."
        )


def _common(first: ShapedArray, second: ShapedArray) -> str:
    """Return, for messages, the casts that convert two types to their promoted dtype."""
    types = (first.dtype, first.weak_type), (second.dtype, second.weak_type)
    try:
        return f".astype({lattice_result(types)[0].name!r})"
    except ValueError:
        return "arrays of the same dtype"


def as_array(x: ArrayLike) -> ArrayLike:
    """Convert a Python scalar or NumPy array to an array on a device; tracers are unchanged."""
    if is_eager() and isinstance(x, bool | int | float | complex | np.generic | np.ndarray):
        aval = typeof(x)
        params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type, "sharding": None}
        return convert_element_type_p.bind(x, **params)
    return x
