"""custom_jvp: a function whose forward derivative is the user's."""

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.errors import UnexpectedTracerError
from hlofront.core import rules
from hlofront.core.aval import is_value, typeof
from hlofront.core.axes import AxisData
from hlofront.core.digest import not_lowered
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.marks import UndefinedPrimal, Zero
from hlofront.core.primitive import Primitive
from hlofront.core.trace import as_array
from hlofront.higher_order.jit_call import split_captured, spread
from hlofront.primitives.batching import to_front
from hlofront.primitives.derivatives import add_tangents, instantiate
from hlofront.transforms.batch import batch_flat, batch_program
from hlofront.transforms.flatten import Signature, result_paths
from hlofront.transforms.jvp import as_tangent
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_program

custom_jvp_call_p = Primitive("custom_jvp_call", multiple_results=True, carries_programs=True)
not_lowered(custom_jvp_call_p, "jvp_jaxpr_fun")


class SymbolicZero:
    """A tangent or cotangent that is zero, where a rule asked to be told: `symbolic_zeros=True`."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    @property
    def shape(self):
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype

    def __repr__(self):
        return f"SymbolicZero({self.aval.str_short()})"


tree.register_pytree_node(SymbolicZero, lambda z: ((), z.aval), lambda aval, _: SymbolicZero(aval))


def _is_symbolic_zero(x: Any) -> bool:
    return type(x) is SymbolicZero


# ---- arguments that are not differentiated -------------------------------------------------------


class Arguments:
    """The arguments of a call to a function with a custom rule: those that its rule differentiates.

    Raises TypeError where the call does not fit the function's signature.
    """

    __slots__ = ("avals", "differentiated", "fixed", "leaves", "structure")

    avals: list[Any]

    def __init__(self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]):
        args = owner.positional(args, kwargs)
        fixed = {n % len(args) for n in owner.nondiff_positions(len(args))}
        # By position, in the order in which rules are given them.
        self.fixed = {n: args[n] for n in sorted(fixed)}
        self.differentiated = [n for n in range(len(args)) if n not in fixed]
        chosen = tuple([args[n] for n in self.differentiated])
        self.leaves, self.structure = tree.tree_flatten(chosen)
        for place, leaf in enumerate(self.leaves):
            if not is_value(leaf):
                name = owner.signature.argument_names((chosen, {}), self.differentiated)[place]
                raise TypeError(
                    f"Argument {name} of {owner.signature.where} is {source.shortened(repr(leaf))} "
                    f"of type {type(leaf)}, which is not a valid JAX type. Arguments that are not "
                    f"arrays go into nondiff_argnums of {type(owner).__name__}."
                )

    def take_leaves(self) -> list[Any]:
        """The values, once: programs keep the rules that this is for, and must not keep values."""
        leaves, self.leaves = self.leaves, []
        self.avals = [typeof(x) for x in leaves]
        return leaves

    def types(self) -> Any:
        """The arguments that are differentiated, with its aval in the place of each value."""
        return tree.tree_unflatten(self.structure, self.avals)

    def whole(self, chosen: Sequence[Any]) -> list[Any]:
        """All arguments, from those that are differentiated."""
        found: list[Any] = [None] * (len(chosen) + len(self.fixed))
        for n, x in self.fixed.items():
            found[n] = x
        for n, x in zip(self.differentiated, chosen, strict=True):
            found[n] = x
        return found


class CustomRule:
    """What custom_jvp and custom_vjp share: a function, and which arguments have no derivatives."""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ):
        if not callable(fun):
            raise TypeError(
                f"{type(self).__name__} wants a function, got {source.shortened(repr(fun))} of "
                f"type {type(fun)}"
            )
        named_as(self, fun)
        self.fun = fun
        self.signature = Signature(fun)
        if isinstance(nondiff_argnums, int):
            nondiff_argnums = (nondiff_argnums,)
        names = self.signature.positional_names()
        unknown = [name for name in nondiff_argnames if name not in names]
        if unknown:
            raise ValueError(
                f"{type(self).__name__} was given nondiff_argnames {unknown}, which are no "
                f"parameters of {self.signature.where}: it has {names}."
            )
        self.nondiff_argnums = tuple(map(operator.index, nondiff_argnums)) + tuple(
            [names.index(name) for name in nondiff_argnames]
        )

    def nondiff_positions(self, count: int) -> tuple[int, ...]:
        """Their positions in a call with `count` arguments."""
        out = [n for n in self.nondiff_argnums if not -count <= n < count]
        if out:
            raise TypeError(
                f"{self.signature.where} was called with {count} arguments, and its "
                f"nondiff_argnums {self.nondiff_argnums} name others."
            )
        return self.nondiff_argnums

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call by position, with defaults filled in."""
        parameters = self.signature.parameters
        if parameters is None or (not kwargs and len(args) == len(parameters)):
            if kwargs:
                raise TypeError(
                    f"{self.signature.where} has no signature, so that its arguments by keyword, "
                    f"{sorted(kwargs)}, have no positions: pass them by position."
                )
            return args
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"The following keyword arguments of {self.signature.where} could not be resolved "
                f"to positions: {sorted(bound.kwargs)}. Functions with custom derivatives take "
                "positional arguments alone."
            )
        return bound.args

    def _no_rule(self, kind: str) -> AttributeError:
        name = self.signature.name
        return AttributeError(
            f"No {kind.upper()} defined for custom_{kind} function {name} using def{kind}: "
            f"decorate its rule with @{name}.def{kind}"
            + ("." if kind == "jvp" else f", as in {name}.defvjp(forward, backward).")
        )


class FlatFunction:
    """A function of flat values, with the name and place of the user's function behind it."""

    __slots__ = ("arguments", "call", "debug_info", "out_tree")

    def __init__(self, call: Callable[..., Any], arguments: Arguments, signature: Signature):
        self.call = call
        self.arguments = arguments
        self.debug_info = DebugInfo(
            "custom derivative",
            signature.find_where,
            lambda: signature.argument_names(
                (arguments.types(), {}),
                arguments.differentiated,
            ),
        )
        self.out_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        arguments = self.arguments
        results = self.call(*arguments.whole(arguments.structure.unflatten(leaves)))
        outputs, self.out_tree = tree.tree_flatten(results)
        check_values(outputs, self.out_tree, self.debug_info.func_src_info)
        return outputs


def check_values(outputs: Sequence[Any], out_tree: Any, where: str) -> None:
    """Raise the TypeError that names the first of a function's results that is no array."""
    for i, x in enumerate(outputs):
        if not is_value(x):
            path = result_paths(out_tree)[i].removeprefix("result")
            raise TypeError(
                f"{where} returned a value of type {type(x)}"
                f"{' at output component ' + path if path else ''}, which is not a valid JAX type"
            )


# ---- custom_jvp ----------------------------------------------------------------------------------


class custom_jvp(CustomRule):
    """A function whose forward derivative is given by a rule; reverse mode transposes that rule.

        @custom_jvp
        def log1pexp(x):
            return jnp.log(1 + jnp.exp(x))

        @log1pexp.defjvp
        def _(primals, tangents):
            (x,), (dx,) = primals, tangents
            return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * dx

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that the rule is given first and that have no
        tangents: Python values, functions.
      nondiff_argnames: the same by name.

    Raises:
      AttributeError: when called before `defjvp`.
      TypeError: if the rule does not return a value and a tangent of its type.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Give the rule: `jvp(*nondiff, primals, tangents) -> (result, tangent of the result)`.

        Args:
          jvp: the rule, which must be linear in the tangents.
          symbolic_zeros: whether tangents that are known to be zero are SymbolicZeros.

        Returns:
          `jvp`, so that defjvp decorates it.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give one rule per argument: `jvp(tangent, result, *arguments) -> share of the tangent`.

        None says that the result does not vary with an argument. The shares are summed.

        Raises:
          TypeError: if there are arguments that are not differentiated.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``: use defjvp.")

        def jvp(primals, tangents):
            result = self(*primals)
            total: Any = None
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None:
                    share = rule(tangent, result, *primals)
                    total = share if total is None else tree.tree_map(add_tangents, total, share)
            if total is None:
                total = tree.tree_map(lambda x: instantiate(Zero.of(x)), result)
            return result, total

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise self._no_rule("jvp")
        arguments = Arguments(self, args, kwargs)
        call = FlatFunction(self.fun, arguments, self.signature)
        rule = JVPRule(self, arguments)
        results = custom_jvp_call_p.bind(
            *arguments.take_leaves(),
            call_jaxpr=call,
            jvp_jaxpr_fun=rule,
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        out_tree = call.out_tree if call.out_tree is not None else rule.out_tree
        return out_tree.unflatten(results)


class JVPRule:
    """The user's rule on flat values: (*primals, *tangents) -> (*results, *tangents)."""

    __slots__ = ("__name__", "arguments", "function", "out_tree", "rule")

    def __init__(self, owner: custom_jvp, arguments: Arguments):
        self.rule = owner.jvp
        self.__name__ = source.callable_name(owner.jvp)
        self.function = owner.signature.name
        self.arguments = arguments
        self.out_tree: Any = None

    def __call__(self, *args: Any) -> list[Any]:
        count = len(args) // 2
        structure = self.arguments.structure
        primals = structure.unflatten(map(as_array, args[:count]))
        tangents = structure.unflatten(
            [t if type(t) is SymbolicZero else as_array(t) for t in args[count:]]
        )
        pair = self.rule(*self.arguments.fixed.values(), primals, tangents)  # type: ignore[misc]
        about = f"Custom JVP rule {self.__name__} for function {self.function}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"{about} must produce a pair (list or tuple of length two) representing primal "
                f"and tangent outputs, but got {source.shortened(repr(pair))}."
            )
        results, self.out_tree = tree.tree_flatten(pair[0])
        moved, tangent_tree = tree.tree_flatten(pair[1], is_leaf=_is_symbolic_zero)
        if tangent_tree != self.out_tree:
            raise TypeError(
                f"{about} must produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {self.out_tree} and {tangent_tree} respectively."
            )
        check_values(results, self.out_tree, about)
        return [
            *results,
            *[self._checked(about, x, t) for x, t in zip(results, moved, strict=True)],
        ]

    def _checked(self, about: str, result: Any, tangent: Any) -> Any:
        aval = typeof(result)
        wanted = aval.to_tangent_aval()
        symbolic = type(tangent) is SymbolicZero
        found = tangent.aval if symbolic else typeof(tangent)
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise TypeError(
                f"{about} must produce primal and tangent outputs with corresponding shapes and "
                f"dtypes. Expected {wanted.str_short()} (tangent type of {aval.str_short()}) but "
                f"got {found.str_short()}."
            )
        return Zero(wanted) if symbolic else as_tangent(tangent)


# ---- the primitive -------------------------------------------------------------------------------
# `call_jaxpr` is a FlatFunction until it is written down, and then a program.


def as_function(call: Any) -> Callable[..., Sequence[Any]]:
    if isinstance(call, ClosedJaxpr):
        return lambda *args: jaxpr_as_fun(call, *args)
    return call


@rules.infer(custom_jvp_call_p)
def _(*avals, call_jaxpr, **_):
    return call_jaxpr.out_avals


@rules.effects(custom_jvp_call_p)
def _(*avals, call_jaxpr, **_):
    return call_jaxpr.effects


@rules.run(custom_jvp_call_p)
def _(*args, call_jaxpr, **_):
    return as_function(call_jaxpr)(*args)


def write_down(call: Any, args: Sequence[Any], num_consts: int) -> tuple[ClosedJaxpr, Any, int]:
    """The program of a call, its operands with the values it captured, and how many those are."""
    if isinstance(call, ClosedJaxpr):
        return call, args, num_consts
    program = stage(call, [typeof(x) for x in args], getattr(call, "debug_info", None))
    program, captured = split_captured(program)
    return program, (*captured, *args), num_consts + len(captured)


@rules.staged(custom_jvp_call_p)
def _(trace, *args, call_jaxpr, num_consts, **params):
    program, args, num_consts = write_down(call_jaxpr, args, num_consts)
    return trace.write(
        custom_jvp_call_p, args, {"call_jaxpr": program, "num_consts": num_consts, **params}
    )


def refuse_captured(kind: str, tangents: Sequence[Any]) -> None:
    """Values that the function closes over have no place in its rule, so they must not move."""
    if any(type(t) is not Zero for t in tangents):
        raise UnexpectedTracerError(
            f"Detected differentiation of a {kind} function with respect to a closed-over value: "
            "its rule has no place for it. Pass the value as an argument instead of closing over "
            "it, so that the rule is given it."
        )


@rules.jvp(custom_jvp_call_p)
def _(primals, tangents, *, call_jaxpr, jvp_jaxpr_fun, num_consts, symbolic_zeros):
    refuse_captured("custom_jvp", tangents[:num_consts])
    given = [
        SymbolicZero(t.aval) if symbolic_zeros and type(t) is Zero else instantiate(t)
        for t in tangents[num_consts:]
    ]
    results = jvp_jaxpr_fun(*primals[num_consts:], *given)
    count = len(results) // 2
    return results[:count], results[count:]


@rules.transpose(custom_jvp_call_p)
def _(cotangents, *operands, call_jaxpr, **_):
    linear = [type(x) is UndefinedPrimal for x in operands]
    program, present = transpose_program(
        call_jaxpr, linear, [type(c) is not Zero for c in cotangents]
    )
    known = [x for x in operands if type(x) is not UndefinedPrimal]
    given = [c for c in cotangents if type(c) is not Zero]
    wanted = [x.aval for x in operands if type(x) is UndefinedPrimal]
    found = iter(spread(jaxpr_as_fun(program, *known, *given), present, wanted))
    return [next(found) if is_linear else None for is_linear in linear]


@rules.batch_with_axis(custom_jvp_call_p)
def _(axis: AxisData, values, axes, *, call_jaxpr, jvp_jaxpr_fun, num_consts, symbolic_zeros):
    values, flags = all_in_front(values, axes)
    call: Any
    if isinstance(call_jaxpr, ClosedJaxpr):
        call, _ = batch_program(call_jaxpr, axis, flags, True)
    else:
        call = BatchedFunction(call_jaxpr, axis, flags)
    rule = BatchedFunction(jvp_jaxpr_fun, axis, flags[num_consts:] * 2)
    results = custom_jvp_call_p.bind(
        *values,
        call_jaxpr=call,
        jvp_jaxpr_fun=rule,
        num_consts=num_consts,
        symbolic_zeros=symbolic_zeros,
    )
    return results, [0] * len(results)


def all_in_front(values: Sequence[Any], axes: Sequence[Any]) -> tuple[list[Any], list[bool]]:
    """The values with the batch axis of those that have one in front, and which have one."""
    flags = [a is not None for a in axes]
    return [
        to_front(x, a, 0) if a is not None else x for x, a in zip(values, axes, strict=True)
    ], flags


class BatchedFunction:
    """A flat function over the first axis of some of its arguments, and of all its results."""

    __slots__ = ("__name__", "axis", "debug_info", "flags", "fun")

    def __init__(self, fun: Any, axis: AxisData, flags: Sequence[bool]):
        self.fun = fun
        self.axis = axis
        self.flags = flags
        self.__name__ = getattr(fun, "__name__", "")
        self.debug_info = getattr(fun, "debug_info", None)

    def __call__(self, *args: Any) -> list[Any]:
        # Tangents that are known to be zero have the same type in every example.
        args = tuple([_example(x, b) for x, b in zip(args, self.flags, strict=True)])
        axes = [
            0 if b and type(x) is not SymbolicZero else None
            for x, b in zip(args, self.flags, strict=True)
        ]
        values, found = batch_flat(self.fun, self.axis, args, axes)
        return [
            Zero(_with_axis(x.aval, self.axis.size))
            if type(x) is Zero
            else to_front(x, a, self.axis.size)
            for x, a in zip(values, found, strict=True)
        ]


def _example(x: Any, batched: bool) -> Any:
    if type(x) is SymbolicZero and batched:
        return SymbolicZero(x.aval.update(shape=x.aval.shape[1:]))
    return x


def _with_axis(aval: Any, size: int) -> Any:
    return aval.update(shape=(size, *aval.shape))
