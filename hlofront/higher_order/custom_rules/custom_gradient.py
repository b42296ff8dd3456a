"""The decorator custom_gradient, for functions that return a result and its backward rule."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hlofront.base import source, tree
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, is_tuple_or_list
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr, Value
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.higher_order.custom_rules.backward_rules import accumulator, cotangent_of
from hlofront.higher_order.custom_rules.custom_vjp import custom_vjp
from hlofront.higher_order.hi_prim.accumulators import ValAccum
from hlofront.transforms.stage import stage


def custom_gradient(
    fun: Callable[..., PyTree] | None = None,
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: PyTree = None,
) -> Callable[..., PyTree]:
    """Return a function whose backward rule comes from `fun(*args) -> (result, rule)`.

    Args:
      fun: returns a result, and a rule from the result's cotangent to the arguments' cotangents: a
        tuple of them, or a single one for a single argument. The rule may close over values that
        `fun` computes. Without it, custom_gradient returns a decorator.
      with_logs: whether the rule returns a pair: the cotangents, and a dict of pytrees by name,
        which `f_vjp.with_logs` returns, or None.
      remat: must be False.
      with_accums: None, or hijax.ValAccum, or a pytree prefix of the arguments with it. If not
        None, the rule takes a pytree of accumulators per argument after the cotangent, adds to them
        instead of returning cotangents, and may return a dict for `f_vjp.with_logs`.

    Returns:
      A function of the arguments of `fun` that returns the result, with that derivative.

    Raises:
      TypeError: if `fun` does not return a pair of a result and a function, or with `with_logs` the
        rule does not return a pair.
      NotImplementedError: for `remat=True`.
      ValueError: for accumulators other than ValAccum.

    Example:
      >>> @jax.custom_gradient(with_logs=True)
      ... def square(x):
      ...     return x**2, lambda g: ((2 * x * g,), {"gradient": g})
      >>> _, square_vjp = jax.vjp(square, 3.0)
      >>> square_vjp.with_logs(1.0)[1]
      {'gradient': 1.0}
    """
    if fun is None:
        return partial(custom_gradient, with_logs=with_logs, remat=remat, with_accums=with_accums)
    if remat:
        raise NotImplementedError(  # JAX raises this class.
            "custom_gradient(remat=True) is not implemented: JAX has it only with jax_custom_vjp3. "
            "What checkpoint saves and recomputes can be chosen by its policy, with "
            "checkpoint_name in the function."
        )
    if any(kind is not ValAccum for kind in tree.tree_leaves(with_accums)):
        raise ValueError(
            f"custom_gradient got with_accums={with_accums}: only hijax.ValAccum is supported. "
            "f_vjp.with_refs adds a cotangent to a reference."
        )
    function = fun

    @custom_vjp
    def wrapped_fun(*args: object, **kwargs: object) -> PyTree:
        result, _ = _pair(function, args, kwargs)
        return result

    def fwd(*args: object, **kwargs: object) -> tuple[PyTree, _Residuals]:
        result, rule = _pair(function, args, kwargs)
        leaves, out_tree = tree.tree_flatten(result)
        trees: list[PyTreeDef] = []

        def flat(*cotangents: ArrayLike) -> list[ArrayLike]:
            cotangent = out_tree.unflatten(cotangents)
            if with_accums is None:
                output = _with_logs(rule(cotangent)) if with_logs else (rule(cotangent), None)
            else:
                avals, structure = tree.tree_flatten(tree.tree_map(typeof, args))
                sums = list(map(accumulator, avals))
                logs = rule(cotangent, *structure.unflatten(sums))
                output = structure.unflatten(map(cotangent_of, sums)), logs
            flat_output, structure = tree.tree_flatten(output)
            trees.append(structure)
            return flat_output

        program = stage(flat, [typeof(x).to_tangent_aval() for x in leaves])
        return result, _Residuals(program, trees[0])

    def bwd(residuals: _Residuals, cotangent: PyTree) -> PyTree:
        flat = jaxpr_as_fun(residuals.program, *tree.tree_leaves(cotangent))
        of_arguments, logs = residuals.out_tree.unflatten(flat)
        is_single = tree.treedef_is_leaf(tree.tree_structure(of_arguments))
        cotangents = (of_arguments,) if is_single else of_arguments
        return (cotangents, logs) if may_log else cotangents

    may_log = with_logs or with_accums is not None
    (wrapped_fun.defvjp_with_logs if may_log else wrapped_fun.defvjp)(fwd, bwd)
    return wrapped_fun


def _with_logs(output: PyTree) -> PyTree:
    """Return the output of a rule that logs, after checking that it is a pair.

    Raises:
      TypeError: if it is not a pair.
    """
    if not is_tuple_or_list(output) or len(output) != 2:
        raise TypeError(
            "a custom_gradient function with with_logs=True must return a VJP function producing "
            f"a pair (in_cts, logs), but it returned {source.shortened(repr(output))}"
        )
    return tuple(output)


def _pair(
    fun: Callable[..., PyTree], args: Sequence[PyTree], kwargs: Mapping[str, PyTree]
) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """Call the user's function, and return its result and its backward rule.

    Raises:
      TypeError: if the function does not return a pair of a result and a callable.
    """
    pair = fun(*args, **kwargs)
    if not is_tuple_or_list(pair) or len(pair) != 2 or not callable(pair[1]):
        raise TypeError(
            "a function given to custom_gradient must return a pair: its result, and a function "
            f"of the result's cotangent. Got {source.shortened(repr(pair))}."
        )
    return pair[0], pair[1]


class _Residuals:
    """The user's rule as a program, as a pytree whose leaves are the forward values it reads.

    Attributes:
      program: the rule on flat cotangents.
      out_tree: the tree definition of the cotangents and the logs that the rule returns.
    """

    __slots__ = ("out_tree", "program")

    def __init__(self, program: ClosedJaxpr, out_tree: PyTreeDef):
        self.program = program
        self.out_tree = out_tree

    def flatten(self) -> tuple[tuple[list[Value]], tuple[Jaxpr, PyTreeDef]]:
        return (self.program.consts,), (self.program.jaxpr, self.out_tree)

    @staticmethod
    def unflatten(static: tuple[Jaxpr, PyTreeDef], children: Sequence[PyTree]) -> "_Residuals":
        jaxpr, out_tree = static
        (consts,) = children
        return _Residuals(ClosedJaxpr(jaxpr, consts), out_tree)


tree.register_pytree_node(_Residuals, _Residuals.flatten, _Residuals.unflatten)
