"""check and the Errors of checked programs, and the operation behind both."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.elements import ExtendedDType
from hlofront.base.errors import without_operands
from hlofront.core import rules
from hlofront.core.aval import is_value, typeof
from hlofront.core.compile_time import ensure_compile_time_eval
from hlofront.core.effects import Effect
from hlofront.core.primitive import Primitive
from hlofront.core.trace import is_eager
from hlofront.higher_order.checkify_errors import (
    BatchedError,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
)
from hlofront.primitives.batching import move_axis
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full
from hlofront.primitives.dynamic_slicing import dynamic_index_in_dim
from hlofront.primitives.elementwise import bitwise_not
from hlofront.primitives.reducing import argmax, reduce_or
from hlofront.primitives.shaping import broadcast_in_dim, reshape
from hlofront.transforms.flatten import ShapeDtypeStruct

# Operands: whether it failed, the number of the error, and the arrays that the error carries.
# Parameters: the kind of error; per number that may come, the error's structure as a pytree; and
# whether it is dropped where nothing looks at it.
check_p = Primitive("check", multiple_results=True)


class _CheckEffect(Effect):
    __slots__ = ()

    def __repr__(self):
        return "check"


check_effect = _CheckEffect()
_effects = frozenset({check_effect})


# ---- what a checked program found ----------------------------------------------------------------


class ErrorEffect(NamedTuple):
    """A kind of error: errors of one kind carry arrays of the same types."""

    error_type: Any
    shape_dtypes: tuple[ShapeDtypeStruct, ...]


class Error:
    """The error of a checked program, if there was one: a pytree of arrays.

    Of `checkify`, and of `vmap` of a checked function: then it has an error per example.

    Args:
      _pred: per kind of error, whether one was found.
      _code: per kind of error, the number of what was found.
      _metadata: per number, the structure of the error as a pytree.
      _payload: per kind of error, the arrays that the error carries.
    """

    __slots__ = ("_code", "_metadata", "_payload", "_pred")

    def __init__(
        self,
        _pred: dict[ErrorEffect, Any],
        _code: dict[ErrorEffect, Any],
        _metadata: dict[int, Any],
        _payload: dict[ErrorEffect, Any],
    ):
        self._pred = _pred
        self._code = _code
        self._metadata = _metadata
        self._payload = _payload

    def get(self) -> str | None:
        """The message of the error; None if there was none."""
        error = self.get_exception()
        return None if error is None else str(error)

    def get_exception(self) -> JaxException | None:
        """The error as an exception; None if there was none."""
        found: dict[tuple[int, ...], JaxException] = {}
        rank = 0
        for effect, pred in self._pred.items():
            failed = np.asarray(pred)
            rank = max(rank, failed.ndim)
            codes = np.asarray(self._code[effect])
            for place in map(tuple, np.argwhere(failed).tolist()):
                payload = self._payload[effect]
                if place:
                    with ensure_compile_time_eval():
                        payload = [x[place] for x in payload]
                found[place] = tree.tree_unflatten(self._metadata[int(codes[place])], payload)
        if not found:
            return None
        return BatchedError(dict(sorted(found.items()))) if rank else found[()]

    @boundary
    def throw(self) -> None:
        """Raise the error, if there was one.

        While a function is being written down, it is checked when that runs, as by `check_error`.

        Raises:
          JaxRuntimeError: with the message that `get` returns.
        """
        check_error(self)

    def __str__(self):
        return f"Error({self.get()})"

    def __repr__(self):
        return f"Error(_pred={self._pred}, _code={self._code}, _payload={self._payload})"


def raise_error(error: Error) -> None:
    """Raise the JaxRuntimeError for an error whose values are known, if it is one."""
    text = error.get()
    if text is not None:
        raise JaxRuntimeError(text)


def _flatten_error(error: Error) -> tuple[Any, Any]:
    # As they are found, not sorted: kinds of errors have no order.
    effects = tuple(error._pred)
    children = [(error._pred[e], error._code[e], tuple(error._payload[e])) for e in effects]
    return children, (effects, tuple(error._metadata.items()))


def _unflatten_error(fixed: Any, children: Any) -> Error:
    effects, metadata = fixed
    pred, code, payload = {}, {}, {}
    for effect, values in zip(effects, children, strict=True):
        pred[effect], code[effect], payload[effect] = values
    return Error(pred, code, dict(metadata), payload)


tree.register_pytree_node(Error, _flatten_error, _unflatten_error)

init_error = Error({}, {}, {}, {})


# ---- what users say ------------------------------------------------------------------------------


@boundary
def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Say what must hold; where it does not, it is an error.

    Outside of a traced function it is raised at once. Inside of one the function has to be given to
    `checkify`, which makes it a result:

        def f(x):
            checkify.check(x > 0, "x must be positive: {}", x)
            return jnp.log(x)

        error, y = jit(checkify.checkify(f))(x)
        error.throw()

    Args:
      pred: a boolean scalar; False is an error.
      msg: the error's message: a format string as of `str.format`.
      *fmt_args: what it formats by place: pytrees of arrays.
      debug: whether it is dropped where the function is not given to `checkify`.
      **fmt_kwargs: what it formats by name.

    Raises:
      TypeError: if `pred` is not a boolean scalar, or what is to be formatted is not of arrays.
      JaxRuntimeError: if `pred` is False and nothing is being traced.
      ValueError: where a program with a check is compiled that was not given to `checkify`.
    """
    aval: Any = typeof(pred) if is_value(pred) else None
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
    if is_value(pred) and isinstance(pred, bool | np.bool_ | np.ndarray):
        failed: Any = not pred
    else:
        failed = bitwise_not(pred)
    error = FailedCheckError(source.current(), msg, fmt_args, fmt_kwargs)
    effect, code, payload, structure = described(error)
    aval = typeof(failed)
    if aval.weak_type:
        failed = convert(failed, aval.dtype, False)
    check_p.bind(
        failed,
        code,
        *payload,
        error_type=effect.error_type,
        structures=((int(code), structure),),
        debug=debug,
    )


@boundary
def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """As `check`, but without any effect in functions that are not given to `checkify`.

    Args:
      pred: a boolean scalar; False is an error.
      msg: the error's message: a format string as of `str.format`.
      *fmt_args: what it formats by place: pytrees of arrays.
      **fmt_kwargs: what it formats by name.
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@boundary
def check_error(error: Error) -> None:
    """Raise an error that `checkify` returned, if it is one.

    Inside of a traced function it is checked anew, so that the function must be given to `checkify`
    as well. Where it is of a batch, the first example's that failed is taken.

    Args:
      error: the error.

    Raises:
      ValueError: if `error` is not an Error.
      JaxRuntimeError: if nothing is being traced, and it is one.
    """
    if not isinstance(error, Error):
        raise ValueError(
            f"check_error takes an Error as argument, got {source.shortened(repr(error))} of type "
            f"{type(error)}: `checkify` returns one as the first of its results."
        )
    if is_eager():
        raise_error(error)
        return
    structures = tuple(error._metadata.items())
    for effect, pred in error._pred.items():
        failed, values = first_of(pred, [error._code[effect], *error._payload[effect]])
        check_p.bind(
            failed, *values, error_type=effect.error_type, structures=structures, debug=False
        )


# Tells apart the places that errors come from. Those that are traced again are other places.
_numbers = itertools.count(1)


def described(error: Any) -> tuple[ErrorEffect, np.int32, list[Any], Any]:
    """The kind of an error, a new number for it, the arrays that it carries, its structure."""
    leaves, structure = tree.tree_flatten(error)
    payload: list[Any] = []
    for x in leaves:
        aval: Any = typeof(x)
        payload.append(convert(x, aval.dtype, False) if aval.weak_type else x)
    return (
        effect_of(type(error), map(typeof, payload)),
        np.int32(next(_numbers)),
        payload,
        structure,
    )


def effect_of(error_type: Any, avals: Any) -> ErrorEffect:
    return ErrorEffect(
        error_type, tuple([ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])
    )


def first_of(failed: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Whether any failed of those along all axes of `failed`, and the values of the first of them.

    The values have these axes first.
    """
    rank = typeof(failed).ndim
    if not rank:
        return failed, list(values)
    size = typeof(failed).size
    if not size:
        avals: list[Any] = [typeof(x) for x in values]
        return np.bool_(False), [zeros_of_type(a.shape[rank:], a.dtype) for a in avals]
    flat = reshape(failed, (size,))
    place = argmax(flat, 0, np.int32)
    chosen = [
        dynamic_index_in_dim(
            reshape(x, (size, *typeof(x).shape[rank:])),
            place,
            keepdims=False,
            allow_negative_indices=False,
        )
        for x in values
    ]
    return reduce_or(flat, (0,)), chosen


def zeros_of_type(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return zeros in place of an array that an error would carry; keys are stored as zeros."""
    if isinstance(dtype, ExtendedDType):
        physical_shape, physical_dtype = dtype.physical(shape)
        return dtype.wrap(zeros_of_type(physical_shape, physical_dtype))
    return full(shape, np.zeros((), dtype)[()], dtype)


# ---- rules ---------------------------------------------------------------------------------------


@rules.infer(check_p)
def _(*avals, **_):
    return []


@rules.effects(check_p)
def _(*avals, **_):
    return _effects


@rules.jvp(check_p)
def _(primals, tangents, **params):
    check_p.bind(*primals, **params)
    return [], []


@rules.batch(check_p)
def _(values, axes, **params):
    size = next(typeof(x).shape[a] for x, a in zip(values, axes, strict=True) if a is not None)
    failed, *rest = values
    if axes[0] is None:
        # It fails for all examples, or for none: the first may speak for them.
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
def _(failed, code, *payload, error_type, structures, debug):
    if not debug and failed:
        effect = effect_of(error_type, map(typeof, payload))
        pred = np.asarray(failed)
        found = Error({effect: pred}, {effect: code}, dict(structures), {effect: payload})
        try:
            raise_error(found)
        except JaxRuntimeError as error:
            without_operands(error)
            raise
    return []
