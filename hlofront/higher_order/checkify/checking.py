"""The functions `check` and `check_error` of checkify, the class Error, and their primitive."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.elements import ExtendedDType
from hlofront.base.errors import without_operands
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.compile_time import ensure_compile_time_eval
from hlofront.core.effects import Effects, OwnEffect
from hlofront.core.jaxpr import Value
from hlofront.core.primitive import Primitive
from hlofront.core.rules import Entries
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import named_sharding
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis, Tangent, Tangents
from hlofront.core.trace import is_eager
from hlofront.higher_order.checkify.checkify_errors import (
    BatchedError,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
)
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.dynamic_slicing import dynamic_index_in_dim
from hlofront.primitives.arrays.reducing import argmax, reduce_or
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import bitwise_not
from hlofront.primitives.rules.batching import move_axis
from hlofront.primitives.sharding.resharding import bind_reshard
from hlofront.transforms.flatten import ShapeDtypeStruct

# Operands: whether the check failed, the error's number, and the arrays that the error carries.
# Parameters: the kind of error; the tree definition of each possible error, by its number; and
# whether the check is dropped outside checkify.
check_p = Primitive("check", multiple_results=True)


class _CheckEffect(OwnEffect):
    __slots__ = ()

    def __repr__(self) -> str:
        return "check"


check_effect = _CheckEffect()
_effects: Effects = frozenset({check_effect})


# ---- the error of a checked program --------------------------------------------------------------


class ErrorEffect(NamedTuple):
    """A kind of error: an exception class and the shapes and dtypes of the arrays it carries."""

    error_type: type[JaxException]
    shape_dtypes: tuple[ShapeDtypeStruct, ...]


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class Error:
    """The error of a program checked by checkify, or its absence, as a pytree of arrays.

    Under `vmap` of the checked function there is one error per example.

    Args:
      _pred: booleans by kind of error: whether there was one.
      _code: integers by kind of error: the error's number.
      _metadata: the tree definition of each error, by the error's number.
      _payload: the arrays that the error carries, by kind of error.
    """

    _pred: Mapping[ErrorEffect, ArrayLike]
    _code: Mapping[ErrorEffect, ArrayLike]
    _metadata: Mapping[int, PyTreeDef]
    _payload: Mapping[ErrorEffect, ArrayLikes]

    def get(self) -> str | None:
        """Return the message of the error; None if no check failed."""
        error = self.get_exception()
        return None if error is None else str(error)

    def get_exception(self) -> JaxException | None:
        """Return the error as an exception; None if no check failed."""
        errors: dict[tuple[int, ...], JaxException] = {}
        rank = 0
        for effect, pred in self._pred.items():
            failed = np.asarray(pred)
            rank = max(rank, failed.ndim)
            codes = np.asarray(self._code[effect])
            for index in map(tuple, np.argwhere(failed).tolist()):
                payload: Sequence[Value] = self._payload[effect]
                if index:
                    with ensure_compile_time_eval():
                        payload = [x[index] for x in payload]
                errors[index] = tree.tree_unflatten(self._metadata[int(codes[index])], payload)
        if not errors:
            return None
        return BatchedError(dict(sorted(errors.items()))) if rank else errors[()]

    @boundary
    def throw(self) -> None:
        """Raise the error if a check failed.

        Inside a traced function the error becomes a check of that function, as by `check_error`.

        Raises:
          JaxRuntimeError: with the message that `get` returns.
        """
        check_error(self)

    def add_to_program(self) -> None:
        """Add the error (for a batch, the first one) as a check to the function being traced."""
        structures = tuple(self._metadata.items())
        for effect, pred in self._pred.items():
            failed, values = first_of(pred, [self._code[effect], *self._payload[effect]])
            check_p.bind(
                failed, *values, error_type=effect.error_type, structures=structures, debug=False
            )

    def flatten(self) -> "tuple[list[_ErrorChildren], _ErrorMetadata]":
        # Effects are in insertion order: kinds of errors cannot be sorted.
        effects = tuple(self._pred)
        children: list[_ErrorChildren] = [
            (self._pred[e], self._code[e], tuple(self._payload[e])) for e in effects
        ]
        return children, (effects, tuple(self._metadata.items()))

    @staticmethod
    def unflatten(fixed: "_ErrorMetadata", children: "Iterable[_ErrorChildren]") -> "Error":
        effects, metadata = fixed
        pred: dict[ErrorEffect, ArrayLike] = {}
        code: dict[ErrorEffect, ArrayLike] = {}
        payload: dict[ErrorEffect, ArrayLikes] = {}
        for effect, values in zip(effects, children, strict=True):
            pred[effect], code[effect], payload[effect] = values
        return Error(pred, code, dict(metadata), payload)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    def __repr__(self) -> str:
        return f"Error(_pred={self._pred}, _code={self._code}, _payload={self._payload})"


# The values of one kind of error: whether there was one, its number, and the arrays it carries.
_ErrorChildren = tuple[ArrayLike, ArrayLike, ArrayLikes]
# The kinds of errors, and the tree definitions by number.
_ErrorMetadata = tuple[tuple[ErrorEffect, ...], tuple[tuple[int, PyTreeDef], ...]]
tree.register_pytree_node(Error, Error.flatten, Error.unflatten)


def raise_error(error: Error) -> None:
    """Raise the JaxRuntimeError for an error with concrete values, if a check failed."""
    text = error.get()
    if text is not None:
        raise JaxRuntimeError(text)


init_error = Error({}, {}, {}, {})


# ---- users' checks -------------------------------------------------------------------------------


@boundary
def check(
    pred: ArrayLike, msg: str, *fmt_args: Value, debug: bool = False, **fmt_kwargs: Value
) -> None:
    """Check that a predicate is True, and report an error with a message if it is not.

    Outside traced functions the error is raised immediately. A traced function must be passed to
    `checkify`, which makes it return the error:

        def f(x):
            checkify.check(x > 0, "x must be positive: {}", x)
            return jnp.log(x)

        error, y = jit(checkify.checkify(f))(x)
        error.throw()

    Args:
      pred: a boolean scalar; False is an error.
      msg: the error's message: a format string of `str.format`.
      *fmt_args: positional values for the message: pytrees of arrays.
      debug: whether the check is dropped if the function is not passed to `checkify`.
      **fmt_kwargs: keyword values for the message: pytrees of arrays.

    Raises:
      TypeError: if `pred` is not a boolean scalar, or the formatted values are not arrays.
      JaxRuntimeError: if `pred` is False and nothing is being traced.
      ValueError: when a program with a check is compiled without being passed to `checkify`.
    """
    aval = typeof(pred) if is_value(pred) else None
    if aval is None or aval.shape or aval.dtype != np.bool_:
        raise TypeError(
            f"check takes a scalar pred as argument, got {source.shortened(repr(pred))}. Give a "
            "boolean: jnp.all(...) of many."
        )
    for leaf in tree.tree_leaves((fmt_args, fmt_kwargs)):
        if not is_value(leaf):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{source.shortened(repr(leaf))} of type {type(leaf)}. Format what is known while "
                "tracing into the message."
            )
    if isinstance(pred, bool | np.bool_ | np.ndarray):
        failed: ArrayLike = not pred
    else:
        failed = bitwise_not(pred)
    described = DescribedError.of(FailedCheckError(source.current(), msg, fmt_args, fmt_kwargs))
    aval = typeof(failed)
    if aval.weak_type:
        failed = convert(failed, aval.dtype, False)
    check_p.bind(
        failed,
        described.code,
        *described.payload,
        error_type=described.effect.error_type,
        structures=((int(described.code), described.structure),),
        debug=debug,
    )


@boundary
def debug_check(pred: ArrayLike, msg: str, *fmt_args: Value, **fmt_kwargs: Value) -> None:
    """Check that a predicate is True in functions passed to `checkify`; elsewhere do nothing.

    Args:
      pred: a boolean scalar; False is an error.
      msg: the error's message: a format string of `str.format`.
      *fmt_args: positional values for the message: pytrees of arrays.
      **fmt_kwargs: keyword values for the message: pytrees of arrays.
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@boundary
def check_error(error: Error) -> None:
    """Raise the error that `checkify` returned, if a check failed.

    Inside a traced function the error becomes a check of that function, which must be passed to
    `checkify` as well. For a batch of errors, that of the first failed example is used.

    Args:
      error: the Error that a checked function returned.

    Raises:
      ValueError: if `error` is not an Error.
      JaxRuntimeError: if a check failed and nothing is being traced.
    """
    if not isinstance(error, Error):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(
            f"check_error takes an Error as argument, got {source.shortened(repr(error))} of type "
            f"{type(error)}: `checkify` returns one as the first of its results."
        )
    if is_eager():
        raise_error(error)
    else:
        error.add_to_program()


# The next error number: each trace of a check gets its own number.
_numbers = itertools.count(1)


class DescribedError(NamedTuple):
    """An error as values and static attributes that a program can hold.

    Attributes:
      effect: the kind of error.
      code: a new number for the error.
      payload: the arrays that the error carries.
      structure: the tree definition of the error.
    """

    effect: ErrorEffect
    code: np.int32
    payload: list[ArrayLike]
    structure: PyTreeDef

    @classmethod
    def of(cls, error: JaxException) -> "DescribedError":
        """Return the DescribedError of an exception, with a new number."""
        leaves, structure = tree.tree_flatten(error)
        payload = list(map(_carried, leaves))
        effect = effect_of(type(error), map(typeof, payload))
        return cls(effect, np.int32(next(_numbers)), payload, structure)


def _carried(x: ArrayLike) -> ArrayLike:
    """Return an array in the form that errors carry: strongly typed, and whole on all devices."""
    aval: Any = typeof(x)
    if aval.weak_type:
        x = convert(x, aval.dtype, False)
    if aval.split is not None:
        x = bind_reshard(x, named_sharding(aval.split.mesh, PartitionSpec()))
    return x


def effect_of(error_type: type[JaxException], avals: Iterable[ShapedArray]) -> ErrorEffect:
    """Return the kind of error of an exception class that carries arrays of types `avals`."""
    return ErrorEffect(
        error_type, tuple([ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])
    )


def first_of(failed: ArrayLike, values: ArrayLikes) -> tuple[ArrayLike, ArrayLikes]:
    """Return whether any of several checks failed, and the values of the first failed check.

    Args:
      failed: booleans of any shape.
      values: arrays whose leading axes are the axes of `failed`.
    """
    rank = typeof(failed).ndim
    if not rank:
        return failed, list(values)
    size = typeof(failed).size
    if not size:
        avals = [typeof(x) for x in values]
        return np.bool_(False), [zeros_of_type(a.shape[rank:], a.dtype) for a in avals]
    flat = reshape(failed, (size,))
    index = argmax(flat, 0, np.int32)
    chosen = [
        dynamic_index_in_dim(
            reshape(x, (size, *typeof(x).shape[rank:])),
            index,
            keepdims=False,
            allow_negative_indices=False,
        )
        for x in values
    ]
    return reduce_or(flat, (0,)), chosen


def zeros_of_type(shape: Shape, dtype: DType) -> Array:
    """Return an array of zeros as the placeholder for an array that an error would carry."""
    if isinstance(dtype, ExtendedDType):
        physical_shape, physical_dtype = dtype.physical(shape)
        return dtype.wrap(zeros_of_type(physical_shape, physical_dtype))
    return full(shape, np.zeros((), dtype)[()], dtype)


# ---- rules ---------------------------------------------------------------------------------------


@rules.infer(check_p)
def _(*avals: ShapedArray, **_: object) -> list[ShapedArray]:
    return []


@rules.effects(check_p)
def _(*avals: ShapedArray, **_: object) -> Effects:
    return _effects


@rules.sharding(check_p)
def _(*_: object, **__: object) -> list[Entries]:
    return []


@rules.jvp(check_p)
def _(
    primals: ArrayLikes, tangents: Tangents, **params: object
) -> tuple[list[ArrayLike], list[Tangent]]:
    check_p.bind(*primals, **params)
    return [], []


@rules.batch(check_p)
def _(
    values: ArrayLikes, axes: BatchAxes, **params: object
) -> tuple[list[ArrayLike], list[BatchAxis]]:
    size = next(typeof(x).shape[a] for x, a in zip(values, axes, strict=True) if a is not None)
    failed, *rest = values
    if axes[0] is None:
        # The check fails for all examples or for none, so the first example decides.
        rest = [
            x if a is None else dynamic_index_in_dim(x, np.int32(0), a, keepdims=False)
            for x, a in zip(rest, axes[1:], strict=True)
        ]
        check_p.bind(failed, *rest, **params)
        return [], []
    rest = [
        broadcast_in_dim(x, (size, *typeof(x).shape), tuple(range(1, typeof(x).ndim + 1)))
        if a is None
        else move_axis(x, a, 0)
        for x, a in zip(rest, axes[1:], strict=True)
    ]
    failed, rest = first_of(move_axis(failed, axes[0], 0), rest)
    check_p.bind(failed, *rest, **params)
    return [], []


@rules.run(check_p)
def _(
    failed: ArrayLike,
    code: ArrayLike,
    *payload: ArrayLike,
    error_type: type[JaxException],
    structures: Sequence[tuple[int, PyTreeDef]],
    debug: bool,
) -> list[ArrayLike]:
    if not debug and failed:
        effect = effect_of(error_type, map(typeof, payload))
        pred = np.asarray(failed)
        error = Error({effect: pred}, {effect: code}, dict(structures), {effect: payload})
        try:
            raise_error(error)
        except JaxRuntimeError as raised:
            without_operands(raised)
            raise
    return []
