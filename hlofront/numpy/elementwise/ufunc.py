"""Universal functions: elementwise functions that also reduce, accumulate, and update."""

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
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import bool_
from hlofront.base.typing import Array, ArrayLike, Axis, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.arrays.shape import static_axes
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.support.like import like
from hlofront.numpy.support.naming import named
from hlofront.numpy.support.promotion import as_operand, check_arraylike
from hlofront.numpy.support.ufunc_steps import (
    accumulate_by_steps,
    outer_of,
    reduce_by_steps,
    reduceat_by_steps,
    update_by_steps,
)
from hlofront.numpy.vectorize import vectorize
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.numpy.indexing.entries import Index


class ufunc:
    """An elementwise function of broadcast arrays, with the methods of NumPy's ufuncs.

    `jnp.add` is one, and `frompyfunc` makes one of a function of scalars. It may be called under
    any transformation, be a static argument of jitted functions, and be compared and hashed.

    Args:
      func: a function of `nin` scalars, written with functions of arrays.
      nin: the number of arrays it takes.
      nout: the number of its results.
      name: by default the name of `func`.
      nargs: the greatest number of arrays of a call, by default `nin`.
      identity: a scalar that changes nothing when it is combined with another, or None.
      call: the function that a call runs, by default `func` applied to each element.
      reduce: `reduce(a, axis=..., dtype=..., keepdims=..., initial=..., where=...)`, by default a
        loop along the axis. The defaults of the next three are loops as well.
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
            raise TypeError(f"ufunc requires a function, got {func!r} of type {type(func)}")
        self._func = func
        self.__name__ = name or source.callable_name(func)
        self.__doc__ = getattr(func, "__doc__", None)
        self._nin = operator.index(nin)
        self._nout = operator.index(nout)
        self._nargs = self._nin if nargs is None else operator.index(nargs)
        self._identity = identity
        self._call = call or _elementwise(func, self.__name__)
        self._reduce = reduce or partial(reduce_by_steps, function=self)
        self._accumulate = accumulate or partial(accumulate_by_steps, function=self)
        self._at = at or partial(update_by_steps, function=self)
        self._reduceat = reduceat or partial(reduceat_by_steps, function=self)

    nin = property(operator.attrgetter("_nin"), doc="The number of arrays that it takes.")
    nout = property(operator.attrgetter("_nout"), doc="The number of its results.")
    nargs = property(
        operator.attrgetter("_nargs"), doc="The greatest number of arrays that a call takes."
    )
    identity = property(
        operator.attrgetter("_identity"),
        doc="The value that changes nothing when it is combined with another, or None.",
    )

    @property
    def __signature__(self) -> Signature:
        return _signature(self.nin)

    def __reduce__(self) -> str | tuple[object, ...]:
        # Pickle by name loads the ufunc from its module.
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

    # The call is direct, with no wrapper, as it is the most frequent one.
    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array:
        """Apply the function elementwise to broadcast arrays.

        Args:
          args: `nin` arrays or scalars.
          out: must be None.
          where: must be None.

        Raises:
          TypeError: if there are not `nin` arguments.
          NotImplementedError: for `out` and `where`, as arrays are immutable.
        """
        if out is not None or where is not None:
            refuse_out(self.__name__, out, where)
        return self._call(*args)

    def _check(self, method: str, out: None = None) -> None:
        """Raise ValueError for `method` unless the ufunc is binary."""
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
        """Reduce the elements along an axis, from the first to the last.

        Args:
          a: an array.
          axis: the axis, or None for the elements of the whole array in order. Functions that NumPy
            reduces over several axes, such as add, take a tuple.
          dtype: the dtype of the result, in which the elements are combined; by default the
            function's own.
          out: must be None.
          keepdims: whether the axis stays, with size 1.
          initial: the value to start from, by default the identity; without one, the first element.
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
        """Return the running reduction along an axis, an array of the shape of `a`.

        Args:
          a: an array.
          axis: the axis. Only add and multiply take None, for the flattened array.
          dtype: the dtype of the result; by default the function's own.
          out: must be None.

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
        """Reduce each piece of an axis: the k-th is `a[indices[k]:indices[k + 1]]`.

        The last piece ends with the axis. Where an index is not less than the next one, the piece
        is only the element at that index.

        Args:
          a: an array of at least one axis.
          indices: a vector of integers. For indices out of bounds the result is that of `take`.
          axis: the axis.
          dtype: the dtype of the result; by default the common dtype of `a` and of the function's
            result.
          out: must be None.

        Returns:
          An array whose axis has the size of `indices`.

        Raises:
          ValueError: for functions that do not take two arrays and return one, if the indices are
            not a vector of integers, or the array has no such axis.
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
        if index_aval.dtype != bool_ and not issubdtype(index_aval.dtype, np.integer):
            raise ValueError(f"{name}: indices must have an integer type, got {index_aval.dtype}")
        if axis is None or isinstance(axis, tuple | list):
            raise ValueError(f"{name} requires a single integer axis, got {axis!r}")
        if not aval.ndim:
            raise ValueError(f"{name}: a must have 1 or more dimension, got a.shape=()")
        axis = canonical_axis(axis, aval.ndim)
        return self._reduceat(a, indices, axis=axis, dtype=dtype)

    @boundary
    def at(
        self, a: ArrayLike, indices: Index, b: ArrayLike | None = None, /, *, inplace: bool = True
    ) -> Array:
        """Apply the function to the elements at `indices`, one by one; return the new array.

        An element that is indexed twice is updated twice.

        Args:
          a: an array.
          indices: an index, as in `a[indices]`; where it is out of bounds nothing is updated.
          b: the second operand of functions of two arrays; it broadcasts to the index.
          inplace: must be False: arrays are immutable, and the result is a new one.

        Raises:
          NotImplementedError: unless `inplace` is False.
        """
        if inplace:
            raise NotImplementedError(  # JAX raises this class.
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
        """Apply the function to each element of A with each element of B.

        Returns:
          An array of the shape of A followed by that of B.

        Raises:
          ValueError: for functions that do not take two arrays and return one.
        """
        self._check("outer")
        check_arraylike(f"{self.__name__}.outer", A, B)
        return outer_of(A, B, self)


ufunc.__module__ = "hlofront.numpy"


def _remade(
    func: Callable[..., object], nin: int, nout: int, name: str, nargs: int, identity: object
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


def _elementwise(func: Callable[..., object], name: str) -> Callable[..., Array]:
    apply = vectorize(func)

    @operation
    @named(name)
    def call(*args: ArrayLike) -> Array:
        check_arraylike(name, *args)
        return apply(*args)

    return call


@like(np.frompyfunc)
def frompyfunc(
    func: Callable[..., object], /, nin: int, nout: int, *, identity: object = None
) -> ufunc:
    """Make a ufunc from a Python function of scalars.

    Args:
      func: a function of `nin` scalars that can be traced; it is called once for all elements.
      nin: the number of arrays it takes.
      nout: the number of its results.
      identity: a scalar that changes nothing when it is combined with another.

    Raises:
      TypeError: if `func` is not callable, or the numbers are not integers.

    Example:
      >>> add = jnp.frompyfunc(lambda x, y: x + y, 2, 1)
      >>> add.accumulate(jnp.array([1, 2, 3]))
      Array([1, 3, 6], dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)
