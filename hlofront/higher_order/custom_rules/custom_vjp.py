"""The class custom_vjp, for functions with user-defined forward and backward rules."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.config import disable_bwd_checks
from hlofront.base.elements import float0
from hlofront.base.errors import UnexpectedTracerError
from hlofront.base.tree import PyTree, PyTreeDef, tree_map
from hlofront.base.typing import ArrayLike, ArrayLikes, is_tuple, is_tuple_or_list
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.jaxpr import Value
from hlofront.core.programs.check import types_match
from hlofront.core.references import is_reference
from hlofront.core.symbolic_zeros import Cotangent, Zero
from hlofront.core.trace import Tracer, as_array, as_result
from hlofront.core.typed_scalars import typed
from hlofront.higher_order.calls.jit_call import captured_by, with_captured
from hlofront.higher_order.custom_rules.backward_rules import (
    AccumulatingForm,
    BackwardForm,
    BackwardRule,
    LoggingForm,
)
from hlofront.higher_order.custom_rules.custom_rule import (
    CustomRule,
    CustomRuleArguments,
    FlatFunction,
    FunctionResult,
    SymbolicZero,
    check_values,
)
from hlofront.higher_order.custom_rules.custom_vjp_call import custom_vjp_call_p, remat_opt_p
from hlofront.primitives.rules.derivatives import instantiate, zeros_of
from hlofront.transforms.arguments import Signature
from hlofront.transforms.flatten import result_paths
from hlofront.transforms.reference_checks import check_references
from hlofront.transforms.stage import stage

# The user's forward rule: (*arguments) -> (result, residuals).
ForwardRule = Callable[..., PyTree]
Part = TypeVar("Part")


class CustomVJPPrimal:
    """An array argument of a forward rule with `symbolic_zeros=True`, and whether it is perturbed.

    Attributes:
      value: the array.
      perturbed: whether differentiation is with respect to the array.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: ArrayLike, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """Replace each CustomVJPPrimal of a pytree by its value.

    Args:
      tree: a pytree of CustomVJPPrimal, such as an argument of a forward rule with
        `symbolic_zeros`.

    Raises:
      TypeError: if a leaf is not a CustomVJPPrimal.
    """

    def value(leaf: object) -> ArrayLike:
        if not isinstance(leaf, CustomVJPPrimal):
            raise TypeError(f"unexpected leaf type {type(leaf)}: expected CustomVJPPrimal")
        return leaf.value

    return tree_map(value, tree, is_leaf=lambda x: type(x) is CustomVJPPrimal)


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> PyTree:
    """Return the zero cotangent of each array of a pytree.

    Args:
      val: an array or a pytree of arrays.
      symbolic_zeros: whether the result has a SymbolicZero for each array, rather than zeros.

    Returns:
      A pytree of the structure of `val`. Integers and booleans have zeros of float0.
    """

    def zero(leaf: ArrayLike) -> ArrayLike | SymbolicZero:
        aval = typeof(leaf).to_tangent_aval()
        return SymbolicZero(aval) if symbolic_zeros else zeros_of(aval)

    return tree.tree_map(zero, val)


class custom_vjp(CustomRule):
    """A function with user-defined forward and backward rules for reverse-mode differentiation.

        @custom_vjp
        def clip_gradient(low, high, x):
            return x

        clip_gradient.defvjp(
            lambda low, high, x: (x, (low, high)),
            lambda bounds, cotangent: (None, None, jnp.clip(cotangent, *bounds)),
        )

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments without cotangents, such as Python values and
        functions, which the backward rule takes first.
      nondiff_argnames: names of arguments without cotangents.

    Raises:
      AttributeError: when called before `defvjp`.
      TypeError: if a rule returns a wrong structure or type, or under forward-mode differentiation.

    Example:
      >>> @jax.custom_vjp
      ... def clipped_gradient(x):
      ...     return x
      >>> clipped_gradient.defvjp(
      ...     lambda x: (x, None), lambda _, gradient: (jnp.clip(gradient, -1, 1),)
      ... )
      >>> jax.grad(lambda x: 100 * clipped_gradient(x))(1.0)
      Array(1., dtype=float32, weak_type=True)
    """

    def __init__(
        self,
        fun: Callable[..., PyTree],
        nondiff_argnums: int | Sequence[int] | None = (),
        nondiff_argnames: Sequence[str] | None = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: ForwardRule | None = None
        self.bwd: BackwardRule | None = None
        self.form = BackwardForm
        self.symbolic_zeros = False
        self.optimize_remat = False

    def defvjp(
        self,
        fwd: ForwardRule,
        bwd: BackwardRule,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Set the forward and the backward rule.

        Args:
          fwd: takes the function's arguments and returns (result, residuals).
          bwd: takes the nondifferentiable arguments, the residuals and the cotangent of the
            result, and returns a tuple with one cotangent per differentiable argument; None is
            zero.
          symbolic_zeros: whether `fwd` takes CustomVJPPrimals, and `bwd` SymbolicZeros for
            cotangents that are known to be zero.
          optimize_remat: whether, under checkpoint, the function itself runs instead of `fwd` if
            the residuals are not needed.
          generic_batching: has no effect; under vmap, each example has its own cotangent of each
            result.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.form = BackwardForm
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    def defvjp_with_logs(
        self,
        fwd: ForwardRule,
        bwd: BackwardRule,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Set the forward rule, and a backward rule that logs for `f_vjp.with_logs`.

        Args:
          fwd, symbolic_zeros, optimize_remat, generic_batching: see `defvjp`.
          bwd: like that of `defvjp`, but it returns a pair: the cotangents, and a dict of pytrees
            by name, or None. A plain call of the VJP function drops the dict.

        Example:
          >>> f = jax.custom_vjp(jnp.sin)
          >>> f.defvjp_with_logs(
          ...     lambda x: (jnp.sin(x), jnp.cos(x)), lambda cos, g: ((g * cos,), {"gradient": g})
          ... )
          >>> _, f_vjp = jax.vjp(f, 0.0)
          >>> f_vjp.with_logs(2.0)[1]
          {'gradient': 2.0}
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat, generic_batching)
        self.form = LoggingForm

    def defvjp_with_accums(
        self,
        fwd: ForwardRule,
        bwd: BackwardRule,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Set the forward rule, and a backward rule that adds to accumulators of cotangents.

        Args:
          fwd, symbolic_zeros, optimize_remat, generic_batching: see `defvjp`.
          bwd: takes, after its arguments for `defvjp`, a pytree of accumulators per argument of the
            function, whose method `accum` adds a cotangent: ValAccums, or NullAccums if none is
            needed. It returns None, or a dict for `f_vjp.with_logs`.

        Example:
          >>> f = jax.custom_vjp(jnp.square)
          >>> f.defvjp_with_accums(lambda x: (x * x, x), lambda x, g, total: total.accum(2 * x * g))
          >>> jax.grad(f)(3.0)
          Array(6., dtype=float32, weak_type=True)
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat, generic_batching)
        self.form = AccumulatingForm

    def defremat(self, *_: object, **__: object) -> NoReturn:
        """Raise NotImplementedError, as JAX does without its option jax_custom_vjp3."""
        raise NotImplementedError(  # JAX raises this class.
            "custom_vjp.defremat is not implemented: JAX has it only with jax_custom_vjp3. What "
            "checkpoint saves and recomputes can be chosen by its policy, with checkpoint_name in "
            "fwd; jax.custom_remat and HiPrim.remat define it for one operation."
        )

    defremat_with_logs = defremat

    def fixed_argument(self, x: PyTree) -> PyTree:
        for leaf in tree.tree_leaves(x):
            if isinstance(leaf, Tracer):
                raise UnexpectedTracerError(
                    f"The custom_vjp function {self.signature.where} was called with the traced "
                    f"value {leaf!r} at a position of its nondiff_argnums. The backward rule is "
                    "given such arguments after the trace has ended. Use nondiff_argnums only for "
                    "Python values and functions: pass an array as a differentiable argument, for "
                    "which the backward rule may return None."
                )
        return x

    @boundary
    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        if self.fwd is None or self.bwd is None:
            raise self._no_rule("vjp")
        arguments = CustomRuleArguments(self, args, kwargs)
        result = FunctionResult(arguments, self.signature)
        leaves = arguments.take_leaves()
        if any(map(is_reference, arguments.avals)):
            check_references(result.debug_info, leaves)
        call = FlatFunction(self.fun, arguments, result)
        forward = Forward(
            self.signature,
            arguments,
            result,
            self.fwd,
            self.form(self.bwd),
            self.symbolic_zeros,
            call if self.optimize_remat and not self.symbolic_zeros else None,
        )
        results = custom_vjp_call_p.bind(
            *leaves,
            call_jaxpr=call,
            fwd_jaxpr_thunk=forward,
            bwd=self.bwd,
            num_consts=0,
            out_trees=None,
            symbolic_zeros=self.symbolic_zeros,
        )
        out_tree: Any = forward.out_tree if result.tree is None else result.tree
        _check_no_reference(f"custom_vjp function {self.signature.name}", results, out_tree)
        return out_tree.unflatten(results)


def _check_no_reference(about: str, values: Sequence[Value], structure: PyTreeDef) -> None:
    """Raise ValueError if a reference is among the results of a function with a vjp rule."""
    for index, value in enumerate(values):
        if is_reference(aval := typeof(value)):
            path = result_paths(structure)[index].removeprefix("result")
            raise ValueError(
                f"{about} returned a mutable array reference of type {aval}"
                f"{' at output tree path ' + path if path else ''}, which has no cotangent: write "
                "to a reference that is an argument, or return the array that it holds"
            )


class Forward:
    """A user's vjp rules on flat values: (primals, perturbed) -> (results, residuals, backward).

    `backward(residuals, cotangents)` returns flat cotangents.

    Args:
      signature: the signature of the custom_vjp function.
      arguments: the arguments of the call.
      result: the type of the function's result, which the forward rule's result must match.
      rule: the user's forward rule.
      backward: the user's backward rule, as a BackwardForm.
      symbolic_zeros: whether the rules take CustomVJPPrimals and SymbolicZeros.
      call: the function on flat values, to run if no residual is used; None to run the rule.
    """

    __slots__ = (
        "__name__",
        "arguments",
        "backward",
        "call",
        "out_tree",
        "result",
        "rule",
        "signature",
        "symbolic_zeros",
    )

    def __init__(
        self,
        signature: Signature,
        arguments: CustomRuleArguments,
        result: FunctionResult,
        rule: ForwardRule,
        backward: BackwardForm,
        symbolic_zeros: bool,
        call: FlatFunction | None,
    ):
        self.signature = signature
        self.arguments = arguments
        self.result = result
        self.symbolic_zeros = symbolic_zeros
        self.call = call
        self.rule = rule
        self.backward = backward
        self.out_tree: PyTreeDef | None = None
        self.__name__ = source.callable_name(rule)

    def __call__(self, primals: ArrayLikes, perturbed: Sequence[bool]) -> "_ForwardResult":
        arrays = list(map(as_result, primals))
        leaves: Sequence[object] = arrays
        if self.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, p) for x, p in zip(arrays, perturbed, strict=True)]
        elif self.call is not None:
            return self._optimized(self.call, arrays)
        return self._run(self.arguments.structure.unflatten(leaves), tuple(perturbed))

    def _run(
        self, chosen: Sequence[PyTree], perturbed: Sequence[bool] | None = None
    ) -> "_ForwardResult":
        """Call the forward rule with differentiated arguments and the nondifferentiable ones."""
        pair = self.rule(*self.arguments.whole(chosen))
        name = self.signature.name
        about = f"Custom VJP fwd rule {self.__name__} for function {name}"
        if not is_tuple_or_list(pair) or len(pair) != 2:
            raise TypeError(
                f"{about} must produce a pair (list or tuple of length two) where the first "
                "element represents the primal output (equal to that of the custom_vjp-decorated "
                f"function {name}) and the second element represents residuals (i.e. values "
                "stored from the forward pass for use on the backward pass), but instead of a "
                f"pair it produced {source.shortened(repr(pair))}."
            )
        results, self.out_tree = tree.tree_flatten(pair[0])
        check_values(results, self.out_tree, about)
        _check_no_reference(about, results, self.out_tree)
        self.result.check_agrees(about, results, self.out_tree)
        residuals, residual_tree = tree.tree_flatten(pair[1])
        check_values(residuals, residual_tree, f"{about}, in its residuals,")
        passed = set(map(id, tree.tree_leaves(chosen)))
        made = [x for x in residuals if id(x) not in passed]
        _check_no_reference(f"{about}, in residuals that are not arguments,", made, residual_tree)
        backward = Backward(
            self.signature,
            self.arguments,
            self.backward,
            residual_tree,
            self.out_tree,
            self.symbolic_zeros,
            perturbed,
        )
        return results, residuals, backward

    def _optimized(self, call: FlatFunction, primals: ArrayLikes) -> "_ForwardResult":
        """Bind remat_opt, which runs the forward rule, or the function if no residual is used."""
        forwards: list[_ForwardResult] = []

        def forward(*leaves: ArrayLike) -> list[ArrayLike]:
            forwards.append(self._run(self.arguments.structure.unflatten(leaves)))
            results, residuals, _ = forwards[-1]
            return [*results, *residuals]

        avals = [typeof(x) for x in primals]
        whole = stage(forward, avals, call.debug_info)
        alone = stage(call, avals, call.debug_info)
        # Tracers of enclosing functions that either program captures are operands of both.
        captured = captured_by(whole, alone)
        results, _, backward = forwards.pop()
        flat = remat_opt_p.bind(
            *captured,
            *primals,
            fwd_jaxpr=with_captured(whole, captured),
            fun_jaxpr=with_captured(alone, captured),
            num_consts=0,
        )
        count = len(results)
        return flat[:count], flat[count:], backward


@dataclasses.dataclass(slots=True, eq=False)
class Backward:
    """A user's backward rule on flat residuals and cotangents.

    Args:
      signature: the signature of the custom_vjp function.
      arguments: the arguments of the call.
      form: the user's backward rule, as a BackwardForm.
      residual_tree: the tree definition of the residuals.
      out_tree: the tree definition of the function's result.
      symbolic_zeros: whether the rule takes SymbolicZeros for cotangents that are known to be zero.
      perturbed: per leaf of the arguments, whether its cotangent is needed; None if unknown.
    """

    signature: Signature
    arguments: CustomRuleArguments
    form: BackwardForm
    residual_tree: PyTreeDef
    out_tree: PyTreeDef
    symbolic_zeros: bool
    perturbed: Sequence[bool] | None

    @property
    def may_log(self) -> bool:
        return self.form.may_log

    def __call__(self, residuals: ArrayLikes, cotangents: Sequence[Cotangent]) -> list[Cotangent]:
        arguments = self.arguments
        arriving: list[ArrayLike | SymbolicZero] = [
            SymbolicZero(c.aval)
            if self.symbolic_zeros and isinstance(c, Zero)
            else (as_array(instantiate(c)) if isinstance(c, Zero) else as_result(c))
            for c in cotangents
        ]
        residuals = [typed(x) if isinstance(x, _SCALARS) else as_array(x) for x in residuals]
        args = [
            *arguments.fixed.values(),
            self.residual_tree.unflatten(residuals),
            self.out_tree.unflatten(arriving),
        ]
        output: PyTree = self.form.run(arguments, self.perturbed, args)
        if (
            is_tuple_or_list(output)
            and not is_tuple(output)
            and len(output) == len(arguments.differentiated)
        ):
            output = tuple(output)
        return [
            self._checked(index, c, aval)
            for index, (c, aval) in enumerate(
                zip(self._by_leaf(output), arguments.avals, strict=True)
            )
        ]

    def _by_leaf(self, output: object) -> list[object]:
        """Broadcast the rule's output, a prefix of the arguments, to one item per argument leaf.

        Raises:
          TypeError: if the output is not a pytree prefix of the arguments.
        """
        cotangents: list[object] = []

        def take(part: Part, below: object) -> Part:
            cotangents.extend([part] * len(tree.tree_leaves(below)))
            return part

        structure = self.arguments.structure
        try:
            if is_tuple(output):
                tree.tree_map(take, output, _numbered(structure), is_leaf=lambda x: x is None)
        except ValueError:
            raise self._wrong_structure(output) from None
        if len(cotangents) != structure.num_leaves:
            raise self._wrong_structure(output)
        return cotangents

    def _wrong_structure(self, output: object) -> TypeError:
        return TypeError(
            f"{self.form.about} must produce an output with the same "
            "container (pytree) structure as the args tuple of the primal function, and in "
            "particular must produce a tuple of length equal to the number of arguments to the "
            f"primal function {self.signature.where}, but got bwd output structure "
            f"{tree.tree_structure(output)} for primal input structure {self.arguments.structure}."
        )

    def _checked(self, index: int, cotangent: Value, primal: ShapedArray) -> Cotangent:
        """Check a cotangent from the user's rule, and convert it to the interpreter's form.

        Args:
          index: the index of the argument leaf.
          cotangent: an array, a SymbolicZero or None.
          primal: the type of the argument leaf.

        Raises:
          TypeError: if the cotangent is anything else.
          ValueError: if its shape is not that of the leaf, or it is a SymbolicZero of another type.
        """
        expected = primal.to_cotangent_aval()
        # Integer arguments have no cotangents, so the rule's values for them are ignored.
        if cotangent is None or expected.dtype == float0:
            return Zero(expected)
        if isinstance(cotangent, SymbolicZero):
            kind = cotangent.aval.manual_axis_type
            if not types_match(cotangent.aval, expected.update(manual_axis_type=kind)):
                raise ValueError(
                    f"{self.form.about} produced a SymbolicZero of type "
                    f"{cotangent.aval.str_short()} at output{self._path(index)}, which corresponds "
                    f"to an input of type {primal.str_short()}. Return None where the cotangent is "
                    "zero."
                )
            return Zero(expected)
        if not is_value(cotangent):
            raise TypeError(
                f"{self.form.about} returned a value of type "
                f"{type(cotangent)} at output{self._path(index)}, which is not a valid JAX type"
            )
        aval: Any = typeof(cotangent)
        # A cotangent of another dtype is accepted, and the gradient has that dtype.
        if aval.shape != expected.shape and not disable_bwd_checks.value:
            raise ValueError(
                f"{self.form.about} must produce an output with the "
                f"same type as the args tuple of the primal function, but at "
                f"output{self._path(index)} the bwd rule produced an output of type "
                f"{aval.str_short()} corresponding to an input of type {primal.str_short()}, so "
                "the shapes do not match"
            )
        return cotangent

    def _path(self, index: int) -> str:
        numbered = _numbered(self.arguments.structure)
        return tree.keystr(tree.tree_leaves_with_path(numbered)[index][0])


# The results and residuals of a forward rule, and the backward rule that takes the residuals.
_ForwardResult = tuple[ArrayLikes, ArrayLikes, Backward]


def _numbered(structure: PyTreeDef) -> PyTree:
    """Return a pytree with a tree definition whose leaves are their own indices."""
    return structure.unflatten(range(structure.num_leaves))


# Python scalars among the residuals remain Python scalars: a rule may branch on them.
_SCALARS = (bool, int, float, complex, np.generic)
