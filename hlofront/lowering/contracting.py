"""Contractions as StableHLO."""

from typing import Any

import ml_dtypes
import numpy as np

from hlofront.base.dtypes import dtype_of, issubdtype
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import contracting as c
from hlofront.primitives.contracting import DotAlgorithm, DotAlgorithmPreset, Precision

_bfloat16 = np.dtype(ml_dtypes.bfloat16)
_float16, _float32, _float64 = map(np.dtype, ("float16", "float32", "float64"))


BELOW_A_BYTE = ("int1", "int2", "int4", "uint1", "uint2", "uint4")


def dimension_attribute(dimension_numbers: Any) -> Any:
    """#stablehlo.dot of the axes of a contraction."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    fields = (
        ("lhs_batching_dimensions", lhs_batch),
        ("rhs_batching_dimensions", rhs_batch),
        ("lhs_contracting_dimensions", lhs_contracting),
        ("rhs_contracting_dimensions", rhs_contracting),
    )
    body = ", ".join(f"{name} = {list(axes)}" for name, axes in fields if axes)
    return types.attribute(f"#stablehlo.dot<{body}>")


def precision_attribute(precision: Any) -> Any:
    """The precision of each operand; the default where an algorithm says more."""
    pair = precision if type(precision) is tuple else (Precision.DEFAULT, Precision.DEFAULT)
    return types.attribute(
        "[" + ", ".join(f"#stablehlo<precision {one.name}>" for one in pair) + "]"
    )


@lower(c.dot_general_p)
def _(build, lhs, rhs, *, dimension_numbers, precision, **_):
    (a, b), (out,) = build.avals_in, build.avals_out
    result = out
    attributes = {
        "dot_dimension_numbers": dimension_attribute(dimension_numbers),
        "precision_config": precision_attribute(precision),
    }
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset) and (
        precision is not DotAlgorithmPreset.DEFAULT
    ):
        lhs_dtype, rhs_dtype, dtype, algorithm = choose_algorithm(
            precision, a.dtype, b.dtype, out.dtype, "cpu" in build.module.platforms
        )
        attributes["algorithm"] = algorithm
        lhs, rhs = _converted(build, lhs, a, lhs_dtype), _converted(build, rhs, b, rhs_dtype)
        result = out.update(dtype=dtype)
    elif a.dtype != b.dtype and not (_is_float8(a.dtype) and _is_float8(b.dtype)):
        # XLA wants equal dtypes, but for pairs of float8.
        lhs, rhs = _converted(build, lhs, a, out.dtype), _converted(build, rhs, b, out.dtype)
    elif _of_integers(a, out) and not _GPUS.isdisjoint(build.module.platforms):
        # XLA's compiler for GPUs ends the process on such: bytes are summed as integers, of which
        # the GPU has products, and others are rounded first.
        if a.dtype == np.int8:
            result = out.update(dtype=np.dtype(np.int32), weak_type=False)
        else:
            lhs, rhs = _converted(build, lhs, a, out.dtype), _converted(build, rhs, b, out.dtype)
    elif a.dtype != out.dtype:
        lhs, rhs = widened(build, lhs, a), widened(build, rhs, b)
    product = build.op("stablehlo.dot_general", (lhs, rhs), result, **attributes)
    return product if result is out else build.convert(product, out)


_GPUS = frozenset(("cuda", "rocm"))


def _of_integers(aval: ShapedArray, out: ShapedArray) -> bool:
    """Whether a product of integers is wanted in floats."""
    return issubdtype(aval.dtype, np.integer) and not issubdtype(out.dtype, np.integer)


def _converted(build: Any, x: Any, aval: ShapedArray, dtype: Any) -> Any:
    return x if aval.dtype == dtype else build.convert(x, aval.update(dtype=dtype))


def widened(build: Any, x: Any, aval: ShapedArray) -> Any:
    """x, of a byte where it is of less: XLA fails to widen such within an operation."""
    return _converted(build, x, aval, at_least_a_byte(aval.dtype))


def at_least_a_byte(dtype: Any) -> Any:
    """The dtype, or that of a byte for integers of less."""
    if dtype.name not in BELOW_A_BYTE:
        return dtype
    return np.dtype(np.int8 if issubdtype(dtype, np.signedinteger) else np.uint8)


def _is_float8(dtype: Any) -> bool:
    return dtype.name.startswith("float8")


# ---- algorithms ----------------------------------------------------------------------------------

# preset: (what it rounds operands to, sums in, times it multiplies, operand dtypes it takes).
# Dtypes of operands that it does not take are converted to the first.
_PRESETS = {
    "F16_F16_F16": ("f16", "f16", 1, (_float16,)),
    "F16_F16_F32": ("f16", "f32", 1, (_float16,)),
    "BF16_BF16_BF16": ("bf16", "bf16", 1, (_bfloat16, _float32)),
    "BF16_BF16_F32": ("bf16", "f32", 1, (_bfloat16, _float32)),
    "BF16_BF16_F32_X3": ("bf16", "f32", 3, (_float32,)),
    "BF16_BF16_F32_X6": ("bf16", "f32", 6, (_float32,)),
    "BF16_BF16_F32_X9": ("bf16", "f32", 9, (_float32,)),
    "TF32_TF32_F32": ("tf32", "f32", 1, (_float32,)),
    "TF32_TF32_F32_X3": ("tf32", "f32", 3, (_float32,)),
    "F32_F32_F32": ("f32", "f32", 1, (_float32,)),
    "F64_F64_F64": ("f64", "f64", 1, (_float64,)),
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
    precision: Any, lhs: Any, rhs: Any, out: Any, on_cpu: bool
) -> tuple[Any, Any, Any, Any]:
    """The dtypes that an algorithm takes for both operands and gives, and its attribute.

    Raises ValueError if CPUs, where it is for them, or the operands' dtypes do not allow it.
    """
    if on_cpu and not (isinstance(precision, DotAlgorithmPreset) and precision.name in _ON_CPU):
        raise ValueError(
            f"The precision '{precision}' is not supported by dot_general on CPU. There are "
            f"lax.Precision and the presets {', '.join(_ON_CPU)}."
        )
    if isinstance(precision, DotAlgorithm):
        attribute = _algorithm_attribute(
            *(_element_text(dtype) for dtype in precision[:3]),
            *precision[3:6],
            precision.allow_imprecise_accumulation,
        )
        return lhs, rhs, _element_dtype(precision.accumulation_type, out), attribute
    name = precision.name
    if name.startswith("ANY_F8"):
        return _choose_float8(name, lhs, rhs, out)
    rounded, summed, times, accepted = _PRESETS[name]
    lhs, rhs = (dtype if dtype in accepted else accepted[0] for dtype in (lhs, rhs))
    if lhs != rhs:
        lhs = rhs = _float32
    sum_dtype = _DTYPES[summed]
    # Sums may also be given in the operands' dtype.
    dtype = out if out == sum_dtype or (out == lhs and times == 1) else sum_dtype
    return lhs, rhs, dtype, _algorithm_attribute(rounded, rounded, summed, 1, 1, times, False)


def _choose_float8(name: str, lhs: Any, rhs: Any, out: Any) -> tuple[Any, Any, Any, Any]:
    if not (_is_float8(lhs) and _is_float8(rhs)):
        raise ValueError(
            f"The dot algorithm '{name}' requires both inputs to have float8 dtypes. Got {lhs} "
            f"and {rhs} instead."
        )
    attribute = _algorithm_attribute(
        _element_text(lhs), _element_text(rhs), "f32", 1, 1, 1, name.endswith("FAST_ACCUM")
    )
    narrow = out in (_float32, _bfloat16, _float16) or _is_float8(out)
    return lhs, rhs, out if narrow else _float32, attribute


def _algorithm_attribute(lhs, rhs, summed, lhs_count, rhs_count, times, imprecise) -> Any:
    return types.attribute(
        f"#stablehlo.dot_algorithm<lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, "
        f"accumulation_type = {summed}, lhs_component_count = {lhs_count}, "
        f"rhs_component_count = {rhs_count}, num_primitive_operations = {times}, "
        f"allow_imprecise_accumulation = {str(imprecise).lower()}>"
    )


def _element_text(dtype: Any) -> str:
    if isinstance(dtype, str) and dtype.lower() == "tf32":
        return "tf32"
    return str(types.element_type(dtype_of(dtype)))


def _element_dtype(dtype: Any, out: Any) -> Any:
    found = dtype_of(dtype)
    return out if issubdtype(out, np.floating) and found == out else found
