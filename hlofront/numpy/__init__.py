"""hlofront.numpy: NumPy's functions on device arrays, traced and compiled."""

from hlofront.base.garbage_collection import collection_paused as _collection_paused
from hlofront.base.lazy import lazy as _lazy

with _collection_paused():
    from hlofront.bridge.fast_parts import Array as ndarray
    from hlofront.numpy.arrays.casting import astype as astype
    from hlofront.numpy.arrays.creation import array as array
    from hlofront.numpy.arrays.creation import asarray as asarray
    from hlofront.numpy.arrays.creation import copy as copy
    from hlofront.numpy.arrays.creation import from_dlpack as from_dlpack
    from hlofront.numpy.arrays.creation import frombuffer as frombuffer
    from hlofront.numpy.arrays.creation import fromfile as fromfile
    from hlofront.numpy.arrays.creation import fromiter as fromiter
    from hlofront.numpy.arrays.creation import fromstring as fromstring
    from hlofront.numpy.arrays.filling import empty as empty
    from hlofront.numpy.arrays.filling import empty_like as empty_like
    from hlofront.numpy.arrays.filling import full as full
    from hlofront.numpy.arrays.filling import full_like as full_like
    from hlofront.numpy.arrays.filling import ones as ones
    from hlofront.numpy.arrays.filling import ones_like as ones_like
    from hlofront.numpy.arrays.filling import zeros as zeros
    from hlofront.numpy.arrays.filling import zeros_like as zeros_like
    from hlofront.numpy.arrays.joining import append as append
    from hlofront.numpy.arrays.joining import array_split as array_split
    from hlofront.numpy.arrays.joining import block as block
    from hlofront.numpy.arrays.joining import column_stack as column_stack
    from hlofront.numpy.arrays.joining import concat as concat
    from hlofront.numpy.arrays.joining import concatenate as concatenate
    from hlofront.numpy.arrays.joining import dsplit as dsplit
    from hlofront.numpy.arrays.joining import dstack as dstack
    from hlofront.numpy.arrays.joining import hsplit as hsplit
    from hlofront.numpy.arrays.joining import hstack as hstack
    from hlofront.numpy.arrays.joining import split as split
    from hlofront.numpy.arrays.joining import stack as stack
    from hlofront.numpy.arrays.joining import unstack as unstack
    from hlofront.numpy.arrays.joining import vsplit as vsplit
    from hlofront.numpy.arrays.joining import vstack as vstack
    from hlofront.numpy.arrays.ranges import arange as arange
    from hlofront.numpy.arrays.ranges import fromfunction as fromfunction
    from hlofront.numpy.arrays.ranges import geomspace as geomspace
    from hlofront.numpy.arrays.ranges import indices as indices
    from hlofront.numpy.arrays.ranges import linspace as linspace
    from hlofront.numpy.arrays.ranges import logspace as logspace
    from hlofront.numpy.arrays.ranges import meshgrid as meshgrid
    from hlofront.numpy.arrays.ranges import mgrid as mgrid
    from hlofront.numpy.arrays.ranges import ogrid as ogrid
    from hlofront.numpy.arrays.rearranging import flip as flip
    from hlofront.numpy.arrays.rearranging import fliplr as fliplr
    from hlofront.numpy.arrays.rearranging import flipud as flipud
    from hlofront.numpy.arrays.rearranging import repeat as repeat
    from hlofront.numpy.arrays.rearranging import resize as resize
    from hlofront.numpy.arrays.rearranging import roll as roll
    from hlofront.numpy.arrays.rearranging import rot90 as rot90
    from hlofront.numpy.arrays.rearranging import tile as tile
    from hlofront.numpy.arrays.rearranging import trim_zeros as trim_zeros
    from hlofront.numpy.arrays.shape import atleast_1d as atleast_1d
    from hlofront.numpy.arrays.shape import atleast_2d as atleast_2d
    from hlofront.numpy.arrays.shape import atleast_3d as atleast_3d
    from hlofront.numpy.arrays.shape import broadcast_arrays as broadcast_arrays
    from hlofront.numpy.arrays.shape import broadcast_shapes as broadcast_shapes
    from hlofront.numpy.arrays.shape import broadcast_to as broadcast_to
    from hlofront.numpy.arrays.shape import expand_dims as expand_dims
    from hlofront.numpy.arrays.shape import matrix_transpose as matrix_transpose
    from hlofront.numpy.arrays.shape import moveaxis as moveaxis
    from hlofront.numpy.arrays.shape import ndim as ndim
    from hlofront.numpy.arrays.shape import permute_dims as permute_dims
    from hlofront.numpy.arrays.shape import ravel as ravel
    from hlofront.numpy.arrays.shape import reshape as reshape
    from hlofront.numpy.arrays.shape import rollaxis as rollaxis
    from hlofront.numpy.arrays.shape import shape as shape
    from hlofront.numpy.arrays.shape import size as size
    from hlofront.numpy.arrays.shape import squeeze as squeeze
    from hlofront.numpy.arrays.shape import swapaxes as swapaxes
    from hlofront.numpy.arrays.shape import transpose as transpose
    from hlofront.numpy.arrays.sorting import argpartition as argpartition
    from hlofront.numpy.arrays.sorting import argsort as argsort
    from hlofront.numpy.arrays.sorting import lexsort as lexsort
    from hlofront.numpy.arrays.sorting import partition as partition
    from hlofront.numpy.arrays.sorting import searchsorted as searchsorted
    from hlofront.numpy.arrays.sorting import sort as sort
    from hlofront.numpy.arrays.sorting import sort_complex as sort_complex
    from hlofront.numpy.arrays.sorting import top_k as top_k
    from hlofront.numpy.constants import e as e
    from hlofront.numpy.constants import euler_gamma as euler_gamma
    from hlofront.numpy.constants import inf as inf
    from hlofront.numpy.constants import nan as nan
    from hlofront.numpy.constants import newaxis as newaxis
    from hlofront.numpy.constants import pi as pi
    from hlofront.numpy.einsum import einsum as einsum
    from hlofront.numpy.einsum import einsum_path as einsum_path
    from hlofront.numpy.elementwise.bitwise import bitwise_count as bitwise_count
    from hlofront.numpy.elementwise.bitwise import bitwise_invert as bitwise_invert
    from hlofront.numpy.elementwise.bitwise import bitwise_left_shift as bitwise_left_shift
    from hlofront.numpy.elementwise.bitwise import bitwise_not as bitwise_not
    from hlofront.numpy.elementwise.bitwise import bitwise_right_shift as bitwise_right_shift
    from hlofront.numpy.elementwise.bitwise import invert as invert
    from hlofront.numpy.elementwise.bitwise import left_shift as left_shift
    from hlofront.numpy.elementwise.bitwise import packbits as packbits
    from hlofront.numpy.elementwise.bitwise import right_shift as right_shift
    from hlofront.numpy.elementwise.bitwise import unpackbits as unpackbits
    from hlofront.numpy.elementwise.complex import angle as angle
    from hlofront.numpy.elementwise.complex import conj as conj
    from hlofront.numpy.elementwise.complex import conjugate as conjugate
    from hlofront.numpy.elementwise.complex import imag as imag
    from hlofront.numpy.elementwise.complex import real as real
    from hlofront.numpy.elementwise.division import divmod as divmod
    from hlofront.numpy.elementwise.division import floor_divide as floor_divide
    from hlofront.numpy.elementwise.division import fmod as fmod
    from hlofront.numpy.elementwise.division import gcd as gcd
    from hlofront.numpy.elementwise.division import lcm as lcm
    from hlofront.numpy.elementwise.division import mod as mod
    from hlofront.numpy.elementwise.division import remainder as remainder
    from hlofront.numpy.elementwise.logic import allclose as allclose
    from hlofront.numpy.elementwise.logic import array_equal as array_equal
    from hlofront.numpy.elementwise.logic import array_equiv as array_equiv
    from hlofront.numpy.elementwise.logic import equal as equal
    from hlofront.numpy.elementwise.logic import greater as greater
    from hlofront.numpy.elementwise.logic import greater_equal as greater_equal
    from hlofront.numpy.elementwise.logic import isclose as isclose
    from hlofront.numpy.elementwise.logic import iscomplex as iscomplex
    from hlofront.numpy.elementwise.logic import iscomplexobj as iscomplexobj
    from hlofront.numpy.elementwise.logic import isfinite as isfinite
    from hlofront.numpy.elementwise.logic import isinf as isinf
    from hlofront.numpy.elementwise.logic import isnan as isnan
    from hlofront.numpy.elementwise.logic import isneginf as isneginf
    from hlofront.numpy.elementwise.logic import isposinf as isposinf
    from hlofront.numpy.elementwise.logic import isreal as isreal
    from hlofront.numpy.elementwise.logic import isrealobj as isrealobj
    from hlofront.numpy.elementwise.logic import isscalar as isscalar
    from hlofront.numpy.elementwise.logic import iterable as iterable
    from hlofront.numpy.elementwise.logic import less as less
    from hlofront.numpy.elementwise.logic import less_equal as less_equal
    from hlofront.numpy.elementwise.logic import logical_not as logical_not
    from hlofront.numpy.elementwise.logic import not_equal as not_equal
    from hlofront.numpy.elementwise.powers import float_power as float_power
    from hlofront.numpy.elementwise.powers import pow as pow
    from hlofront.numpy.elementwise.powers import power as power
    from hlofront.numpy.elementwise.rounding import around as around
    from hlofront.numpy.elementwise.rounding import ceil as ceil
    from hlofront.numpy.elementwise.rounding import clip as clip
    from hlofront.numpy.elementwise.rounding import floor as floor
    from hlofront.numpy.elementwise.rounding import rint as rint
    from hlofront.numpy.elementwise.rounding import round as round
    from hlofront.numpy.elementwise.rounding import trunc as trunc
    from hlofront.numpy.elementwise.ufunc import frompyfunc as frompyfunc
    from hlofront.numpy.elementwise.ufunc import ufunc as ufunc
    from hlofront.numpy.elementwise.ufuncs import abs as abs
    from hlofront.numpy.elementwise.ufuncs import absolute as absolute
    from hlofront.numpy.elementwise.ufuncs import acos as acos
    from hlofront.numpy.elementwise.ufuncs import acosh as acosh
    from hlofront.numpy.elementwise.ufuncs import arccos as arccos
    from hlofront.numpy.elementwise.ufuncs import arccosh as arccosh
    from hlofront.numpy.elementwise.ufuncs import arcsin as arcsin
    from hlofront.numpy.elementwise.ufuncs import arcsinh as arcsinh
    from hlofront.numpy.elementwise.ufuncs import arctan as arctan
    from hlofront.numpy.elementwise.ufuncs import arctan2 as arctan2
    from hlofront.numpy.elementwise.ufuncs import arctanh as arctanh
    from hlofront.numpy.elementwise.ufuncs import asin as asin
    from hlofront.numpy.elementwise.ufuncs import asinh as asinh
    from hlofront.numpy.elementwise.ufuncs import atan as atan
    from hlofront.numpy.elementwise.ufuncs import atan2 as atan2
    from hlofront.numpy.elementwise.ufuncs import atanh as atanh
    from hlofront.numpy.elementwise.ufuncs import cbrt as cbrt
    from hlofront.numpy.elementwise.ufuncs import cos as cos
    from hlofront.numpy.elementwise.ufuncs import cosh as cosh
    from hlofront.numpy.elementwise.ufuncs import deg2rad as deg2rad
    from hlofront.numpy.elementwise.ufuncs import degrees as degrees
    from hlofront.numpy.elementwise.ufuncs import divide as divide
    from hlofront.numpy.elementwise.ufuncs import exp as exp
    from hlofront.numpy.elementwise.ufuncs import exp2 as exp2
    from hlofront.numpy.elementwise.ufuncs import expm1 as expm1
    from hlofront.numpy.elementwise.ufuncs import fabs as fabs
    from hlofront.numpy.elementwise.ufuncs import fmax as fmax
    from hlofront.numpy.elementwise.ufuncs import fmin as fmin
    from hlofront.numpy.elementwise.ufuncs import log as log
    from hlofront.numpy.elementwise.ufuncs import log1p as log1p
    from hlofront.numpy.elementwise.ufuncs import log2 as log2
    from hlofront.numpy.elementwise.ufuncs import log10 as log10
    from hlofront.numpy.elementwise.ufuncs import positive as positive
    from hlofront.numpy.elementwise.ufuncs import rad2deg as rad2deg
    from hlofront.numpy.elementwise.ufuncs import radians as radians
    from hlofront.numpy.elementwise.ufuncs import reciprocal as reciprocal
    from hlofront.numpy.elementwise.ufuncs import sign as sign
    from hlofront.numpy.elementwise.ufuncs import sin as sin
    from hlofront.numpy.elementwise.ufuncs import sinh as sinh
    from hlofront.numpy.elementwise.ufuncs import sqrt as sqrt
    from hlofront.numpy.elementwise.ufuncs import square as square
    from hlofront.numpy.elementwise.ufuncs import tan as tan
    from hlofront.numpy.elementwise.ufuncs import tanh as tanh
    from hlofront.numpy.elementwise.ufuncs import true_divide as true_divide
    from hlofront.numpy.elementwise.universal import add as add
    from hlofront.numpy.elementwise.universal import bitwise_and as bitwise_and
    from hlofront.numpy.elementwise.universal import bitwise_or as bitwise_or
    from hlofront.numpy.elementwise.universal import bitwise_xor as bitwise_xor
    from hlofront.numpy.elementwise.universal import logaddexp as logaddexp
    from hlofront.numpy.elementwise.universal import logaddexp2 as logaddexp2
    from hlofront.numpy.elementwise.universal import logical_and as logical_and
    from hlofront.numpy.elementwise.universal import logical_or as logical_or
    from hlofront.numpy.elementwise.universal import logical_xor as logical_xor
    from hlofront.numpy.elementwise.universal import maximum as maximum
    from hlofront.numpy.elementwise.universal import minimum as minimum
    from hlofront.numpy.elementwise.universal import multiply as multiply
    from hlofront.numpy.elementwise.universal import negative as negative
    from hlofront.numpy.elementwise.universal import subtract as subtract
    from hlofront.numpy.indexing.choosing import choose as choose
    from hlofront.numpy.indexing.selecting import argwhere as argwhere
    from hlofront.numpy.indexing.selecting import compress as compress
    from hlofront.numpy.indexing.selecting import extract as extract
    from hlofront.numpy.indexing.selecting import flatnonzero as flatnonzero
    from hlofront.numpy.indexing.selecting import nonzero as nonzero
    from hlofront.numpy.indexing.selecting import piecewise as piecewise
    from hlofront.numpy.indexing.selecting import select as select
    from hlofront.numpy.indexing.selecting import where as where
    from hlofront.numpy.indexing.taking import fill_diagonal as fill_diagonal
    from hlofront.numpy.indexing.taking import place as place
    from hlofront.numpy.indexing.taking import put as put
    from hlofront.numpy.indexing.taking import put_along_axis as put_along_axis
    from hlofront.numpy.indexing.taking import take as take
    from hlofront.numpy.indexing.taking import take_along_axis as take_along_axis
    from hlofront.numpy.namespace import ARRAY_API_VERSION as __array_api_version__
    from hlofront.numpy.namespace import array_namespace_info as __array_namespace_info__
    from hlofront.numpy.products.contraction import dot as dot
    from hlofront.numpy.products.contraction import inner as inner
    from hlofront.numpy.products.contraction import matmul as matmul
    from hlofront.numpy.products.contraction import matvec as matvec
    from hlofront.numpy.products.contraction import trace as trace
    from hlofront.numpy.products.contraction import vdot as vdot
    from hlofront.numpy.products.contraction import vecdot as vecdot
    from hlofront.numpy.products.contraction import vecmat as vecmat
    from hlofront.numpy.products.matrices import diag as diag
    from hlofront.numpy.products.matrices import diag_indices as diag_indices
    from hlofront.numpy.products.matrices import diag_indices_from as diag_indices_from
    from hlofront.numpy.products.matrices import diagflat as diagflat
    from hlofront.numpy.products.matrices import diagonal as diagonal
    from hlofront.numpy.products.matrices import eye as eye
    from hlofront.numpy.products.matrices import identity as identity
    from hlofront.numpy.products.matrices import tri as tri
    from hlofront.numpy.products.matrices import tril as tril
    from hlofront.numpy.products.matrices import tril_indices as tril_indices
    from hlofront.numpy.products.matrices import tril_indices_from as tril_indices_from
    from hlofront.numpy.products.matrices import triu as triu
    from hlofront.numpy.products.matrices import triu_indices as triu_indices
    from hlofront.numpy.products.matrices import triu_indices_from as triu_indices_from
    from hlofront.numpy.products.matrices import vander as vander
    from hlofront.numpy.scalars import ComplexWarning as ComplexWarning
    from hlofront.numpy.scalars import bfloat16 as bfloat16
    from hlofront.numpy.scalars import bool_ as bool
    from hlofront.numpy.scalars import bool_ as bool_
    from hlofront.numpy.scalars import can_cast as can_cast
    from hlofront.numpy.scalars import cdouble as cdouble
    from hlofront.numpy.scalars import character as character
    from hlofront.numpy.scalars import complex64 as complex64
    from hlofront.numpy.scalars import complex128 as complex128
    from hlofront.numpy.scalars import complex_ as complex_
    from hlofront.numpy.scalars import complexfloating as complexfloating
    from hlofront.numpy.scalars import csingle as csingle
    from hlofront.numpy.scalars import double as double
    from hlofront.numpy.scalars import dtype as dtype
    from hlofront.numpy.scalars import finfo as finfo
    from hlofront.numpy.scalars import flexible as flexible
    from hlofront.numpy.scalars import float4_e2m1fn as float4_e2m1fn
    from hlofront.numpy.scalars import float6_e2m3fn as float6_e2m3fn
    from hlofront.numpy.scalars import float6_e3m2fn as float6_e3m2fn
    from hlofront.numpy.scalars import float8_e3m4 as float8_e3m4
    from hlofront.numpy.scalars import float8_e4m3 as float8_e4m3
    from hlofront.numpy.scalars import float8_e4m3b11fnuz as float8_e4m3b11fnuz
    from hlofront.numpy.scalars import float8_e4m3fn as float8_e4m3fn
    from hlofront.numpy.scalars import float8_e4m3fnuz as float8_e4m3fnuz
    from hlofront.numpy.scalars import float8_e5m2 as float8_e5m2
    from hlofront.numpy.scalars import float8_e5m2fnuz as float8_e5m2fnuz
    from hlofront.numpy.scalars import float8_e8m0fnu as float8_e8m0fnu
    from hlofront.numpy.scalars import float16 as float16
    from hlofront.numpy.scalars import float32 as float32
    from hlofront.numpy.scalars import float64 as float64
    from hlofront.numpy.scalars import float_ as float_
    from hlofront.numpy.scalars import floating as floating
    from hlofront.numpy.scalars import generic as generic
    from hlofront.numpy.scalars import iinfo as iinfo
    from hlofront.numpy.scalars import inexact as inexact
    from hlofront.numpy.scalars import int1 as int1
    from hlofront.numpy.scalars import int2 as int2
    from hlofront.numpy.scalars import int4 as int4
    from hlofront.numpy.scalars import int8 as int8
    from hlofront.numpy.scalars import int16 as int16
    from hlofront.numpy.scalars import int32 as int32
    from hlofront.numpy.scalars import int64 as int64
    from hlofront.numpy.scalars import int_ as int_
    from hlofront.numpy.scalars import integer as integer
    from hlofront.numpy.scalars import isdtype as isdtype
    from hlofront.numpy.scalars import issubdtype as issubdtype
    from hlofront.numpy.scalars import number as number
    from hlofront.numpy.scalars import object_ as object_
    from hlofront.numpy.scalars import promote_types as promote_types
    from hlofront.numpy.scalars import result_type as result_type
    from hlofront.numpy.scalars import signedinteger as signedinteger
    from hlofront.numpy.scalars import single as single
    from hlofront.numpy.scalars import uint as uint
    from hlofront.numpy.scalars import uint1 as uint1
    from hlofront.numpy.scalars import uint2 as uint2
    from hlofront.numpy.scalars import uint4 as uint4
    from hlofront.numpy.scalars import uint8 as uint8
    from hlofront.numpy.scalars import uint16 as uint16
    from hlofront.numpy.scalars import uint32 as uint32
    from hlofront.numpy.scalars import uint64 as uint64
    from hlofront.numpy.scalars import unsignedinteger as unsignedinteger
    from hlofront.numpy.statistics.cumulative import cumprod as cumprod
    from hlofront.numpy.statistics.cumulative import cumsum as cumsum
    from hlofront.numpy.statistics.cumulative import cumulative_prod as cumulative_prod
    from hlofront.numpy.statistics.cumulative import cumulative_sum as cumulative_sum
    from hlofront.numpy.statistics.cumulative import nancumprod as nancumprod
    from hlofront.numpy.statistics.cumulative import nancumsum as nancumsum
    from hlofront.numpy.statistics.moments import average as average
    from hlofront.numpy.statistics.moments import mean as mean
    from hlofront.numpy.statistics.moments import std as std
    from hlofront.numpy.statistics.moments import var as var
    from hlofront.numpy.statistics.reductions import all as all
    from hlofront.numpy.statistics.reductions import amax as amax
    from hlofront.numpy.statistics.reductions import amin as amin
    from hlofront.numpy.statistics.reductions import any as any
    from hlofront.numpy.statistics.reductions import argmax as argmax
    from hlofront.numpy.statistics.reductions import argmin as argmin
    from hlofront.numpy.statistics.reductions import count_nonzero as count_nonzero
    from hlofront.numpy.statistics.reductions import max as max
    from hlofront.numpy.statistics.reductions import min as min
    from hlofront.numpy.statistics.reductions import minmax as minmax
    from hlofront.numpy.statistics.reductions import prod as prod
    from hlofront.numpy.statistics.reductions import ptp as ptp
    from hlofront.numpy.statistics.reductions import sum as sum
    from hlofront.numpy.vectorize import apply_along_axis as apply_along_axis
    from hlofront.numpy.vectorize import apply_over_axes as apply_over_axes
    from hlofront.numpy.vectorize import vectorize as vectorize

# What programs use less often is imported on first use.
__getattr__, __dir__ = _lazy(
    __name__,
    ("fft", "linalg"),
    {
        "convolve": "hlofront.numpy.products.convolution",
        "correlate": "hlofront.numpy.products.convolution",
        "ix_": "hlofront.numpy.indexing.coordinates",
        "mask_indices": "hlofront.numpy.indexing.coordinates",
        "ravel_multi_index": "hlofront.numpy.indexing.coordinates",
        "unravel_index": "hlofront.numpy.indexing.coordinates",
        "diff": "hlofront.numpy.statistics.differences",
        "ediff1d": "hlofront.numpy.statistics.differences",
        "gradient": "hlofront.numpy.statistics.differences",
        "interp": "hlofront.numpy.statistics.differences",
        "trapezoid": "hlofront.numpy.statistics.differences",
        "unwrap": "hlofront.numpy.statistics.differences",
        "copysign": "hlofront.numpy.elementwise.floats",
        "frexp": "hlofront.numpy.elementwise.floats",
        "heaviside": "hlofront.numpy.elementwise.floats",
        "hypot": "hlofront.numpy.elementwise.floats",
        "ldexp": "hlofront.numpy.elementwise.floats",
        "modf": "hlofront.numpy.elementwise.floats",
        "nan_to_num": "hlofront.numpy.elementwise.floats",
        "nextafter": "hlofront.numpy.elementwise.floats",
        "signbit": "hlofront.numpy.elementwise.floats",
        "spacing": "hlofront.numpy.elementwise.floats",
        "histogram": "hlofront.numpy.statistics.histograms",
        "histogram2d": "hlofront.numpy.statistics.histograms",
        "histogram_bin_edges": "hlofront.numpy.statistics.histograms",
        "histogramdd": "hlofront.numpy.statistics.histograms",
        "c_": "hlofront.numpy.indexing.tricks",
        "index_exp": "hlofront.numpy.indexing.tricks",
        "r_": "hlofront.numpy.indexing.tricks",
        "s_": "hlofront.numpy.indexing.tricks",
        "delete": "hlofront.numpy.indexing.inserting",
        "insert": "hlofront.numpy.indexing.inserting",
        "nanargmax": "hlofront.numpy.statistics.nan_reductions",
        "nanargmin": "hlofront.numpy.statistics.nan_reductions",
        "nanmax": "hlofront.numpy.statistics.nan_reductions",
        "nanmean": "hlofront.numpy.statistics.nan_reductions",
        "nanmin": "hlofront.numpy.statistics.nan_reductions",
        "nanprod": "hlofront.numpy.statistics.nan_reductions",
        "nanstd": "hlofront.numpy.statistics.nan_reductions",
        "nansum": "hlofront.numpy.statistics.nan_reductions",
        "nanvar": "hlofront.numpy.statistics.nan_reductions",
        "i0": "hlofront.numpy.support.near_zero",
        "sinc": "hlofront.numpy.support.near_zero",
        "pad": "hlofront.numpy.arrays.padding",
        "polyadd": "hlofront.numpy.products.polynomial",
        "polyder": "hlofront.numpy.products.polynomial",
        "polydiv": "hlofront.numpy.products.polynomial",
        "polyint": "hlofront.numpy.products.polynomial",
        "polymul": "hlofront.numpy.products.polynomial",
        "polysub": "hlofront.numpy.products.polynomial",
        "polyval": "hlofront.numpy.products.polynomial",
        "poly": "hlofront.numpy.products.polynomial_roots",
        "polyfit": "hlofront.numpy.products.polynomial_roots",
        "roots": "hlofront.numpy.products.polynomial_roots",
        "array_repr": "hlofront.numpy.support.printing",
        "array_str": "hlofront.numpy.support.printing",
        "get_printoptions": "hlofront.numpy.support.printing",
        "printoptions": "hlofront.numpy.support.printing",
        "set_printoptions": "hlofront.numpy.support.printing",
        "median": "hlofront.numpy.statistics.quantiles",
        "nanmedian": "hlofront.numpy.statistics.quantiles",
        "nanpercentile": "hlofront.numpy.statistics.quantiles",
        "nanquantile": "hlofront.numpy.statistics.quantiles",
        "percentile": "hlofront.numpy.statistics.quantiles",
        "quantile": "hlofront.numpy.statistics.quantiles",
        "load": "hlofront.numpy.arrays.saving",
        "save": "hlofront.numpy.arrays.saving",
        "savez": "hlofront.numpy.arrays.saving",
        "intersect1d": "hlofront.numpy.arrays.set_operations",
        "setdiff1d": "hlofront.numpy.arrays.set_operations",
        "setxor1d": "hlofront.numpy.arrays.set_operations",
        "union1d": "hlofront.numpy.arrays.set_operations",
        "isin": "hlofront.numpy.arrays.sets",
        "unique": "hlofront.numpy.arrays.sets",
        "unique_all": "hlofront.numpy.arrays.sets",
        "unique_counts": "hlofront.numpy.arrays.sets",
        "unique_inverse": "hlofront.numpy.arrays.sets",
        "unique_values": "hlofront.numpy.arrays.sets",
        "bincount": "hlofront.numpy.statistics.correlation",
        "corrcoef": "hlofront.numpy.statistics.correlation",
        "cov": "hlofront.numpy.statistics.correlation",
        "digitize": "hlofront.numpy.statistics.correlation",
        "cross": "hlofront.numpy.products.tensor_products",
        "kron": "hlofront.numpy.products.tensor_products",
        "outer": "hlofront.numpy.products.tensor_products",
        "tensordot": "hlofront.numpy.products.tensor_products",
        "bartlett": "hlofront.numpy.windows",
        "blackman": "hlofront.numpy.windows",
        "hamming": "hlofront.numpy.windows",
        "hanning": "hlofront.numpy.windows",
        "kaiser": "hlofront.numpy.windows",
    },
)
