"""The time of matrix products by the unit of the device that computes them."""

from collections.abc import Iterator, Mapping
from typing import Any

from hlotools.cost.fusion_needs import fused_computations
from hlotools.cost.kernel_work import work_of
from hlotools.ir.hlo import Instruction
from hlotools.ir.quoted_text import unquoted

_PRODUCTS = frozenset({"dot", "convolution", "scaled-dot", "custom-call"})
_NAMES = {"f64": "float64", "f32": "float32", "bf16": "bfloat16", "f16": "float16"}
# The dtypes of products, and how many of them one product of an algorithm consists of.
_ALGORITHMS = {
    "f16_f16": ("float16", 1),
    "bf16_bf16": ("bfloat16", 1),
    "tf32_tf32": ("tensorfloat32", 1),
    "f32_f32": ("float32", 1),
    "f64_f64": ("float64", 1),
    "any_f8_any_f8": ("float8", 1),
}


def product_seconds(instruction: Instruction, flops: float, peaks: Mapping[str, float]) -> float:
    """Return the least time of a dot, convolution or library call with `flops` operations.

    The program selects the unit by the operands' dtypes, the precision or the algorithm. GPUs
    compute products of float32 in TensorFloat-32, unless the precision is "highest"; TPUs as one
    product of bfloat16, three ("high") or six ("highest").
    """
    if not peaks:
        return 0.0
    if (kernel := work_of(instruction)) is not None:
        return sum(
            count * passes / _rate(_name_of_kernel(dtype, peaks), peaks)
            for (dtype, passes), count in kernel.products.items()
        )
    name, passes = _unit(instruction, peaks)
    rate = _rate(name, peaks)
    return flops * passes / rate


def _unit(instruction: Instruction, peaks: Mapping[str, float]) -> tuple[str, int]:
    """Return the dtype of the unit that computes a product, and the number of its passes."""
    precision, algorithm = _precision_of(instruction)
    if algorithm:
        kind, _, repeated = algorithm.partition("_x")
        parts = kind.rsplit("_", 1)[0]
        name, passes = _ALGORITHMS.get(parts, ("", 1))
        if name:
            return name, int(repeated) if repeated.isdecimal() and len(repeated) < 3 else passes
    dtypes = [operand.shape.dtype for operand in instruction.operands[:2]]
    if set(dtypes) & {"c64", "c128"}:
        dtypes = ["f32" if dtype == "c64" else "f64" for dtype in dtypes]
    names = [_name(dtype) for dtype in dtypes]
    name = min(names, key=lambda each: _rate(each, peaks), default="float32")
    if name != "float32":
        return name, 1
    if "tensorfloat32" in peaks:
        return ("float32" if precision == "highest" else "tensorfloat32"), 1
    if "float32" not in peaks and "bfloat16" in peaks:
        # The bfloat16 parts that make up one float32 are multiplied with each other.
        both = all(operand_dtype == "float32" for operand_dtype in names)
        passes = {"high": (2, 3), "highest": (3, 6)}.get(precision, (1, 1))[both]
        return "bfloat16", passes
    return "float32", 1


def _precision_of(instruction: Instruction) -> tuple[str, str]:
    """Return the precision and the algorithm of a product in lower case, "" for the default."""
    config: Any = instruction.backend_config if instruction.opcode == "custom-call" else None
    gemm = config.get("gemm_backend_config") if isinstance(config, dict) else None
    precision_config = gemm.get("precision_config") if isinstance(gemm, dict) else None
    if isinstance(precision_config, dict):
        listed = precision_config.get("operand_precision")
        precisions = [str(item) for item in listed] if isinstance(listed, list) else []
        algorithm = str(precision_config.get("algorithm", ""))
    else:
        text = instruction.attributes.get("operand_precision", "")
        precisions = text.strip("{}").split(",")
        algorithm = unquoted(instruction.attributes.get("algorithm", ""))
    lower = {each.strip().lower() for each in precisions}
    precision = next((level for level in ("highest", "high") if level in lower), "")
    algorithm = algorithm.lower().removeprefix("alg_").removeprefix("dot_")
    return precision, "" if algorithm == "unset" else algorithm


def _name(dtype: str) -> str:
    """Return the name by which peak rates are listed for an HLO dtype."""
    if dtype in _NAMES:
        return _NAMES[dtype]
    if dtype.startswith("f8"):
        return "float8"
    return "int8" if dtype in ("s8", "u8", "s4", "u4") else dtype


def _name_of_kernel(dtype: str, peaks: Mapping[str, float]) -> str:
    """Return the name of the unit for a dtype of MLIR; TPUs multiply float32 as bfloat16."""
    name = _name(dtype.replace("i", "s", 1).lower())
    return "bfloat16" if name == "float32" and name not in peaks else name


def _rate(name: str, peaks: Mapping[str, float]) -> float:
    """Return the peak rate of a dtype, or the highest rate of all, which is also a bound."""
    units = [peak for key, peak in peaks.items() if key.split(" ")[0] == name]
    if name == "float8" and not units and "bfloat16" in peaks:
        units = [max(peaks.get("bfloat16", 0.0), peaks.get("float16", 0.0))]
    return max(units, default=max(peaks.values()))


def products_in(instruction: Instruction) -> Iterator[tuple[Instruction, int]]:
    """Yield the products of an operation, including those inside fusions, with their runs."""
    if instruction.opcode in _PRODUCTS:
        yield instruction, 1
    for computation, count in fused_computations(instruction):
        for operation in computation.instructions:
            if operation.opcode in _PRODUCTS:
                yield operation, count
