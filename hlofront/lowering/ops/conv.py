"""The lowering rule of conv_general_dilated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.bridge.mlir import Value, ir
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core import types, unknown_sizes
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.dot_general import precision_attribute, widened
from hlofront.primitives.elementwise.families import real_of
from hlofront.primitives.linalg import conv as c

# XLA takes a second for so many positions of a kernel on a dilated input.
_MANY_POSITIONS = 2**26


def _emit(
    build: Builder, lhs: Value, rhs: Value, result: ShapedArray, params: dict[str, Any]
) -> Value:
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    groups = max(params["feature_group_count"], params["batch_group_count"])
    if groups > 1 and lhs_spec != out_spec and _is_partitioned_on_cpu(build):
        # XLA's partitioner mistakes a permutation of these axes for its inverse.
        order = [lhs_spec[out_spec.index(axis)] for axis in range(result.ndim)]
        as_lhs = result.update(
            shape=tuple(result.shape[order.index(i)] for i in range(result.ndim))
        )
        params = {**params, "dimension_numbers": (lhs_spec, rhs_spec, lhs_spec)}
        product = _emit(build, lhs, rhs, as_lhs, params)
        return build.op(
            "stablehlo.transpose", (product,), result, permutation=types.i64_array(order)
        )
    attributes = {
        "window_strides": types.i64_array(params["window_strides"]),
        "lhs_dilation": types.i64_array(params["lhs_dilation"]),
        "rhs_dilation": types.i64_array(params["rhs_dilation"]),
        "window_reversal": types.bool_array([False] * len(params["window_strides"])),
        "dimension_numbers": _dimension_attribute(*params["dimension_numbers"]),
        "feature_group_count": types.i64(params["feature_group_count"]),
        "batch_group_count": types.i64(params["batch_group_count"]),
        "precision_config": precision_attribute(params["precision"]),
    }
    padding: Sequence[tuple[int, int]] = params["padding"]
    if build.module.size_variables and any(map(has_symbolic_size, padding)):
        table = unknown_sizes.pairs(build, padding)
        return build.op("stablehlo.dynamic_conv", (lhs, rhs, table), result, **attributes)
    attributes["padding"] = types.i64_matrix(padding)
    return build.op("stablehlo.convolution", (lhs, rhs), result, **attributes)


def _dimension_attribute(
    lhs_spec: Sequence[int], rhs_spec: Sequence[int], out_spec: Sequence[int]
) -> ir.Attribute:
    lhs, rhs, out = _letters(lhs_spec, "bf"), _letters(rhs_spec, "oi"), _letters(out_spec, "bf")
    return types.attribute(f"#stablehlo.conv<[{lhs}]x[{rhs}]->[{out}]>")


def _letters(spec: Sequence[int], kinds: str) -> str:
    """Return the names of the axes in order: two letters, and numbers for the spatial axes."""
    meanings = [""] * len(spec)
    for axis, meaning in zip(spec, (*kinds, *map(str, range(len(spec) - 2))), strict=True):
        meanings[axis] = meaning
    return ", ".join(meanings)


def _is_partitioned_on_cpu(build: Builder) -> bool:
    """Return whether XLA's CPU partitioner splits the program and its faults are guarded."""
    return build.module.several_devices and build.module.guards_for_cpu


def _is_empty(build: Builder) -> bool:
    """Return whether the convolution sums over no elements, which XLA does not accept."""
    return not all(aval.size for aval in (*build.avals_in, *build.avals_out))


def _check_padding(build: Builder, params: dict[str, Any]) -> None:
    """Raise ValueError for padding that XLA cannot represent; see `types.check_padding`."""
    if not any(map(has_symbolic_size, params["padding"])):
        lhs, lhs_spec = build.avals_in[0], params["dimension_numbers"][0]
        operand = lhs.update(shape=tuple(lhs.shape[axis] for axis in lhs_spec))
        types.check_padding(operand, params["padding"], params["lhs_dilation"])


def _with_padded_operand(
    build: Builder, lhs: Value, params: dict[str, Any]
) -> tuple[Value, dict[str, Any]]:
    """Return the operand and parameters after padding that XLA's CPU compiler gets wrong.

    It reads outside arrays that are cut at one end of an axis and padded at the other. It aborts
    the process if the kernel is longer than the input along one axis, and as long as the dilation
    of the input along another. It counts the positions of kernels on dilated inputs one by one.
    Its partitioner aborts the process if a cut axis is dilated; see `Emitter.pad`.
    """
    padding: list[tuple[int, int]] = list(params["padding"])
    dilation = list(params["lhs_dilation"])
    avals = (*build.avals_in, *build.avals_out)
    if not build.module.guards_for_cpu or any(has_symbolic_size(aval.shape) for aval in avals):
        return lhs, params
    several = build.module.several_devices
    sizes, window, positions = (
        [aval.shape[axis] for axis in spec[2:]]
        for aval, spec in zip(avals, params["dimension_numbers"], strict=True)
    )
    is_longer = any(length > size for length, size in zip(window, sizes, strict=True))
    # XLA would make padding of the input that of the convolution again, unless it is stored first.
    has_many = [
        step > 1 and length * count >= _MANY_POSITIONS
        for step, length, count in zip(dilation, window, positions, strict=True)
    ]
    done_first = [
        is_counted
        or min(pads) < 0 < max(pads)
        or (several and pads[0] < 0 and pads[0] % step != 0)
        or (is_longer and step == length > 1)
        for is_counted, pads, step, length in zip(has_many, padding, dilation, window, strict=True)
    ]
    if not any(done_first):
        return lhs, params
    aval, kernel = build.avals_in
    low, high, interior, shape = [0] * aval.ndim, [0] * aval.ndim, [0] * aval.ndim, [*aval.shape]
    for dimension, axis in enumerate(params["dimension_numbers"][0][2:]):
        before, after = padding[dimension]
        if done_first[dimension]:
            low[axis], high[axis], interior[axis] = before, after, dilation[dimension] - 1
            shape[axis] += before + after + (shape[axis] - 1) * interior[axis]
            padding[dimension], dilation[dimension] = (0, 0), 1
    padded = aval.update(shape=tuple(shape))
    lhs = build.pad(lhs, build.constant(0, aval.dtype), low, high, interior, padded)
    if any(has_many):
        (lhs,) = build.barrier([lhs], [padded])
    build.avals_in = padded, kernel
    return lhs, {**params, "padding": tuple(padding), "lhs_dilation": tuple(dilation)}


@lower(c.conv_general_dilated_p, platform="tpu")
def _convolution_on_tpu(build: Builder, lhs: Value, rhs: Value, **params: object) -> Value:
    (result,) = build.avals_out
    if _is_empty(build):
        return build.full(0, result)
    _check_padding(build, params)
    return _emit(build, lhs, rhs, result, params)


@lower(c.conv_general_dilated_p)
def _(build: Builder, lhs: Value, rhs: Value, **params: object) -> Value:
    (result,) = build.avals_out
    if _is_empty(build):
        return build.full(0, result)
    _check_padding(build, params)
    lhs, params = _with_padded_operand(build, lhs, params)
    if not issubdtype(result.dtype, np.complexfloating):
        if result.dtype != build.avals_in[0].dtype:
            lhs, rhs = (widened(build, x, aval) for x, aval in zip((lhs, rhs), build.avals_in))
        return _emit(build, lhs, rhs, result, params)
    # XLA compiles complex convolutions only for TPUs. Elsewhere compute three real ones (Gauss): (a
    # + bi)(c + di) = c(a + b) - b(c + d) + (c(a + b) + a(d - c))i.
    a_aval, c_aval = (ShapedArray(aval.shape, real_of(aval.dtype)) for aval in build.avals_in)
    out = ShapedArray(result.shape, real_of(result.dtype))
    a, b = build.parts(lhs, a_aval)
    c_, d = build.parts(rhs, c_aval)
    both_left = build.op("stablehlo.add", (a, b), a_aval)
    both_right = build.op("stablehlo.add", (c_, d), c_aval)
    difference = build.op("stablehlo.subtract", (d, c_), c_aval)
    first = _emit(build, both_left, c_, out, params)
    second = _emit(build, b, both_right, out, params)
    third = _emit(build, a, difference, out, params)
    real = build.op("stablehlo.subtract", (first, second), out)
    imag = build.op("stablehlo.add", (first, third), out)
    return build.op("stablehlo.complex", (real, imag), result)
