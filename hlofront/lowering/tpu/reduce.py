"""The replacement of sums on TPUs: factors multiply the sum, not its elements.

In the gradient of a normalization, the mean's cotangent is the sum, for each row or channel, of the
centered elements times a number that is itself a sum over them. So the elements would be read once
for the number and again for the products. The number times the sum of the centered elements takes
one pass, because XLA computes sums of the same elements together.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Atom, Var
from hlofront.core.primitive import Primitive
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.reduce import reduce_lower
from hlofront.lowering.replacements import Candidate, Emit, replaces
from hlofront.primitives.arrays.reducing import reduce_sum_p
from hlofront.primitives.arrays.shaping import broadcast_in_dim_p
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.rules.derivatives import add_any_p


class _Product(NamedTuple):
    """A product of an array with another one that is broadcast along all summed axes."""

    factor: Atom
    # The axes of the product along which the factor varies.
    axes: tuple[int, ...]
    elements: Atom


class _Sum(NamedTuple):
    """Products, and a further summand or None."""

    products: list[_Product]
    rest: Atom | None


@replaces(reduce_sum_p, platform="tpu", in_place=True)
def _(equation: Candidate) -> Emit | None:
    """Factors multiply the sum; for float32, whose sums do not overflow before products do."""
    if equation.avals_in[0].dtype != np.float32:
        return None
    terms = _terms_of(equation)
    return partial(_emit, terms, equation.environment) if terms.products else None


def _emit(terms: _Sum, environment: Mapping[Var, Value], build: Builder, x: Value) -> Value:
    (aval,), (result,) = build.avals_in, build.avals_out
    params: Mapping[str, Any] = build.current.params

    def summed(atom: Atom) -> Value:
        elements = build.broadcast_to(build.read(atom, environment), _aval(atom), aval)
        return reduce_lower(build, elements, **params)

    def times_factor(total: Value, product: _Product) -> Value:
        shape = tuple(aval.shape[axis] for axis in product.axes)
        result_axes = [axis for axis in range(aval.ndim) if axis not in params["axes"]]
        factor = build.read(product.factor, environment)
        factor = build.reshape(factor, result.update(shape=shape))
        factor = build.broadcast(factor, result, [result_axes.index(i) for i in product.axes])
        return build.op("stablehlo.multiply", (factor, total))

    sums = [times_factor(summed(product.elements), product) for product in terms.products]
    if terms.rest is not None:
        sums.append(summed(terms.rest))
    total, *others = sums
    for other in others:
        total = build.op("stablehlo.add", (total, other))
    return total


def _terms_of(equation: Candidate) -> _Sum:
    """Return the operand as a sum of products and a rest."""
    products: list[_Product] = []
    (rest,) = equation.operands
    while True:
        product = _as_product(equation, rest)
        if product is not None:
            return _Sum([*products, product], None)
        terms = _operands_of(equation, rest, e.add_p, add_any_p)
        for term, other in zip(terms, terms[::-1], strict=True):
            product = _as_product(equation, term)
            if product is not None:
                products.append(product)
                rest = other
                break
        else:
            return _Sum(products, rest)


def _as_product(equation: Candidate, x: Atom) -> _Product | None:
    """Return an operand as a product with a factor for each sum, or None if it is not one.

    A number that is the same for all sums, such as the size of a batch, stays in the product.
    """
    summed = frozenset(equation.params["axes"])
    pair = _operands_of(equation, x, e.mul_p)
    for factor, elements in zip(pair, pair[::-1], strict=True):
        for small, axes in _broadcasts(equation, factor):
            sizes = dict(zip(axes, _aval(small).shape, strict=True))
            varying = tuple(axis for axis, size in sizes.items() if size > 1)
            if varying and summed.isdisjoint(varying):
                return _Product(small, varying, elements)
    return None


def _broadcasts(equation: Candidate, x: Atom) -> Iterator[tuple[Atom, Sequence[int]]]:
    """Yield the arrays from which a product's operand is broadcast, with their axes in it."""
    aval, whole = _aval(x), equation.avals_in[0]
    # Scalars are the same number for all sums.
    if aval.ndim < whole.ndim:
        return
    if aval.shape != whole.shape:
        yield x, range(aval.ndim)
    maker = equation.maker(x)
    if maker is not None and maker.primitive is broadcast_in_dim_p:
        yield maker.invars[0], maker.params["broadcast_dimensions"]


def _operands_of(equation: Candidate, x: Atom, *primitives: Primitive) -> Sequence[Atom]:
    """Return the operands of the equation that makes x, or () if its primitive is another one."""
    maker = equation.maker(x)
    return maker.invars if maker is not None and maker.primitive in primitives else ()


def _aval(atom: Atom) -> ShapedArray:
    aval: Any = atom.aval
    return aval
