# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront import Array
from hlofront.base.elements import ExtendedDType
from hlofront.higher_order.cond import cond_p as cond_p
from hlofront.higher_order.linear_solve import custom_linear_solve_p as custom_linear_solve_p
from hlofront.higher_order.linear_solve import linear_solve_p as linear_solve_p
from hlofront.higher_order.platform import composite as composite
from hlofront.higher_order.reduce import reduce_p as reduce_p
from hlofront.higher_order.reduce import reduce_window_p as reduce_window_p
from hlofront.higher_order.reduce import select_and_scatter_p as select_and_scatter_p
from hlofront.higher_order.scan import scan_p as scan_p
from hlofront.higher_order.while_loop import while_p as while_p
from hlofront.lax import linalg as linalg
from hlofront.primitives.arrays.creation import iota_p as iota_p
from hlofront.primitives.arrays.cumulative import cumlogsumexp_p as cumlogsumexp_p
from hlofront.primitives.arrays.cumulative import cummax_p as cummax_p
from hlofront.primitives.arrays.cumulative import cummin_p as cummin_p
from hlofront.primitives.arrays.cumulative import cumprod_p as cumprod_p
from hlofront.primitives.arrays.cumulative import cumsum_p as cumsum_p
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from hlofront.primitives.arrays.dynamic_slicing import (
    dynamic_update_slice_p as dynamic_update_slice_p,
)
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers as GatherDimensionNumbers
from hlofront.primitives.arrays.gathering import GatherScatterMode as GatherScatterMode
from hlofront.primitives.arrays.gathering import gather_p as gather_p
from hlofront.primitives.arrays.reducing import argmax_p as argmax_p
from hlofront.primitives.arrays.reducing import argmin_p as argmin_p
from hlofront.primitives.arrays.reducing import reduce_and_p as reduce_and_p
from hlofront.primitives.arrays.reducing import reduce_max_p as reduce_max_p
from hlofront.primitives.arrays.reducing import reduce_min_p as reduce_min_p
from hlofront.primitives.arrays.reducing import reduce_or_p as reduce_or_p
from hlofront.primitives.arrays.reducing import reduce_prod_p as reduce_prod_p
from hlofront.primitives.arrays.reducing import reduce_sum_p as reduce_sum_p
from hlofront.primitives.arrays.reducing import reduce_xor_p as reduce_xor_p
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers as ScatterDimensionNumbers
from hlofront.primitives.arrays.scattering import scatter_add_p as scatter_add_p
from hlofront.primitives.arrays.scattering import scatter_max_p as scatter_max_p
from hlofront.primitives.arrays.scattering import scatter_min_p as scatter_min_p
from hlofront.primitives.arrays.scattering import scatter_mul_p as scatter_mul_p
from hlofront.primitives.arrays.scattering import scatter_p as scatter_p
from hlofront.primitives.arrays.scattering import scatter_sub_p as scatter_sub_p
from hlofront.primitives.arrays.shaping import broadcast_in_dim_p as broadcast_in_dim_p
from hlofront.primitives.arrays.shaping import reshape_p as reshape_p
from hlofront.primitives.arrays.shaping import rev_p as rev_p
from hlofront.primitives.arrays.shaping import squeeze_p as squeeze_p
from hlofront.primitives.arrays.shaping import transpose_p as transpose_p
from hlofront.primitives.arrays.slicing import concatenate_p as concatenate_p
from hlofront.primitives.arrays.slicing import pad_p as pad_p
from hlofront.primitives.arrays.slicing import slice_p as slice_p
from hlofront.primitives.arrays.slicing import split_p as split_p
from hlofront.primitives.arrays.slicing import stack_p as stack_p
from hlofront.primitives.arrays.slicing import unstack_p as unstack_p
from hlofront.primitives.arrays.sorting import approx_top_k_p as approx_top_k_p
from hlofront.primitives.arrays.sorting import sort_p as sort_p
from hlofront.primitives.arrays.sorting import top_k_p as top_k_p
from hlofront.primitives.arrays.tiling import tile_p as tile_p
from hlofront.primitives.arrays.windowed import reduce_window_max_p as reduce_window_max_p
from hlofront.primitives.arrays.windowed import reduce_window_min_p as reduce_window_min_p
from hlofront.primitives.arrays.windowed import reduce_window_sum_p as reduce_window_sum_p
from hlofront.primitives.arrays.windowed import select_and_gather_add_p as select_and_gather_add_p
from hlofront.primitives.arrays.windowed import select_and_scatter_add_p as select_and_scatter_add_p
from hlofront.primitives.calls.barriers import after_all_p as after_all_p
from hlofront.primitives.calls.barriers import create_token_p as create_token_p
from hlofront.primitives.calls.barriers import dce_sink_p as dce_sink_p
from hlofront.primitives.calls.barriers import optimization_barrier_p as optimization_barrier_p
from hlofront.primitives.collectives.collectives import axis_index_p as axis_index_p
from hlofront.primitives.collectives.collectives import axis_size as axis_size
from hlofront.primitives.collectives.collectives import pmax_p as pmax_p
from hlofront.primitives.collectives.collectives import pmin_p as pmin_p
from hlofront.primitives.collectives.collectives import psum_p as psum_p
from hlofront.primitives.collectives.exchanges import all_gather_p as all_gather_p
from hlofront.primitives.collectives.exchanges import all_to_all_p as all_to_all_p
from hlofront.primitives.collectives.exchanges import ppermute_p as ppermute_p
from hlofront.primitives.collectives.futures import Future
from hlofront.primitives.collectives.ragged_exchanges import (
    ragged_all_to_all_p as ragged_all_to_all_p,
)
from hlofront.primitives.collectives.sending import DescribesArray
from hlofront.primitives.elementwise.compare import eq_p as eq_p
from hlofront.primitives.elementwise.compare import eq_to_p as eq_to_p
from hlofront.primitives.elementwise.compare import ge_p as ge_p
from hlofront.primitives.elementwise.compare import gt_p as gt_p
from hlofront.primitives.elementwise.compare import le_p as le_p
from hlofront.primitives.elementwise.compare import le_to_p as le_to_p
from hlofront.primitives.elementwise.compare import lt_p as lt_p
from hlofront.primitives.elementwise.compare import lt_to_p as lt_to_p
from hlofront.primitives.elementwise.compare import ne_p as ne_p
from hlofront.primitives.elementwise.compare import select_n_p as select_n_p
from hlofront.primitives.elementwise.converting import (
    bitcast_convert_type_p as bitcast_convert_type_p,
)
from hlofront.primitives.elementwise.converting import (
    convert_element_type_p as convert_element_type_p,
)
from hlofront.primitives.elementwise.converting import copy_p as copy_p
from hlofront.primitives.elementwise.converting import reduce_precision_p as reduce_precision_p
from hlofront.primitives.elementwise.converting import stage_p as stage_p
from hlofront.primitives.elementwise.converting import stop_gradient_p as stop_gradient_p
from hlofront.primitives.elementwise.elementwise import AccuracyMode as AccuracyMode
from hlofront.primitives.elementwise.elementwise import RoundingMethod as RoundingMethod
from hlofront.primitives.elementwise.elementwise import Tolerance as Tolerance
from hlofront.primitives.elementwise.elementwise import abs as abs
from hlofront.primitives.elementwise.elementwise import abs_p as abs_p
from hlofront.primitives.elementwise.elementwise import acos_p as acos_p
from hlofront.primitives.elementwise.elementwise import acosh_p as acosh_p
from hlofront.primitives.elementwise.elementwise import add_p as add_p
from hlofront.primitives.elementwise.elementwise import and_p as and_p
from hlofront.primitives.elementwise.elementwise import asin_p as asin_p
from hlofront.primitives.elementwise.elementwise import asinh_p as asinh_p
from hlofront.primitives.elementwise.elementwise import atan2_p as atan2_p
from hlofront.primitives.elementwise.elementwise import atan_p as atan_p
from hlofront.primitives.elementwise.elementwise import atanh_p as atanh_p
from hlofront.primitives.elementwise.elementwise import cbrt_p as cbrt_p
from hlofront.primitives.elementwise.elementwise import ceil_p as ceil_p
from hlofront.primitives.elementwise.elementwise import clamp as clamp
from hlofront.primitives.elementwise.elementwise import clamp_p as clamp_p
from hlofront.primitives.elementwise.elementwise import clz_p as clz_p
from hlofront.primitives.elementwise.elementwise import complex_p as complex_p
from hlofront.primitives.elementwise.elementwise import conj as conj
from hlofront.primitives.elementwise.elementwise import conj_p as conj_p
from hlofront.primitives.elementwise.elementwise import cos_p as cos_p
from hlofront.primitives.elementwise.elementwise import cosh_p as cosh_p
from hlofront.primitives.elementwise.elementwise import div_p as div_p
from hlofront.primitives.elementwise.elementwise import exp2_p as exp2_p
from hlofront.primitives.elementwise.elementwise import exp_p as exp_p
from hlofront.primitives.elementwise.elementwise import expm1_p as expm1_p
from hlofront.primitives.elementwise.elementwise import floor_p as floor_p
from hlofront.primitives.elementwise.elementwise import imag_p as imag_p
from hlofront.primitives.elementwise.elementwise import integer_pow as integer_pow
from hlofront.primitives.elementwise.elementwise import integer_pow_p as integer_pow_p
from hlofront.primitives.elementwise.elementwise import is_finite_p as is_finite_p
from hlofront.primitives.elementwise.elementwise import log1p_p as log1p_p
from hlofront.primitives.elementwise.elementwise import log2_p as log2_p
from hlofront.primitives.elementwise.elementwise import log_p as log_p
from hlofront.primitives.elementwise.elementwise import logistic_p as logistic_p
from hlofront.primitives.elementwise.elementwise import max_p as max_p
from hlofront.primitives.elementwise.elementwise import min_p as min_p
from hlofront.primitives.elementwise.elementwise import mul as mul
from hlofront.primitives.elementwise.elementwise import mul_p as mul_p
from hlofront.primitives.elementwise.elementwise import mulhi as mulhi
from hlofront.primitives.elementwise.elementwise import mulhi_p as mulhi_p
from hlofront.primitives.elementwise.elementwise import neg_p as neg_p
from hlofront.primitives.elementwise.elementwise import nextafter as nextafter
from hlofront.primitives.elementwise.elementwise import nextafter_p as nextafter_p
from hlofront.primitives.elementwise.elementwise import not_p as not_p
from hlofront.primitives.elementwise.elementwise import one_minus_square_p as one_minus_square_p
from hlofront.primitives.elementwise.elementwise import or_p as or_p
from hlofront.primitives.elementwise.elementwise import population_count_p as population_count_p
from hlofront.primitives.elementwise.elementwise import pow as pow
from hlofront.primitives.elementwise.elementwise import pow_p as pow_p
from hlofront.primitives.elementwise.elementwise import real_p as real_p
from hlofront.primitives.elementwise.elementwise import reciprocal as reciprocal
from hlofront.primitives.elementwise.elementwise import rem_p as rem_p
from hlofront.primitives.elementwise.elementwise import round as round
from hlofront.primitives.elementwise.elementwise import round_p as round_p
from hlofront.primitives.elementwise.elementwise import rsqrt_p as rsqrt_p
from hlofront.primitives.elementwise.elementwise import shift_left_p as shift_left_p
from hlofront.primitives.elementwise.elementwise import (
    shift_right_arithmetic_p as shift_right_arithmetic_p,
)
from hlofront.primitives.elementwise.elementwise import (
    shift_right_logical_p as shift_right_logical_p,
)
from hlofront.primitives.elementwise.elementwise import sign_p as sign_p
from hlofront.primitives.elementwise.elementwise import sin_p as sin_p
from hlofront.primitives.elementwise.elementwise import sinh_p as sinh_p
from hlofront.primitives.elementwise.elementwise import sqrt_p as sqrt_p
from hlofront.primitives.elementwise.elementwise import square_p as square_p
from hlofront.primitives.elementwise.elementwise import sub_p as sub_p
from hlofront.primitives.elementwise.elementwise import tan_p as tan_p
from hlofront.primitives.elementwise.elementwise import tanh_p as tanh_p
from hlofront.primitives.elementwise.elementwise import xor_p as xor_p
from hlofront.primitives.elementwise.polynomials import polynomial_p as polynomial_p
from hlofront.primitives.elementwise.special import bessel_i0e_p as bessel_i0e_p
from hlofront.primitives.elementwise.special import bessel_i1e_p as bessel_i1e_p
from hlofront.primitives.elementwise.special import digamma_p as digamma_p
from hlofront.primitives.elementwise.special import erf_inv_p as erf_inv_p
from hlofront.primitives.elementwise.special import erf_p as erf_p
from hlofront.primitives.elementwise.special import erfc_p as erfc_p
from hlofront.primitives.elementwise.special import igamma_grad_a_p as igamma_grad_a_p
from hlofront.primitives.elementwise.special import igamma_p as igamma_p
from hlofront.primitives.elementwise.special import igammac_p as igammac_p
from hlofront.primitives.elementwise.special import lgamma_p as lgamma_p
from hlofront.primitives.elementwise.special import polygamma_p as polygamma_p
from hlofront.primitives.elementwise.special import (
    regularized_incomplete_beta_p as regularized_incomplete_beta_p,
)
from hlofront.primitives.elementwise.special import zeta_p as zeta_p
from hlofront.primitives.linalg.contraction_numbers import (
    DotDimensionNumbers as DotDimensionNumbers,
)
from hlofront.primitives.linalg.conv import conv_general_dilated_p as conv_general_dilated_p
from hlofront.primitives.linalg.conv_numbers import ConvDimensionNumbers as ConvDimensionNumbers
from hlofront.primitives.linalg.conv_numbers import (
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
)
from hlofront.primitives.linalg.dot_general import DotAlgorithm as DotAlgorithm
from hlofront.primitives.linalg.dot_general import DotAlgorithmPreset as DotAlgorithmPreset
from hlofront.primitives.linalg.dot_general import Precision as Precision
from hlofront.primitives.linalg.dot_general import PrecisionLike as PrecisionLike
from hlofront.primitives.linalg.dot_general import dot_general_p as dot_general_p
from hlofront.primitives.linalg.fourier import FftType as FftType
from hlofront.primitives.linalg.fourier import fft_p as fft_p
from hlofront.primitives.linalg.ragged_dot import (
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
)
from hlofront.primitives.random.bits import RandomAlgorithm as RandomAlgorithm
from hlofront.primitives.random.bits import rng_bit_generator_p as rng_bit_generator_p
from hlofront.primitives.random.bits import rng_uniform_p as rng_uniform_p
from hlofront.primitives.sharding.placing import device_put_p as device_put_p
from hlofront.primitives.sharding.placing import sharding_constraint_p as sharding_constraint_p
from hlofront.typing import ArrayLike, DTypeLike

_T = TypeVar("_T")
_Carry = TypeVar("_Carry")

def acos(x: ArrayLike) -> Array: ...
def acosh(x: ArrayLike) -> Array: ...
def add(x: ArrayLike, y: ArrayLike) -> Array: ...
def after_all(*operands: object) -> Any: ...
def all_gather(
    x: object,
    axis_name: object,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any: ...
def all_to_all(
    x: object,
    axis_name: object,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any: ...
def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]: ...
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]: ...
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array: ...
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array: ...
def asin(x: ArrayLike) -> Array: ...
def asinh(x: ArrayLike) -> Array: ...
def associative_scan(
    fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any: ...
def atan(x: ArrayLike) -> Array: ...
def atan2(x: ArrayLike, y: ArrayLike) -> Array: ...
def atanh(x: ArrayLike) -> Array: ...
def axis_index(axis_name: object) -> Any: ...
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array: ...
def bessel_i0e(x: ArrayLike) -> Array: ...
def bessel_i1e(x: ArrayLike) -> Array: ...
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array: ...
def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array: ...
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array: ...
def bitwise_not(x: ArrayLike) -> Array: ...
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array: ...
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array: ...
def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: object = None
) -> Array: ...
def broadcast_in_dim(
    operand: ArrayLike,
    shape: int | Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: object = None,
) -> Array: ...
def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array: ...
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]: ...
def broadcast_to_rank(x: ArrayLike, rank: int) -> Array: ...
def broadcasted_iota(
    dtype: DTypeLike, shape: int | Sequence[int], dimension: int, *, out_sharding: object = None
) -> Array: ...
def cbrt(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def ceil(x: ArrayLike) -> Array: ...
def clz(x: ArrayLike) -> Array: ...
def collapse(
    operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None
) -> Array: ...
def complex(x: ArrayLike, y: ArrayLike) -> Array: ...
def concatenate(operands: object, dimension: int) -> Array: ...
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: ArrayLike = ...,
) -> Any: ...
def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: object
) -> ConvDimensionNumbers: ...
def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array: ...
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: PrecisionLike = None,
) -> Array: ...
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def conv_general_permutations(dimension_numbers: Sequence[str]) -> Any: ...
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> Any: ...
def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]: ...
def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array: ...
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> Any: ...
def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array: ...
def cos(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def cosh(x: ArrayLike) -> Array: ...
def create_token(_: object = None) -> Any: ...
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...
def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...
def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...
def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...
def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any: ...
def custom_root(
    f: Callable[..., Any],
    initial_guess: Any,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any: ...
def dce_sink(val: object, *, prevent_mlir_dce: bool = False) -> Any: ...
def digamma(x: ArrayLike) -> Array: ...
def div(x: ArrayLike, y: ArrayLike) -> Array: ...
def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: tuple[
        tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
    ]
    | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array: ...
def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: tuple[
        tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
    ]
    | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array: ...
def dtype(x: DTypeLike) -> np.dtype[Any] | ExtendedDType: ...
def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array: ...
def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array: ...
def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array: ...
def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array: ...
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array: ...
def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array: ...
def empty(
    shape: int | Sequence[int], dtype: DTypeLike, *, out_sharding: object = None
) -> Array: ...
def eq(x: ArrayLike, y: ArrayLike) -> Array: ...
def erf(x: ArrayLike) -> Array: ...
def erf_inv(x: ArrayLike) -> Array: ...
def erfc(x: ArrayLike) -> Array: ...
def exp(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def exp2(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array: ...
def expm1(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def fft(x: ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> ArrayLike: ...
def floor(x: ArrayLike) -> Array: ...
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Array, _Carry], _Carry],
    init_val: _Carry,
    *,
    unroll: int | bool | None = None,
) -> _Carry: ...
def full(
    shape: int | Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: object = None,
) -> Array: ...
def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    sharding: object = None,
) -> Array: ...
def gather(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
def ge(x: ArrayLike, y: ArrayLike) -> Array: ...
def gt(x: ArrayLike, y: ArrayLike) -> Array: ...
def igamma(a: ArrayLike, x: ArrayLike) -> Array: ...
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array: ...
def igammac(a: ArrayLike, x: ArrayLike) -> Array: ...
def imag(x: ArrayLike) -> Array: ...
def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array: ...
def index_take(src: ArrayLike, idxs: object, axes: Sequence[int]) -> Array: ...
def iota(dtype: DTypeLike, size: int) -> Array: ...
def is_finite(x: ArrayLike) -> Array: ...
def le(x: ArrayLike, y: ArrayLike) -> Array: ...
def lgamma(x: ArrayLike) -> Array: ...
def log(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def log1p(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def log2(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def logistic(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def lt(x: ArrayLike, y: ArrayLike) -> Array: ...
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any: ...
def max(x: ArrayLike, y: ArrayLike) -> Array: ...
def min(x: ArrayLike, y: ArrayLike) -> Array: ...
def ne(x: ArrayLike, y: ArrayLike) -> Array: ...
def neg(x: ArrayLike) -> Array: ...
def one_minus_square(x: ArrayLike) -> Array: ...
def optimization_barrier(operand: _T, /) -> _T: ...
def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[Sequence[int]]
) -> Array: ...
def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> list[tuple[int, int]]: ...
def pbroadcast(x: object, axis_name: object, source: int) -> Array: ...
def pcast(x: object, axis_name: object, *, to: str) -> Array: ...
def platform_dependent(
    *args: object, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any: ...
def pmax(
    x: object, axis_name: object, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any: ...
def pmean(
    x: object, axis_name: object, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any: ...
def pmin(
    x: object, axis_name: object, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any: ...
def polygamma(m: ArrayLike, x: ArrayLike) -> Array: ...
def polynomial(
    x: ArrayLike, coeffs: Iterable[ArrayLike], *, unroll: int | None = None
) -> Array: ...
def population_count(x: ArrayLike) -> Array: ...
def ppermute(x: object, axis_name: object, perm: Sequence[tuple[int, int]]) -> Any: ...
def precv(
    token: object, out_shape: DescribesArray, axis_name: object, perm: Sequence[tuple[int, int]]
) -> Array: ...
def psend(x: object, axis_name: object, perm: Sequence[tuple[int, int]]) -> Array: ...
def pshuffle(x: object, axis_name: object, perm: Sequence[int]) -> Any: ...
def psum(
    x: object, axis_name: object, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any: ...
def psum_scatter(
    x: object,
    axis_name: object,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any: ...
def psum_scatter_start(
    x: ArrayLike,
    axis_name: object,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Future: ...
def pswapaxes(
    x: object,
    axis_name: object,
    axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Any: ...
def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: object,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Array: ...
def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array: ...
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array: ...
def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array: ...
def real(x: ArrayLike) -> Array: ...
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[..., Any],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> Any: ...
def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_max(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None
) -> Array: ...
def reduce_min(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None
) -> Array: ...
def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array: ...
def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None
) -> Array: ...
def reduce_window(
    operand: ArrayLike,
    init_value: ArrayLike,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any: ...
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any: ...
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def rem(x: ArrayLike, y: ArrayLike) -> Array: ...
def reshape(
    operand: ArrayLike,
    new_sizes: int | Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: object = None,
) -> Array: ...
def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array: ...
def rng_bit_generator(
    key: ArrayLike,
    shape: int | Sequence[int],
    dtype: DTypeLike = ...,
    algorithm: str | int | RandomAlgorithm = ...,
    *,
    out_sharding: object = None,
) -> Any: ...
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: int | Sequence[int]) -> Array: ...
def rsqrt(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: tuple[
        tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
    ]
    | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def scan(
    f: Callable[..., tuple[Any, Any]],
    init: _Carry,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[_Carry, Any]: ...
def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: int | Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array: ...
def select_n(which: object, *cases: ArrayLike) -> Array: ...
def shape_as_value(shape: int | Sequence[int]) -> np.ndarray: ...
def shift_left(x: ArrayLike, y: ArrayLike) -> Array: ...
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array: ...
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array: ...
def sign(x: ArrayLike) -> Array: ...
def sin(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def sinh(x: ArrayLike) -> Array: ...
def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array: ...
def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array: ...
def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Any: ...
def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]: ...
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Array]: ...
def sqrt(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def square(x: ArrayLike) -> Array: ...
def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array: ...
def stack(operands: object, axis: int = 0) -> Array: ...
def stage(x: ArrayLike, /) -> Array: ...
def stop_gradient(x: _T) -> _T: ...
def sub(x: ArrayLike, y: ArrayLike) -> Array: ...
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: ArrayLike = ...,
) -> Any: ...
def tan(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def tanh(x: ArrayLike, *, accuracy: object = None) -> Array: ...
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array: ...
def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]: ...
def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray) -> Array: ...
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]: ...
def while_loop(
    cond_fun: Callable[[_Carry], ArrayLike], body_fun: Callable[[_Carry], _Carry], init_val: _Carry
) -> _Carry: ...
def with_sharding_constraint(x: object, shardings: object) -> Array: ...
def zeta(x: ArrayLike, q: ArrayLike) -> Array: ...
