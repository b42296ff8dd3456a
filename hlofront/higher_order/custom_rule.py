"""What functions with the user's rules share: their arguments by position, as flat values."""

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import named_as
from hlofront.core.aval import is_value, typeof
from hlofront.core.check import types_match
from hlofront.core.jaxpr import DebugInfo
from hlofront.transforms.flatten import Signature, result_paths


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


# ---- arguments that are not differentiated -------------------------------------------------------


class CustomRuleArguments:
    """The arguments of a call to a function with a custom rule: those that its rule differentiates.

    Raises TypeError where the call does not fit the function's signature.
    """

    __slots__ = ("avals", "differentiated", "fixed", "leaves", "structure")

    avals: list[Any]

    def __init__(self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]):
        args = owner.positional(args, kwargs)
        fixed = {n % len(args) for n in owner.nondiff_positions(len(args))}
        # By position, in the order in which rules are given them.
        self.fixed = {n: owner.fixed_argument(args[n]) for n in sorted(fixed)}
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
    """The base of custom_jvp and custom_vjp: a function and its nondifferentiable arguments."""

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

    def __getattr__(self, name: str) -> Any:
        # Decorators of this kind stack in any order, and each rule is given to the outermost.
        fun = self.__dict__.get("fun")
        if name.startswith("def") and isinstance(fun, CustomRule):
            return getattr(fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def nondiff_positions(self, count: int) -> tuple[int, ...]:
        """Their positions in a call with `count` arguments."""
        out = [n for n in self.nondiff_argnums if not -count <= n < count]
        if out:
            raise TypeError(
                f"{self.signature.where} was called with {count} arguments, and its "
                f"nondiff_argnums {self.nondiff_argnums} name others."
            )
        return self.nondiff_argnums

    def fixed_argument(self, x: Any) -> Any:
        """An argument that is not differentiated, as the function and its rules are given it."""
        return x

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call by position, with defaults filled in."""
        parameters = self.signature.parameters
        if not kwargs and (parameters is None or len(args) == len(parameters)):
            return args
        if isinstance(self.fun, functools.partial):
            # What it binds, by position or keyword, are no arguments of the call.
            parameters = None
        if parameters is None:
            if kwargs:
                raise TypeError(
                    f"The keyword arguments {sorted(kwargs)} of {self.signature.where} could not "
                    "be resolved to positions, as it is a functools.partial or has no signature: "
                    "pass them by position."
                )
            return args
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        given = sorted(name for name in bound.kwargs if name in kwargs)
        if given:
            raise TypeError(
                f"The following keyword arguments of {self.signature.where} could not be resolved "
                f"to positions: {given}. Functions with custom derivatives take "
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

    __slots__ = ("arguments", "call", "debug_info", "out_avals", "out_tree")

    def __init__(
        self, call: Callable[..., Any], arguments: CustomRuleArguments, signature: Signature
    ):
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
        # Of the results, once the function was run: a rule that is run later must agree.
        self.out_tree: Any = None
        self.out_avals: list[Any] = []

    def check_agrees(self, about: str, results: Sequence[Any], out_tree: Any) -> None:
        """Raise the TypeError for a rule whose results are not like the function's.

        A rule that is run in the function's stead, which then never was, may do as it likes.
        """
        if self.out_tree is None:
            return
        function = self.debug_info.func_src_info
        begins = (
            f"{about} must produce a pair (list or tuple of length two) where the first element "
            f"represents the primal output, equal to that of {function},"
        )
        if self.out_tree != out_tree:
            raise TypeError(
                f"{begins} but their container (pytree) structures are {out_tree} and "
                f"{self.out_tree}."
            )
        for i, (x, wanted) in enumerate(zip(results, self.out_avals, strict=True)):
            found: Any = typeof(x)
            if not types_match(found, wanted):
                path = result_paths(out_tree)[i].removeprefix("result")
                raise TypeError(
                    f"{begins} but at output{path} their types are {found.str_short()} and "
                    f"{wanted.str_short()}."
                )

    def __call__(self, *leaves: Any) -> list[Any]:
        arguments = self.arguments
        results = self.call(*arguments.whole(arguments.structure.unflatten(leaves)))
        outputs, self.out_tree = tree.tree_flatten(results)
        check_values(outputs, self.out_tree, self.debug_info.func_src_info)
        self.out_avals = list(map(typeof, outputs))
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
