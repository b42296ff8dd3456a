"""The parts of `jnp.vectorize` that quaxed uses in a `vectorize` of its own."""

# pyright: strict

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from hlofront.base.typing import Shape
from hlofront.numpy.vectorize import Cores, bind_core, meet_core, parsed_signature
from hlofront.primitives.arrays.shaping import broadcast_shapes

parse_gufunc_signature = parsed_signature


def apply_excluded(
    func: Callable[..., Any],
    excluded: Collection[int | str],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    """Return a function of the arguments that are not excluded, and these arguments.

    Args:
      func: a function.
      excluded: the positions and names of the arguments that are not vectorized.
      args: all arguments by position.
      kwargs: all arguments by name.
    """
    if not excluded:
        return func, args, kwargs
    static = {i: arg for i, arg in enumerate(args) if i in excluded}
    static_by_name = {name: arg for name, arg in kwargs.items() if name in excluded}

    def of_the_others(*others: Any, **others_by_name: Any) -> Any:
        positional = list(others)
        for position in sorted(static):
            positional.insert(position, static[position])
        return func(*positional, **static_by_name, **others_by_name)

    return (
        of_the_others,
        [arg for i, arg in enumerate(args) if i not in static],
        {name: arg for name, arg in kwargs.items() if name not in static_by_name},
    )


def parse_input_dimensions(
    args: Sequence[Any], input_core_dims: Cores, error_context: str = ""
) -> tuple[Shape, dict[str, int]]:
    """Return the shape to which the other axes broadcast, and the size of each core axis.

    Raises:
      TypeError: if the number of arguments is not the signature's.
      ValueError: if shapes do not match it.
    """
    if len(args) != len(input_core_dims):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(input_core_dims)}, got "
            f"{len(args)} {error_context}"
        )
    sizes: dict[str, int] = {}
    shapes: list[Shape] = []
    for arg, core in zip(args, input_core_dims, strict=True):
        bind_core(arg.shape, core, sizes, error_context)
        shapes.append(arg.shape[: arg.ndim - len(core)])
    return broadcast_shapes(*shapes), sizes


def check_output_dims(
    func: Callable[..., Any],
    dim_sizes: dict[str, int],
    expected_output_core_dims: Cores,
    error_context: str = "",
) -> Callable[..., Any]:
    """Return a function whose results are checked against a signature's core axes.

    Raises:
      TypeError: at a call, if the number of results is not the signature's.
      ValueError: at a call, if their shapes do not match it.
    """

    @functools.wraps(func)
    def checked(*args: Any) -> Any:
        result = func(*args)
        several = isinstance(result, tuple)
        results = cast("tuple[Any, ...]", result) if several else (result,)
        if len(results) != len(expected_output_core_dims):
            raise TypeError(
                f"wrong number of output arguments: expected {len(expected_output_core_dims)}, "
                f"got {len(results)} {error_context}"
            )
        sizes = dict(dim_sizes)
        for array, core in zip(results, expected_output_core_dims, strict=True):
            if len(array.shape) != len(core):
                raise ValueError(
                    f"output shape {array.shape} does not match core dimensions {core} "
                    f"{error_context}"
                )
            meet_core(array.shape, core, sizes, error_context)
        return result

    return checked
