"""custom_vmap: a function whose batching is the user's; sequential_vmap, which maps a loop."""

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.core import rules
from hlofront.core.aval import is_value, typeof
from hlofront.core.axes import AxisData
from hlofront.core.digest import not_lowered
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import Subprogram, called
from hlofront.core.symbolic_zeros import Zero
from hlofront.core.trace import as_array
from hlofront.higher_order.batched_functions import without_axis
from hlofront.higher_order.custom_rule import CustomRule
from hlofront.higher_order.jit_call import call_rules, split_captured, spread
from hlofront.higher_order.mapping import map as lax_map
from hlofront.primitives.batching import move_axis, with_new_axis
from hlofront.primitives.derivatives import instantiate
from hlofront.transforms.batch import batch_flat
from hlofront.transforms.flatten import stage_tree
from hlofront.transforms.jvp import jvp_flat, jvp_program
from hlofront.transforms.simplify import dead_code_program

custom_vmap_call_p = Primitive("custom_vmap_call", multiple_results=True, carries_programs=True)
not_lowered(custom_vmap_call_p, "rule", "in_tree", "out_tree", "primal")


@rules.subprograms(custom_vmap_call_p)
def _(*, call, primal=None, **_):
    parts = [called(call, "call")]
    if primal is not None:
        parts.append(Subprogram(primal[0], "primal", "alternative", path=(0,)))
    return parts


# What stands behind a rule: (size, which operands are batched, flat operands with the axis first)
# -> (flat results, which of them are batched).
FlatRule = Callable[[Any, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


class custom_vmap(CustomRule):
    """A function that vmap maps by the user's rule.

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
      ValueError: if the rule returns something of another structure.
    """

    def __init__(self, fun: Callable[..., Any]):
        super().__init__(fun)
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule: `vmap_rule(axis_size, in_batched, *args) -> (result, out_batched)`.

        Args:
          vmap_rule: is given the size of the mapped axis, for each argument a tree of booleans
            that say which arrays are mapped, over their first axis, and the arguments. It returns
            the result, and a tree of booleans that say which of its arrays have the axis first.

        Returns:
          `vmap_rule`, so that def_vmap decorates it.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {self.signature.name} using "
                f"def_vmap: decorate its rule with @{self.signature.name}.def_vmap."
            )
        args = self.positional(args, kwargs)
        leaves, in_tree = tree.tree_flatten((args, {}))
        signature, structure = self.signature, tree.tree_structure(args)
        for place, leaf in enumerate(leaves):
            if not is_value(leaf):
                name = self.signature.argument_names((args, {}))[place]
                raise TypeError(
                    f"Argument {name} of {self.signature.where} is {source.shortened(repr(leaf))} "
                    f"of type {type(leaf)}, which is not a valid JAX type."
                )
        info = DebugInfo(
            "custom_vmap",
            signature.find_where,
            # Not of the arguments: what is kept of the function would keep them.
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


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that vmap maps by a loop over the examples, `lax.map`.

    Args:
      f: a function of pytrees of arrays.

    Returns:
      A custom_vmap function.
    """
    f = custom_vmap(f)

    @f.def_vmap
    def rule(axis_size: Any, in_batched: Any, *args: Any) -> Any:
        leaves, structure = tree.tree_flatten(args)
        flags = tree.tree_leaves(in_batched)
        if not any(flags):
            out = f(*args)
            return out, tree.tree_map(lambda _: False, out)
        mapped = [x for x, b in zip(leaves, flags, strict=True) if b]

        def one(examples: Sequence[Any]) -> Any:
            rest = iter(examples)
            whole = [next(rest) if b else x for x, b in zip(leaves, flags, strict=True)]
            return f(*structure.unflatten(whole))

        out = lax_map(one, mapped)
        return out, tree.tree_map(lambda _: True, out)

    return f


# ---- the primitive -------------------------------------------------------------------------------


class _TreeRule:
    """A user's rule as a flat one."""

    __slots__ = ("in_tree", "out_tree", "rule")

    def __init__(self, rule: Callable[..., Any], in_tree: Any, out_tree: Any):
        self.rule = rule
        self.in_tree = in_tree
        self.out_tree = out_tree

    def __call__(
        self, size: Any, flags: Sequence[bool], values: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        if isinstance(self.rule, _FlatRule):
            return self.rule(size, flags, values)
        captured, in_batched = self.in_tree.unflatten(flags)
        if any(captured):
            raise ValueError(
                "a custom_vmap function closes over a value that is mapped, which its rule "
                f"{_name(self.rule)} knows nothing of. Pass the value as an argument."
            )
        _, args = self.in_tree.unflatten(map(as_array, values))
        pair = self.rule(size, list(in_batched), *args)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
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


def _name(rule: Any) -> str:
    return source.callable_name(rule)


class _FlatRule:
    """A rule made from another: of its derivative, or over a second axis."""

    __slots__ = ("__name__", "fun")

    def __init__(self, fun: FlatRule, like: Any):
        self.fun = fun
        self.__name__ = _name(like)

    def __call__(
        self, size: Any, flags: Sequence[bool], values: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        return self.fun(size, flags, values)


@rules.infer(custom_vmap_call_p)
def _(*avals, call, **_):
    return call.out_avals


@rules.effects(custom_vmap_call_p)
def _(*avals, call, **_):
    return call.effects


@rules.run(custom_vmap_call_p)
def _(*args, call, **_):
    return jaxpr_as_fun(call, *args)


@rules.batch_with_axis(custom_vmap_call_p)
def _(axis: AxisData, values, axes, *, call, rule, in_tree, out_tree, primal=None):
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


def _derivative(
    rule: Any, size: Any, own: Any, moving: Any, primals: Any, tangents: Any
) -> tuple[Any, Any, Any, Any]:
    """The derivative of a rule where a value and its tangent are batched together."""
    primals, tangents, together = list(primals), list(tangents), []
    for place, (p, t) in enumerate(zip(own, moving, strict=True)):
        together.append(p or t)
        if t and not p:
            primals[place] = with_new_axis(primals[place], size)
        elif p and not t and type(tangents[place]) is not Zero:
            tangents[place] = with_new_axis(tangents[place], size)
        elif p and not t:
            tangents[place] = Zero.of(primals[place])
    batched: list[bool] = []

    def run(*args: Any) -> list[Any]:
        nonlocal batched
        results, batched = rule(size, together, args)
        return results

    results, moved = jvp_flat(run, primals, tangents)
    return results, moved, batched, batched


def _derivative_over_axis(
    rule: Any, size: Any, own: Any, moving: Any, primals: Any, tangents: Any
) -> tuple[Any, Any, Any, Any] | None:
    """The derivative of a rule where no value is batched together with its tangent.

    The rule is told that nothing is batched, and its derivative is batched as any other function:
    values and tangents each have the axis or not. None where the rule gives batched results all
    the same.
    """
    count = len(primals)
    zeros = [
        Zero(without_axis(t.aval, 0) if p else t.aval) if type(t) is Zero else None
        for t, p in zip(tangents, own, strict=True)
    ]
    batched: list[bool] = []
    still: list[Any] = []

    def run(*args: Any) -> list[Any]:
        nonlocal batched
        results, batched = rule(size, [False] * count, args)
        return results

    def one(*args: Any) -> list[Any]:
        nonlocal still
        rest = iter(args[count:])
        pushed = [next(rest) if zero is None else zero for zero in zeros]
        results, moved = jvp_flat(run, args[:count], pushed)
        still = [t if type(t) is Zero else None for t in moved]
        return [*results, *(t for t in moved if type(t) is not Zero)]

    given = [t for t, zero in zip(tangents, zeros, strict=True) if zero is None]
    flags = [*own, *(m for m, zero in zip(moving, zeros, strict=True) if zero is None)]
    axes = [0 if b else None for b in flags]
    values, found = batch_flat(one, AxisData(None, size), [*primals, *given], axes)
    if any(batched):
        return None
    values = [x if a is None else move_axis(x, a, 0) for x, a in zip(values, found, strict=True)]
    mapped = [a is not None for a in found]
    width = len(still)
    rest = iter(zip(values[width:], mapped[width:], strict=True))
    pairs = [next(rest) if zero is None else (zero, False) for zero in still]
    return values[:width], [t for t, _ in pairs], mapped[:width], [b for _, b in pairs]


def _kept(
    results: Any, moved: Any, batched: Any, moved_batched: Any, present: Sequence[bool]
) -> tuple[list[Any], list[bool]]:
    """What a rule of a derivative returns: the results, and the tangents that are present."""
    kept = [(t, b) for t, b, p in zip(moved, moved_batched, present, strict=True) if p]
    flags = [*batched, *(b and type(t) is not Zero for t, b in kept)]
    return [*results, *(instantiate(t) for t, _ in kept)], flags


@rules.jvp(custom_vmap_call_p)
def _(primals, tangents, *, call, rule, in_tree, out_tree, primal=None):
    nonzero = [type(t) is not Zero for t in tangents]
    moving, present = jvp_program(call, nonzero)
    flat = _TreeRule(rule, in_tree, out_tree)
    given = [t for t, n in zip(tangents, nonzero, strict=True) if n]
    count = len(primals)

    def with_tangents(size: Any, flags: Sequence[bool], values: Sequence[Any]) -> Any:
        """The derivative of the rule."""
        own, rest = list(flags[:count]), iter(zip(flags[count:], values[count:], strict=True))
        moved_flags, pushed = [], []
        for n, x in zip(nonzero, values[:count], strict=True):
            b, t = next(rest) if n else (False, Zero.of(x))
            moved_flags.append(b)
            pushed.append(t)
        together = [p and t for p, t in zip(own, moved_flags, strict=True)]
        apart = [p != t for p, t in zip(own, moved_flags, strict=True)]
        if any(apart) and not any(together):
            found = _derivative_over_axis(flat, size, own, moved_flags, values[:count], pushed)
            if found is not None:
                return _kept(*found, present)
        return _kept(*_derivative(flat, size, own, moved_flags, values[:count], pushed), present)

    results = custom_vmap_call_p.bind(
        *primals,
        *given,
        call=moving,
        rule=_FlatRule(with_tangents, rule),
        in_tree=in_tree,
        out_tree=out_tree,
        primal=(call, rule, in_tree, out_tree),
    )
    width = len(present)
    return results[:width], spread(results[width:], present, call.out_avals)


@rules.partial_eval(custom_vmap_call_p)
def _(unknown, equation):
    # The values are computed by the function with its rule. Tangents are linear in what is
    # unknown; how a tangent program is batched is not the rule's business, which says how values
    # are.
    params = equation.params
    moving: ClosedJaxpr = params["call"]
    primal = params.get("primal")
    if primal is None or any(unknown[: len(primal[0].jaxpr.invars)]):
        return call_rules.partial_eval(unknown, equation.replace(params={"call_jaxpr": moving}))
    call, rule, in_tree, out_tree = primal
    count, width = len(call.jaxpr.invars), len(call.jaxpr.outvars)
    names = {"call": call, "rule": rule, "in_tree": in_tree, "out_tree": out_tree}
    known = equation.replace(
        invars=equation.invars[:count],
        outvars=equation.outvars[:width],
        params=names,
        effects=call.effects,
    )
    total = len(equation.outvars)
    used = [place >= width for place in range(total)]
    tangents, stays = dead_code_program(moving, used)
    rest = call_rules.equation(
        equation.replace(params={}),
        tangents,
        [atom for atom, stay in zip(equation.invars, stays, strict=True) if stay],
        equation.outvars[width:],
        (),
    )
    return known, rest, used, []


@rules.transpose(custom_vmap_call_p)
def _(cotangents, *operands, call, **_):
    return call_rules.transpose(cotangents, *operands, call_jaxpr=call)
