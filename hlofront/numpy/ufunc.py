"""Universal functions: elementwise ones that also reduce, accumulate, update by an index."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base import source
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported, issubdtype, promote_types
from hlofront.base.typing import Array, ArrayLike, Axis, DType, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.higher_order.scan import scan
from hlofront.numpy.creation import asarray
from hlofront.numpy.like import like
from hlofront.numpy.naming import named
from hlofront.numpy.promotion import as_operand, check_arraylike, check_broadcast, with_shape
from hlofront.numpy.reductions import as_boolean, check_mask
from hlofront.numpy.shape import static_axes
from hlofront.numpy.taking import take
from hlofront.numpy.ufuncs import refuse_out
from hlofront.numpy.updating import At
from hlofront.numpy.vectorize import vectorize
from hlofront.primitives import comparing, creating, elementwise, shaping, slicing
from hlofront.primitives.converting import convert
from hlofront.primitives.shaping import ascending
from hlofront.runtime.dispatch.operation import operation
from hlofront.transforms.flatten import ShapeDtypeStruct
from hlofront.transforms.make_jaxpr import eval_shape

if TYPE_CHECKING:
    from hlofront.numpy.index_entries import Index, IndexItem

_bool = np.dtype(np.bool_)


class ufunc:
    """A function that works elementwise on arrays that are broadcast, with NumPy's methods.

    `jnp.add` is one, and `frompyfunc` makes one of a function of scalars. It may be called under
    any transformation, be a static argument of jitted functions, and be compared and hashed.

    Args:
      func: a function of `nin` scalars, written with functions of arrays.
      nin: how many arrays it takes.
      nout: how many results it has.
      name: by default the name of `func`.
      nargs: how many arrays a call takes at most, by default `nin`.
      identity: a scalar that changes nothing when it is combined with another, or None.
      call: what a call does, by default `func` applied to each element.
      reduce: `reduce(a, axis=..., dtype=..., keepdims=..., initial=..., where=...)`, by default a
        loop along the axis; and so are the others.
      accumulate: `accumulate(a, axis=..., dtype=...)`.
      at: `at(a, indices, b)`, or `at(a, indices)` of a function of one array.
      reduceat: `reduceat(a, indices, axis=..., dtype=...)`.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: object = None,
        call: Callable[..., Array] | None = None,
        reduce: Callable[..., Array] | None = None,
        accumulate: Callable[..., Array] | None = None,
        at: Callable[..., Array] | None = None,
        reduceat: Callable[..., Array] | None = None,
    ):
        if not callable(func):
            raise TypeError(f"ufunc wants a function, got {func!r} of type {type(func)}")
        self._func = func
        self.__name__ = name or source.callable_name(func)
        self.__doc__ = getattr(func, "__doc__", None)
        self._nin = operator.index(nin)
        self._nout = operator.index(nout)
        self._nargs = self._nin if nargs is None else operator.index(nargs)
        self._identity = identity
        self._call = call or _elementwise(func, self.__name__)
        self._reduce = reduce or partial(_reduce_by_steps, function=self)
        self._accumulate = accumulate or partial(_accumulate_by_steps, function=self)
        self._at = at or partial(_update_by_steps, function=self)
        self._reduceat = reduceat or partial(_reduceat_by_steps, function=self)

    nin = property(operator.attrgetter("_nin"), doc="How many arrays it takes.")
    nout = property(operator.attrgetter("_nout"), doc="How many results it has.")
    nargs = property(operator.attrgetter("_nargs"), doc="How many arrays a call takes at most.")
    identity = property(
        operator.attrgetter("_identity"), doc="What changes nothing in a combination, or None."
    )

    @property
    def __signature__(self) -> Signature:
        return _signature(self.nin)

    def __reduce__(self) -> str | tuple[object, ...]:
        # Pickling by name finds the ufunc in its module.
        if getattr(sys.modules[self.__module__], self.__name__, None) is self:
            return self.__name__
        return _remade, (self._func, self.nin, self.nout, self.__name__, self.nargs, self.identity)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __hash__(self) -> int:
        return hash((self._func, self.__name__, self.nin, self.nout, self.nargs))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, ufunc) and (
            (self._func, self.__name__, self.nin, self.nout, self.nargs)
            == (other._func, other.__name__, other.nin, other.nout, other.nargs)
            and (self.identity is other.identity or bool(self.identity == other.identity))
        )

    # This calls the function directly, as it is the most frequent call.
    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array:
        """Apply the function to each element of the arrays, broadcast.

        Args:
          args: `nin` arrays or scalars.
          out: None.
          where: None.

        Raises:
          TypeError: if there are not `nin` arguments, or one is neither an array nor a scalar.
          NotImplementedError: for `out` and `where`, as arrays are immutable.
        """
        if out is not None or where is not None:
            refuse_out(self.__name__, out, where)
        return self._call(*args)

    def _check(self, method: str, out: None = None) -> None:
        """Raise ValueError for a method that only functions of two arrays have."""
        if self.nin != 2:
            raise ValueError(
                f"{method} only supported for binary ufuncs: {self.__name__} takes {self.nin}"
            )
        if self.nout != 1:
            raise ValueError(
                f"{method} only supported for functions returning a single value: "
                f"{self.__name__} returns {self.nout}"
            )
        if out is not None:
            refuse_out(f"{self.__name__}.{method}", out)

    @boundary
    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Combine the elements along an axis, from the first to the last.

        Args:
          a: an array.
          axis: the axis, or None for the elements of the whole array in order. Functions that
            NumPy reduces over several axes, as add, take a tuple.
          dtype: of the result, in which the elements are combined; by default the function's own.
          out: None.
          keepdims: whether the axis stays, with size 1.
          initial: what to start from, by default the identity; without one, the first element.
          where: booleans that broadcast to `a`: elements where they are False are left out.

        Returns:
          An array without the axis.

        Raises:
          ValueError: for functions that do not take two arrays and return one, an axis that `a`
            does not have, or if there are no elements and nothing to start from.
        """
        self._check("reduce", out)
        check_arraylike(f"{self.__name__}.reduce", a)
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} does not have an identity, so to use a "
                "where mask one has to specify 'initial'."
            )
        return self._reduce(
            a,
            axis=static_axes(axis),
            dtype=dtype,
            keepdims=bool(keepdims),
            initial=initial,
            where=where,
        )

    @boundary
    def accumulate(
        self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Combine the elements along an axis so far, as an array of the shape of `a`.

        Args:
          a: an array.
          axis: the axis. Only add and multiply take None, for the flattened array.
          dtype: of the result; by default the function's own.
          out: None.

        Raises:
          ValueError: for functions that do not take two arrays and return one, or an axis that
            `a` does not have.
        """
        self._check("accumulate", out)
        check_arraylike(f"{self.__name__}.accumulate", a)
        return self._accumulate(a, axis=static_axes(axis), dtype=dtype)

    @boundary
    def reduceat(
        self,
        a: ArrayLike,
        indices: ArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Combine each piece of an axis: the k-th is `a[indices[k]:indices[k + 1]]`.

        The last piece ends with the axis. Where an index is not less than the next one, the piece
        is the element at that index alone.

        Args:
          a: an array of at least one axis.
          indices: a vector of integers. Out of bounds, the result is as that of `take`.
          axis: the axis.
          dtype: of the result; by default that of `a`, or what it meets the function's in.
          out: None.

        Returns:
          An array with the size of the axis that of `indices`.

        Raises:
          ValueError: for functions that do not take two arrays and return one, if the indices are
            no vector of integers, or the array has no such axis.
          IndexError: if the axis is empty, and the indices are not.
        """
        self._check("reduceat", out)
        name = f"{self.__name__}.reduceat"
        check_arraylike(name, a, indices)
        aval, index_aval = typeof(as_operand(a)), typeof(as_operand(indices))
        if index_aval.ndim != 1:
            raise ValueError(
                f"{name}: indices must be one-dimensional, got indices.shape={index_aval.shape}"
            )
        if index_aval.dtype != _bool and not issubdtype(index_aval.dtype, np.integer):
            raise ValueError(f"{name}: indices must have an integer type, got {index_aval.dtype}")
        if axis is None or isinstance(axis, tuple | list):
            raise ValueError(f"{name} requires a single integer axis, got {axis!r}")
        if not aval.ndim:
            raise ValueError(f"{name}: a must have 1 or more dimension, got a.shape=()")
        axis = canonical_axis(axis, aval.ndim)
        return self._reduceat(a, indices, axis=axis, dtype=dtype)

    @boundary
    def at(
        self,
        a: ArrayLike,
        indices: Index,
        b: ArrayLike | None = None,
        /,
        *,
        inplace: bool = True,
    ) -> Array:
        """Apply the function to the elements that `indices` names, one by one; return the array.

        An element that is named twice is updated twice.

        Args:
          a: an array.
          indices: an index, as in `a[indices]`; where it is out of bounds nothing is updated.
          b: the second operand of functions of two arrays; it broadcasts to the index.
          inplace: must be False: arrays are immutable, and the result is a new one.

        Raises:
          NotImplementedError: unless `inplace` is False.
        """
        if inplace:
            raise NotImplementedError(  # the class that JAX raises
                f"{self.__name__}.at cannot work in place, as arrays are immutable. Write "
                f"a = jnp.{self.__name__}.at(a, indices, b, inplace=False)"
            )
        name = f"{self.__name__}.at"
        if b is None:
            check_arraylike(name, a)
            return self._at(asarray(a), indices)
        check_arraylike(name, a, b)
        return self._at(asarray(a), indices, as_operand(b))

    @boundary
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """Apply the function to each element of A with each of B.

        Returns:
          An array of the shape of A followed by that of B.

        Raises:
          ValueError: for functions that do not take two arrays and return one.
        """
        self._check("outer")
        check_arraylike(f"{self.__name__}.outer", A, B)
        return _outer(A, B, self)


ufunc.__module__ = "hlofront.numpy"


def _remade(
    func: Callable[..., Any], nin: int, nout: int, name: str, nargs: int, identity: object
) -> ufunc:
    return ufunc(func, nin, nout, name=name, nargs=nargs, identity=identity)


def _signature(nin: int) -> Signature:
    names = ["x"] if nin == 1 else [f"x{i + 1}" for i in range(nin)]
    parameters = [
        Parameter(name, Parameter.POSITIONAL_ONLY, annotation="ArrayLike") for name in names
    ]
    for name in ("out", "where"):
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=None))
    return Signature(parameters, return_annotation="Array")


def _elementwise(func: Callable[..., Any], name: str) -> Callable[..., Array]:
    apply = vectorize(func)

    @operation
    @named(name)
    def call(*args: ArrayLike) -> Array:
        check_arraylike(name, *args)
        return apply(*args)

    return call


@like(np.frompyfunc)
def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: object = None
) -> ufunc:
    """Make a ufunc of a function of scalars.

    Args:
      func: a function of `nin` scalars that can be traced; it is called once for all elements.
      nin: how many arrays it takes.
      nout: how many results it has.
      identity: a scalar that changes nothing when it is combined with another.

    Raises:
      TypeError: if `func` is not callable, or the numbers are no integers.
    """
    return ufunc(func, nin, nout, identity=identity)


# ---- any function, step by step ----------------------------------------------------------------


def _result_dtype(function: ufunc, *operands: ArrayLike) -> np.dtype:
    """Return the dtype of the function's result for elements of arrays."""
    avals = map(typeof, operands)
    structs = [ShapeDtypeStruct((), aval.dtype, weak_type=aval.weak_type) for aval in avals]
    return eval_shape(function._call, *structs).dtype


def as_dtype(x: ArrayLike, dtype: DType | None) -> Array:
    """Return an array in a dtype, not weak; as booleans, whether elements are not zero."""
    return as_boolean(x) if dtype == _bool else convert(x, dtype, False)


def wanted_dtype(dtype: DTypeLike | None, name: str) -> DType | None:
    """Return the dtype that a user requests, canonical, or None."""
    return None if dtype is None else check_user_dtype_supported(dtype, name)


def axis_first(x: ArrayLike, axis: int) -> Array:
    """Return the array with an axis moved to the front."""
    if not axis:
        return x
    return shaping.transpose(x, (axis, *(i for i in range(typeof(x).ndim) if i != axis)))


def axis_back(x: ArrayLike, axis: int) -> Array:
    """Return the array with its first axis moved to `axis`."""
    if not axis:
        return x
    ndim = typeof(x).ndim
    return shaping.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, ndim)))


def _single_axis(name: str, axis: int, ndim: int) -> int:
    if isinstance(axis, tuple):
        raise NotImplementedError(  # the class that JAX raises
            f"{name} folds one axis, or with None all of them, got {axis}"
        )
    return canonical_axis(axis, ndim)


@operation(static_argnames=("axis", "dtype", "keepdims", "function"))
@named("reduce")
def _reduce_by_steps(
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    function: ufunc,
) -> Array:
    name = f"{function.__name__}.reduce"
    a = as_operand(a)
    shape = typeof(a).shape
    if where is not None:
        where = as_operand(where)
        check_mask(name, where)
        where = with_shape(where, typeof(where).shape, shape)
    kept_shape: tuple[int, ...]
    if axis is None:
        kept_shape = (1,) * len(shape)
        a = shaping.reshape(a, (typeof(a).size,))
        where = where if where is None else shaping.reshape(where, typeof(a).shape)
    else:
        axis = _single_axis(name, axis, len(shape))
        kept_shape = (*shape[:axis], 1, *shape[axis + 1 :])
        a = axis_first(a, axis)
        where = where if where is None else axis_first(where, axis)
    size, *rest = typeof(a).shape
    result = wanted_dtype(dtype, name) or _result_dtype(function, a, a)
    if initial is None:
        initial = function.identity
    if initial is None:
        if not size:
            raise ValueError(
                f"zero-size array to reduction operation {function.__name__} which has no "
                f"identity: the array has shape {shape}. Give the value to start from as 'initial'."
            )
        start, a = slicing.index_in_dim(a, 0, 0, False), slicing.slice_in_dim(a, 1, None)
    else:
        initial = as_operand(initial)
        start = with_shape(initial, typeof(initial).shape, tuple(rest))
    start = as_dtype(start, result)

    def step(carry: Array, each: tuple[Array, Array | None]) -> tuple[Array, None]:
        element, used = each
        combined = as_dtype(function._call(carry, element), result)
        return combined if used is None else comparing.select(used, combined, carry), None

    folded, _ = scan(step, start, (a, where))
    return shaping.reshape(folded, kept_shape) if keepdims else folded


@operation(static_argnames=("axis", "dtype", "function"))
@named("accumulate")
def _accumulate_by_steps(
    a: ArrayLike, axis: int, dtype: DTypeLike | None, function: ufunc
) -> Array:
    name = f"{function.__name__}.accumulate"
    a = as_operand(a)
    if axis is None or isinstance(axis, tuple):
        raise ValueError(f"accumulate does not allow multiple axes: {name} was given {axis}")
    axis = canonical_axis(axis, typeof(a).ndim)
    result = wanted_dtype(dtype, name) or _result_dtype(function, a, a)
    a = axis_first(a, axis)
    if not typeof(a).shape[0]:
        return axis_back(as_dtype(a, result), axis)
    first = as_dtype(slicing.slice_in_dim(a, 0, 1), result)

    def step(carry: Array, element: Array) -> tuple[Array, Array]:
        combined = as_dtype(function._call(carry, element), result)
        return combined, combined

    start = slicing.index_in_dim(first, 0, 0, False)
    _, rest = scan(step, start, slicing.slice_in_dim(a, 1, None))
    return axis_back(slicing.concatenate([first, rest], 0), axis)


def pieces(a: ArrayLike, indices: ArrayLike, axis: int) -> tuple[Array, Array, Array]:
    """Return the array with the axis first, each piece's first element, and a mask of its rest.

    The latter, of shape (indices, axis), are in the piece but for its first element.
    """
    first = axis_first(take(a, indices, axis), axis)
    a = axis_first(a, axis)
    size = typeof(a).shape[0]
    (count,) = typeof(indices).shape
    int_ = np.dtype(np.int32)
    indices = convert(indices, int_, False)
    ends = slicing.concatenate(
        [
            slicing.slice_in_dim(indices, min(1, count), None),
            creating.full((min(1, count),), size, int_),
        ],
        0,
    )
    at = creating.iota(int_, size)
    shape = (count, size)
    at = shaping.broadcast_in_dim(at, shape, (1,))
    after = comparing.gt(at, shaping.broadcast_in_dim(indices, shape, (0,)))
    before = comparing.lt(at, shaping.broadcast_in_dim(ends, shape, (0,)))
    return a, first, elementwise.bitwise_and(after, before)


@operation(static_argnames=("axis", "dtype", "function"))
@named("reduceat")
def _reduceat_by_steps(
    a: ArrayLike, indices: ArrayLike, axis: int, dtype: DTypeLike | None, function: ufunc
) -> Array:
    name = f"{function.__name__}.reduceat"
    a, indices = as_operand(a), as_operand(indices)
    aval = typeof(a)
    result = wanted_dtype(dtype, name)
    weak = result is None and aval.weak_type
    if result is None:
        result = promote_types(aval.dtype, _result_dtype(function, a, a))
    a, first, inside = pieces(as_dtype(a, result), indices, axis)
    shape = typeof(first).shape

    def step(carry: Array, each: tuple[Array, Array]) -> tuple[Array, None]:
        element, used = each
        combined = as_dtype(function._call(carry, element), result)
        used = shaping.broadcast_in_dim(used, shape, (0,))
        return comparing.select(used, combined, carry), None

    # Each step combines one element of every piece.
    rows = shaping.expand_dims(a, (1,))
    folded, _ = scan(step, first, (rows, shaping.transpose(inside, (1, 0))))
    return convert(axis_back(folded, axis), result, weak)


def _rows_named(a: ArrayLike, indices: Index) -> tuple[int, Array]:
    """Return how many leading axes an index selects from, and the numbers of the rows it names."""
    shape = typeof(a).shape
    entries = indices if isinstance(indices, tuple) else (indices,)
    leading = len(entries) if all(map(_names_rows, entries)) else len(shape)
    if not leading:
        leading = len(shape)
    sizes = shape[:leading]
    count = int(np.prod(sizes, dtype=np.int64))
    numbers = shaping.reshape(creating.iota(np.dtype(np.int32), count), sizes)
    return min(leading, len(shape)), At(numbers)[indices].get(mode="fill", fill_value=count)


def _names_rows(entry: IndexItem) -> bool:
    dtype = getattr(entry, "dtype", None)
    return type(entry) is int if dtype is None else dtype != _bool


def rows_to_update(a: ArrayLike, indices: Index, b: ArrayLike) -> tuple[int, Array, Array]:
    """Return how many leading axes an index selects from, its rows, and `b` for each of them.

    The rows and `b` have the shape of the index. What `b` has beyond is broadcast to a row.
    """
    leading, rows = _rows_named(a, indices)
    named_shape = typeof(rows).shape
    if b is None:
        return leading, rows, None
    shape = typeof(b).shape
    beyond = shape[len(named_shape) :]
    own = shape[: len(named_shape)]
    if check_broadcast("at", [own, named_shape]) != named_shape:
        raise ValueError(
            f"at: the second operand, of shape {shape}, does not broadcast to the shape of the "
            f"index, {named_shape}"
        )
    if not beyond:
        return leading, rows, with_shape(b, shape, named_shape)
    return leading, rows, with_shape(b, shape, (*named_shape, *beyond))


def _update_by_steps(
    a: ArrayLike, indices: Index, b: ArrayLike | None = None, *, function: ufunc
) -> Array:
    leading, rows, b = rows_to_update(a, indices, b)
    return _update_rows(a, rows, b, leading, function)


@operation(static_argnames=("leading", "function"))
@named("at")
def _update_rows(a: ArrayLike, rows: Array, b: ArrayLike, leading: int, function: ufunc) -> Array:
    shape, named_shape = typeof(a).shape, typeof(rows).shape
    result = _result_dtype(function, *((a,) if b is None else (a, b)))
    count = int(np.prod(shape[:leading], dtype=np.int64))
    a = as_dtype(shaping.reshape(a, (count, *shape[leading:])), result)
    if not count:
        return shaping.reshape(a, shape)
    rows = shaping.reshape(rows, (typeof(rows).size,))
    if b is not None:
        b = shaping.reshape(b, (*typeof(rows).shape, *typeof(b).shape[len(named_shape) :]))

    def step(a: ArrayLike, each: tuple[Array, ...]) -> tuple[Array, None]:
        row, operand = each
        old = At(a)[row].get(mode="clip")
        new = function._call(old) if operand is None else function._call(old, operand)
        return At(a)[row].set(as_dtype(new, result), mode="drop"), None

    updated, _ = scan(step, a, (rows, b))
    return shaping.reshape(updated, shape)


@operation(static_argnames=("function",))
@named("outer")
def _outer(first: ArrayLike, second: ArrayLike, function: ufunc) -> Array:
    first, second = as_operand(first), as_operand(second)
    shape, other = typeof(first).shape, typeof(second).shape
    if shape and other:
        first = shaping.expand_dims(first, ascending(len(shape) + len(other))[len(shape) :])
        second = shaping.expand_dims(second, ascending(len(shape)))
    return function._call(first, second)
