"""hlofront.numpy: NumPy's functions on device arrays, traced and compiled."""

from hlofront.base.garbage_collection import collection_paused as _collection_paused
from hlofront.base.lazy import lazy as _lazy

with _collection_paused():
    from hlofront.bridge.fast_parts import Array as ndarray
    from hlofront.numpy.bitwise import bitwise_count as bitwise_count
    from hlofront.numpy.bitwise import bitwise_invert as bitwise_invert
    from hlofront.numpy.bitwise import bitwise_left_shift as bitwise_left_shift
    from hlofront.numpy.bitwise import bitwise_not as bitwise_not
    from hlofront.numpy.bitwise import bitwise_right_shift as bitwise_right_shift
    from hlofront.numpy.bitwise import invert as invert
    from hlofront.numpy.bitwise import left_shift as left_shift
    from hlofront.numpy.bitwise import packbits as packbits
    from hlofront.numpy.bitwise import right_shift as right_shift
    from hlofront.numpy.bitwise import unpackbits as unpackbits
    from hlofront.numpy.casting import astype as astype
    from hlofront.numpy.complex import angle as angle
    from hlofront.numpy.complex import conj as conj
    from hlofront.numpy.complex import conjugate as conjugate
    from hlofront.numpy.complex import imag as imag
    from hlofront.numpy.complex import real as real
    from hlofront.numpy.constants import e as e
    from hlofront.numpy.constants import euler_gamma as euler_gamma
    from hlofront.numpy.constants import inf as inf
    from hlofront.numpy.constants import nan as nan
    from hlofront.numpy.constants import newaxis as newaxis
    from hlofront.numpy.constants import pi as pi
    from hlofront.numpy.contraction import dot as dot
    from hlofront.numpy.contraction import inner as inner
    from hlofront.numpy.contraction import matmul as matmul
    from hlofront.numpy.contraction import matvec as matvec
    from hlofront.numpy.contraction import trace as trace
    from hlofront.numpy.contraction import vdot as vdot
    from hlofront.numpy.contraction import vecdot as vecdot
    from hlofront.numpy.contraction import vecmat as vecmat
    from hlofront.numpy.creation import array as array
    from hlofront.numpy.creation import asarray as asarray
    from hlofront.numpy.creation import copy as copy
    from hlofront.numpy.creation import from_dlpack as from_dlpack
    from hlofront.numpy.creation import frombuffer as frombuffer
    from hlofront.numpy.creation import fromfile as fromfile
    from hlofront.numpy.creation import fromiter as fromiter
    from hlofront.numpy.creation import fromstring as fromstring
    from hlofront.numpy.cumulative import cumprod as cumprod
    from hlofront.numpy.cumulative import cumsum as cumsum
    from hlofront.numpy.cumulative import cumulative_prod as cumulative_prod
    from hlofront.numpy.cumulative import cumulative_sum as cumulative_sum
    from hlofront.numpy.cumulative import nancumprod as nancumprod
    from hlofront.numpy.cumulative import nancumsum as nancumsum
    from hlofront.numpy.division import divmod as divmod
    from hlofront.numpy.division import floor_divide as floor_divide
    from hlofront.numpy.division import fmod as fmod
    from hlofront.numpy.division import gcd as gcd
    from hlofront.numpy.division import lcm as lcm
    from hlofront.numpy.division import mod as mod
    from hlofront.numpy.division import remainder as remainder
    from hlofront.numpy.einsum import einsum as einsum
    from hlofront.numpy.einsum import einsum_path as einsum_path
    from hlofront.numpy.filling import empty as empty
    from hlofront.numpy.filling import empty_like as empty_like
    from hlofront.numpy.filling import full as full
    from hlofront.numpy.filling import full_like as full_like
    from hlofront.numpy.filling import ones as ones
    from hlofront.numpy.filling import ones_like as ones_like
    from hlofront.numpy.filling import zeros as zeros
    from hlofront.numpy.filling import zeros_like as zeros_like
    from hlofront.numpy.joining import append as append
    from hlofront.numpy.joining import array_split as array_split
    from hlofront.numpy.joining import block as block
    from hlofront.numpy.joining import column_stack as column_stack
    from hlofront.numpy.joining import concat as concat
    from hlofront.numpy.joining import concatenate as concatenate
    from hlofront.numpy.joining import dsplit as dsplit
    from hlofront.numpy.joining import dstack as dstack
    from hlofront.numpy.joining import hsplit as hsplit
    from hlofront.numpy.joining import hstack as hstack
    from hlofront.numpy.joining import split as split
    from hlofront.numpy.joining import stack as stack
    from hlofront.numpy.joining import unstack as unstack
    from hlofront.numpy.joining import vsplit as vsplit
    from hlofront.numpy.joining import vstack as vstack
    from hlofront.numpy.logic import allclose as allclose
    from hlofront.numpy.logic import array_equal as array_equal
    from hlofront.numpy.logic import array_equiv as array_equiv
    from hlofront.numpy.logic import equal as equal
    from hlofront.numpy.logic import greater as greater
    from hlofront.numpy.logic import greater_equal as greater_equal
    from hlofront.numpy.logic import isclose as isclose
    from hlofront.numpy.logic import iscomplex as iscomplex
    from hlofront.numpy.logic import iscomplexobj as iscomplexobj
    from hlofront.numpy.logic import isfinite as isfinite
    from hlofront.numpy.logic import isinf as isinf
    from hlofront.numpy.logic import isnan as isnan
    from hlofront.numpy.logic import isneginf as isneginf
    from hlofront.numpy.logic import isposinf as isposinf
    from hlofront.numpy.logic import isreal as isreal
    from hlofront.numpy.logic import isrealobj as isrealobj
    from hlofront.numpy.logic import isscalar as isscalar
    from hlofront.numpy.logic import iterable as iterable
    from hlofront.numpy.logic import less as less
    from hlofront.numpy.logic import less_equal as less_equal
    from hlofront.numpy.logic import logical_not as logical_not
    from hlofront.numpy.logic import not_equal as not_equal
    from hlofront.numpy.matrices import diag as diag
    from hlofront.numpy.matrices import diag_indices as diag_indices
    from hlofront.numpy.matrices import diag_indices_from as diag_indices_from
    from hlofront.numpy.matrices import diagflat as diagflat
    from hlofront.numpy.matrices import diagonal as diagonal
    from hlofront.numpy.matrices import eye as eye
    from hlofront.numpy.matrices import identity as identity
    from hlofront.numpy.matrices import tri as tri
    from hlofront.numpy.matrices import tril as tril
    from hlofront.numpy.matrices import tril_indices as tril_indices
    from hlofront.numpy.matrices import tril_indices_from as tril_indices_from
    from hlofront.numpy.matrices import triu as triu
    from hlofront.numpy.matrices import triu_indices as triu_indices
    from hlofront.numpy.matrices import triu_indices_from as triu_indices_from
    from hlofront.numpy.matrices import vander as vander
    from hlofront.numpy.moments import average as average
    from hlofront.numpy.moments import mean as mean
    from hlofront.numpy.moments import std as std
    from hlofront.numpy.moments import var as var
    from hlofront.numpy.namespace import ARRAY_API_VERSION as __array_api_version__
    from hlofront.numpy.namespace import array_namespace_info as __array_namespace_info__
    from hlofront.numpy.powers import float_power as float_power
    from hlofront.numpy.powers import pow as pow
    from hlofront.numpy.powers import power as power
    from hlofront.numpy.ranges import arange as arange
    from hlofront.numpy.ranges import fromfunction as fromfunction
    from hlofront.numpy.ranges import geomspace as geomspace
    from hlofront.numpy.ranges import indices as indices
    from hlofront.numpy.ranges import linspace as linspace
    from hlofront.numpy.ranges import logspace as logspace
    from hlofront.numpy.ranges import meshgrid as meshgrid
    from hlofront.numpy.ranges import mgrid as mgrid
    from hlofront.numpy.ranges import ogrid as ogrid
    from hlofront.numpy.rearranging import flip as flip
    from hlofront.numpy.rearranging import fliplr as fliplr
    from hlofront.numpy.rearranging import flipud as flipud
    from hlofront.numpy.rearranging import repeat as repeat
    from hlofront.numpy.rearranging import resize as resize
    from hlofront.numpy.rearranging import roll as roll
    from hlofront.numpy.rearranging import rot90 as rot90
    from hlofront.numpy.rearranging import tile as tile
    from hlofront.numpy.rearranging import trim_zeros as trim_zeros
    from hlofront.numpy.reductions import all as all
    from hlofront.numpy.reductions import amax as amax
    from hlofront.numpy.reductions import amin as amin
    from hlofront.numpy.reductions import any as any
    from hlofront.numpy.reductions import argmax as argmax
    from hlofront.numpy.reductions import argmin as argmin
    from hlofront.numpy.reductions import count_nonzero as count_nonzero
    from hlofront.numpy.reductions import max as max
    from hlofront.numpy.reductions import min as min
    from hlofront.numpy.reductions import minmax as minmax
    from hlofront.numpy.reductions import prod as prod
    from hlofront.numpy.reductions import ptp as ptp
    from hlofront.numpy.reductions import sum as sum
    from hlofront.numpy.rounding import around as around
    from hlofront.numpy.rounding import ceil as ceil
    from hlofront.numpy.rounding import clip as clip
    from hlofront.numpy.rounding import floor as floor
    from hlofront.numpy.rounding import rint as rint
    from hlofront.numpy.rounding import round as round
    from hlofront.numpy.rounding import trunc as trunc
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
    from hlofront.numpy.selecting import argwhere as argwhere
    from hlofront.numpy.selecting import choose as choose
    from hlofront.numpy.selecting import compress as compress
    from hlofront.numpy.selecting import extract as extract
    from hlofront.numpy.selecting import flatnonzero as flatnonzero
    from hlofront.numpy.selecting import nonzero as nonzero
    from hlofront.numpy.selecting import piecewise as piecewise
    from hlofront.numpy.selecting import select as select
    from hlofront.numpy.selecting import where as where
    from hlofront.numpy.shape import atleast_1d as atleast_1d
    from hlofront.numpy.shape import atleast_2d as atleast_2d
    from hlofront.numpy.shape import atleast_3d as atleast_3d
    from hlofront.numpy.shape import broadcast_arrays as broadcast_arrays
    from hlofront.numpy.shape import broadcast_shapes as broadcast_shapes
    from hlofront.numpy.shape import broadcast_to as broadcast_to
    from hlofront.numpy.shape import expand_dims as expand_dims
    from hlofront.numpy.shape import matrix_transpose as matrix_transpose
    from hlofront.numpy.shape import moveaxis as moveaxis
    from hlofront.numpy.shape import ndim as ndim
    from hlofront.numpy.shape import permute_dims as permute_dims
    from hlofront.numpy.shape import ravel as ravel
    from hlofront.numpy.shape import reshape as reshape
    from hlofront.numpy.shape import rollaxis as rollaxis
    from hlofront.numpy.shape import shape as shape
    from hlofront.numpy.shape import size as size
    from hlofront.numpy.shape import squeeze as squeeze
    from hlofront.numpy.shape import swapaxes as swapaxes
    from hlofront.numpy.shape import transpose as transpose
    from hlofront.numpy.sorting import argpartition as argpartition
    from hlofront.numpy.sorting import argsort as argsort
    from hlofront.numpy.sorting import lexsort as lexsort
    from hlofront.numpy.sorting import partition as partition
    from hlofront.numpy.sorting import searchsorted as searchsorted
    from hlofront.numpy.sorting import sort as sort
    from hlofront.numpy.sorting import sort_complex as sort_complex
    from hlofront.numpy.sorting import top_k as top_k
    from hlofront.numpy.taking import fill_diagonal as fill_diagonal
    from hlofront.numpy.taking import place as place
    from hlofront.numpy.taking import put as put
    from hlofront.numpy.taking import put_along_axis as put_along_axis
    from hlofront.numpy.taking import take as take
    from hlofront.numpy.taking import take_along_axis as take_along_axis
    from hlofront.numpy.ufunc import frompyfunc as frompyfunc
    from hlofront.numpy.ufunc import ufunc as ufunc
    from hlofront.numpy.ufuncs import abs as abs
    from hlofront.numpy.ufuncs import absolute as absolute
    from hlofront.numpy.ufuncs import acos as acos
    from hlofront.numpy.ufuncs import acosh as acosh
    from hlofront.numpy.ufuncs import arccos as arccos
    from hlofront.numpy.ufuncs import arccosh as arccosh
    from hlofront.numpy.ufuncs import arcsin as arcsin
    from hlofront.numpy.ufuncs import arcsinh as arcsinh
    from hlofront.numpy.ufuncs import arctan as arctan
    from hlofront.numpy.ufuncs import arctan2 as arctan2
    from hlofront.numpy.ufuncs import arctanh as arctanh
    from hlofront.numpy.ufuncs import asin as asin
    from hlofront.numpy.ufuncs import asinh as asinh
    from hlofront.numpy.ufuncs import atan as atan
    from hlofront.numpy.ufuncs import atan2 as atan2
    from hlofront.numpy.ufuncs import atanh as atanh
    from hlofront.numpy.ufuncs import cbrt as cbrt
    from hlofront.numpy.ufuncs import cos as cos
    from hlofront.numpy.ufuncs import cosh as cosh
    from hlofront.numpy.ufuncs import deg2rad as deg2rad
    from hlofront.numpy.ufuncs import degrees as degrees
    from hlofront.numpy.ufuncs import divide as divide
    from hlofront.numpy.ufuncs import exp as exp
    from hlofront.numpy.ufuncs import exp2 as exp2
    from hlofront.numpy.ufuncs import expm1 as expm1
    from hlofront.numpy.ufuncs import fabs as fabs
    from hlofront.numpy.ufuncs import fmax as fmax
    from hlofront.numpy.ufuncs import fmin as fmin
    from hlofront.numpy.ufuncs import log as log
    from hlofront.numpy.ufuncs import log1p as log1p
    from hlofront.numpy.ufuncs import log2 as log2
    from hlofront.numpy.ufuncs import log10 as log10
    from hlofront.numpy.ufuncs import positive as positive
    from hlofront.numpy.ufuncs import rad2deg as rad2deg
    from hlofront.numpy.ufuncs import radians as radians
    from hlofront.numpy.ufuncs import reciprocal as reciprocal
    from hlofront.numpy.ufuncs import sign as sign
    from hlofront.numpy.ufuncs import sin as sin
    from hlofront.numpy.ufuncs import sinh as sinh
    from hlofront.numpy.ufuncs import sqrt as sqrt
    from hlofront.numpy.ufuncs import square as square
    from hlofront.numpy.ufuncs import tan as tan
    from hlofront.numpy.ufuncs import tanh as tanh
    from hlofront.numpy.ufuncs import true_divide as true_divide
    from hlofront.numpy.universal import add as add
    from hlofront.numpy.universal import bitwise_and as bitwise_and
    from hlofront.numpy.universal import bitwise_or as bitwise_or
    from hlofront.numpy.universal import bitwise_xor as bitwise_xor
    from hlofront.numpy.universal import logaddexp as logaddexp
    from hlofront.numpy.universal import logaddexp2 as logaddexp2
    from hlofront.numpy.universal import logical_and as logical_and
    from hlofront.numpy.universal import logical_or as logical_or
    from hlofront.numpy.universal import logical_xor as logical_xor
    from hlofront.numpy.universal import maximum as maximum
    from hlofront.numpy.universal import minimum as minimum
    from hlofront.numpy.universal import multiply as multiply
    from hlofront.numpy.universal import negative as negative
    from hlofront.numpy.universal import subtract as subtract
    from hlofront.numpy.vectorize import apply_along_axis as apply_along_axis
    from hlofront.numpy.vectorize import apply_over_axes as apply_over_axes
    from hlofront.numpy.vectorize import vectorize as vectorize

# What programs use less often is imported on first use.
__getattr__, __dir__ = _lazy(
    __name__,
    ("fft", "linalg"),
    {
        "convolve": "hlofront.numpy.convolution",
        "correlate": "hlofront.numpy.convolution",
        "ix_": "hlofront.numpy.coordinates",
        "mask_indices": "hlofront.numpy.coordinates",
        "ravel_multi_index": "hlofront.numpy.coordinates",
        "unravel_index": "hlofront.numpy.coordinates",
        "diff": "hlofront.numpy.differences",
        "ediff1d": "hlofront.numpy.differences",
        "gradient": "hlofront.numpy.differences",
        "interp": "hlofront.numpy.differences",
        "trapezoid": "hlofront.numpy.differences",
        "unwrap": "hlofront.numpy.differences",
        "copysign": "hlofront.numpy.floats",
        "frexp": "hlofront.numpy.floats",
        "heaviside": "hlofront.numpy.floats",
        "hypot": "hlofront.numpy.floats",
        "ldexp": "hlofront.numpy.floats",
        "modf": "hlofront.numpy.floats",
        "nan_to_num": "hlofront.numpy.floats",
        "nextafter": "hlofront.numpy.floats",
        "signbit": "hlofront.numpy.floats",
        "spacing": "hlofront.numpy.floats",
        "histogram": "hlofront.numpy.histograms",
        "histogram2d": "hlofront.numpy.histograms",
        "histogram_bin_edges": "hlofront.numpy.histograms",
        "histogramdd": "hlofront.numpy.histograms",
        "c_": "hlofront.numpy.index_tricks",
        "index_exp": "hlofront.numpy.index_tricks",
        "r_": "hlofront.numpy.index_tricks",
        "s_": "hlofront.numpy.index_tricks",
        "delete": "hlofront.numpy.inserting",
        "insert": "hlofront.numpy.inserting",
        "nanargmax": "hlofront.numpy.nan_reductions",
        "nanargmin": "hlofront.numpy.nan_reductions",
        "nanmax": "hlofront.numpy.nan_reductions",
        "nanmean": "hlofront.numpy.nan_reductions",
        "nanmin": "hlofront.numpy.nan_reductions",
        "nanprod": "hlofront.numpy.nan_reductions",
        "nanstd": "hlofront.numpy.nan_reductions",
        "nansum": "hlofront.numpy.nan_reductions",
        "nanvar": "hlofront.numpy.nan_reductions",
        "i0": "hlofront.numpy.near_zero",
        "sinc": "hlofront.numpy.near_zero",
        "pad": "hlofront.numpy.padding",
        "polyadd": "hlofront.numpy.polynomial",
        "polyder": "hlofront.numpy.polynomial",
        "polydiv": "hlofront.numpy.polynomial",
        "polyint": "hlofront.numpy.polynomial",
        "polymul": "hlofront.numpy.polynomial",
        "polysub": "hlofront.numpy.polynomial",
        "polyval": "hlofront.numpy.polynomial",
        "poly": "hlofront.numpy.polynomial_roots",
        "polyfit": "hlofront.numpy.polynomial_roots",
        "roots": "hlofront.numpy.polynomial_roots",
        "array_repr": "hlofront.numpy.printing",
        "array_str": "hlofront.numpy.printing",
        "get_printoptions": "hlofront.numpy.printing",
        "printoptions": "hlofront.numpy.printing",
        "set_printoptions": "hlofront.numpy.printing",
        "median": "hlofront.numpy.quantiles",
        "nanmedian": "hlofront.numpy.quantiles",
        "nanpercentile": "hlofront.numpy.quantiles",
        "nanquantile": "hlofront.numpy.quantiles",
        "percentile": "hlofront.numpy.quantiles",
        "quantile": "hlofront.numpy.quantiles",
        "load": "hlofront.numpy.saving",
        "save": "hlofront.numpy.saving",
        "savez": "hlofront.numpy.saving",
        "intersect1d": "hlofront.numpy.set_operations",
        "setdiff1d": "hlofront.numpy.set_operations",
        "setxor1d": "hlofront.numpy.set_operations",
        "union1d": "hlofront.numpy.set_operations",
        "isin": "hlofront.numpy.sets",
        "unique": "hlofront.numpy.sets",
        "unique_all": "hlofront.numpy.sets",
        "unique_counts": "hlofront.numpy.sets",
        "unique_inverse": "hlofront.numpy.sets",
        "unique_values": "hlofront.numpy.sets",
        "bincount": "hlofront.numpy.statistics",
        "corrcoef": "hlofront.numpy.statistics",
        "cov": "hlofront.numpy.statistics",
        "digitize": "hlofront.numpy.statistics",
        "cross": "hlofront.numpy.tensor_products",
        "kron": "hlofront.numpy.tensor_products",
        "outer": "hlofront.numpy.tensor_products",
        "tensordot": "hlofront.numpy.tensor_products",
        "bartlett": "hlofront.numpy.windows",
        "blackman": "hlofront.numpy.windows",
        "hamming": "hlofront.numpy.windows",
        "hanning": "hlofront.numpy.windows",
        "kaiser": "hlofront.numpy.windows",
    },
)
