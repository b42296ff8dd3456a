"""custom_gradient: a function that returns its result with its own backward rule."""

from collections.abc import Callable
from typing import Any

from hlofront.base import source, tree
from hlofront.core.aval import typeof
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.higher_order.custom_vjp import custom_vjp
from hlofront.transforms.stage import stage


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its own backward rule: `fun(*args) -> (result, rule)`.

    Args:
      fun: returns a result, and a function from the cotangent of the result to the cotangents of
        the arguments: a tuple of them, or one where there is one argument. The rule may use what
        `fun` computed.

    Returns:
      A function of the same arguments that returns the result, with that derivative.

    Raises:
      TypeError: if `fun` does not return a pair of a result and a function.
    """

    @custom_vjp
    def wrapped_fun(*args: Any, **kwargs: Any) -> Any:
        result, _ = _pair(fun, args, kwargs)
        return result

    def fwd(*args: Any, **kwargs: Any) -> Any:
        result, rule = _pair(fun, args, kwargs)
        leaves, out_tree = tree.tree_flatten(result)
        in_tree: Any = None

        def flat(*cotangents: Any) -> list[Any]:
            nonlocal in_tree
            found, in_tree = tree.tree_flatten(rule(out_tree.unflatten(cotangents)))
            return found

        program = stage(flat, [typeof(x).to_tangent_aval() for x in leaves])
        return result, _Residuals(program, in_tree)

    def bwd(residuals: "_Residuals", cotangent: Any) -> Any:
        flat = jaxpr_as_fun(residuals.program, *tree.tree_leaves(cotangent))
        found = residuals.in_tree.unflatten(flat)
        return (found,) if tree.treedef_is_leaf(residuals.in_tree) else found

    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


def _pair(fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Callable[..., Any]]:
    pair = fun(*args, **kwargs)
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not callable(pair[1]):
        raise TypeError(
            "a function given to custom_gradient must return a pair: its result, and a function "
            f"of the result's cotangent. Got {source.shortened(repr(pair))}."
        )
    return pair[0], pair[1]


class _Residuals:
    """The user's rule written down; what it uses of the forward computation are its leaves."""

    __slots__ = ("in_tree", "program")

    def __init__(self, program: ClosedJaxpr, in_tree: Any):
        self.program = program
        self.in_tree = in_tree


tree.register_pytree_node(
    _Residuals,
    lambda r: ((r.program.consts,), (r.program.jaxpr, r.in_tree)),
    lambda static, children: _Residuals(ClosedJaxpr(static[0], children[0]), static[1]),
)
