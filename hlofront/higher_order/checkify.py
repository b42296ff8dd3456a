"""checkify: a function that returns the errors in it, instead of raising them."""

from collections.abc import Callable
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.trace import as_array
from hlofront.higher_order import checkify_programs
from hlofront.higher_order.checkify_errors import ErrorCategory, user_checks
from hlofront.higher_order.checkify_rules import State, evaluate
from hlofront.higher_order.checking import Error
from hlofront.transforms.flatten import NO_KEYWORDS, stage_tree
from hlofront.transforms.vmap import documented

# Importing it registers the rules of operations that hold programs.
__all__ = ["checkify", "checkify_programs"]

_NO_ARGUMENTS = tree.tree_structure(((), NO_KEYWORDS))


def checkify(
    f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """Make the errors in a function a result of it, so that it can be compiled.

    The first error is reported, whose message `error.get()` returns and `error.throw()` raises;
    the function goes on after it. Checks in branches, loops and jitted functions are included.

        def f(x, i):
            return jnp.log(x[i])

        error, y = jit(checkify.checkify(f, errors=checkify.all_checks))(x, 5)
        error.throw()

    Args:
      f: a function of pytrees.
      errors: which errors: `user_checks`, those that are said with `check`; `nan_checks`,
        `div_checks`, and both as `float_checks`; `index_checks`, indices out of bounds;
        `automatic_checks` is all but the first, and `all_checks` all.

    Returns:
      A function of the same arguments that returns an Error and what `f` returns.

    Raises:
      TypeError: if `f` cannot be called, or does not return arrays.
    """
    if not callable(f):
        raise TypeError(
            f"checkify wants a function, got {source.shortened(repr(f))} of type {type(f)}"
        )
    wanted = frozenset(errors)

    @boundary
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        # The arguments are not traced: those that are Python values stay what they are.
        info = DebugInfo("checkify", lambda: source.describe_callable(f))
        program, out_tree = stage_tree(lambda: f(*args, **kwargs), _NO_ARGUMENTS, (), info)
        state = State(wanted)
        outputs = evaluate(program.jaxpr, program.consts, (), state)
        return state.error(), out_tree.unflatten(map(as_array, outputs))

    name = source.callable_name(f)
    return documented(checked, f, f"{name}, which returns (error, result).")
