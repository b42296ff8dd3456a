"""custom_vjp: a function whose backward derivative is the user's."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.config import disable_bwd_checks
from hlofront.base.dtypes import float0
from hlofront.base.errors import UnexpectedTracerError
from hlofront.core.aval import is_value, typeof
from hlofront.core.check import types_match
from hlofront.core.symbolic_zeros import Zero
from hlofront.core.trace import Tracer, as_array
from hlofront.higher_order.custom_rule import (
    CustomRule,
    CustomRuleArguments,
    FlatFunction,
    SymbolicZero,
    check_values,
)
from hlofront.higher_order.custom_vjp_call import custom_vjp_call_p, remat_opt_p
from hlofront.higher_order.jit_call import with_captured
from hlofront.primitives.derivatives import instantiate, zeros_of
from hlofront.transforms.stage import stage


class CustomVJPPrimal:
    """What a forward rule is given for each array where `symbolic_zeros` was asked for.

    Attributes:
      value: the array.
      perturbed: whether it takes part in differentiation.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    def __repr__(self):
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(values: Any) -> Any:
    """A tree of CustomVJPPrimals as the tree of their values.

    Raises:
      TypeError: if a leaf is none.
    """

    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"unexpected leaf type {type(leaf)}: wanted CustomVJPPrimal")
        return leaf.value

    return tree.tree_map(value, values, is_leaf=lambda x: type(x) is CustomVJPPrimal)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero cotangent of each array of a pytree: an array, or a SymbolicZero."""

    def zero(leaf: Any) -> Any:
        aval: Any = typeof(leaf).to_tangent_aval()
        return SymbolicZero(aval) if symbolic_zeros else zeros_of(aval)

    return tree.tree_map(zero, val)


class custom_vjp(CustomRule):
    """A function whose backward derivative is given by two rules. It has no forward derivative.

        @custom_vjp
        def clip_gradient(low, high, x):
            return x

        clip_gradient.defvjp(
            lambda low, high, x: (x, (low, high)),
            lambda bounds, cotangent: (None, None, jnp.clip(cotangent, *bounds)),
        )

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that have no cotangents: Python values, functions.
        The backward rule is given them first.
      nondiff_argnames: the same by name.

    Raises:
      AttributeError: when called before `defvjp`.
      TypeError: if the rules do not return what they should, or under forward-mode
        differentiation.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self.optimize_remat = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Give the rules.

        Args:
          fwd: takes the function's arguments and returns (result, residuals).
          bwd: takes the arguments of nondiff_argnums, the residuals and the cotangent of the
            result, and returns a tuple of cotangents, one per argument that has one; None is zero.
          symbolic_zeros: whether `fwd` is given CustomVJPPrimals, and `bwd` SymbolicZeros for
            cotangents that are known to be zero.
          optimize_remat: whether, under checkpoint, the function itself is run in the place of
            `fwd` where the residuals are not needed.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    def fixed_argument(self, x: Any) -> Any:
        for leaf in tree.tree_leaves(x):
            if isinstance(leaf, Tracer):
                raise UnexpectedTracerError(
                    f"The custom_vjp function {self.signature.where} was called with the traced "
                    f"value {leaf!r} at a position of its nondiff_argnums. The backward rule is "
                    "given such arguments after the trace has ended. Use nondiff_argnums for "
                    "Python values and functions alone: pass an array as an argument that is "
                    "differentiated, for which the backward rule may return None."
                )
        return x

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise self._no_rule("vjp")
        arguments = CustomRuleArguments(self, args, kwargs)
        call = FlatFunction(self.fun, arguments, self.signature)
        forward = Forward(self, arguments, call)
        results = custom_vjp_call_p.bind(
            *arguments.take_leaves(),
            call_jaxpr=call,
            fwd_jaxpr_thunk=forward,
            bwd=self.bwd,
            num_consts=0,
            out_trees=None,
            symbolic_zeros=self.symbolic_zeros,
        )
        out_tree = call.out_tree if call.out_tree is not None else forward.out_tree
        return out_tree.unflatten(results)


class Forward:
    """The user's rules on flat values: (values, which have tangents) -> results and how to go back.

    What it returns is (results, residuals, backward), where backward(residuals, cotangents) gives
    flat cotangents.
    """

    __slots__ = ("__name__", "arguments", "call", "out_tree", "owner")

    def __init__(self, owner: custom_vjp, arguments: CustomRuleArguments, call: FlatFunction):
        self.owner = owner
        self.arguments = arguments
        self.call = call
        self.out_tree: Any = None
        self.__name__ = source.callable_name(owner.fwd)

    def __call__(
        self, primals: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[list[Any], list[Any], "Backward"]:
        owner, arguments = self.owner, self.arguments
        primals = list(map(as_array, primals))
        if owner.symbolic_zeros:
            primals = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        elif owner.optimize_remat:
            return self._optimized(primals)
        return self._run(arguments.structure.unflatten(primals))

    def _run(self, chosen: Any) -> tuple[list[Any], list[Any], "Backward"]:
        owner, arguments = self.owner, self.arguments
        pair = owner.fwd(*arguments.whole(chosen))  # type: ignore[misc]
        name = owner.signature.name
        about = f"Custom VJP fwd rule {self.__name__} for function {name}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"{about} must produce a pair (list or tuple of length two) where the first "
                "element represents the primal output (equal to that of the custom_vjp-decorated "
                f"function {name}) and the second element represents residuals (i.e. values "
                "stored from the forward pass for use on the backward pass), but instead of a "
                f"pair it produced {source.shortened(repr(pair))}."
            )
        results, self.out_tree = tree.tree_flatten(pair[0])
        check_values(results, self.out_tree, about)
        self.call.check_agrees(about, results, self.out_tree)
        residuals, residual_tree = tree.tree_flatten(pair[1])
        check_values(residuals, residual_tree, f"{about}, in its residuals,")
        return results, residuals, Backward(owner, arguments, residual_tree, self.out_tree)

    def _optimized(self, primals: Sequence[Any]) -> tuple[list[Any], list[Any], "Backward"]:
        """As `_run`, but the residuals and the forward rule go where nobody needs the residuals."""
        found: Any = None

        def forward(*leaves: Any) -> list[Any]:
            nonlocal found
            found = self._run(self.arguments.structure.unflatten(leaves))
            return [*found[0], *found[1]]

        avals = [typeof(x) for x in primals]
        whole = stage(forward, avals, self.call.debug_info)
        alone = stage(self.call, avals, self.call.debug_info)
        # Values of enclosing functions that either uses are operands of both.
        used = (c for c in (*whole.consts, *alone.consts) if isinstance(c, Tracer))
        captured = list({id(c): c for c in used}.values())
        flat = remat_opt_p.bind(
            *captured,
            *primals,
            fwd_jaxpr=with_captured(whole, captured),
            fun_jaxpr=with_captured(alone, captured),
            num_consts=0,
        )
        results = len(found[0])
        return flat[:results], flat[results:], found[2]


class Backward:
    """The user's backward rule on flat residuals and cotangents."""

    __slots__ = ("arguments", "out_tree", "owner", "residual_tree")

    def __init__(
        self, owner: custom_vjp, arguments: CustomRuleArguments, residual_tree: Any, out_tree: Any
    ):
        self.owner = owner
        self.arguments = arguments
        self.residual_tree = residual_tree
        self.out_tree = out_tree

    def __call__(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        owner, arguments = self.owner, self.arguments
        given = [
            (SymbolicZero(c.aval) if owner.symbolic_zeros else as_array(instantiate(c)))
            if type(c) is Zero
            else as_array(c)
            for c in cotangents
        ]
        residuals = [x if isinstance(x, _SCALARS) else as_array(x) for x in residuals]
        found = owner.bwd(  # type: ignore[misc]
            *arguments.fixed.values(),
            self.residual_tree.unflatten(residuals),
            self.out_tree.unflatten(given),
        )
        if isinstance(found, list) and len(found) == len(arguments.differentiated):
            found = tuple(found)
        cotangents = self._by_leaf(found)
        return [
            self._checked(place, c, aval)
            for place, (c, aval) in enumerate(zip(cotangents, arguments.avals, strict=True))
        ]

    def _by_leaf(self, found: Any) -> list[Any]:
        """What a rule returned, per leaf of the arguments: a leaf stands for all below it."""
        cotangents: list[Any] = []

        def take(part: Any, below: Any) -> Any:
            cotangents.extend([part] * len(tree.tree_leaves(below)))
            return part

        structure = self.arguments.structure
        try:
            if isinstance(found, tuple):
                tree.tree_map(take, found, _numbered(structure), is_leaf=lambda x: x is None)
        except ValueError:
            raise self._wrong_structure(found) from None
        if len(cotangents) != structure.num_leaves:
            raise self._wrong_structure(found)
        return cotangents

    def _wrong_structure(self, found: Any) -> TypeError:
        return TypeError(
            f"Custom VJP bwd rule {_name(self.owner.bwd)} must produce an output with the same "
            "container (pytree) structure as the args tuple of the primal function, and in "
            "particular must produce a tuple of length equal to the number of arguments to the "
            f"primal function {self.owner.signature.where}, but got bwd output structure "
            f"{tree.tree_structure(found)} for primal input structure {self.arguments.structure}."
        )

    def _checked(self, place: int, cotangent: Any, primal: Any) -> Any:
        wanted = primal.to_tangent_aval()
        # What a rule says of an integer argument is of no account.
        if cotangent is None or wanted.dtype == float0:
            return Zero(wanted)
        symbolic = type(cotangent) is SymbolicZero
        if not symbolic and not is_value(cotangent):
            raise TypeError(
                f"Custom VJP bwd rule {_name(self.owner.bwd)} returned a value of type "
                f"{type(cotangent)} at output{self._path(place)}, which is not a valid JAX type"
            )
        aval: Any = cotangent.aval if symbolic else typeof(cotangent)
        if symbolic:
            if not types_match(aval, wanted):
                raise ValueError(
                    f"Custom VJP bwd rule {_name(self.owner.bwd)} produced a SymbolicZero of type "
                    f"{aval.str_short()} at output{self._path(place)}, which corresponds to an "
                    f"input of type {primal.str_short()}. Return None where the cotangent is zero."
                )
            return Zero(wanted)
        # Another dtype of the same shape is the rule's business: the gradient has it.
        if aval.shape != wanted.shape and not disable_bwd_checks.value:
            raise ValueError(
                f"Custom VJP bwd rule {_name(self.owner.bwd)} must produce an output with the "
                f"same type as the args tuple of the primal function, but at "
                f"output{self._path(place)} the bwd rule produced an output of type "
                f"{aval.str_short()} corresponding to an input of type {primal.str_short()}, so "
                "the shapes do not match"
            )
        return cotangent

    def _path(self, place: int) -> str:
        numbered = _numbered(self.arguments.structure)
        return tree.keystr(tree.tree_leaves_with_path(numbered)[place][0])


def _numbered(structure: Any) -> Any:
    """A tree of this structure, with the number of each leaf in its place."""
    return structure.unflatten(range(structure.num_leaves))


# What a rule keeps of Python's stays so, as what it decides may be no traced value.
_SCALARS = (bool, int, float, complex, np.generic)


def _name(fun: Any) -> str:
    return source.callable_name(fun)
