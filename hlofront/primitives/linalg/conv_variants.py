"""Functions based on conv_general_dilated: transposed, local, patches, shorthands, shapes."""

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import integers
from hlofront.primitives.arrays.creation import broadcasted_iota
from hlofront.primitives.arrays.shaping import broadcast, reshape, rev, transpose
from hlofront.primitives.arrays.windowed import dilated, padtype_to_pads
from hlofront.primitives.elementwise.compare import eq
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add
from hlofront.primitives.linalg.conv import conv_general_dilated, output_sizes
from hlofront.primitives.linalg.conv_numbers import (
    conv_dimension_numbers,
    conv_general_permutations,
)
from hlofront.primitives.linalg.dot_general import (
    Precision,
    PrecisionLike,
    canonical_precision,
    dot_general,
)

# ---- transposed ----------------------------------------------------------------------------------


@boundary
def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Compute a transposed (fractionally strided) convolution, the shape inverse of a strided one.

    Args:
      lhs: the input, by default NH.., with the features last.
      rhs: the kernel, by default H..IO.
      strides: the factor by which each spatial axis grows.
      padding: "SAME" or "VALID", of the convolution whose shape is inverted; or pairs.
      rhs_dilation: the distances between elements of the kernel.
      dimension_numbers: see `conv_dimension_numbers`. By default features are last.
      transpose_kernel: whether the kernel is that of the convolution whose gradient this is; it is
          then reversed, and its input and output features are swapped.
      precision: see `dot_general`.
      preferred_element_type: the dtype of the sums and of the result.
      use_consistent_padding: whether pairs, like the names, are padding of the convolution whose
        shape is inverted rather than of this one.

    Raises:
      TypeError: if the operands have different ranks, or fewer than two axes.
      ValueError: for other names, or more than three spatial axes without `dimension_numbers`.

    Example:
      >>> lhs, rhs = jnp.ones((1, 4, 1)), jnp.ones((3, 1, 2))
      >>> lax.conv_transpose(lhs, rhs, (2,), "SAME").shape
      (1, 8, 2)
    """
    lhs_shape, rhs_shape = typeof(lhs).shape, typeof(rhs).shape
    if len(lhs_shape) != len(rhs_shape) or len(lhs_shape) < 2:
        raise TypeError(
            "conv_transpose requires lhs and rhs with the same number of axes, at least 2; got "
            f"shapes {lhs_shape} and {rhs_shape}."
        )
    if dimension_numbers is None:
        spatial = len(lhs_shape) - 2
        if spatial > 3:
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        letters = "HWD"[:spatial]
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    strides = integers(strides, "strides")
    holes = (1,) * len(strides) if rhs_dilation is None else integers(rhs_dilation, "rhs_dilation")
    window = [
        dilated(rhs_shape[axis], dilation)
        for axis, dilation in zip(numbers.rhs_spec[2:], holes, strict=True)
    ]
    if isinstance(padding, str) and padding.upper() in ("SAME", "VALID"):
        pads = [
            _transposed_pads(extent, stride, padding.upper())
            for extent, stride in zip(window, strides, strict=True)
        ]
    elif use_consistent_padding and not isinstance(padding, str):
        pads = [
            (extent - 1 - low, extent - 1 - high)
            for extent, (low, high) in zip(window, padding, strict=True)
        ]
    else:
        pads = padding
    if transpose_kernel:
        rhs = _transposed_kernel(rhs, numbers.rhs_spec)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * len(strides),
        pads,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_pads(extent: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the (low, high) padding of a transposed convolution, from that of the strided one.

    The output size is `size * stride` for "SAME", and `(size - 1) * stride + max(extent, stride)`
    for "VALID".
    """
    total = extent + stride - 2
    if padding == "VALID":
        total += max(extent - stride, 0)
        low = extent - 1
    else:
        low = extent - 1 if stride > extent - 1 else -(-total // 2)
    return low, total - low


def _transposed_kernel(rhs: ArrayLike, spec: Sequence[int]) -> ArrayLike:
    order = list(range(len(spec)))
    order[spec[0]], order[spec[1]] = spec[1], spec[0]
    if isinstance(rhs, np.ndarray):  # a constant is transposed on the host
        return np.flip(rhs, tuple(spec[2:])).transpose(order)
    for axis in spec[2:]:
        rhs = rev(rhs, (axis,))
    return transpose(rhs, order)


@boundary
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Return the shape of a transposed convolution's output.

    Args:
      lhs_shape: the shape of the input.
      rhs_shape: the shape of the kernel.
      window_strides: the factor by which each spatial axis grows.
      padding: pairs, or "SAME", "VALID"; see `conv_transpose`.
      dimension_numbers: three strings; see `conv_dimension_numbers`.
    """
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    window = [rhs_shape[axis] for axis in rhs_spec[2:]]
    sizes = [
        dilated(lhs_shape[axis], stride)
        for axis, stride in zip(lhs_spec[2:], window_strides, strict=True)
    ]
    if isinstance(padding, str):
        padding = [
            _transposed_pads(extent, stride, padding.upper())
            for extent, stride in zip(window, window_strides, strict=True)
        ]
    spatial = output_sizes(sizes, window, (1,) * len(window), padding)
    shape = (lhs_shape[lhs_spec[0]], rhs_shape[rhs_spec[0]], *spatial)
    return tuple(shape[out_spec.index(axis)] for axis in range(len(out_spec)))


# ---- patches -------------------------------------------------------------------------------------


@boundary
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Extract the patch of the input under each window, as one feature per feature and offset.

    Args:
      lhs: the input.
      filter_shape: spatial sizes of the kernel.
      window_strides: see `conv_general_dilated`, also for the other arguments.

    Returns:
      The output of a convolution, with one feature for each input feature and each element of the
      kernel; the input feature is the major index.
    """
    aval = typeof(lhs)
    filter_shape = integers(filter_shape, "filter_shape")
    kernel_shape = (0, 0, *filter_shape)  # Only the rank of the kernel is used.
    numbers = conv_dimension_numbers(aval.shape, kernel_shape, dimension_numbers)
    features = aval.shape[numbers.lhs_spec[1]]
    offsets = math.prod(filter_shape)
    rows = add(broadcasted_iota(np.int32, (offsets, offsets), 0), np.int32(0))
    columns = broadcasted_iota(np.int32, (offsets, offsets), 1)
    identity = convert(eq(rows, columns), aval.dtype, False)
    kernel = reshape(broadcast(identity, (features,)), (features * offsets, 1, *filter_shape))
    if numbers.rhs_spec != tuple(range(aval.ndim)):
        kernel = transpose(kernel, np.argsort(numbers.rhs_spec).tolist())
    canonical = canonical_precision(precision)
    if type(canonical) is tuple:
        # The kernel consists of zeros and ones, which every precision represents exactly.
        canonical = (canonical[0], Precision.DEFAULT)
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=canonical,
        preferred_element_type=preferred_element_type,
    )


@boundary
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: PrecisionLike | None = None,
) -> Array:
    """Compute a convolution with a separate kernel for each position of the output.

    Args:
      lhs: the input.
      rhs: the kernels, with axes of output features, of input features times kernel offsets (see
        `conv_general_dilated_patches`), and of the spatial axes of the output.
      window_strides: see `conv_general_dilated`, also for the other arguments.
      filter_shape: spatial sizes of a kernel.
    """
    numbers = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        precision,
    )
    _, rhs_spec, out_spec = numbers
    contracting = ((out_spec[1],), (rhs_spec[1],))
    product = dot_general(
        patches, rhs, (contracting, (out_spec[2:], rhs_spec[2:])), precision=precision
    )
    # The product's axes are the spatial ones, then the batch and the output features.
    spatial = len(out_spec) - 2
    kernel_axes = (spatial, spatial + 1, *range(spatial))
    permutation = [0] * len(out_spec)
    for axis, source in zip(out_spec, kernel_axes, strict=True):
        permutation[axis] = source
    return transpose(product, permutation)


# ---- shorthands ----------------------------------------------------------------------------------


@boundary
def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve an input NC.. with a kernel OI...

    Args:
      lhs: the input, with batch, features, then spatial axes.
      rhs: the kernel, with output features, input features, then as many spatial axes.
      window_strides: steps of the kernel along each spatial axis.
      padding: pairs of the padding before and after, one per spatial axis; or "SAME",
        "SAME_LOWER", "VALID".
      precision: the precision of the products.
      preferred_element_type: the dtype of the sums and of the result.

    Raises:
      TypeError: if dtypes or ranks differ.
      ValueError: if sizes do not fit, or `padding` is invalid.

    Example:
      >>> lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((16, 3, 3, 3)), (2, 2), "SAME").shape
      (1, 16, 4, 4)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@boundary
def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve an input NC.. with a kernel OI.., with dilations of both.

    Args:
      lhs: the input, with batch, features, then spatial axes.
      rhs: the kernel, with output features, input features, then as many spatial axes.
      window_strides: steps of the kernel along each spatial axis.
      padding: pairs of the padding before and after, one per spatial axis; or "SAME",
        "SAME_LOWER", "VALID".
      lhs_dilation: the distances between elements of the input; None for 1.
      rhs_dilation: the distances between elements of the kernel; None for 1.
      precision: the precision of the products.
      preferred_element_type: the dtype of the sums and of the result.

    Raises:
      TypeError: if dtypes or ranks differ.
      ValueError: if sizes do not fit, or `padding` is invalid.
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# ---- shapes --------------------------------------------------------------------------------------


@boundary
def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Return the output shape of a convolution of NC.. with OI...

    Args:
      lhs_shape: the shape of the input, dilated.
      rhs_shape: the shape of the kernel, dilated.
      strides: steps of the kernel.
      pads: pairs, or "SAME", "SAME_LOWER", "VALID".
      batch_group_count: see `conv_general_dilated`.

    Raises:
      TypeError: if the numbers of axes differ.

    Example:
      >>> lax.conv_shape_tuple((1, 3, 8, 8), (16, 3, 3, 3), (1, 1), [(1, 1), (0, 0)])
      (1, 16, 8, 6)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    spatial = output_sizes(lhs_shape[2:], rhs_shape[2:], strides, pads)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


@boundary
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Return the output shape of a convolution whose axes are named by three strings.

    Args:
      lhs_shape: the shape of the input, dilated.
      rhs_shape: the shape of the kernel, dilated.
      window_strides: steps of the kernel.
      padding: pairs, or "SAME", "SAME_LOWER", "VALID".
      dimension_numbers: a letter per axis of input, kernel and output, such as ("NHWC", "HWIO",
        "NHWC").

    Raises:
      TypeError: if the numbers of axes differ, or letters are missing, repeated or not equal.

    Example:
      >>> numbers = ("NHWC", "HWIO", "NHWC")
      >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 16), (2, 2), "VALID", numbers)
      (1, 3, 3, 16)
    """
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        tuple(lhs_shape[axis] for axis in lhs_spec),
        tuple(rhs_shape[axis] for axis in rhs_spec),
        window_strides,
        padding,
    )
    return tuple(shape[out_spec.index(axis)] for axis in range(len(out_spec)))
