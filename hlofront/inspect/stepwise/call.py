"""The function that a search returns: it traces the user's function and searches the program."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import named_as
from hlofront.base.config import debug_infs, debug_nans
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.trace import Tracer, engine, interpreting_with, is_eager
from hlofront.inspect.jitted import LibraryJit, jitted
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.runtime.dispatch.stages import Traced, Wrapped

Report = TypeVar("Report")


def search_on_values(
    name: str,
    fun: Callable[..., object],
    search: Callable[[Traced, list[ArrayLike]], Report],
) -> Callable[..., Report]:
    """Return a function of the arguments of `fun` that searches its program on their values.

    Args:
      name: the name of the search, for messages.
      fun: the user's function.
      search: a function of the traced function and its arguments' arrays that returns the report.
    """

    def find(*args: object, **kwargs: object) -> Report:
        leaves = tree.tree_leaves((args, kwargs))
        if not is_eager() or any(isinstance(leaf, Tracer) for leaf in leaves):
            raise TypeError(
                f"{name} runs a function on values, and was called while a function is traced: "
                f"call it outside of jit, grad and vmap, as in {name}(grad(f))(x)"
            )
        staged = jitted(fun)
        if isinstance(staged, LibraryJit):
            # The library traces other arguments than those whose values are searched.
            staged, args, kwargs = _of_arrays(fun, args, kwargs)
        traced = staged.trace(*args, **kwargs)
        dynamic = tree.tree_leaves(traced._jitted.plan.dynamic(args, kwargs))
        with debug_nans(False), debug_infs(False), interpreting_with(engine()):
            with np.errstate(all="ignore"):
                # Python and NumPy scalars become arrays of the dtypes in the jaxpr.
                arrays = [x if isinstance(x, Array) else engine().lift(x) for x in dynamic]
                return search(traced, arrays)

    return named_as(find, fun)


def _of_arrays(
    fun: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Wrapped, tuple[object, ...], dict[str, object]]:
    """Return a function of a library's modules as one of their arrays, and its arguments.

    Other leaves of the arguments, such as a module's activation function, are None there. So are
    other leaves of the results.
    """

    leaves, structure = tree.tree_flatten((args, kwargs))

    def is_array(leaf: object) -> bool:
        return isinstance(leaf, (Array, np.ndarray, np.generic, int, float, complex))

    def on_arrays(*arrays: object, **named: object) -> object:
        traced = iter(tree.tree_leaves((arrays, named)))
        whole = [next(traced) if is_array(leaf) else leaf for leaf in leaves]
        whole_args, whole_kwargs = structure.unflatten(whole)
        results = fun(*whole_args, **whole_kwargs)
        return tree.tree_map(lambda x: x if isinstance(x, Tracer) or is_array(x) else None, results)

    arrays, named = tree.tree_map(lambda x: x if is_array(x) else None, (args, kwargs))
    return jit(named_as(on_arrays, fun)), arrays, named


def names_of(program: ClosedJaxpr) -> tuple[list[str], list[str]]:
    """Return the names of a program's arguments, and the paths of its results."""
    info = program.debug_info
    names = (info.arg_names if info else None) or range(len(program.in_avals))
    paths = info.result_paths if info else None
    return (
        [f"argument {name}" for name in names],
        list(paths or (f"result[{i}]" for i in range(len(program.out_avals)))),
    )
