"""The function eval_shape, which shares the traced programs of jit."""

from collections.abc import Callable
from typing import Any

from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.bridge.fast_parts import PjitFunction
from hlofront.runtime.dispatch.float0_results import described_results
from hlofront.runtime.dispatch.jit import Jitted
from hlofront.runtime.dispatch.states import shape_on_states
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import check_callable
from hlofront.transforms.make_jaxpr import described


@boundary
def eval_shape(fun: Callable[..., PyTree], *args: object, **kwargs: object) -> PyTree:
    """Return the shapes and dtypes of `fun(*args, **kwargs)`, by tracing without computing.

    The function is traced once for arguments of the same types, as `jit(fun)` is, and a later call
    of `jit(fun)` uses the same program.

    Args:
      fun: a function of pytrees of arrays.
      args, kwargs: arrays, or objects with a shape and a dtype.

    Returns:
      A pytree of ShapeDtypeStructs like the result.

    Raises:
      TypeError: if `fun` cannot be called, or an argument has no shape and dtype.

    Example:
      >>> eval_shape(lambda a, b: a @ b, jnp.ones((2, 3)), jnp.ones((3, 4)))
      ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable(fun, "eval_shape")
    if type(fun) is PjitFunction and hasattr(fun, "eval_shape"):
        # A jitted function also has the shardings of its results.
        jitted: Any = fun
        return jitted.eval_shape(*args, **kwargs)
    jitted = Jitted(fun, ArgumentPlan(fun))
    if (shapes := shape_on_states(jitted, args, kwargs)) is not None:
        return shapes[0]
    traced, _ = jitted.traced(args, kwargs)
    return described_results(traced.out_tree, map(described, traced.program.out_avals))
