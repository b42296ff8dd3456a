"""The primitive dot_general, which sums products over contracted axes."""

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.config import default_matmul_precision
from hlofront.base.dtypes import bit_width, check_user_dtype_supported, finfo, issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import (
    Array,
    ArrayLike,
    ArrayLikes,
    DType,
    DTypeLike,
    Params,
    is_tuple_or_list,
)
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import JvpResult, infer
from hlofront.core.sharding.requested_shardings import (
    cotangent_sharding,
    permuted,
    requested,
    with_batch_axis_of,
)
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Batched,
    Cotangents,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.reducing import without_axes
from hlofront.primitives.arrays.shaping import transpose
from hlofront.primitives.elementwise.converting import convert_element_type_p
from hlofront.primitives.linalg.contraction_numbers import (
    CanonicalNumbers,
    DotDimensionNumbers,
    ascending_axes,
    batched_contraction,
    canonical_axes,
    check_contraction,
    remaining_axes,
)
from hlofront.primitives.rules import taylor
from hlofront.primitives.rules.derivatives import add_tangents, aval_of_operand, is_linear, known

# ---- precision -----------------------------------------------------------------------------------


class Precision(enum.Enum):
    """The precision of float32 products on hardware that multiplies narrower floats.

    DEFAULT is fastest; HIGHEST is full float32.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """The arithmetic of a dot: types of operands and sums, and the number of hardware products.

    Args:
      lhs_precision_type: the type that the left operand is rounded to.
      rhs_precision_type: the type that the right operand is rounded to.
      accumulation_type: the type that products are summed in.
      lhs_component_count: the number of components that represent an element of the left operand.
      rhs_component_count: the number of components that represent an element of the right operand.
      num_primitive_operations: the number of hardware products per product.
      allow_imprecise_accumulation: whether sums may be less exact for speed (FP8 on GPUs).
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """The dot algorithms of devices, named after the types of lhs, rhs and sums: BF16_BF16_F32.

    X3, X6 and X9 stand for the number of hardware products per product.
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


# The parameter of equations: a precision per operand, an algorithm, or None.
CanonicalPrecision = tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset | None

PrecisionLike = (
    None
    | str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
)

_precisions = {
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
}


def canonical_precision(precision: object) -> CanonicalPrecision:
    """Return the canonical precision: a pair of Precision, a DotAlgorithm, a preset, or None.

    None stands for the option jax_default_matmul_precision.

    Raises:
      ValueError: for anything that is not a precision.
    """
    if precision is None:
        precision = default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, str):
        single = _precisions.get(precision)
        if single is not None:
            return single, single
        preset = DotAlgorithmPreset.__members__.get(precision)
        if preset is not None:
            return preset
    elif isinstance(precision, Precision):
        return precision, precision
    elif isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return precision
    elif is_tuple_or_list(precision) and len(precision) == 2:
        lhs, rhs = [_precisions.get(p) if isinstance(p, str) else p for p in precision]
        if isinstance(lhs, Precision) and isinstance(rhs, Precision):
            return lhs, rhs
    raise ValueError(
        f"Precision argument must be None, a lax.Precision, one of the strings "
        f"{', '.join(map(repr, _precisions))}, a tuple of two of these (one per operand), a "
        f"lax.DotAlgorithm, or a lax.DotAlgorithmPreset or its name; but got {precision!r}."
    )


def canonical_element_type(dtype: DTypeLike | None, where: str) -> DType | None:
    """Return a preferred_element_type as a supported dtype, or None; `where` is for errors."""
    return None if dtype is None else np.dtype(check_user_dtype_supported(dtype, where))


# ---- dtypes --------------------------------------------------------------------------------------


def product_dtype(name: str, lhs: DType, rhs: DType, preferred: Any) -> DType:
    """Return the dtype of sums of products of two dtypes: `preferred`, or else the wider one.

    Dtypes are ordered by kind (complex, floating, integer, bool), then by width, then by sign.

    Raises:
      TypeError: if neither dtype is wider, or `preferred` is too narrow for integers.
    """
    if lhs == rhs:
        dtype = lhs
    else:
        left, right = _width(lhs), _width(rhs)
        if left == right:
            raise TypeError(
                f"{name} argument type error: {lhs}, {rhs}. Neither dtype is wider than the "
                "other; convert one operand with .astype."
            )
        dtype = lhs if left > right else rhs
    if preferred is None or preferred == dtype:
        return dtype
    if not issubdtype(dtype, np.floating) and _bits(preferred) < _bits(dtype):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred} for result type of {dtype}."
        )
    return preferred


def _width(dtype: DType) -> tuple[float, ...]:
    """Return a key that sorts dtypes of operands by kind and then by width."""
    if dtype == np.bool_:
        return (0, 0)
    if issubdtype(dtype, np.integer):
        return (1, bit_width(dtype), issubdtype(dtype, np.signedinteger))
    kind = 3 if issubdtype(dtype, np.complexfloating) else 2
    return (kind, float(finfo(dtype).max))


def _bits(dtype: DType) -> int:
    if dtype == np.bool_:
        return 1
    return bit_width(dtype) // (2 if issubdtype(dtype, np.complexfloating) else 1)


# ---- dot -----------------------------------------------------------------------------------------

dot_general_p = Primitive("dot_general")


@boundary
def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers | None,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Multiply two arrays and sum the products over the contracting axes.

    The result has the batch axes, then the remaining axes of `lhs`, then those of `rhs`.

    Args:
      lhs: an array.
      rhs: an array.
      dimension_numbers: ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs)), each a
        sequence of integers or one integer, matched in order; None for matrices and vectors, where
        the last axis of lhs is contracted with the first of rhs.
      precision: a `Precision` or its name ("default", "high", "highest"), a pair of them for the
        two operands, a `DotAlgorithm`, or a `DotAlgorithmPreset` or its name. None is the option
        jax_default_matmul_precision.
      preferred_element_type: the dtype of the sums and of the result; by default the wider dtype of
        the operands.
      out_sharding: the sharding of the result, which also says along which mesh axes it stays
        unreduced; None to derive it from the operands' shardings.

    Raises:
      TypeError: if sizes or numbers of the axes differ, axes are out of range or repeated, or
        neither dtype is wider.
      ValueError: if `precision` is not valid.

    Example:
      >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
      >>> lax.dot_general(x, y, dimension_numbers=(([2], [1]), ([0], [0]))).shape
      (5, 2, 4)
    """
    if dimension_numbers is None:
        dimension_numbers = _of_matrices(typeof(lhs).shape, typeof(rhs).shape)
    try:
        (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"dot_general got dimension_numbers={dimension_numbers!r}; expected ((axes of lhs to "
            "sum over, axes of rhs), (batch axes of lhs, of rhs)), such as (((1,), (0,)), ((), "
            "())) for two matrices."
        ) from None
    if out_sharding is not None:
        out_sharding = requested("dot_general", out_sharding)
    return process(
        dot_general_p,
        (lhs, rhs),
        {
            "dimension_numbers": (
                (canonical_axes(lhs_contracting), canonical_axes(rhs_contracting)),
                (canonical_axes(lhs_batch), canonical_axes(rhs_batch)),
            ),
            "precision": canonical_precision(precision),
            "preferred_element_type": canonical_element_type(preferred_element_type, "dot"),
            "out_sharding": out_sharding,
        },
    )


def _of_matrices(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> DotDimensionNumbers:
    """Return the dimension numbers of a product of matrices or vectors, or raise ValueError."""
    if not (1 <= len(lhs) <= 2 and 1 <= len(rhs) <= 2 and lhs[-1] == rhs[0]):
        raise ValueError(
            "lax.dot: dimension_numbers must be specified when not performing simple un-batched "
            "matrix-matrix, matrix-vector, or vector-vector products; got "
            f"lhs_shape={lhs} rhs_shape={rhs}. The last axis of lhs and the first of rhs must be "
            "equal."
        )
    return (((len(lhs) - 1,), (0,)), ((), ()))


@boundary
def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Multiply two matrices, a matrix and a vector, or two vectors; or compute a dot_general.

    Args:
      lhs: an array of shape (n,) or (m, n), or of any shape with `dimension_numbers`.
      rhs: an array of shape (n,) or (n, k), or of any shape with `dimension_numbers`.
      dimension_numbers: see `dot_general`, also for the other arguments.

    Raises:
      ValueError: without `dimension_numbers`, for operands that do not fit.
      TypeError: see `dot_general`.
    """
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision,
        preferred_element_type,
        out_sharding=out_sharding,
    )


@boundary
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike | None = None) -> Array:
    """Multiply matrices in the last two axes, one pair for each index of the leading axes.

    Args:
      lhs: an array of shape (..., m, n).
      rhs: an array of shape (..., n, k).
      precision: see `dot_general`.

    Raises:
      ValueError: if an operand has fewer than two axes, or the numbers of axes differ.
      TypeError: if sizes do not fit.

    Example:
      >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
      (5, 2, 4)
    """
    rank, other = typeof(lhs).ndim, typeof(rhs).ndim
    if min(rank, other) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {rank}, {other}")
    if rank != other:
        raise ValueError(
            f"Arguments to batch_matmul must have the same number of axes, got {rank}, {other}"
        )
    batch = tuple(range(rank - 2))
    return dot_general(lhs, rhs, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)


@infer(dot_general_p)
def _(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: CanonicalNumbers,
    precision: object,
    preferred_element_type: DType | None,
    out_sharding: object,
) -> ShapedArray:
    check_contraction("dot_general", lhs, rhs, dimension_numbers)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    shape = (
        *(lhs.shape[axis] for axis in lhs_batch),
        *without_axes(lhs.shape, (*lhs_batch, *lhs_contracting)),
        *without_axes(rhs.shape, (*rhs_batch, *rhs_contracting)),
    )
    dtype = product_dtype("lax.dot_general", lhs.dtype, rhs.dtype, preferred_element_type)
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)


# ---- derivatives ---------------------------------------------------------------------------------


def bilinear(primitive: Primitive) -> None:
    """Register the jvp rule of a primitive that is linear in each of its first two operands."""

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        lhs, rhs, *others = primals
        result: ArrayLike = process(primitive, tuple(primals), params)
        if not issubdtype(typeof(result).dtype, np.inexact):
            return result, Zero.of(result)
        tangent: Tangent = Zero.of(result)
        if type(tangents[0]) is not Zero:
            tangent = process(primitive, (tangents[0], rhs, *others), params)
        if type(tangents[1]) is not Zero:
            other = process(primitive, (lhs, tangents[1], *others), params)
            tangent = add_tangents(tangent, other)
        return result, tangent

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_jvp"
    rules.jvp(primitive)(rule)
    taylor.bilinear(primitive)


bilinear(dot_general_p)


@rules.transpose(dot_general_p)
def _(
    cotangent: ArrayLike,
    lhs: Operand,
    rhs: Operand,
    *,
    dimension_numbers: CanonicalNumbers,
    **params: object,
) -> Cotangents:
    if is_linear(rhs):
        contracting, batch = dimension_numbers
        flipped = (contracting[::-1], batch[::-1])
        return None, cotangent_of_factor(
            cotangent, rhs.aval, known(lhs), flipped, params, last=True
        )
    aval = aval_of_operand(lhs)
    return cotangent_of_factor(cotangent, aval, known(rhs), dimension_numbers, params), None


def cotangent_of_factor(
    cotangent: ArrayLike,
    aval: ShapedArray,
    other: ArrayLike,
    numbers: Any,
    params: Params,
    last: bool = False,
) -> ArrayLike:
    """Return the cotangent of one operand of a dot_general.

    Args:
      cotangent: the cotangent of the result.
      aval: the aval of this operand.
      other: the value of the other operand.
      numbers: the contracting and batch axes, in pairs (this operand's, the other's).
      params: the equation's parameters.
      last: whether this operand is the second one.
    """
    (own_contracting, other_contracting), (own_batch, other_batch) = numbers
    own_kept = remaining_axes(aval.ndim, own_batch, own_contracting)
    other_kept = remaining_axes(typeof(other).ndim, other_batch, other_contracting)
    batch = tuple(range(len(own_batch)))
    first = len(batch) + (0 if last else len(own_kept))
    arrived = tuple(range(first, first + len(other_kept)))
    # This operand's contracted axes are in the order of the other operand's.
    regained = [own for _, own in sorted(zip(other_contracting, own_contracting, strict=True))]
    # Either factor may come first: prefer the order whose result needs no transpose.
    precision = params["precision"]
    if ascending_axes((*own_batch, *regained, *own_kept)) and not ascending_axes(
        (*own_batch, *own_kept, *regained)
    ):
        factors, axes = (other, cotangent), (*own_batch, *regained, *own_kept)
        numbers = ((other_kept, arrived), (other_batch, batch))
        precision = flipped_precision(precision)
    else:
        factors, axes = (cotangent, other), (*own_batch, *own_kept, *regained)
        numbers = ((arrived, other_kept), (batch, other_batch))
    params = {
        **params,
        "dimension_numbers": numbers,
        "precision": precision,
        "out_sharding": permuted(cotangent_sharding(aval, cotangent, other), axes),
    }
    return as_cotangent(process(dot_general_p, factors, params), axes, aval)


def as_cotangent(x: ArrayLike, axes: Sequence[int], aval: ShapedArray) -> ArrayLike:
    """Return `x` as a cotangent of type `aval`, where axis i of `x` is axis `axes[i]` of `aval`."""
    if not ascending_axes(axes):
        x = transpose(x, sorted(range(len(axes)), key=axes.__getitem__))
    if typeof(x).dtype == aval.dtype:
        return x
    # Bind the primitive directly, to drop an imaginary part without a warning.
    params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type, "sharding": None}
    return process(convert_element_type_p, (x,), params)


def flipped_precision(precision: object) -> object:
    """Return a canonical precision for operands in reverse order."""
    if isinstance(precision, DotAlgorithm):
        return precision._replace(
            lhs_precision_type=precision.rhs_precision_type,
            rhs_precision_type=precision.lhs_precision_type,
            lhs_component_count=precision.rhs_component_count,
            rhs_component_count=precision.lhs_component_count,
        )
    return tuple(reversed(precision)) if is_tuple_or_list(precision) else precision


# ---- batches -------------------------------------------------------------------------------------


@rules.batch(dot_general_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    dimension_numbers: CanonicalNumbers,
    out_sharding: NamedSharding | None,
    **params: object,
) -> Batched:
    lhs, rhs = values
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    vectors = typeof(rhs).ndim == len(rhs_contracting) + 1
    if axes[0] is None and vectors and typeof(lhs).ndim > len(lhs_contracting):
        # There is one vector per example. Swap the operands, so that the result's batch axis is
        # first; otherwise the operations that follow would read it transposed, across its rows,
        # which is much slower on CPUs.
        lhs, rhs, axes = rhs, lhs, axes[::-1]
        dimension_numbers = (rhs_contracting, lhs_contracting), (rhs_batch, lhs_batch)
        params["precision"] = flipped_precision(params["precision"])
    numbers, axis = batched_contraction(typeof(lhs).ndim, typeof(rhs).ndim, axes, dimension_numbers)
    batched_sharding = with_batch_axis_of(out_sharding, axis, (lhs, rhs), axes)
    params = {"dimension_numbers": numbers, **params, "out_sharding": batched_sharding}
    return process(dot_general_p, (lhs, rhs), params), axis
