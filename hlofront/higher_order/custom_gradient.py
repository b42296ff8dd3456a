"""The decorator custom_gradient, for functions that return a result and its backward rule."""

from collections.abc import Callable, Mapping, Sequence

from hlofront.base import source, tree
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, is_tuple_or_list
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr, Value
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.higher_order.custom_vjp import custom_vjp
from hlofront.transforms.stage import stage


def custom_gradient(fun: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Return a function whose backward rule comes from `fun(*args) -> (result, rule)`.

    Args:
      fun: returns a result, and a rule from the result's cotangent to the arguments' cotangents: a
        tuple of them, or a single one for a single argument. The rule may close over values that
        `fun` computes.

    Returns:
      A function of the arguments of `fun` that returns the result, with that derivative.

    Raises:
      TypeError: if `fun` does not return a pair of a result and a function.
    """

    @custom_vjp
    def wrapped_fun(*args: object, **kwargs: object) -> PyTree:
        result, _ = _pair(fun, args, kwargs)
        return result

    def fwd(*args: object, **kwargs: object) -> tuple[PyTree, _Residuals]:
        result, rule = _pair(fun, args, kwargs)
        leaves, out_tree = tree.tree_flatten(result)
        in_trees: list[PyTreeDef] = []

        def flat(*cotangents: ArrayLike) -> list[ArrayLike]:
            of_arguments, in_tree = tree.tree_flatten(rule(out_tree.unflatten(cotangents)))
            in_trees.append(in_tree)
            return of_arguments

        program = stage(flat, [typeof(x).to_tangent_aval() for x in leaves])
        return result, _Residuals(program, in_trees[0])

    def bwd(residuals: _Residuals, cotangent: PyTree) -> PyTree:
        flat = jaxpr_as_fun(residuals.program, *tree.tree_leaves(cotangent))
        of_arguments = residuals.in_tree.unflatten(flat)
        return (of_arguments,) if tree.treedef_is_leaf(residuals.in_tree) else of_arguments

    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


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
      in_tree: the tree definition of the cotangents that the rule returns.
    """

    __slots__ = ("in_tree", "program")

    def __init__(self, program: ClosedJaxpr, in_tree: PyTreeDef):
        self.program = program
        self.in_tree = in_tree

    def flatten(self) -> tuple[tuple[list[Value]], tuple[Jaxpr, PyTreeDef]]:
        return (self.program.consts,), (self.program.jaxpr, self.in_tree)

    @staticmethod
    def unflatten(static: tuple[Jaxpr, PyTreeDef], children: Sequence[PyTree]) -> "_Residuals":
        jaxpr, in_tree = static
        (consts,) = children
        return _Residuals(ClosedJaxpr(jaxpr, consts), in_tree)


tree.register_pytree_node(_Residuals, _Residuals.flatten, _Residuals.unflatten)
