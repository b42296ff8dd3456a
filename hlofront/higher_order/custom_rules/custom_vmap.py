"""The class custom_vmap, for functions with a user-defined vmap rule, and sequential_vmap."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes, is_tuple_or_list
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Equation, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.digest import not_lowered
from hlofront.core.programs.subprograms import Subprogram, called
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Operand, Tangent, Tangents, Zero
from hlofront.core.trace import as_array
from hlofront.higher_order.calls.jit_call import (
    call_rules,
    run_by_program,
    split_captured,
    typed_by_program,
)
from hlofront.higher_order.control_flow.mapping import map as lax_map
from hlofront.higher_order.custom_rules.batched_functions import without_axis
from hlofront.higher_order.custom_rules.custom_rule import CustomRule
from hlofront.higher_order.selecting import Flags, nonzero, nonzero_flags, where, with_zeros
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.rules.batching import move_axis, with_new_axis
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.batch import batch_flat
from hlofront.transforms.flatten import NO_KEYWORDS, stage_tree
from hlofront.transforms.jvp import jvp_flat, jvp_program
from hlofront.transforms.partial_eval import SplitEquation

custom_vmap_call_p = Primitive("custom_vmap_call", multiple_results=True, carries_programs=True)
not_lowered(custom_vmap_call_p, "rule", "in_tree", "out_tree", "primal")
typed_by_program(custom_vmap_call_p, "call")
run_by_program(custom_vmap_call_p, "call")

# A user's rule: (axis size, flags of batched arguments, *arguments) -> (result, flags of batched
# results).
VmapRule = Callable[..., PyTree]
# The parameters of the call that is differentiated: call, rule, in_tree, out_tree.
PrimalCall = tuple[ClosedJaxpr, VmapRule, PyTreeDef, PyTreeDef]


@rules.subprograms(custom_vmap_call_p)
def _(*, call: ClosedJaxpr, primal: PrimalCall | None = None, **_: object) -> list[Subprogram]:
    parts = [called(call, "call")]
    if primal is not None:
        parts.append(Subprogram(primal[0], "primal", "alternative", path=(0,)))
    return parts


# The flat results of a rule, and a flag per result: whether it is batched.
FlatResults = tuple[ArrayLikes, Sequence[bool]]
# (axis size, flags of batched operands, flat operands with batch axis 0) -> FlatResults
FlatRule = Callable[[int, Sequence[bool], Sequence[Value]], FlatResults]


class custom_vmap(CustomRule):
    """A function with a user-defined vmap rule.

        @custom_vmap
        def f(x, y):
            return x + y

        @f.def_vmap
        def _(axis_size, in_batched, xs, ys):
            return xs + ys, True

    Args:
      fun: a function of pytrees of arrays.

    Raises:
      AttributeError: when called before `def_vmap`.
      ValueError: if the structure of the rule's result is not the function's.
    """

    def __init__(self, fun: Callable[..., PyTree]):
        super().__init__(fun)
        self.vmap_rule: VmapRule | None = None

    def def_vmap(self, vmap_rule: VmapRule) -> VmapRule:
        """Set the vmap rule: `vmap_rule(axis_size, in_batched, *args) -> (result, out_batched)`.

        Args:
          vmap_rule: takes the size of the mapped axis, per argument a pytree of booleans (whether
            each array is batched, along axis 0), and the arguments. It returns the result, and a
            pytree of booleans (whether each array of the result is batched, along axis 0).

        Returns:
          `vmap_rule`, so that def_vmap can be used as a decorator.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {self.signature.name} using "
                f"def_vmap: decorate its rule with @{self.signature.name}.def_vmap."
            )
        args = self.positional(args, kwargs)
        leaves, in_tree = tree.tree_flatten((args, NO_KEYWORDS))
        signature, structure = self.signature, tree.tree_structure(args)
        for index, leaf in enumerate(leaves):
            if not is_value(leaf):
                name = self.signature.argument_names((args, {}))[index]
                raise TypeError(
                    f"Argument {name} of {self.signature.where} is {source.shortened(repr(leaf))} "
                    f"of type {type(leaf)}, which is not a valid JAX type."
                )
        info = DebugInfo(
            "custom_vmap",
            signature.find_where,
            # # The closure must not refer to arguments, which records of the function would keep
            # alive.
            lambda: signature.names_in(structure),
        )
        avals = [typeof(leaf) for leaf in leaves]
        program, out_tree = stage_tree(self.fun, in_tree, avals, info)
        program, captured = split_captured(program)
        whole_tree = tree.tree_structure(([0] * len(captured), args))
        results = custom_vmap_call_p.bind(
            *captured,
            *leaves,
            call=program,
            rule=self.vmap_rule,
            in_tree=whole_tree,
            out_tree=out_tree,
        )
        return out_tree.unflatten(results)


def sequential_vmap(f: Callable[..., PyTree]) -> custom_vmap:
    """Return a function for which vmap loops over the examples by `lax.map`.

    Args:
      f: a function of pytrees of arrays.

    Returns:
      A custom_vmap function.
    """
    mapped_by_loop = custom_vmap(f)

    @mapped_by_loop.def_vmap
    def rule(axis_size: int, in_batched: Sequence[PyTree], *args: PyTree) -> tuple[PyTree, PyTree]:
        leaves, structure = tree.tree_flatten(args)
        flags: list[bool] = tree.tree_leaves(in_batched)
        if not any(flags):
            out = mapped_by_loop(*args)
            return out, _flag_each_leaf(out, False)

        def one(examples: ArrayLikes) -> PyTree:
            rest = iter(examples)
            whole = [next(rest) if b else x for x, b in zip(leaves, flags, strict=True)]
            return mapped_by_loop(*structure.unflatten(whole))

        out = lax_map(one, where(leaves, flags))
        return out, _flag_each_leaf(out, True)

    return mapped_by_loop


def _flag_each_leaf(result: PyTree, mapped: bool) -> PyTree:
    structure = tree.tree_structure(result)
    return structure.unflatten([mapped] * structure.num_leaves)


# ---- the primitive -------------------------------------------------------------------------------


class _TreeRule:
    """A user's vmap rule, converted from pytrees to flat values."""

    __slots__ = ("in_tree", "out_tree", "rule")

    def __init__(self, rule: "VmapRule | _FlatRule", in_tree: PyTreeDef, out_tree: PyTreeDef):
        self.rule = rule
        self.in_tree = in_tree
        self.out_tree = out_tree

    def __call__(self, size: int, flags: Sequence[bool], values: Sequence[Value]) -> FlatResults:
        if isinstance(self.rule, _FlatRule):
            return self.rule(size, flags, values)
        captured, in_batched = self.in_tree.unflatten(flags)
        if any(captured):
            raise ValueError(
                "a custom_vmap function closes over a value that is mapped, which its rule "
                f"{_name(self.rule)} does not handle. Pass the value as an argument."
            )
        _, args = self.in_tree.unflatten(map(as_array, values))
        pair = self.rule(size, list(in_batched), *args)
        if not is_tuple_or_list(pair) or len(pair) != 2:
            raise ValueError(
                f"custom vmap rule ({_name(self.rule)}) must return a pair: the results, and "
                "which of them are batched, in the same structure; got "
                f"{source.shortened(repr(pair))}."
            )
        results, structure = tree.tree_flatten(pair[0])
        batched, batched_tree = tree.tree_flatten(pair[1])
        about = f"returned by custom vmap rule ({_name(self.rule)})"
        if structure != batched_tree:
            raise ValueError(
                f"structure of output value and output batching specification {about} do not "
                f"match.\nOutput values: {structure}\nBatching spec: {batched_tree}"
            )
        if structure != self.out_tree:
            raise ValueError(
                f"structure of output {about} does not match that of original custom-vmapped "
                f"function.\nOriginal output: {self.out_tree}\nRule output: {structure}"
            )
        return results, [bool(b) for b in batched]


def _name(rule: VmapRule) -> str:
    return source.callable_name(rule)


class _FlatRule:
    """A vmap rule on flat values that is derived from a user's rule and has its name."""

    __slots__ = ("__name__", "fun")

    def __init__(self, fun: FlatRule, like: VmapRule):
        self.fun = fun
        self.__name__ = _name(like)

    def __call__(self, size: int, flags: Sequence[bool], values: Sequence[Value]) -> FlatResults:
        return self.fun(size, flags, values)


@rules.batch_with_axis(custom_vmap_call_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    call: ClosedJaxpr,
    rule: VmapRule,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    primal: PrimalCall | None = None,
) -> BatchResult:
    if all(a is None for a in axes):
        params = {"call": call, "rule": rule, "in_tree": in_tree, "out_tree": out_tree}
        results = custom_vmap_call_p.bind(*values, **params)
        return results, [None] * len(results)
    values = [x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes, strict=True)]
    flags = [a is not None for a in axes]
    results, batched = _TreeRule(rule, in_tree, out_tree)(axis.size, flags, values)
    for result, b, aval in zip(results, batched, call.out_avals, strict=True):
        shape = typeof(result).shape
        if b and shape[:1] != (axis.size,):
            raise ValueError(
                f"custom vmap rule ({_name(rule)}) returned an array of shape {shape} for a result "
                f"of type {aval.str_short()}, and said that it is batched: its first axis must be "
                f"the mapped one, of size {axis.size}."
            )
    return results, [0 if b else None for b in batched]


@dataclass(frozen=True, slots=True)
class _Dual:
    """Primals and tangents, with a flag for each: whether it is batched."""

    primals: ArrayLikes
    tangents: Tangents
    primals_batched: Sequence[bool]
    tangents_batched: Sequence[bool]

    def flat_results(self, present: Flags) -> FlatResults:
        """Return the primals and the tangents that are `present`, as the flat results of a rule."""
        tangents = where(self.tangents, present)
        batched = where(self.tangents_batched, present)
        flags = [b and n for b, n in zip(batched, nonzero_flags(tangents), strict=True)]
        return [*self.primals, *map(instantiate, tangents)], [*self.primals_batched, *flags]


def _derivative(rule: FlatRule, size: int, operands: _Dual) -> _Dual:
    """Apply the jvp of a vmap rule to operands, batching each tangent if its primal is batched."""
    primals, tangents = list(operands.primals), list(operands.tangents)
    together: list[bool] = []
    flags = zip(operands.primals_batched, operands.tangents_batched, strict=True)
    for index, (p, t) in enumerate(flags):
        together.append(p or t)
        tangent = tangents[index]
        if t and not p:
            primals[index] = with_new_axis(primals[index], size)
        elif p and not t and not isinstance(tangent, Zero):
            tangents[index] = with_new_axis(tangent, size)
        elif p and not t:
            tangents[index] = Zero.of(primals[index])
    batched: Sequence[bool] = []

    def run(*args: ArrayLike) -> ArrayLikes:
        nonlocal batched
        results, batched = rule(size, together, args)
        return results

    results, result_tangents = jvp_flat(run, primals, tangents)
    return _Dual(results, result_tangents, batched, batched)


def _derivative_over_axis(rule: FlatRule, size: int, operands: _Dual) -> _Dual | None:
    """Differentiate a vmap rule at unbatched arguments, then batch the derivative.

    Args:
      rule: the user's rule, which is called with no argument batched.
      size: the size of the batch axis.
      operands: primals and tangents, each with or without the batch axis.

    Returns:
      The primals and tangents of the results; None if the rule returns batched results.
    """
    count = len(operands.primals)
    zeros = [
        Zero(without_axis(t.aval, 0) if p else t.aval) if isinstance(t, Zero) else None
        for t, p in zip(operands.tangents, operands.primals_batched, strict=True)
    ]
    batched: Sequence[bool] = []
    zero_results: list[Zero | None] = []

    def run(*args: ArrayLike) -> ArrayLikes:
        nonlocal batched
        results, batched = rule(size, [False] * count, args)
        return results

    def one(*args: ArrayLike) -> list[ArrayLike]:
        nonlocal zero_results
        rest = iter(args[count:])
        tangents = [next(rest) if zero is None else zero for zero in zeros]
        results, result_tangents = jvp_flat(run, args[:count], tangents)
        zero_results = [t if isinstance(t, Zero) else None for t in result_tangents]
        return [*results, *nonzero(result_tangents)]

    arrays = nonzero_flags(operands.tangents)
    flags = [*operands.primals_batched, *where(operands.tangents_batched, arrays)]
    values, axes_out = batch_flat(
        one,
        AxisData(None, size),
        [*operands.primals, *nonzero(operands.tangents)],
        [0 if b else None for b in flags],
    )
    if any(batched):
        return None
    values = [x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes_out, strict=True)]
    mapped = [a is not None for a in axes_out]
    width = len(zero_results)
    rest = iter(zip(values[width:], mapped[width:], strict=True))
    pairs = [next(rest) if zero is None else (zero, False) for zero in zero_results]
    return _Dual(values[:width], [t for t, _ in pairs], mapped[:width], [b for _, b in pairs])


def _typed_like(tangent: Tangent, aval: ShapedArray) -> Tangent:
    """Return a tangent that is weakly typed if a primal of the same dtype is."""
    if isinstance(tangent, Zero) or typeof(tangent).dtype != aval.dtype:
        return tangent
    return convert(tangent, aval.dtype, aval.weak_type)


@rules.jvp(custom_vmap_call_p)
def _(
    primals: ArrayLikes,
    tangents: Tangents,
    *,
    call: ClosedJaxpr,
    rule: VmapRule,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    primal: PrimalCall | None = None,
) -> tuple[list[ArrayLike], list[Tangent]]:
    has_tangent = nonzero_flags(tangents)
    with_tangents, present = jvp_program(call, has_tangent)
    flat = _TreeRule(rule, in_tree, out_tree)
    count = len(primals)
    captured = in_tree.children()[0].num_leaves

    def derivative(size: int, flags: Sequence[bool], values: ArrayLikes) -> FlatResults:
        rest = iter(zip(flags[count:], values[count:], strict=True))
        pairs = [
            next(rest) if flag else (False, Zero.of(x))
            for flag, x in zip(has_tangent, values[:count], strict=True)
        ]
        # The rule does not receive captured values, so its derivative with respect to them is zero.
        pairs[:captured] = [(False, Zero.of(x)) for x in values[:captured]]
        of_primals, of_tangents = (
            [False] * captured + list(flags[captured:count]),
            [b for b, _ in pairs],
        )
        operands = _Dual(values[:count], [t for _, t in pairs], of_primals, of_tangents)
        together = [p and t for p, t in zip(of_primals, of_tangents, strict=True)]
        results = None
        if of_primals != of_tangents and not any(together):
            results = _derivative_over_axis(flat, size, operands)
        if results is None:
            results = _derivative(flat, size, operands)
        # Computed tangents are weakly typed if the primal result is; others pass through unchanged.
        operand_ids = {id(tangent) for tangent in operands.tangents}
        tangents = [
            t if id(t) in operand_ids else _typed_like(t, typeof(p))
            for t, p in zip(results.tangents, results.primals, strict=True)
        ]
        return dataclasses.replace(results, tangents=tangents).flat_results(present)

    results = custom_vmap_call_p.bind(
        *primals,
        *nonzero(tangents),
        call=with_tangents,
        rule=_FlatRule(derivative, rule),
        in_tree=in_tree,
        out_tree=out_tree,
        primal=(call, rule, in_tree, out_tree),
    )
    width = len(present)
    return results[:width], with_zeros(results[width:], present, call.out_avals)


@rules.partial_eval(custom_vmap_call_p)
def _(unknown: Sequence[bool], equation: Equation) -> SplitEquation:
    params = equation.params
    program: ClosedJaxpr = params["call"]
    primal: PrimalCall | None = params.get("primal")
    if primal is not None and not any(unknown[: len(primal[0].jaxpr.invars)]):
        # The rule batches primals and tangents together, and cannot batch only tangents.
        raise ValueError(
            "Linearization failed to produce known values for all output primals: a custom_vmap "
            f"function, whose vmap rule is {_name(params['rule'])}, cannot be differentiated in "
            "reverse mode. Give it a derivative, custom_vjp(function) with rules that call the "
            "custom_vmap function, or use jvp or jacfwd."
        )
    call_equation = equation.replace(params={"call_jaxpr": program})
    return call_rules.partial_eval(unknown, call_equation)


@rules.transpose(custom_vmap_call_p)
def _(
    cotangents: Sequence[Cotangent], *operands: Operand, call: ClosedJaxpr, **_: object
) -> list[Cotangent | None]:
    return call_rules.transpose(cotangents, *operands, call_jaxpr=call)
