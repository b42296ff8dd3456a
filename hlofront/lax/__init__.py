"""jax.lax: the operations of XLA under their own names, strict about dtypes and shapes."""

# ---- elementwise
from hlofront.base.lazy import lazy as _lazy
from hlofront.primitives.elementwise.elementwise import AccuracyMode as AccuracyMode
from hlofront.primitives.elementwise.elementwise import RoundingMethod as RoundingMethod
from hlofront.primitives.elementwise.elementwise import Tolerance as Tolerance
from hlofront.primitives.elementwise.elementwise import abs as abs
from hlofront.primitives.elementwise.elementwise import abs_p as abs_p
from hlofront.primitives.elementwise.elementwise import acos as acos
from hlofront.primitives.elementwise.elementwise import acos_p as acos_p
from hlofront.primitives.elementwise.elementwise import acosh as acosh
from hlofront.primitives.elementwise.elementwise import acosh_p as acosh_p
from hlofront.primitives.elementwise.elementwise import add as add
from hlofront.primitives.elementwise.elementwise import add_p as add_p
from hlofront.primitives.elementwise.elementwise import and_p as and_p
from hlofront.primitives.elementwise.elementwise import asin as asin
from hlofront.primitives.elementwise.elementwise import asin_p as asin_p
from hlofront.primitives.elementwise.elementwise import asinh as asinh
from hlofront.primitives.elementwise.elementwise import asinh_p as asinh_p
from hlofront.primitives.elementwise.elementwise import atan as atan
from hlofront.primitives.elementwise.elementwise import atan2 as atan2
from hlofront.primitives.elementwise.elementwise import atan2_p as atan2_p
from hlofront.primitives.elementwise.elementwise import atan_p as atan_p
from hlofront.primitives.elementwise.elementwise import atanh as atanh
from hlofront.primitives.elementwise.elementwise import atanh_p as atanh_p
from hlofront.primitives.elementwise.elementwise import bitwise_and as bitwise_and
from hlofront.primitives.elementwise.elementwise import bitwise_not as bitwise_not
from hlofront.primitives.elementwise.elementwise import bitwise_or as bitwise_or
from hlofront.primitives.elementwise.elementwise import bitwise_xor as bitwise_xor
from hlofront.primitives.elementwise.elementwise import cbrt as cbrt
from hlofront.primitives.elementwise.elementwise import cbrt_p as cbrt_p
from hlofront.primitives.elementwise.elementwise import ceil as ceil
from hlofront.primitives.elementwise.elementwise import ceil_p as ceil_p
from hlofront.primitives.elementwise.elementwise import clamp as clamp
from hlofront.primitives.elementwise.elementwise import clamp_p as clamp_p
from hlofront.primitives.elementwise.elementwise import clz as clz
from hlofront.primitives.elementwise.elementwise import clz_p as clz_p
from hlofront.primitives.elementwise.elementwise import complex as complex
from hlofront.primitives.elementwise.elementwise import complex_p as complex_p
from hlofront.primitives.elementwise.elementwise import conj as conj
from hlofront.primitives.elementwise.elementwise import conj_p as conj_p
from hlofront.primitives.elementwise.elementwise import cos as cos
from hlofront.primitives.elementwise.elementwise import cos_p as cos_p
from hlofront.primitives.elementwise.elementwise import cosh as cosh
from hlofront.primitives.elementwise.elementwise import cosh_p as cosh_p
from hlofront.primitives.elementwise.elementwise import div as div
from hlofront.primitives.elementwise.elementwise import div_p as div_p
from hlofront.primitives.elementwise.elementwise import exp as exp
from hlofront.primitives.elementwise.elementwise import exp2 as exp2
from hlofront.primitives.elementwise.elementwise import exp2_p as exp2_p
from hlofront.primitives.elementwise.elementwise import exp_p as exp_p
from hlofront.primitives.elementwise.elementwise import expm1 as expm1
from hlofront.primitives.elementwise.elementwise import expm1_p as expm1_p
from hlofront.primitives.elementwise.elementwise import floor as floor
from hlofront.primitives.elementwise.elementwise import floor_p as floor_p
from hlofront.primitives.elementwise.elementwise import imag as imag
from hlofront.primitives.elementwise.elementwise import imag_p as imag_p
from hlofront.primitives.elementwise.elementwise import integer_pow as integer_pow
from hlofront.primitives.elementwise.elementwise import integer_pow_p as integer_pow_p
from hlofront.primitives.elementwise.elementwise import is_finite as is_finite
from hlofront.primitives.elementwise.elementwise import is_finite_p as is_finite_p
from hlofront.primitives.elementwise.elementwise import log as log
from hlofront.primitives.elementwise.elementwise import log1p as log1p
from hlofront.primitives.elementwise.elementwise import log1p_p as log1p_p
from hlofront.primitives.elementwise.elementwise import log2 as log2
from hlofront.primitives.elementwise.elementwise import log2_p as log2_p
from hlofront.primitives.elementwise.elementwise import log_p as log_p
from hlofront.primitives.elementwise.elementwise import logistic as logistic
from hlofront.primitives.elementwise.elementwise import logistic_p as logistic_p
from hlofront.primitives.elementwise.elementwise import max as max
from hlofront.primitives.elementwise.elementwise import max_p as max_p
from hlofront.primitives.elementwise.elementwise import min as min
from hlofront.primitives.elementwise.elementwise import min_p as min_p
from hlofront.primitives.elementwise.elementwise import mul as mul
from hlofront.primitives.elementwise.elementwise import mul_p as mul_p
from hlofront.primitives.elementwise.elementwise import mulhi as mulhi
from hlofront.primitives.elementwise.elementwise import mulhi_p as mulhi_p
from hlofront.primitives.elementwise.elementwise import neg as neg
from hlofront.primitives.elementwise.elementwise import neg_p as neg_p
from hlofront.primitives.elementwise.elementwise import nextafter as nextafter
from hlofront.primitives.elementwise.elementwise import nextafter_p as nextafter_p
from hlofront.primitives.elementwise.elementwise import not_p as not_p
from hlofront.primitives.elementwise.elementwise import one_minus_square as one_minus_square
from hlofront.primitives.elementwise.elementwise import one_minus_square_p as one_minus_square_p
from hlofront.primitives.elementwise.elementwise import or_p as or_p
from hlofront.primitives.elementwise.elementwise import population_count as population_count
from hlofront.primitives.elementwise.elementwise import population_count_p as population_count_p
from hlofront.primitives.elementwise.elementwise import pow as pow
from hlofront.primitives.elementwise.elementwise import pow_p as pow_p
from hlofront.primitives.elementwise.elementwise import real as real
from hlofront.primitives.elementwise.elementwise import real_p as real_p
from hlofront.primitives.elementwise.elementwise import reciprocal as reciprocal
from hlofront.primitives.elementwise.elementwise import rem as rem
from hlofront.primitives.elementwise.elementwise import rem_p as rem_p
from hlofront.primitives.elementwise.elementwise import round as round
from hlofront.primitives.elementwise.elementwise import round_p as round_p
from hlofront.primitives.elementwise.elementwise import rsqrt as rsqrt
from hlofront.primitives.elementwise.elementwise import rsqrt_p as rsqrt_p
from hlofront.primitives.elementwise.elementwise import shift_left as shift_left
from hlofront.primitives.elementwise.elementwise import shift_left_p as shift_left_p
from hlofront.primitives.elementwise.elementwise import (
    shift_right_arithmetic as shift_right_arithmetic,
)
from hlofront.primitives.elementwise.elementwise import (
    shift_right_arithmetic_p as shift_right_arithmetic_p,
)
from hlofront.primitives.elementwise.elementwise import shift_right_logical as shift_right_logical
from hlofront.primitives.elementwise.elementwise import (
    shift_right_logical_p as shift_right_logical_p,
)
from hlofront.primitives.elementwise.elementwise import sign as sign
from hlofront.primitives.elementwise.elementwise import sign_p as sign_p
from hlofront.primitives.elementwise.elementwise import sin as sin
from hlofront.primitives.elementwise.elementwise import sin_p as sin_p
from hlofront.primitives.elementwise.elementwise import sinh as sinh
from hlofront.primitives.elementwise.elementwise import sinh_p as sinh_p
from hlofront.primitives.elementwise.elementwise import sqrt as sqrt
from hlofront.primitives.elementwise.elementwise import sqrt_p as sqrt_p
from hlofront.primitives.elementwise.elementwise import square as square
from hlofront.primitives.elementwise.elementwise import square_p as square_p
from hlofront.primitives.elementwise.elementwise import sub as sub
from hlofront.primitives.elementwise.elementwise import sub_p as sub_p
from hlofront.primitives.elementwise.elementwise import tan as tan
from hlofront.primitives.elementwise.elementwise import tan_p as tan_p
from hlofront.primitives.elementwise.elementwise import tanh as tanh
from hlofront.primitives.elementwise.elementwise import tanh_p as tanh_p
from hlofront.primitives.elementwise.elementwise import xor_p as xor_p
from hlofront.primitives.sharding.placing import device_put_p as device_put_p
from hlofront.primitives.sharding.placing import sharding_constraint_p as sharding_constraint_p

# isort: split
# ---- comparing
from hlofront.primitives.collectives.collectives import axis_index as axis_index
from hlofront.primitives.collectives.collectives import axis_index_p as axis_index_p
from hlofront.primitives.collectives.collectives import axis_size as axis_size
from hlofront.primitives.collectives.collectives import pmax as pmax
from hlofront.primitives.collectives.collectives import pmax_p as pmax_p
from hlofront.primitives.collectives.collectives import pmean as pmean
from hlofront.primitives.collectives.collectives import pmin as pmin
from hlofront.primitives.collectives.collectives import pmin_p as pmin_p
from hlofront.primitives.collectives.collectives import psum as psum
from hlofront.primitives.collectives.collectives import psum_p as psum_p
from hlofront.primitives.collectives.exchanges import all_gather as all_gather
from hlofront.primitives.collectives.exchanges import all_gather_p as all_gather_p
from hlofront.primitives.collectives.exchanges import all_to_all as all_to_all
from hlofront.primitives.collectives.exchanges import all_to_all_p as all_to_all_p
from hlofront.primitives.collectives.exchanges import pbroadcast as pbroadcast
from hlofront.primitives.collectives.exchanges import ppermute as ppermute
from hlofront.primitives.collectives.exchanges import ppermute_p as ppermute_p
from hlofront.primitives.collectives.exchanges import pshuffle as pshuffle
from hlofront.primitives.collectives.exchanges import psum_scatter as psum_scatter
from hlofront.primitives.collectives.exchanges import pswapaxes as pswapaxes
from hlofront.primitives.collectives.futures import psum_scatter_start as psum_scatter_start
from hlofront.primitives.collectives.pcast import pcast as pcast
from hlofront.primitives.elementwise.compare import eq as eq
from hlofront.primitives.elementwise.compare import eq_p as eq_p
from hlofront.primitives.elementwise.compare import eq_to_p as eq_to_p
from hlofront.primitives.elementwise.compare import ge as ge
from hlofront.primitives.elementwise.compare import ge_p as ge_p
from hlofront.primitives.elementwise.compare import gt as gt
from hlofront.primitives.elementwise.compare import gt_p as gt_p
from hlofront.primitives.elementwise.compare import le as le
from hlofront.primitives.elementwise.compare import le_p as le_p
from hlofront.primitives.elementwise.compare import le_to_p as le_to_p
from hlofront.primitives.elementwise.compare import lt as lt
from hlofront.primitives.elementwise.compare import lt_p as lt_p
from hlofront.primitives.elementwise.compare import lt_to_p as lt_to_p
from hlofront.primitives.elementwise.compare import ne as ne
from hlofront.primitives.elementwise.compare import ne_p as ne_p
from hlofront.primitives.elementwise.compare import select as select
from hlofront.primitives.elementwise.compare import select_n as select_n
from hlofront.primitives.elementwise.compare import select_n_p as select_n_p

# isort: split
# ---- converting
from hlofront.primitives.elementwise.converting import bitcast_convert_type as bitcast_convert_type
from hlofront.primitives.elementwise.converting import (
    bitcast_convert_type_p as bitcast_convert_type_p,
)
from hlofront.primitives.elementwise.converting import convert_element_type as convert_element_type
from hlofront.primitives.elementwise.converting import (
    convert_element_type_p as convert_element_type_p,
)
from hlofront.primitives.elementwise.converting import copy_p as copy_p
from hlofront.primitives.elementwise.converting import dtype as dtype
from hlofront.primitives.elementwise.converting import reduce_precision as reduce_precision
from hlofront.primitives.elementwise.converting import reduce_precision_p as reduce_precision_p
from hlofront.primitives.elementwise.converting import stage as stage
from hlofront.primitives.elementwise.converting import stage_p as stage_p
from hlofront.primitives.elementwise.converting import stop_gradient as stop_gradient
from hlofront.primitives.elementwise.converting import stop_gradient_p as stop_gradient_p

# isort: split
# ---- creating
from hlofront.primitives.arrays.creation import broadcasted_iota as broadcasted_iota
from hlofront.primitives.arrays.creation import empty as empty
from hlofront.primitives.arrays.creation import full as full
from hlofront.primitives.arrays.creation import full_like as full_like
from hlofront.primitives.arrays.creation import iota as iota
from hlofront.primitives.arrays.creation import iota_p as iota_p

# isort: split
# ---- special
from hlofront.primitives.elementwise.special import bessel_i0e as bessel_i0e
from hlofront.primitives.elementwise.special import bessel_i0e_p as bessel_i0e_p
from hlofront.primitives.elementwise.special import bessel_i1e as bessel_i1e
from hlofront.primitives.elementwise.special import bessel_i1e_p as bessel_i1e_p
from hlofront.primitives.elementwise.special import betainc as betainc
from hlofront.primitives.elementwise.special import digamma as digamma
from hlofront.primitives.elementwise.special import digamma_p as digamma_p
from hlofront.primitives.elementwise.special import erf as erf
from hlofront.primitives.elementwise.special import erf_inv as erf_inv
from hlofront.primitives.elementwise.special import erf_inv_p as erf_inv_p
from hlofront.primitives.elementwise.special import erf_p as erf_p
from hlofront.primitives.elementwise.special import erfc as erfc
from hlofront.primitives.elementwise.special import erfc_p as erfc_p
from hlofront.primitives.elementwise.special import igamma as igamma
from hlofront.primitives.elementwise.special import igamma_grad_a as igamma_grad_a
from hlofront.primitives.elementwise.special import igamma_grad_a_p as igamma_grad_a_p
from hlofront.primitives.elementwise.special import igamma_p as igamma_p
from hlofront.primitives.elementwise.special import igammac as igammac
from hlofront.primitives.elementwise.special import igammac_p as igammac_p
from hlofront.primitives.elementwise.special import lgamma as lgamma
from hlofront.primitives.elementwise.special import lgamma_p as lgamma_p
from hlofront.primitives.elementwise.special import polygamma as polygamma
from hlofront.primitives.elementwise.special import polygamma_p as polygamma_p
from hlofront.primitives.elementwise.special import random_gamma_grad as random_gamma_grad
from hlofront.primitives.elementwise.special import (
    regularized_incomplete_beta_p as regularized_incomplete_beta_p,
)
from hlofront.primitives.elementwise.special import zeta as zeta
from hlofront.primitives.elementwise.special import zeta_p as zeta_p

# isort: split
# ---- shaping
from hlofront.primitives.arrays.shaping import broadcast as broadcast
from hlofront.primitives.arrays.shaping import broadcast_in_dim as broadcast_in_dim
from hlofront.primitives.arrays.shaping import broadcast_in_dim_p as broadcast_in_dim_p
from hlofront.primitives.arrays.shaping import broadcast_like as broadcast_like
from hlofront.primitives.arrays.shaping import broadcast_shapes as broadcast_shapes
from hlofront.primitives.arrays.shaping import broadcast_to_rank as broadcast_to_rank
from hlofront.primitives.arrays.shaping import collapse as collapse
from hlofront.primitives.arrays.shaping import expand_dims as expand_dims
from hlofront.primitives.arrays.shaping import reshape as reshape
from hlofront.primitives.arrays.shaping import reshape_p as reshape_p
from hlofront.primitives.arrays.shaping import rev as rev
from hlofront.primitives.arrays.shaping import rev_p as rev_p
from hlofront.primitives.arrays.shaping import shape_as_value as shape_as_value
from hlofront.primitives.arrays.shaping import squeeze as squeeze
from hlofront.primitives.arrays.shaping import squeeze_p as squeeze_p
from hlofront.primitives.arrays.shaping import transpose as transpose
from hlofront.primitives.arrays.shaping import transpose_p as transpose_p

# isort: split
# ---- slicing
from hlofront.primitives.arrays.dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice as dynamic_slice
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from hlofront.primitives.arrays.dynamic_slicing import (
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
)
from hlofront.primitives.arrays.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from hlofront.primitives.arrays.dynamic_slicing import (
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from hlofront.primitives.arrays.dynamic_slicing import (
    dynamic_update_slice_p as dynamic_update_slice_p,
)
from hlofront.primitives.arrays.slicing import concatenate as concatenate
from hlofront.primitives.arrays.slicing import concatenate_p as concatenate_p
from hlofront.primitives.arrays.slicing import index_in_dim as index_in_dim
from hlofront.primitives.arrays.slicing import pad as pad
from hlofront.primitives.arrays.slicing import pad_p as pad_p
from hlofront.primitives.arrays.slicing import slice as slice
from hlofront.primitives.arrays.slicing import slice_in_dim as slice_in_dim
from hlofront.primitives.arrays.slicing import slice_p as slice_p
from hlofront.primitives.arrays.slicing import split as split
from hlofront.primitives.arrays.slicing import split_p as split_p
from hlofront.primitives.arrays.slicing import stack as stack
from hlofront.primitives.arrays.slicing import stack_p as stack_p
from hlofront.primitives.arrays.slicing import unstack as unstack
from hlofront.primitives.arrays.slicing import unstack_p as unstack_p

# isort: split
# ---- gathering
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers as GatherDimensionNumbers
from hlofront.primitives.arrays.gathering import GatherScatterMode as GatherScatterMode
from hlofront.primitives.arrays.gathering import gather as gather
from hlofront.primitives.arrays.gathering import gather_p as gather_p
from hlofront.primitives.arrays.gathering import index_take as index_take

# isort: split
# ---- scattering
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers as ScatterDimensionNumbers
from hlofront.primitives.arrays.scattering import scatter as scatter
from hlofront.primitives.arrays.scattering import scatter_add as scatter_add
from hlofront.primitives.arrays.scattering import scatter_add_p as scatter_add_p
from hlofront.primitives.arrays.scattering import scatter_max as scatter_max
from hlofront.primitives.arrays.scattering import scatter_max_p as scatter_max_p
from hlofront.primitives.arrays.scattering import scatter_min as scatter_min
from hlofront.primitives.arrays.scattering import scatter_min_p as scatter_min_p
from hlofront.primitives.arrays.scattering import scatter_mul as scatter_mul
from hlofront.primitives.arrays.scattering import scatter_mul_p as scatter_mul_p
from hlofront.primitives.arrays.scattering import scatter_p as scatter_p
from hlofront.primitives.arrays.scattering import scatter_sub as scatter_sub
from hlofront.primitives.arrays.scattering import scatter_sub_p as scatter_sub_p

# isort: split
# ---- reducing
from hlofront.primitives.arrays.reducing import argmax as argmax
from hlofront.primitives.arrays.reducing import argmax_p as argmax_p
from hlofront.primitives.arrays.reducing import argmin as argmin
from hlofront.primitives.arrays.reducing import argmin_p as argmin_p
from hlofront.primitives.arrays.reducing import reduce_and as reduce_and
from hlofront.primitives.arrays.reducing import reduce_and_p as reduce_and_p
from hlofront.primitives.arrays.reducing import reduce_max as reduce_max
from hlofront.primitives.arrays.reducing import reduce_max_p as reduce_max_p
from hlofront.primitives.arrays.reducing import reduce_min as reduce_min
from hlofront.primitives.arrays.reducing import reduce_min_p as reduce_min_p
from hlofront.primitives.arrays.reducing import reduce_or as reduce_or
from hlofront.primitives.arrays.reducing import reduce_or_p as reduce_or_p
from hlofront.primitives.arrays.reducing import reduce_prod as reduce_prod
from hlofront.primitives.arrays.reducing import reduce_prod_p as reduce_prod_p
from hlofront.primitives.arrays.reducing import reduce_sum as reduce_sum
from hlofront.primitives.arrays.reducing import reduce_sum_p as reduce_sum_p
from hlofront.primitives.arrays.reducing import reduce_xor as reduce_xor
from hlofront.primitives.arrays.reducing import reduce_xor_p as reduce_xor_p

# isort: split
# ---- cumulative
from hlofront.primitives.arrays.cumulative import associative_scan as associative_scan
from hlofront.primitives.arrays.cumulative import cumlogsumexp as cumlogsumexp
from hlofront.primitives.arrays.cumulative import cumlogsumexp_p as cumlogsumexp_p
from hlofront.primitives.arrays.cumulative import cummax as cummax
from hlofront.primitives.arrays.cumulative import cummax_p as cummax_p
from hlofront.primitives.arrays.cumulative import cummin as cummin
from hlofront.primitives.arrays.cumulative import cummin_p as cummin_p
from hlofront.primitives.arrays.cumulative import cumprod as cumprod
from hlofront.primitives.arrays.cumulative import cumprod_p as cumprod_p
from hlofront.primitives.arrays.cumulative import cumsum as cumsum
from hlofront.primitives.arrays.cumulative import cumsum_p as cumsum_p

# isort: split
# ---- windowed
from hlofront.primitives.arrays.windowed import padtype_to_pads as padtype_to_pads
from hlofront.primitives.arrays.windowed import reduce_window_max_p as reduce_window_max_p
from hlofront.primitives.arrays.windowed import reduce_window_min_p as reduce_window_min_p
from hlofront.primitives.arrays.windowed import (
    reduce_window_shape_tuple as reduce_window_shape_tuple,
)
from hlofront.primitives.arrays.windowed import reduce_window_sum_p as reduce_window_sum_p
from hlofront.primitives.arrays.windowed import select_and_gather_add_p as select_and_gather_add_p
from hlofront.primitives.arrays.windowed import select_and_scatter_add_p as select_and_scatter_add_p

# isort: split
# ---- contracting
from hlofront.primitives.linalg.contraction_numbers import (
    DotDimensionNumbers as DotDimensionNumbers,
)
from hlofront.primitives.linalg.dot_general import DotAlgorithm as DotAlgorithm
from hlofront.primitives.linalg.dot_general import DotAlgorithmPreset as DotAlgorithmPreset
from hlofront.primitives.linalg.dot_general import Precision as Precision
from hlofront.primitives.linalg.dot_general import PrecisionLike as PrecisionLike
from hlofront.primitives.linalg.dot_general import batch_matmul as batch_matmul
from hlofront.primitives.linalg.dot_general import dot as dot
from hlofront.primitives.linalg.dot_general import dot_general as dot_general
from hlofront.primitives.linalg.dot_general import dot_general_p as dot_general_p
from hlofront.primitives.linalg.ragged_dot import (
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
)
from hlofront.primitives.linalg.ragged_dot import ragged_dot as ragged_dot
from hlofront.primitives.linalg.ragged_dot import ragged_dot_general as ragged_dot_general
from hlofront.primitives.linalg.scaled_dot import scaled_dot as scaled_dot

# isort: split
# ---- convolving
from hlofront.primitives.linalg.conv import conv_general_dilated as conv_general_dilated
from hlofront.primitives.linalg.conv import conv_general_dilated_p as conv_general_dilated_p
from hlofront.primitives.linalg.conv_numbers import (
    ConvDimensionNumbers as ConvDimensionNumbers,
)
from hlofront.primitives.linalg.conv_numbers import (
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
)
from hlofront.primitives.linalg.conv_numbers import (
    conv_dimension_numbers as conv_dimension_numbers,
)
from hlofront.primitives.linalg.conv_numbers import (
    conv_general_permutations as conv_general_permutations,
)

# isort: split
# ---- sorting
from hlofront.primitives.arrays.sorting import approx_max_k as approx_max_k
from hlofront.primitives.arrays.sorting import approx_min_k as approx_min_k
from hlofront.primitives.arrays.sorting import approx_top_k_p as approx_top_k_p
from hlofront.primitives.arrays.sorting import sort as sort
from hlofront.primitives.arrays.sorting import sort_key_val as sort_key_val
from hlofront.primitives.arrays.sorting import sort_p as sort_p
from hlofront.primitives.arrays.sorting import top_k as top_k
from hlofront.primitives.arrays.sorting import top_k_p as top_k_p

# isort: split
# ---- random_bits
from hlofront.primitives.random.bits import RandomAlgorithm as RandomAlgorithm
from hlofront.primitives.random.bits import rng_bit_generator as rng_bit_generator
from hlofront.primitives.random.bits import rng_bit_generator_p as rng_bit_generator_p
from hlofront.primitives.random.bits import rng_uniform as rng_uniform
from hlofront.primitives.random.bits import rng_uniform_p as rng_uniform_p

# isort: split
# ---- barriers
from hlofront.primitives.arrays.tiling import tile as tile
from hlofront.primitives.arrays.tiling import tile_p as tile_p
from hlofront.primitives.calls.barriers import after_all as after_all
from hlofront.primitives.calls.barriers import after_all_p as after_all_p
from hlofront.primitives.calls.barriers import create_token as create_token
from hlofront.primitives.calls.barriers import create_token_p as create_token_p
from hlofront.primitives.calls.barriers import dce_sink as dce_sink
from hlofront.primitives.calls.barriers import dce_sink_p as dce_sink_p
from hlofront.primitives.calls.barriers import optimization_barrier as optimization_barrier
from hlofront.primitives.calls.barriers import optimization_barrier_p as optimization_barrier_p

# isort: split
# ---- higher_order
from hlofront.higher_order.cond import cond as cond
from hlofront.higher_order.cond import cond_p as cond_p
from hlofront.higher_order.cond import switch as switch
from hlofront.higher_order.platform import composite as composite
from hlofront.higher_order.platform import platform_dependent as platform_dependent
from hlofront.higher_order.scan import scan as scan
from hlofront.higher_order.scan import scan_p as scan_p
from hlofront.higher_order.scatter_apply import scatter_apply as scatter_apply
from hlofront.higher_order.while_loop import fori_loop as fori_loop
from hlofront.higher_order.while_loop import while_loop as while_loop
from hlofront.higher_order.while_loop import while_p as while_p

# isort: split
# ---- what is loaded on first use
__getattr__, __dir__ = _lazy(
    __name__,
    ("linalg",),
    {
        "custom_linear_solve": "hlofront.higher_order.linear_solve",
        "custom_linear_solve_p": "hlofront.higher_order.linear_solve",
        "custom_root": "hlofront.higher_order.linear_solve",
        "linear_solve_p": "hlofront.higher_order.linear_solve",
        "polynomial": "hlofront.primitives.elementwise.polynomials",
        "polynomial_p": "hlofront.primitives.elementwise.polynomials",
        "reduce": "hlofront.higher_order.reduce",
        "reduce_p": "hlofront.higher_order.reduce",
        "reduce_window": "hlofront.higher_order.reduce",
        "reduce_window_p": "hlofront.higher_order.reduce",
        "select_and_scatter_p": "hlofront.higher_order.reduce",
        "conv": "hlofront.primitives.linalg.conv_variants",
        "conv_general_dilated_local": "hlofront.primitives.linalg.conv_variants",
        "conv_general_dilated_patches": "hlofront.primitives.linalg.conv_variants",
        "conv_general_shape_tuple": "hlofront.primitives.linalg.conv_variants",
        "conv_shape_tuple": "hlofront.primitives.linalg.conv_variants",
        "conv_transpose": "hlofront.primitives.linalg.conv_variants",
        "conv_transpose_shape_tuple": "hlofront.primitives.linalg.conv_variants",
        "conv_with_general_padding": "hlofront.primitives.linalg.conv_variants",
        "map": "hlofront.higher_order.mapping",
        **dict.fromkeys(("FftType", "fft", "fft_p"), "hlofront.primitives.linalg.fourier"),
        **dict.fromkeys(("precv", "psend"), "hlofront.primitives.collectives.sending"),
        **dict.fromkeys(
            ("ragged_all_to_all", "ragged_all_to_all_p"),
            "hlofront.primitives.collectives.ragged_exchanges",
        ),
        "with_sharding_constraint": "hlofront.runtime.dispatch.jit_shardings",
    },
)
