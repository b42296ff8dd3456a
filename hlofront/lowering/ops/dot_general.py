"""The lowering rule of dot_general."""

import math
from typing import cast

import ml_dtypes
import numpy as np

from hlofront.base.caches import memoize
from hlofront.base.dtypes import dtype_of, issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import DType, DTypeLike
from hlofront.bridge.mlir import Value, ir
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.types import NumPyDType
from hlofront.primitives.linalg import dot_general as c
from hlofront.primitives.linalg.contraction_numbers import DotDimensionNumbers
from hlofront.primitives.linalg.dot_general import DotAlgorithm, DotAlgorithmPreset, Precision

_bfloat16 = np.dtype(ml_dtypes.bfloat16)
_float16, _float32, _float64 = map(np.dtype, ("float16", "float32", "float64"))


BELOW_A_BYTE = ("int1", "int2", "int4", "uint1", "uint2", "uint4")


@memoize
def dimension_attribute(dimension_numbers: DotDimensionNumbers) -> ir.Attribute:
    """Return the dimension numbers of a dot as an MLIR attribute, `#stablehlo.dot`."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    fields = (
        ("lhs_batching_dimensions", lhs_batch),
        ("rhs_batching_dimensions", rhs_batch),
        ("lhs_contracting_dimensions", lhs_contracting),
        ("rhs_contracting_dimensions", rhs_contracting),
    )
    body = ", ".join(f"{name} = {list(axes)}" for name, axes in fields if axes)
    return types.attribute(f"#stablehlo.dot<{body}>")


def precisions(precision: object) -> tuple[Precision, Precision]:
    """Return the precision of each operand; DEFAULT if `precision` is an algorithm."""
    if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
        return cast(tuple[Precision, Precision], precision)
    return Precision.DEFAULT, Precision.DEFAULT


@memoize
def precision_attribute(precision: object) -> ir.Attribute:
    """Return the precision of each operand as an MLIR attribute."""
    names = [f"#stablehlo<precision {one.name}>" for one in precisions(precision)]
    return types.attribute(f"[{', '.join(names)}]")


@lower(c.dot_general_p)
def _(
    build: Builder,
    lhs: Value,
    rhs: Value,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: object,
    **_: object,
) -> Value:
    (a, b), (out,) = build.avals_in, build.avals_out
    result = out
    as_they_are = build.module.platforms == ("tpu",) and _multiplied_by_tpus(a, b)
    attributes = {
        "dot_dimension_numbers": dimension_attribute(dimension_numbers),
        "precision_config": precision_attribute(precision),
    }
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset) and (
        precision is not DotAlgorithmPreset.DEFAULT
    ):
        algorithm = choose_algorithm(
            precision, a.dtype, b.dtype, out.dtype, "cpu" in build.module.platforms, as_they_are
        )
        attributes["algorithm"] = algorithm.attribute
        lhs = _converted(build, lhs, a, algorithm.lhs)
        rhs = _converted(build, rhs, b, algorithm.rhs)
        result = out.update(dtype=algorithm.out)
    elif as_they_are:
        pass  # TPUs have units for all of these, and their compiler chooses one.
    elif a.dtype != b.dtype and not (_is_float8(a.dtype) and _is_float8(b.dtype)):
        # XLA requires equal dtypes elsewhere, except for pairs of float8.
        lhs, rhs = _converted(build, lhs, a, out.dtype), _converted(build, rhs, b, out.dtype)
    elif issubdtype(a.dtype, np.integer) and not _GPUS.isdisjoint(build.module.platforms):
        if not _multiplied_by_gpus(a, dimension_numbers):
            lhs, rhs = _converted(build, lhs, a, out.dtype), _converted(build, rhs, b, out.dtype)
        elif not issubdtype(out.dtype, np.integer):
            # XLA's compiler for GPUs aborts the process on integer dots with float results.
            result = out.update(dtype=np.dtype(np.int32), weak_type=False)
    elif a.dtype != out.dtype:
        lhs, rhs = widened(build, lhs, a), widened(build, rhs, b)
    if _is_of_long_rows(build, result, dimension_numbers) and "algorithm" not in attributes:
        product = _exchanged(build, lhs, rhs, result, dimension_numbers, precisions(precision))
    else:
        product = build.op("stablehlo.dot_general", (lhs, rhs), result, **attributes)
    return product if result is out else build.convert(product, out)


_LONG_ROW = 2**31


def _is_of_long_rows(
    build: Builder, result: ShapedArray, dimension_numbers: DotDimensionNumbers
) -> bool:
    """Return whether a product has single rows with enough columns for XLA to abort the process.

    XLA's CPU compiler represents the size of such a row in 32 bits.
    """
    if has_symbolic_size(result.shape) or result.size < _LONG_ROW:
        return False
    (contracting, _), (batch, _) = dimension_numbers
    rows = build.avals_in[0].ndim - len(contracting)
    columns = math.prod(result.shape[rows:])
    is_one_row = math.prod(result.shape[len(batch) : rows]) == 1
    return build.module.guards_for_cpu and is_one_row and columns >= _LONG_ROW


def _exchanged(
    build: Builder,
    lhs: Value,
    rhs: Value,
    result: ShapedArray,
    dimension_numbers: DotDimensionNumbers,
    precision: tuple[Precision, Precision],
) -> Value:
    """Return the product of two operands as the transposed product of exchanged operands."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = (rhs_contracting, lhs_contracting), (rhs_batch, lhs_batch)
    batch, rows = len(lhs_batch), build.avals_in[0].ndim - len(lhs_contracting)
    axes = [*range(batch), *range(rows, result.ndim), *range(batch, rows)]
    product = build.op(
        "stablehlo.dot_general",
        (rhs, lhs),
        result.update(shape=tuple(result.shape[axis] for axis in axes)),
        dot_dimension_numbers=dimension_attribute(numbers),
        precision_config=precision_attribute(precision[::-1]),
    )
    return build.op(
        "stablehlo.transpose",
        (product,),
        result,
        permutation=types.i64_array([axes.index(axis) for axis in range(result.ndim)]),
    )


_GPUS = frozenset(("cuda", "rocm"))


def _multiplied_by_tpus(*avals: ShapedArray) -> bool:
    """Return whether TPUs multiply operands of two dtypes directly: real ones of up to 32 bits."""
    dtypes = {aval.dtype for aval in avals}
    return len(dtypes) == 1 or all(
        dtype.itemsize <= 4 and not issubdtype(dtype, np.complexfloating) for dtype in dtypes
    )


def _multiplied_by_gpus(lhs: ShapedArray, dimension_numbers: DotDimensionNumbers) -> bool:
    """Return whether XLA's products of such integers are correct on GPUs without conversion.

    There is only a kernel for bytes, used only for signed ones. With jaxlib 0.11.2 its results are
    twice as large as they should be if the contracted size is not a multiple of 4.
    """
    (contracting, _), _ = dimension_numbers
    size = math.prod(lhs.shape[axis] for axis in contracting)
    return lhs.dtype == np.int8 and size % 4 == 0


def _converted(build: Builder, x: Value, aval: ShapedArray, dtype: DType) -> Value:
    return x if aval.dtype == dtype else build.convert(x, aval.update(dtype=dtype))


def widened(build: Builder, x: Value, aval: ShapedArray) -> Value:
    """Return x with integers below a byte widened to a byte, which XLA requires."""
    return _converted(build, x, aval, at_least_a_byte(aval.dtype))


def at_least_a_byte(dtype: DType) -> DType:
    """Return the dtype, or int8 or uint8 for integers of less than a byte."""
    if dtype.name not in BELOW_A_BYTE:
        return dtype
    return np.dtype(np.int8 if issubdtype(dtype, np.signedinteger) else np.uint8)


def _is_float8(dtype: DType) -> bool:
    return dtype.name.startswith("float8")


# ---- algorithms ----------------------------------------------------------------------------------


class _Preset(NamedTuple):
    """An algorithm preset: the operands' and accumulator's types, and the number of products.

    Operands of dtypes that are not accepted are converted to the first accepted one.
    """

    rounded: str
    summed: str
    times: int
    accepted: tuple[NumPyDType, ...]


class ChosenAlgorithm(NamedTuple):
    """The operand and result dtypes of a dot algorithm, and its MLIR attribute."""

    lhs: DType
    rhs: DType
    out: DType
    attribute: ir.Attribute


_PRESETS = {
    "F16_F16_F16": _Preset("f16", "f16", 1, (_float16,)),
    "F16_F16_F32": _Preset("f16", "f32", 1, (_float16,)),
    "BF16_BF16_BF16": _Preset("bf16", "bf16", 1, (_bfloat16, _float32)),
    "BF16_BF16_F32": _Preset("bf16", "f32", 1, (_bfloat16, _float32)),
    "BF16_BF16_F32_X3": _Preset("bf16", "f32", 3, (_float32,)),
    "BF16_BF16_F32_X6": _Preset("bf16", "f32", 6, (_float32,)),
    "BF16_BF16_F32_X9": _Preset("bf16", "f32", 9, (_float32,)),
    "TF32_TF32_F32": _Preset("tf32", "f32", 1, (_float32,)),
    "TF32_TF32_F32_X3": _Preset("tf32", "f32", 3, (_float32,)),
    "F32_F32_F32": _Preset("f32", "f32", 1, (_float32,)),
    "F64_F64_F64": _Preset("f64", "f64", 1, (_float64,)),
}
_DTYPES = {"f16": _float16, "bf16": _bfloat16, "f32": _float32, "f64": _float64}
_ON_CPU = (
    "F16_F16_F16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "F32_F32_F32",
    "F64_F64_F64",
)


def choose_algorithm(
    precision: DotAlgorithm | DotAlgorithmPreset,
    lhs: DType,
    rhs: DType,
    out: DType,
    on_cpu: bool,
    may_differ: bool = False,
) -> ChosenAlgorithm:
    """Return the dtypes and the attribute of a dot's algorithm for these operands and result.

    Args:
      precision: the algorithm, or a preset.
      lhs, rhs, out: the dtypes of the operands and the result.
      on_cpu: whether it is for CPUs, which support few algorithms.
      may_differ: whether the operands may have different dtypes.

    Raises:
      ValueError: if CPUs or the operands' dtypes do not support the algorithm.
    """
    if on_cpu and not (isinstance(precision, DotAlgorithmPreset) and precision.name in _ON_CPU):
        raise ValueError(
            f"The precision '{precision}' is not supported by dot_general on CPU. There are "
            f"lax.Precision and the presets {', '.join(_ON_CPU)}."
        )
    if isinstance(precision, DotAlgorithm):
        attribute = _algorithm_attribute(
            precision._replace(
                lhs_precision_type=_element_text(precision.lhs_precision_type),
                rhs_precision_type=_element_text(precision.rhs_precision_type),
                accumulation_type=_element_text(precision.accumulation_type),
            )
        )
        summed_dtype = _element_dtype(precision.accumulation_type, out)
        return ChosenAlgorithm(lhs, rhs, summed_dtype, attribute)
    name = precision.name
    if name.startswith("ANY_F8"):
        return _choose_float8(name, lhs, rhs, out)
    preset = _PRESETS[name]
    accepted = preset.accepted
    lhs, rhs = (dtype if dtype in accepted else accepted[0] for dtype in (lhs, rhs))
    if lhs != rhs and not may_differ:
        lhs = rhs = _float32
    sum_dtype = _DTYPES[preset.summed]
    # The result may also have the operands' dtype.
    dtype = out if out == sum_dtype or (out == lhs and preset.times == 1) else sum_dtype
    algorithm = DotAlgorithm(
        preset.rounded, preset.rounded, preset.summed, num_primitive_operations=preset.times
    )
    return ChosenAlgorithm(lhs, rhs, dtype, _algorithm_attribute(algorithm))


def _choose_float8(name: str, lhs: DType, rhs: DType, out: DType) -> ChosenAlgorithm:
    if not (_is_float8(lhs) and _is_float8(rhs)):
        raise ValueError(
            f"The dot algorithm '{name}' requires both inputs to have float8 dtypes. Got {lhs} "
            f"and {rhs} instead."
        )
    algorithm = DotAlgorithm(
        _element_text(lhs),
        _element_text(rhs),
        "f32",
        allow_imprecise_accumulation=name.endswith("FAST_ACCUM"),
    )
    narrow = out in (_float32, _bfloat16, _float16) or _is_float8(out)
    return ChosenAlgorithm(lhs, rhs, out if narrow else _float32, _algorithm_attribute(algorithm))


def _algorithm_attribute(algorithm: DotAlgorithm) -> ir.Attribute:
    """Return a dot algorithm as an MLIR attribute, with its types as names of element types."""
    return types.attribute(
        f"#stablehlo.dot_algorithm<lhs_precision_type = {algorithm.lhs_precision_type}, "
        f"rhs_precision_type = {algorithm.rhs_precision_type}, "
        f"accumulation_type = {algorithm.accumulation_type}, "
        f"lhs_component_count = {algorithm.lhs_component_count}, "
        f"rhs_component_count = {algorithm.rhs_component_count}, "
        f"num_primitive_operations = {algorithm.num_primitive_operations}, "
        "allow_imprecise_accumulation = "
        f"{str(algorithm.allow_imprecise_accumulation).lower()}>"
    )


def _element_text(dtype: DTypeLike | DType) -> str:
    if isinstance(dtype, str) and dtype.lower() == "tf32":
        return "tf32"
    return str(types.element_type(dtype_of(dtype)))


def _element_dtype(dtype: DTypeLike, out: DType) -> DType:
    summed = dtype_of(dtype)
    return out if issubdtype(out, np.floating) and summed == out else summed
