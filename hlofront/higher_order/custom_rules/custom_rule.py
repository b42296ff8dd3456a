"""The base classes of custom_jvp and custom_vjp: arguments by position, flat functions."""

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import named_as
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes, DType, Shape
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.programs.check import types_match
from hlofront.core.typed_scalars import typed
from hlofront.transforms.arguments import Signature
from hlofront.transforms.flatten import result_paths


class SymbolicZero:
    """A zero tangent or cotangent with an aval, which rules with `symbolic_zeros=True` take."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


# ---- arguments that are not differentiated -------------------------------------------------------


class CustomRuleArguments:
    """The arguments of a call to a function with a custom rule.

    Args:
      owner: the function with the custom rule.
      args, kwargs: the arguments of the call.

    Raises:
      TypeError: if the call does not match the function's signature, or a differentiated argument
        has a leaf that is not an array.

    Attributes:
      fixed: the nondifferentiable arguments by position, in the order in which rules take them.
      differentiated: the positions of the differentiated arguments.
      structure: the tree definition of the tuple of differentiated arguments.
      leaves: the leaves of the differentiated arguments, until `take_leaves` is called.
      avals: the types of the leaves, after `take_leaves` is called.
    """

    __slots__ = ("avals", "differentiated", "fixed", "leaves", "structure")

    avals: list[ShapedArray]
    leaves: list[ArrayLike]

    def __init__(self, owner: "CustomRule", args: tuple[object, ...], kwargs: dict[str, object]):
        args = owner.positional(args, kwargs)
        fixed = {n % len(args) for n in owner.nondiff_positions(len(args))}
        self.fixed = {n: owner.fixed_argument(args[n]) for n in sorted(fixed)}
        self.differentiated = [n for n in range(len(args)) if n not in fixed]
        chosen = tuple([args[n] for n in self.differentiated])
        leaves, self.structure = tree.tree_flatten(chosen)
        self.leaves = [typed(x) for x in leaves]
        for index, leaf in enumerate(self.leaves):
            if not is_value(leaf):
                name = owner.signature.argument_names((chosen, {}), self.differentiated)[index]
                raise TypeError(
                    f"Argument {name} of {owner.signature.where} is {source.shortened(repr(leaf))} "
                    f"of type {type(leaf)}, which is not a valid JAX type. Arguments that are not "
                    f"arrays go into nondiff_argnums of {type(owner).__name__}."
                )

    def take_leaves(self) -> list[ArrayLike]:
        """Return the leaves and clear them: programs hold this record, but must not hold values."""
        leaves, self.leaves = self.leaves, []
        self.avals = [typeof(x) for x in leaves]
        return leaves

    def types(self) -> tuple[PyTree, ...]:
        """Return the differentiated arguments as pytrees of avals."""
        return tree.tree_unflatten(self.structure, self.avals)

    def whole(self, chosen: Sequence[PyTree]) -> list[PyTree]:
        """Merge differentiated arguments with the nondifferentiable ones, in positional order."""
        arguments: list[PyTree] = [None] * (len(chosen) + len(self.fixed))
        for n, x in self.fixed.items():
            arguments[n] = x
        for n, x in zip(self.differentiated, chosen, strict=True):
            arguments[n] = x
        return arguments


class CustomRule:
    """The base of custom_jvp and custom_vjp: a function and its nondifferentiable arguments."""

    def __init__(
        self,
        fun: Callable[..., PyTree],
        nondiff_argnums: int | Sequence[int] | None = (),
        nondiff_argnames: Sequence[str] | None = (),
    ):
        if not callable(fun):
            raise TypeError(
                f"{type(self).__name__} requires a function, got {source.shortened(repr(fun))} of "
                f"type {type(fun)}"
            )
        named_as(self, fun)
        self.fun = fun
        self.signature = Signature(fun)
        self.signature.release_function()
        if isinstance(nondiff_argnums, int):
            nondiff_argnums = (nondiff_argnums,)
        names = self.signature.positional_names()
        nondiff_argnames = nondiff_argnames or ()
        unknown = [name for name in nondiff_argnames if name not in names]
        if unknown:
            raise ValueError(
                f"{type(self).__name__} was given nondiff_argnames {unknown}, which are not "
                f"parameters of {self.signature.where}: it has {names}."
            )
        self.nondiff_argnums = tuple(map(operator.index, nondiff_argnums or ())) + tuple(
            [names.index(name) for name in nondiff_argnames]
        )

    def __getattr__(self, name: str) -> Any:
        # Custom-rule decorators stack in any order, and each rule is set on the outermost.
        fun = self.__dict__.get("fun")
        if name.startswith("def") and isinstance(fun, CustomRule):
            return getattr(fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def nondiff_positions(self, count: int) -> tuple[int, ...]:
        """Return the positions of nondifferentiable arguments in a call with `count` arguments.

        Raises:
          TypeError: if a nondifferentiable argument is missing.
          ValueError: if a position that counts from the last argument is before the first.
        """
        for position in self.nondiff_argnums:
            if not -count <= position < count:
                raise (ValueError if position < 0 else TypeError)(
                    f"{self.signature.where} was called with {count} arguments, and its "
                    f"nondiff_argnums {self.nondiff_argnums} name others."
                )
        return self.nondiff_argnums

    def fixed_argument(self, x: PyTree) -> PyTree:
        """Return a nondifferentiable argument in the form that the function and its rules take."""
        return x

    def positional(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[PyTree, ...]:
        """Return the positional form of a call's arguments, with defaults applied.

        Raises:
          TypeError: if a keyword argument has no position.
        """
        parameters = self.signature.parameters
        if not kwargs and (parameters is None or len(args) == len(parameters)):
            return args
        fun: object = self.fun
        if isinstance(fun, functools.partial):
            # Arguments that a partial binds, by position or keyword, are not arguments of the call.
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
        unresolved = sorted(name for name in bound.kwargs if name in kwargs)
        if unresolved:
            raise TypeError(
                f"The following keyword arguments of {self.signature.where} could not be resolved "
                f"to positions: {unresolved}. Functions with custom derivatives take only "
                "positional arguments."
            )
        return bound.args

    def _no_rule(self, kind: str) -> AttributeError:
        name = self.signature.name
        return AttributeError(
            f"No {kind.upper()} defined for custom_{kind} function {name} using def{kind}: "
            f"decorate its rule with @{name}.def{kind}"
            + ("." if kind == "jvp" else f", as in {name}.defvjp(forward, backward).")
        )


class FunctionResult:
    """The type of a function's result, which the result of a rule that runs later must match.

    Programs keep the rule and this record instead of the function, which may close over traced
    values that its rule does not use.

    Args:
      arguments: the arguments of the call.
      signature: the signature of the user's function.

    Attributes:
      debug_info: the name and the source line of the user's function.
      tree: the tree definition of the result after the function has run; None before.
      avals: the types of the result's leaves.
    """

    __slots__ = ("avals", "debug_info", "tree")

    def __init__(self, arguments: CustomRuleArguments, signature: Signature):
        self.debug_info = DebugInfo(
            "custom derivative",
            signature.find_where,
            lambda: signature.argument_names(
                (arguments.types(), {}),
                arguments.differentiated,
            ),
        )
        self.tree: PyTreeDef | None = None
        self.avals: list[ShapedArray] = []

    def check_agrees(self, about: str, results: ArrayLikes, out_tree: PyTreeDef) -> None:
        """Raise a TypeError if a rule's results differ from the function's in structure or types.

        If the rule runs instead of the function, nothing is checked.
        """
        if self.tree is None:
            return
        function = self.debug_info.func_src_info
        begins = (
            f"{about} must produce a pair (list or tuple of length two) where the first element "
            f"represents the primal output, equal to that of {function},"
        )
        if self.tree != out_tree:
            raise TypeError(
                f"{begins} but their container (pytree) structures are {out_tree} and {self.tree}."
            )
        for i, (x, expected) in enumerate(zip(results, self.avals, strict=True)):
            aval = typeof(x)
            if not types_match(aval, expected):
                path = result_paths(out_tree)[i].removeprefix("result")
                raise TypeError(
                    f"{begins} but at output{path} their types are {aval.str_short()} and "
                    f"{expected.str_short()}."
                )


class FlatFunction:
    """A function of flat values, which records the type of its result.

    Args:
      call: the user's function.
      arguments: the arguments of the call.
      result: the record.
    """

    __slots__ = ("arguments", "call", "debug_info", "result")

    def __init__(
        self, call: Callable[..., PyTree], arguments: CustomRuleArguments, result: FunctionResult
    ):
        self.call = call
        self.arguments = arguments
        self.result = result
        self.debug_info = result.debug_info

    def __call__(self, *leaves: ArrayLike) -> list[ArrayLike]:
        arguments, result = self.arguments, self.result
        results = self.call(*arguments.whole(arguments.structure.unflatten(leaves)))
        outputs, result.tree = tree.tree_flatten(results)
        check_values(outputs, result.tree, self.debug_info.func_src_info)
        result.avals = list(map(typeof, outputs))
        return outputs


def check_values(outputs: Iterable[object], out_tree: PyTreeDef, where: str) -> None:
    """Raise a TypeError that names the first leaf of a function's result that is not an array.

    Args:
      outputs: the leaves of the result.
      out_tree: the structure of the result.
      where: the function, for the message.
    """
    for i, x in enumerate(outputs):
        if not is_value(x):
            path = result_paths(out_tree)[i].removeprefix("result")
            raise TypeError(
                f"{where} returned a value of type {type(x)}"
                f"{' at output component ' + path if path else ''}, which is not a valid JAX type"
            )
