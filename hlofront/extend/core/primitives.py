"""jax.extend.core.primitives: the primitives of equations, for interpreters of jaxprs."""

from hlofront.higher_order.call_primitive import call_p as call_p
from hlofront.higher_order.call_primitive import create_call_primitive as create_call_primitive
from hlofront.higher_order.call_primitive import eval_jaxpr_transpose as eval_jaxpr_transpose
from hlofront.higher_order.call_primitive import (
    register_call_primitive_rules as register_call_primitive_rules,
)
from hlofront.higher_order.checkpoint import remat_p as remat_p
from hlofront.higher_order.checkpoint_policies import name_p as name_p
from hlofront.higher_order.cond import cond_p as cond_p
from hlofront.higher_order.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from hlofront.higher_order.custom_vjp_call import custom_lin_p as custom_lin_p
from hlofront.higher_order.custom_vjp_call import custom_vjp_call_p as custom_vjp_call_p
from hlofront.higher_order.jit_call import closed_call_p as closed_call_p
from hlofront.higher_order.jit_call import jit_p as jit_p
from hlofront.higher_order.linear_solve import linear_solve_p as linear_solve_p
from hlofront.higher_order.random_gamma import random_gamma_p as random_gamma_p
from hlofront.higher_order.reduce import reduce_p as reduce_p
from hlofront.higher_order.reduce import reduce_window_p as reduce_window_p
from hlofront.higher_order.reduce import select_and_scatter_p as select_and_scatter_p
from hlofront.higher_order.scan import scan_p as scan_p
from hlofront.higher_order.while_loop import while_p as while_p
from hlofront.primitives.arrays.creation import empty2_p as empty2_p
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
from hlofront.primitives.arrays.scattering import scatter_add_p as scatter_add_p
from hlofront.primitives.arrays.scattering import scatter_max_p as scatter_max_p
from hlofront.primitives.arrays.scattering import scatter_min_p as scatter_min_p
from hlofront.primitives.arrays.scattering import scatter_mul_p as scatter_mul_p
from hlofront.primitives.arrays.scattering import scatter_p as scatter_p
from hlofront.primitives.arrays.shaping import broadcast_in_dim_p as broadcast_in_dim_p
from hlofront.primitives.arrays.shaping import reshape_p as reshape_p
from hlofront.primitives.arrays.shaping import rev_p as rev_p
from hlofront.primitives.arrays.shaping import squeeze_p as squeeze_p
from hlofront.primitives.arrays.shaping import transpose_p as transpose_p
from hlofront.primitives.arrays.slicing import concatenate_p as concatenate_p
from hlofront.primitives.arrays.slicing import pad_p as pad_p
from hlofront.primitives.arrays.slicing import slice_p as slice_p
from hlofront.primitives.arrays.sorting import approx_top_k_p as approx_top_k_p
from hlofront.primitives.arrays.sorting import sort_p as sort_p
from hlofront.primitives.arrays.sorting import top_k_p as top_k_p
from hlofront.primitives.arrays.windowed import reduce_window_max_p as reduce_window_max_p
from hlofront.primitives.arrays.windowed import reduce_window_min_p as reduce_window_min_p
from hlofront.primitives.arrays.windowed import reduce_window_sum_p as reduce_window_sum_p
from hlofront.primitives.arrays.windowed import select_and_gather_add_p as select_and_gather_add_p
from hlofront.primitives.arrays.windowed import select_and_scatter_add_p as select_and_scatter_add_p
from hlofront.primitives.calls.barriers import after_all_p as after_all_p
from hlofront.primitives.calls.barriers import create_token_p as create_token_p
from hlofront.primitives.collectives.collectives import axis_index_p as axis_index_p
from hlofront.primitives.collectives.collectives import pmax_p as pmax_p
from hlofront.primitives.collectives.collectives import pmin_p as pmin_p
from hlofront.primitives.collectives.collectives import psum_p as psum_p
from hlofront.primitives.collectives.exchanges import all_gather_p as all_gather_p
from hlofront.primitives.collectives.exchanges import all_to_all_p as all_to_all_p
from hlofront.primitives.collectives.exchanges import ppermute_p as ppermute_p
from hlofront.primitives.collectives.ragged_exchanges import (
    ragged_all_to_all_p as ragged_all_to_all_p,
)
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
from hlofront.primitives.elementwise.converting import stop_gradient_p as stop_gradient_p
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
from hlofront.primitives.elementwise.elementwise import clamp_p as clamp_p
from hlofront.primitives.elementwise.elementwise import clz_p as clz_p
from hlofront.primitives.elementwise.elementwise import complex_p as complex_p
from hlofront.primitives.elementwise.elementwise import conj_p as conj_p
from hlofront.primitives.elementwise.elementwise import cos_p as cos_p
from hlofront.primitives.elementwise.elementwise import cosh_p as cosh_p
from hlofront.primitives.elementwise.elementwise import div_p as div_p
from hlofront.primitives.elementwise.elementwise import exp2_p as exp2_p
from hlofront.primitives.elementwise.elementwise import exp_p as exp_p
from hlofront.primitives.elementwise.elementwise import expm1_p as expm1_p
from hlofront.primitives.elementwise.elementwise import floor_p as floor_p
from hlofront.primitives.elementwise.elementwise import imag_p as imag_p
from hlofront.primitives.elementwise.elementwise import integer_pow_p as integer_pow_p
from hlofront.primitives.elementwise.elementwise import is_finite_p as is_finite_p
from hlofront.primitives.elementwise.elementwise import log1p_p as log1p_p
from hlofront.primitives.elementwise.elementwise import log2_p as log2_p
from hlofront.primitives.elementwise.elementwise import log_p as log_p
from hlofront.primitives.elementwise.elementwise import logistic_p as logistic_p
from hlofront.primitives.elementwise.elementwise import max_p as max_p
from hlofront.primitives.elementwise.elementwise import min_p as min_p
from hlofront.primitives.elementwise.elementwise import mul_p as mul_p
from hlofront.primitives.elementwise.elementwise import neg_p as neg_p
from hlofront.primitives.elementwise.elementwise import nextafter_p as nextafter_p
from hlofront.primitives.elementwise.elementwise import not_p as not_p
from hlofront.primitives.elementwise.elementwise import one_minus_square_p as one_minus_square_p
from hlofront.primitives.elementwise.elementwise import or_p as or_p
from hlofront.primitives.elementwise.elementwise import population_count_p as population_count_p
from hlofront.primitives.elementwise.elementwise import pow_p as pow_p
from hlofront.primitives.elementwise.elementwise import real_p as real_p
from hlofront.primitives.elementwise.elementwise import rem_p as rem_p
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
from hlofront.primitives.linalg.conv import conv_general_dilated_p as conv_general_dilated_p
from hlofront.primitives.linalg.dot_general import dot_general_p as dot_general_p
from hlofront.primitives.linalg.factoring import cholesky_p as cholesky_p
from hlofront.primitives.linalg.factoring import householder_product_p as householder_product_p
from hlofront.primitives.linalg.factoring import lu_p as lu_p
from hlofront.primitives.linalg.factoring import qr_p as qr_p
from hlofront.primitives.linalg.fourier import fft_p as fft_p
from hlofront.primitives.linalg.solving import triangular_solve_p as triangular_solve_p
from hlofront.primitives.linalg.solving import tridiagonal_solve_p as tridiagonal_solve_p
from hlofront.primitives.linalg.spectral import eig_p as eig_p
from hlofront.primitives.linalg.spectral import eigh_p as eigh_p
from hlofront.primitives.linalg.spectral import hessenberg_p as hessenberg_p
from hlofront.primitives.linalg.spectral import schur_p as schur_p
from hlofront.primitives.linalg.spectral import svd_p as svd_p
from hlofront.primitives.linalg.spectral import tridiagonal_p as tridiagonal_p
from hlofront.primitives.random.bits import rng_bit_generator_p as rng_bit_generator_p
from hlofront.primitives.random.bits import rng_uniform_p as rng_uniform_p
from hlofront.primitives.random.bits import threefry2x32_p as threefry2x32_p
from hlofront.primitives.random.keys import random_bits_p as random_bits_p
from hlofront.primitives.random.keys import random_fold_in_p as random_fold_in_p
from hlofront.primitives.random.keys import random_seed_p as random_seed_p
from hlofront.primitives.random.keys import random_split_p as random_split_p
from hlofront.primitives.references.references import get_p as get_p
from hlofront.primitives.references.references import swap_p as swap_p
from hlofront.primitives.rules.derivatives import add_jaxvals_p as add_jaxvals_p
from hlofront.primitives.sharding.placing import device_put_p as device_put_p
from hlofront.primitives.sharding.placing import sharding_constraint_p as sharding_constraint_p
