"""hlofront.numpy: NumPy's functions on arrays of any device, traced, compiled and differentiated."""

# ruff: noqa: A004  (names of NumPy stand for Python's)
from hlofront.bridge.fast_parts import Array as ndarray
from hlofront.numpy import operators as _operators  # noqa: F401  (plugs in x + y and x.sum())

# ---- ufuncs, logic, bitwise, complex (numpy helper 1)
from hlofront.numpy.bitwise import *
from hlofront.numpy.complex import *
from hlofront.numpy.constants import *
from hlofront.numpy.creation import *
from hlofront.numpy.division import *
from hlofront.numpy.floats import *
from hlofront.numpy.logic import *
from hlofront.numpy.matrices import *
from hlofront.numpy.powers import *
from hlofront.numpy.ranges import *
from hlofront.numpy.rounding import *
from hlofront.numpy.scalars import *
from hlofront.numpy.ufuncs import *

# ---- shapes, joining, indices, sorting, sets (numpy helper 2)
from hlofront.numpy.casting import astype as astype
from hlofront.numpy.taking import fill_diagonal as fill_diagonal
from hlofront.numpy.coordinates import ix_ as ix_
from hlofront.numpy.coordinates import mask_indices as mask_indices
from hlofront.numpy.coordinates import ravel_multi_index as ravel_multi_index
from hlofront.numpy.coordinates import unravel_index as unravel_index
from hlofront.numpy.inserting import delete as delete
from hlofront.numpy.inserting import insert as insert
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
from hlofront.numpy.padding import pad as pad
from hlofront.numpy.rearranging import flip as flip
from hlofront.numpy.rearranging import fliplr as fliplr
from hlofront.numpy.rearranging import flipud as flipud
from hlofront.numpy.rearranging import repeat as repeat
from hlofront.numpy.rearranging import resize as resize
from hlofront.numpy.rearranging import roll as roll
from hlofront.numpy.rearranging import rot90 as rot90
from hlofront.numpy.rearranging import tile as tile
from hlofront.numpy.rearranging import trim_zeros as trim_zeros
from hlofront.numpy.selecting import argwhere as argwhere
from hlofront.numpy.selecting import choose as choose
from hlofront.numpy.selecting import compress as compress
from hlofront.numpy.selecting import extract as extract
from hlofront.numpy.selecting import flatnonzero as flatnonzero
from hlofront.numpy.selecting import nonzero as nonzero
from hlofront.numpy.selecting import piecewise as piecewise
from hlofront.numpy.taking import place as place
from hlofront.numpy.selecting import select as select
from hlofront.numpy.selecting import where as where
from hlofront.numpy.sets import intersect1d as intersect1d
from hlofront.numpy.sets import isin as isin
from hlofront.numpy.sets import setdiff1d as setdiff1d
from hlofront.numpy.sets import setxor1d as setxor1d
from hlofront.numpy.sets import union1d as union1d
from hlofront.numpy.sets import unique as unique
from hlofront.numpy.sets import unique_all as unique_all
from hlofront.numpy.sets import unique_counts as unique_counts
from hlofront.numpy.sets import unique_inverse as unique_inverse
from hlofront.numpy.sets import unique_values as unique_values
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
from hlofront.numpy.taking import put as put
from hlofront.numpy.taking import put_along_axis as put_along_axis
from hlofront.numpy.taking import take as take
from hlofront.numpy.taking import take_along_axis as take_along_axis

# ---- reductions, statistics, products of matrices (numpy helper 3)
from hlofront.numpy.contraction import cross as cross
from hlofront.numpy.contraction import dot as dot
from hlofront.numpy.contraction import inner as inner
from hlofront.numpy.contraction import kron as kron
from hlofront.numpy.contraction import matmul as matmul
from hlofront.numpy.contraction import matvec as matvec
from hlofront.numpy.contraction import outer as outer
from hlofront.numpy.contraction import tensordot as tensordot
from hlofront.numpy.contraction import trace as trace
from hlofront.numpy.contraction import vdot as vdot
from hlofront.numpy.contraction import vecdot as vecdot
from hlofront.numpy.contraction import vecmat as vecmat
from hlofront.numpy.convolution import convolve as convolve
from hlofront.numpy.convolution import correlate as correlate
from hlofront.numpy.cumulative import cumprod as cumprod
from hlofront.numpy.cumulative import cumsum as cumsum
from hlofront.numpy.cumulative import cumulative_prod as cumulative_prod
from hlofront.numpy.cumulative import cumulative_sum as cumulative_sum
from hlofront.numpy.cumulative import nancumprod as nancumprod
from hlofront.numpy.cumulative import nancumsum as nancumsum
from hlofront.numpy.einsum import einsum as einsum
from hlofront.numpy.einsum import einsum_path as einsum_path
from hlofront.numpy.histograms import histogram as histogram
from hlofront.numpy.histograms import histogram2d as histogram2d
from hlofront.numpy.histograms import histogram_bin_edges as histogram_bin_edges
from hlofront.numpy.histograms import histogramdd as histogramdd
from hlofront.numpy.moments import average as average
from hlofront.numpy.moments import mean as mean
from hlofront.numpy.moments import std as std
from hlofront.numpy.moments import var as var
from hlofront.numpy.nan_reductions import nanargmax as nanargmax
from hlofront.numpy.nan_reductions import nanargmin as nanargmin
from hlofront.numpy.nan_reductions import nanmax as nanmax
from hlofront.numpy.nan_reductions import nanmean as nanmean
from hlofront.numpy.nan_reductions import nanmin as nanmin
from hlofront.numpy.nan_reductions import nanprod as nanprod
from hlofront.numpy.nan_reductions import nanstd as nanstd
from hlofront.numpy.nan_reductions import nansum as nansum
from hlofront.numpy.nan_reductions import nanvar as nanvar
from hlofront.numpy.quantiles import median as median
from hlofront.numpy.quantiles import nanmedian as nanmedian
from hlofront.numpy.quantiles import nanpercentile as nanpercentile
from hlofront.numpy.quantiles import nanquantile as nanquantile
from hlofront.numpy.quantiles import percentile as percentile
from hlofront.numpy.quantiles import quantile as quantile
from hlofront.numpy.reductions import all as all
from hlofront.numpy.reductions import amax as amax
from hlofront.numpy.reductions import amin as amin
from hlofront.numpy.reductions import any as any
from hlofront.numpy.reductions import argmax as argmax
from hlofront.numpy.reductions import argmin as argmin
from hlofront.numpy.reductions import count_nonzero as count_nonzero
from hlofront.numpy.reductions import max as max
from hlofront.numpy.reductions import min as min
from hlofront.numpy.reductions import prod as prod
from hlofront.numpy.reductions import ptp as ptp
from hlofront.numpy.reductions import sum as sum
from hlofront.numpy.statistics import bincount as bincount
from hlofront.numpy.statistics import corrcoef as corrcoef
from hlofront.numpy.statistics import cov as cov
from hlofront.numpy.statistics import digitize as digitize
