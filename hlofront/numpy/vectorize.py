"""Functions of arrays made from functions of few axes: vectorize and apply_along_axis."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import (
    as_operand,
    check_arraylike,
    check_broadcast,
    check_rank_promotion,
)
from hlofront.primitives.arrays import shaping
from hlofront.transforms.vmap import vmap

# The core axes of an argument, "(n, m)", and a list of core axes, by NumPy's grammar of generalized
# ufuncs.
_NAME = r"\w+"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_CORES = rf"{_CORE}(?:,{_CORE})*"
_SIGNATURE = rf"{_CORES}->{_CORES}"

Cores = list[tuple[str, ...]]


def parsed_signature(signature: str) -> tuple[Cores, Cores]:
    """Parse a signature "(n,m),(m)->(n)" into the core axes of each argument and of each result."""
    text = re.sub(r"\s+", "", signature)
    if not re.fullmatch(_SIGNATURE, text):
        raise ValueError(
            f"not a valid gufunc signature: {signature!r}. Wanted one such as '(n,m),(m)->(n)'"
        )
    argument_cores, result_cores = (
        [tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, side)]
        for side in text.split("->")
    )
    return argument_cores, result_cores


@like(np.vectorize)
def vectorize(
    pyfunc: Callable[..., object],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Return a function of broadcast arrays made from a function of scalars, or of few axes.

    It is vmap over each of the axes that are broadcast, so the function is called once; it must be
    traceable, and may return a tree of arrays if there is no signature.

    Args:
      pyfunc: the function.
      excluded: positions and names of arguments that are passed unchanged, as None always is.
      signature: the core axes that the function works on, such as "(n,m),(m)->(n)"; by default it
        takes scalars. With a signature, keyword arguments are passed unchanged.

    Returns:
      A function of arrays with any axes before the core ones.

    Raises:
      TypeError: if `excluded` has anything other than integers and strings.
      ValueError: if `excluded` has negative numbers.

    Example:
      >>> dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
      >>> dot(jnp.ones((4, 1, 3)), jnp.ones((2, 3))).shape
      (4, 2)
    """
    if any(not isinstance(position, int | str) for position in excluded):
        raise TypeError(
            "jax.numpy.vectorize can only exclude integer or string arguments, but "
            f"excluded={excluded!r}"
        )
    if any(isinstance(position, int) and position < 0 for position in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    left_out = frozenset(excluded)

    @boundary
    def vectorized(*args: ArrayLike | None, **kwargs: object) -> Any:
        where = f"on vectorized function with excluded={excluded!r} and signature={signature!r}"
        mapped: dict[int | str, Any] = {}
        named = kwargs if signature is None else {}
        for key, value in [*enumerate(args), *named.items()]:
            if key not in left_out and value is not None:
                mapped[key] = asarray(as_operand(value))
        keys = list(mapped)

        def call(*values: Array) -> Any:
            mapped_values = dict(zip(keys, values, strict=True))
            positional = [mapped_values.get(i, value) for i, value in enumerate(args)]
            return pyfunc(*positional, **{k: mapped_values.get(k, v) for k, v in kwargs.items()})

        if signature is None:
            return _broadcast(call, list(mapped.values()), [()] * len(keys))
        cores, results = parsed_signature(signature)
        taken = [i for i in range(len(args)) if i not in left_out]
        if len(taken) != len(cores):
            raise TypeError(
                f"wrong number of positional arguments: expected {len(cores)}, got {len(taken)} "
                f"{where}"
            )
        missing = [i for i, core in zip(taken, cores, strict=True) if core and args[i] is None]
        if missing:
            raise ValueError(
                f"None cannot stand for arguments that have core axes: got it at {missing} {where}"
            )
        cores = [core for i, core in zip(taken, cores, strict=True) if args[i] is not None]
        sizes: dict[str, int] = {}
        for value, core in zip(mapped.values(), cores, strict=True):
            bind_core(typeof(value).shape, core, sizes, where)
        checked = _checked(call, results, sizes, where)
        return _broadcast(checked, list(mapped.values()), cores)

    return named_as(vectorized, pyfunc)


def bind_core(
    shape: tuple[int, ...], core: tuple[str, ...], sizes: dict[str, int], where: str
) -> None:
    """Record the sizes of an argument's core axes; raise if they differ from recorded ones."""
    if len(shape) < len(core):
        raise ValueError(
            f"input with shape {shape} does not have enough dimensions for all core dimensions "
            f"{core} {where}"
        )
    meet_core(shape[len(shape) - len(core) :], core, sizes, where)


def meet_core(
    shape: tuple[int, ...], core: tuple[str, ...], sizes: dict[str, int], where: str
) -> None:
    """Record the sizes of core axes; raise if they differ from recorded ones."""
    for size, name in zip(shape, core, strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]} {where}"
            )


def _checked(
    call: Callable[..., object], results: Cores, sizes: dict[str, int], where: str
) -> Callable[..., Any]:
    """Return a function whose results are checked against the signature."""

    def checked(*values: Array) -> Any:
        result = call(*values)
        if len(results) == 1 and not isinstance(result, tuple):
            returned = (result,)
        elif isinstance(result, tuple):
            returned = result
        else:
            raise TypeError(
                f"output must be a tuple when multiple outputs are expected, got: {result!r} "
                f"{where}"
            )
        if len(returned) != len(results):
            raise TypeError(
                f"wrong number of output arguments: expected {len(results)}, got {len(returned)} "
                f"{where}"
            )
        bound = dict(sizes)
        arrays = [asarray(x) for x in returned]
        for array, core in zip(arrays, results, strict=True):
            shape = typeof(array).shape
            if len(shape) != len(core):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {core} {where}"
                )
            meet_core(shape, core, bound, where)
        return tuple(arrays) if isinstance(result, tuple) else arrays[0]

    return checked


def _broadcast(call: Callable[..., object], values: Sequence[Array], cores: Cores) -> Any:
    """Apply `call` to arguments mapped over their leading axes, which broadcast."""
    shapes = [typeof(value).shape for value in values]
    outer = [shape[: len(shape) - len(core)] for shape, core in zip(shapes, cores, strict=True)]
    shape = check_broadcast("vectorize", outer) if outer else ()
    if outer:
        check_rank_promotion("vectorize", outer)
    rank = len(shape)
    # Axes of size 1 are not mapped; if no argument has more, the result gets an axis of size 1.
    squeezed = [
        shaping.squeeze(value, [i for i, size in enumerate(outer_shape) if size == 1])
        if 1 in outer_shape
        else value
        for value, outer_shape in zip(values, outer, strict=True)
    ]
    new = []
    for axis in reversed(range(rank)):
        mapped = [
            0 if (at := axis - rank + len(outer_shape)) >= 0 and outer_shape[at] != 1 else None
            for outer_shape in outer
        ]
        if all(batch_axis is None for batch_axis in mapped):
            new.append(axis)
        else:
            call = vmap(call, in_axes=tuple(mapped))
    result = call(*squeezed)
    if not new:
        return result
    return tree.tree_map(lambda x: shaping.expand_dims(x, sorted(new)), result)


@like(np.apply_along_axis)
@boundary
def apply_along_axis(
    func1d: Callable[..., object], axis: int, arr: ArrayLike, *args: object, **kwargs: object
) -> Any:
    """Apply a function of vectors to each vector along an axis.

    Args:
      func1d: a function of a vector, and of `args` and `kwargs`, that can be traced; it may
        return an array of any shape, or a tree of them.
      axis: the axis.
      arr: an array.
      args, kwargs: more arguments of `func1d`.

    Returns:
      An array in which the axes of what the function returns replace the axis.

    Raises:
      TypeError: if `arr` is not an array, or `axis` is not an integer.
      ValueError: if there is no such axis.

    Example:
      >>> jnp.apply_along_axis(jnp.diff, 1, jnp.array([[1, 4, 9], [1, 2, 4]]))
      Array([[3, 5],
             [1, 2]], dtype=int32)
    """
    check_arraylike("apply_along_axis", arr)
    arr = asarray(arr)
    ndim = arr.ndim
    axis = canonical_axis(axis, ndim)

    def call(vector: Array) -> Any:
        return func1d(vector, *args, **kwargs)

    # Later axes are mapped from the last one on, and follow the axes that the function returns.
    for _ in range(ndim - axis - 1):
        call = vmap(call, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        call = vmap(call, in_axes=0, out_axes=0)
    return call(arr)


@like(np.apply_over_axes)
@boundary
def apply_over_axes(
    func: Callable[[Array, int], Array], a: ArrayLike, axes: Sequence[int]
) -> Array:
    """Apply a function over one axis after another: `func(func(a, axes[0]), axes[1])`.

    Args:
      func: a function of an array and an axis. Its result has as many axes as the array, or lacks
        that axis.
      a: an array.
      axes: the axes.

    Returns:
      An array with as many axes as `a`.

    Raises:
      TypeError: if `a` is not an array, or `axes` is not a sequence of integers.
      ValueError: if there is no such axis, or the function returns another number of axes.

    Example:
      >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), (0, 2)).shape
      (1, 3, 1)
    """
    check_arraylike("apply_over_axes", a)
    a = asarray(a)
    ndim = a.ndim
    for axis in axes:
        axis = canonical_axis(axis, ndim)
        result = func(a, axis)
        if result.ndim == ndim - 1:
            result = shaping.expand_dims(result, (axis,))
        elif result.ndim != ndim:
            raise ValueError(
                "function is not returning an array of the correct shape: given one of shape "
                f"{a.shape} it returned one of shape {result.shape}"
            )
        a = result
    return asarray(a)
