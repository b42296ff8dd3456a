"""The checkify transformation, which makes a function return its run-time errors."""

from collections.abc import Callable

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.trace import as_result
from hlofront.higher_order.checkify import checkify_programs
from hlofront.higher_order.checkify.checkify_errors import ErrorCategory, user_checks
from hlofront.higher_order.checkify.checkify_rules import State, evaluate
from hlofront.higher_order.checkify.checking import Error
from hlofront.transforms.flatten import NO_KEYWORDS, stage_tree
from hlofront.transforms.vmap import documented

# Importing the module registers the rules of primitives that hold programs.
__all__ = ["checkify", "checkify_programs"]

_NO_ARGUMENTS = tree.tree_structure(((), NO_KEYWORDS))


def checkify(
    f: Callable[..., PyTree], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, PyTree]]:
    """Return a function that returns its first run-time error with its result.

    `error.get()` returns the error's message and `error.throw()` raises it; the function continues
    after an error. Checks in branches, loops and jitted functions are included.

        def f(x, i):
            return jnp.log(x[i])

        error, y = jit(checkify.checkify(f, errors=checkify.all_checks))(x, 5)
        error.throw()

    Args:
      f: a function of pytrees.
      errors: the categories of errors: `user_checks`, for calls of `check`; `nan_checks`,
        `div_checks`, or both as `float_checks`; `index_checks`, for indices out of bounds;
        `automatic_checks`, for all but the first; or `all_checks`.

    Returns:
      A function of the arguments of `f` that returns (Error, result of `f`).

    Raises:
      TypeError: if `f` cannot be called, or does not return arrays.
    """
    if not callable(f):
        raise TypeError(
            f"checkify requires a function, got {source.shortened(repr(f))} of type {type(f)}"
        )
    requested = frozenset(errors)

    @boundary
    def checked(*args: object, **kwargs: object) -> tuple[Error, PyTree]:
        # The arguments are not traced: Python values remain Python values.
        info = DebugInfo("checkify", lambda: source.describe_callable(f))
        program, out_tree = stage_tree(lambda: f(*args, **kwargs), _NO_ARGUMENTS, (), info)
        state = State(requested)
        outputs = evaluate(program.jaxpr, program.consts, (), state)
        return state.error(), out_tree.unflatten(map(as_result, outputs))

    name = source.callable_name(f)
    return documented(checked, f, f"{name}, which returns (error, result).")
