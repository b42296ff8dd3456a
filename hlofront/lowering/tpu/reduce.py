"""The lowering rule of sums for TPUs: factors of a sum multiply the sum, not its elements.

In the gradient of a normalization, the mean's cotangent is the sum, for each row or channel, of the
centered elements times a number that is itself a sum over them. So the elements would be read once
for the number and once more for the products. The number times the sum of the centered elements
takes one pass: XLA computes sums of the same elements together.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.reduce import reduce_lower
from hlofront.lowering.replacements import Candidate, Emit, replaces
from hlofront.primitives.arrays.reducing import reduce_sum_p


class _Product(NamedTuple):
    """A product of an array with another one, which was broadcast along all the summed axes."""

    factor: Value
    # The axes of the product along which the factor varies.
    axes: tuple[int, ...]
    elements: Value


@replaces(reduce_sum_p, platform="tpu", in_place=True)
def _(equation: Candidate) -> Emit | None:
    """Factors multiply sums: of float32, whose sums overflow no earlier than their products."""
    return _sum_of_products if equation.avals_in[0].dtype == np.float32 else None


def _sum_of_products(build: Builder, x: Value) -> Value:
    params: Mapping[str, Any] = build.current.params
    axes: Sequence[int] = params["axes"]
    products, rest = _products_in(x, frozenset(axes))
    sums = [_sum_of_product(build, product, params) for product in products]
    if rest is not None:
        sums.append(reduce_lower(build, rest, **params))
    total, *others = sums
    for other in others:
        total = build.op("stablehlo.add", (total, other))
    return total


def _sum_of_product(build: Builder, product: _Product, params: Mapping[str, Any]) -> Value:
    (aval,), (result,) = build.avals_in, build.avals_out
    axes: Sequence[int] = params["axes"]
    total = reduce_lower(build, product.elements, **params)
    shape = tuple(aval.shape[axis] for axis in product.axes)
    result_axes = [axis for axis in range(aval.ndim) if axis not in axes]
    factor = build.reshape(product.factor, result.update(shape=shape))
    factor = build.broadcast(factor, result, [result_axes.index(axis) for axis in product.axes])
    return build.op("stablehlo.multiply", (factor, total))


def _products_in(x: Value, axes: frozenset[int]) -> tuple[list[_Product], Value | None]:
    """Return the products whose sum, with that of the rest if there is one, is a value."""
    products: list[_Product] = []
    rest = x
    while True:
        product = _as_product(rest, axes)
        if product is not None:
            return [*products, product], None
        terms = _operands_of("stablehlo.add", rest)
        for term, other in zip(terms, terms[::-1], strict=True):
            product = _as_product(term, axes)
            if product is not None:
                products.append(product)
                rest = other
                break
        else:
            return products, rest


def _as_product(x: Value, axes: frozenset[int]) -> _Product | None:
    """Return a value as a product with a number for each sum; None if it is no such product.

    One number for all sums, such as the size of a batch, stays in the product.
    """
    pair = _operands_of("stablehlo.multiply", x)
    for factor, elements in zip(pair, pair[::-1], strict=True):
        for small in _operands_of("stablehlo.broadcast_in_dim", factor):
            owner: Any = factor.owner
            positions = map(int, owner.attributes["broadcast_dimensions"])
            sizes = dict(zip(positions, small.type.shape, strict=True))
            varying = tuple(axis for axis, size in sizes.items() if size > 1)
            if varying and axes.isdisjoint(varying):
                return _Product(small, varying, elements)
    return None


def _operands_of(name: str, x: Value) -> tuple[Any, ...]:
    """Return the operands of the operation that a value is the result of; none of other names."""
    owner: Any = x.owner
    return tuple(owner.operands) if getattr(owner, "name", None) == name else ()
