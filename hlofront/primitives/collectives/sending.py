"""Separate operations that send and receive along a named axis: psend and precv."""

from collections.abc import Hashable, Sequence
from typing import Protocol

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import dtype_of
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, DType, Shape
from hlofront.core.aval import AbstractToken, AbstractValue, Avals, ShapedArray, token_aval
from hlofront.core.effects import Effects, OwnEffect
from hlofront.core.primitive import Primitive
from hlofront.core.rules import effects, infer, varying
from hlofront.core.sharding.forbidden_collectives import communicating
from hlofront.core.sharding.manual_axes import ManualAxisType
from hlofront.core.trace import process
from hlofront.primitives.collectives.collectives import as_names
from hlofront.primitives.collectives.exchanges import Pairs, checked_pairs
from hlofront.primitives.collectives.varying import manual_among, varying_along
from hlofront.primitives.rules.derivatives import unknown_derivative

psend_p = Primitive("psend")
precv_p = Primitive("precv")


class TransferEffect(OwnEffect):
    """The effect of one half of a transfer, without which the other half would wait forever."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is TransferEffect

    def __hash__(self) -> int:
        return hash(TransferEffect)

    def __str__(self) -> str:
        return "Transfer"


_transfer = frozenset({TransferEffect()})


class DescribesArray(Protocol):
    """The type of a description of an array, such as a ShapeDtypeStruct."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> DType: ...


@boundary
def psend(x: object, axis_name: object, perm: Sequence[tuple[int, int]]) -> PyTree:
    """Send arrays to other indices of a named axis, which receive them with `precv`; GPUs only.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      perm: pairs (source, target) of axis indices.

    Returns:
      A pytree like `x` of tokens, for `precv` and `optimization_barrier`.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if an index is twice a source or twice a target, or is out of range.
    """
    names = as_names(axis_name)
    params = {"axis_name": names, "perm": checked_pairs("psend", names, perm)}

    def sent(leaf: ArrayLike) -> Array:
        return process(psend_p, (varying_along(leaf, names),), params)

    return tree.tree_map(sent, x)


@boundary
def precv(
    token: object, out_shape: DescribesArray, axis_name: object, perm: Sequence[tuple[int, int]]
) -> Array:
    """Receive the array that another index of a named axis sends with `psend`; GPUs only.

    Args:
      token: the token of a `psend` or of `create_token`: the array is received after it.
      out_shape: the shape and the dtype of the array, such as a ShapeDtypeStruct.
      axis_name: a name, or a tuple of names.
      perm: pairs (source, target) of axis indices. An index that is not a target receives zeros.

    Raises:
      NameError: if no axis of that name is in scope.
      TypeError: if `token` is not a token.
      ValueError: if an index is twice a source or twice a target, or is out of range.
    """
    names = as_names(axis_name)
    pairs = checked_pairs("precv", names, perm)
    aval = ShapedArray(tuple(out_shape.shape), dtype_of(out_shape.dtype))
    return process(precv_p, (token,), {"axis_name": names, "out_shape": aval, "perm": pairs})


@infer(psend_p)
def _(x: ShapedArray, *, axis_name: Sequence[Hashable], perm: Pairs) -> AbstractToken:
    return token_aval


@infer(precv_p)
def _(
    token: AbstractValue, *, out_shape: ShapedArray, axis_name: Sequence[Hashable], perm: Pairs
) -> ShapedArray:
    if not isinstance(token, AbstractToken):
        raise TypeError(f"precv requires a token from psend or create_token: got {token}")
    return out_shape


@varying(precv_p)
def _(avals: Avals, *, axis_name: Sequence[Hashable], **_: object) -> list[ManualAxisType]:
    # A token does not say along which other axes the values vary that were sent.
    return [ManualAxisType(varying=manual_among(axis_name))]


@effects(psend_p, precv_p)
def _(x: AbstractValue, **_: object) -> Effects:
    return _transfer


for _primitive in (psend_p, precv_p):
    unknown_derivative(_primitive, "exchange arrays by ppermute, which has one.")


communicating(psend_p, precv_p)
