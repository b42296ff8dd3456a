"""Updates by an index: `x.at[i].add(v)`, which returns a new array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hlofront.base.advice import no_item_assignment
from hlofront.base.boundary import boundary
from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import typeof
from hlofront.core.references import is_reference
from hlofront.core.trace import Tracer, is_eager
from hlofront.higher_order.shard_map.axis_types import with_sharding
from hlofront.numpy.indexing.entries import resolve
from hlofront.numpy.indexing.masked_updating import find_mask, masked_update
from hlofront.numpy.indexing.reading import INDEX, VECTOR, ReadOptions, get, rebuilt, split
from hlofront.numpy.indexing.updates import (
    BY_SCALE,
    UpdateOptions,
    as_values,
    update,
    update_options,
    warn_if_lossy,
    wide_integer,
)
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.naming import named
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.gathering import GatherScatterMode
from hlofront.primitives.references import references
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.numpy.indexing.entries import Index
    from hlofront.numpy.indexing.reading import Key

# ---- eager -------------------------------------------------------------------------------------


@operation(static_argnames=("key", "options"))
@named("at_update")
def _updated(
    array: ArrayLike, values: ArrayLike, key: Key, options: UpdateOptions, *operands: ArrayLike
) -> Array:
    resolved = rebuilt(key, typeof(array).shape, operands)
    return update(array, resolved, options, values)


_READY = (float, int, ArrayImpl, bool, complex)
_ONE = (INDEX,)


def _split(array: Array, index: Any, options: UpdateOptions) -> tuple[Any, ...]:
    aval = array.aval
    if aval.shape:
        kind = type(index)
        if kind is int and aval.shape[0] and -0x8000_0000 <= index <= 0x7FFF_FFFF:
            return _ONE, options, index
        if kind is ArrayImpl and index.aval.dtype.kind in "iu" and aval.shape[0]:
            return VECTOR, options, index
    return split(resolve(index, aval.shape), options)


def _update(
    array: Array,
    index: Index,
    method: str,
    values: object,
    mode: str | GatherScatterMode | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    wrap: bool,
    out_sharding: OutSharding = None,
) -> Array:
    if out_sharding is not None:

        def update_inside(array: Array, values: object, index: Index) -> Array:
            return _update(
                array, index, method, values, mode, indices_are_sorted, unique_indices, wrap
            )

        name = f"x.at[index].{method}"
        return in_auto_axes(name, update_inside, (array, values), index, out_sharding)
    if mode is not None:
        mode = GatherScatterMode.from_any(mode).chosen
    if method != "apply":
        if type(values) not in _READY:
            values = as_values(values)
        elif type(values) is int and not -0x8000_0000 <= values <= 0x7FFF_FFFF:
            values = wide_integer(values, array.aval.dtype)
        warn_if_lossy(array.aval, values)
    mask = find_mask(index, values)
    if mask is not None:
        if method in BY_SCALE:
            scale = masked_update(full_like(array, 1), index, mask, "multiply", values)
            return BY_SCALE[method](array, scale)
        return masked_update(array, index, mask, method, values)
    options = update_options(method, mode, indices_are_sorted, unique_indices, wrap)
    if method != "apply" and is_eager():
        return _updated(array, values, *_split(array, index, options))
    return update(array, resolve(index, array.aval.shape), options, values)


class AtIndex:
    """The updates of `x.at[index]`; each returns a new array, and `x` does not change.

    Where several indices refer to one element, `set` keeps one of the values, and the other methods
    combine all of them. Options of every method:

    Args:
      values: an array that broadcasts to the shape of `x[index]`.
      indices_are_sorted: a promise that the indices ascend. It is not checked.
      unique_indices: a promise that no index occurs twice. It is not checked.
      mode: the treatment of indices out of bounds: "drop" or "fill", the default for updates,
        leaves the update out; "clip" moves the index to the nearest; "promise_in_bounds" promises
        that it does not happen; "one_hot". Or a `lax.GatherScatterMode`.
      out_sharding: how the result is split over a mesh.
      wrap_negative_indices: whether negative indices count from the end.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Index):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r}, {self.index!r})"

    @boundary
    def apply(
        self,
        func: Callable[[Array], Array],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return a new array with `x[index] = func(x[index])`.

        `func` works elementwise, as jnp.sin does.

        `func` is applied to an element as many times as it is indexed.
        """
        return _update(
            self.array,
            self.index,
            "apply",
            func,
            mode,
            indices_are_sorted,
            unique_indices,
            wrap_negative_indices,
        )

    @boundary
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return `x[index]`, read with options.

        Here "clip" is what `x[index]` does out of bounds, and "fill" returns `fill_value`: a
        scalar, by default NaN, the least signed or greatest unsigned integer, True.
        """
        if mode is not None:
            mode = GatherScatterMode.from_any(mode).chosen
        if fill_value is not None:
            fill_value = static_fill_value(fill_value)
        options = ReadOptions(
            mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices
        )
        if out_sharding is None:
            return get(self.array, self.index, options)
        return in_auto_axes(
            "x.at[index].get",
            lambda array, index: get(array, index, options),
            (self.array,),
            self.index,
            out_sharding,
        )


def in_auto_axes(
    name: str,
    function: Callable[..., Array],
    operands: Sequence[object],
    index: Index,
    out_sharding: object,
) -> Array:
    """Call a function of operands and an index where XLA decides how results are split.

    Args:
      name: the operation's name, for messages.
      function: the function, whose last argument is the index.
      operands: its array arguments.
      index: the index, whose arrays are operands as well.
      out_sharding: the sharding that the result has outside of the call.
    """
    members = index if isinstance(index, tuple) else (index,)
    dynamic = [isinstance(member, Array) for member in members]
    count = len(operands)

    def inside(*arrays: object) -> Array:
        rest = iter(arrays[count:])
        own = tuple(
            next(rest) if is_array else member
            for member, is_array in zip(members, dynamic, strict=True)
        )
        return function(*arrays[:count], own if isinstance(index, tuple) else own[0])

    arrays = [member for member, is_array in zip(members, dynamic, strict=True) if is_array]
    return with_sharding(name, inside, (*operands, *arrays), out_sharding)


def static_fill_value(value: ArrayLike | None) -> ArrayLike | None:
    """Return a scalar as a static fill value; all NaNs give a single object.

    Raises ConcretizationTypeError if it is traced.
    """
    if isinstance(value, Tracer):
        concrete = value.to_concrete_value()
        if concrete is None:
            raise ConcretizationTypeError(
                value, "fill_value must be known while tracing: gather has it as a parameter."
            )
        value = concrete
    if not isinstance(value, bool | int | float | complex | np.generic):
        value = np.asarray(value)
        if value.ndim:
            raise TypeError(f"fill_value must be a scalar, got shape {value.shape}.")
        value = value[()]
    return math.nan if isinstance(value, float | np.floating) and value != value else value


def _method(name: str, doc: str) -> Callable[..., Array]:
    @boundary
    def method(
        self: AtIndex,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        return _update(
            self.array,
            self.index,
            name,
            values,
            mode,
            indices_are_sorted,
            unique_indices,
            wrap_negative_indices,
            out_sharding,
        )

    method.__name__, method.__qualname__, method.__doc__ = name, f"AtIndex.{name}", doc
    setattr(AtIndex, name, method)
    return method


_method("set", "Return the array with `x[index] = values`.")
_method("add", "Return the array with `x[index] += values`.")
_method("subtract", "Return the array with `x[index] -= values`.")
AtIndex.mul = _method("multiply", "Return the array with `x[index] *= values`.")  # type: ignore
_method("divide", "Return the array with `x[index] /= values`.")
_method("power", "Return the array with `x[index] **= values`.")
_method("min", "Return the array with `x[index] = minimum(x[index], values)`.")
_method("max", "Return the array with `x[index] = maximum(x[index], values)`.")


class At:
    """The property `x.at`, to be followed by an index: `x.at[index].set(values)`."""

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Index) -> AtIndex:
        return AtIndex(self.array, index)

    @boundary
    def __setitem__(self, index: Index, values: ArrayLike) -> NoReturn:
        raise TypeError(
            "cannot assign to x.at[index]: arrays are immutable. Use "
            "x = x.at[index].set(values), or instead of x.at[index] += values, "
            "x = x.at[index].add(values)."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


@boundary
def _assign(array: Array, index: Index, values: ArrayLike) -> None:
    if is_reference(array.aval):
        references.set(array, index, values)
        return
    raise no_item_assignment()


def _at(array: Array) -> At | references.RefIndexer:
    return references.RefIndexer(array) if is_reference(array.aval) else At(array)


def _of_references(name: str, function: Callable[..., object]) -> property:
    """Return a property of tracers that is a method of mutable references, and not of arrays."""

    def method_of(tracer: object) -> Callable[..., Any]:
        if not is_reference(tracer.aval):
            raise AttributeError(f"{type(tracer).__name__} has no attribute {name!r}")
        return partial(function, tracer)

    return property(method_of, doc=function.__doc__)


ARRAY_METHODS = {"at": property(_at, doc=AtIndex.__doc__), "__setitem__": _assign}
# Methods of tracers of mutable references.
REFERENCE_METHODS = {
    "bitcast": _of_references("bitcast", references.bitcasted),
    "get": _of_references("get", references.get),
    "set": _of_references("set", lambda ref, value, index=None: references.set(ref, index, value)),
    "swap": _of_references(
        "swap", lambda ref, value, index=None: references.swap(ref, index, value)
    ),
    "addupdate": _of_references(
        "addupdate", lambda ref, value, index=None: references.addupdate(ref, index, value)
    ),
}


def reshape_of(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method `reshape` of tracers of arrays, for tracers of references, too."""

    @wraps(method)
    def reshape(self: Any, *shape: Any, **options: Any) -> Any:
        if is_reference(self.aval):
            return references.reshaped(self, *shape, **options)
        return method(self, *shape, **options)

    return reshape
