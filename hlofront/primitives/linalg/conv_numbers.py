"""The dimension numbers of convolutions: the roles of axes of the input, kernel and output."""

from collections.abc import Sequence

from hlofront.base.boundary import boundary
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import is_tuple_or_list
from hlofront.core.sizes.dimensions import integers


class ConvDimensionNumbers(NamedTuple):
    """The roles of the axes of a convolution's arrays.

    Args:
      lhs_spec: the input's axes: batch, features, then spatial axes.
      rhs_spec: the kernel's axes: output features, input features, then spatial axes.
      out_spec: the output's axes: batch, features, then spatial axes.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


@boundary
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: object
) -> ConvDimensionNumbers:
    """Return the ConvDimensionNumbers for three strings such as ("NHWC", "HWIO", "NHWC").

    Args:
      lhs_shape: the shape of the input.
      rhs_shape: the shape of the kernel.
      dimension_numbers: None for batch and features first, which is ("NCHW", "OIHW", "NCHW") for
        two spatial axes; a ConvDimensionNumbers; or a letter per axis of input, kernel and output:
        N batch, C features, O output features, I input features, any others for the spatial axes.

    Returns:
      A ConvDimensionNumbers.

    Raises:
      TypeError: if ranks differ, or letters are missing, repeated or not equal.

    Example:
      >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC")).lhs_spec
      (0, 3, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        numbers = ConvDimensionNumbers(
            *(integers(spec, "dimension_numbers") for spec in dimension_numbers)
        )
        ranks = (len(lhs_shape), len(rhs_shape), len(lhs_shape))
        for spec, rank in zip(numbers, ranks, strict=True):
            if sorted(spec) != list(range(rank)):
                raise TypeError(
                    f"convolution dimension_numbers must name each of the axes 0 to {rank - 1} "
                    f"once, got {numbers}."
                )
        return numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError(
            "convolution requires lhs and rhs ndim to be equal, got "
            f"{len(lhs_shape)} and {len(rhs_shape)}."
        )
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    if not is_tuple_or_list(dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers must be tuple/list or None, got "
            f"{type(dimension_numbers)}."
        )
    if len(dimension_numbers) != 3:
        raise TypeError(
            "convolution dimension_numbers list/tuple must be length 3, got "
            f"{len(dimension_numbers)}."
        )
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers elements must be strings, got "
            f"{tuple(map(type, dimension_numbers))}."
        )
    for i, spec in enumerate(dimension_numbers):
        if len(spec) != rank:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and "
                f"rhs, got {len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


@boundary
def conv_general_permutations(
    dimension_numbers: Sequence[str],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the axes of input, kernel and output, as tuples, for three strings of letters.

    Args:
      dimension_numbers: a letter per axis of input, kernel and output, such as ("NHWC", "HWIO",
        "NHWC"): N batch, C features, O output features, I input features, any others for the
        spatial axes.

    Returns:
      Three tuples of axes, each with the batch axis (for the kernel, that of output features), the
      feature axis (input features), and then the spatial axes.

    Raises:
      TypeError: if letters are missing, repeated or not equal.

    Example:
      >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
      ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    for i, (spec, (first, second)) in enumerate(
        zip((lhs, rhs, out), ("NC", "OI", "NC"), strict=True)
    ):
        if spec.count(first) != 1 or spec.count(second) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters '{first}' and "
                f"'{second}' exactly once, got {spec}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(
                f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}."
            )
    spatial = [letter for letter in rhs if letter not in "OI"]
    if not set(lhs) - set("NC") == set(spatial) == set(out) - set("NC"):
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {(lhs, rhs, out)}."
        )
    # Strides and padding follow the kernel's order of the spatial axes.

    def axes(spec: str, kinds: str) -> tuple[int, ...]:
        return tuple([spec.index(letter) for letter in (*kinds, *spatial)])

    return axes(lhs, "NC"), axes(rhs, "OI"), axes(out, "NC")
