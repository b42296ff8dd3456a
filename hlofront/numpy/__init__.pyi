# Written by scripts/write_stubs.py from the running package: do not edit.

import builtins
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any, Literal, TypeAlias, overload

import numpy as np
from numpy import character as character
from numpy import complexfloating as complexfloating
from numpy import dtype as dtype
from numpy import flexible as flexible
from numpy import floating as floating
from numpy import generic as generic
from numpy import inexact as inexact
from numpy import integer as integer
from numpy import number as number
from numpy import object_ as object_
from numpy import signedinteger as signedinteger
from numpy import unsignedinteger as unsignedinteger

from hlofront import Array
from hlofront.lax import GatherScatterMode
from hlofront.numpy import fft as fft
from hlofront.numpy import linalg as linalg
from hlofront.numpy.arrays.creation import fromfile as fromfile
from hlofront.numpy.arrays.creation import fromiter as fromiter
from hlofront.numpy.arrays.ranges import mgrid as mgrid
from hlofront.numpy.arrays.ranges import ogrid as ogrid
from hlofront.numpy.arrays.sets import _UniqueAllResult, _UniqueCountsResult, _UniqueInverseResult
from hlofront.numpy.arrays.sorting import top_k as top_k
from hlofront.numpy.constants import e as e
from hlofront.numpy.constants import euler_gamma as euler_gamma
from hlofront.numpy.constants import inf as inf
from hlofront.numpy.constants import nan as nan
from hlofront.numpy.constants import newaxis as newaxis
from hlofront.numpy.constants import pi as pi
from hlofront.numpy.elementwise.ufunc import ufunc as ufunc
from hlofront.numpy.indexing.tricks import c_ as c_
from hlofront.numpy.indexing.tricks import index_exp as index_exp
from hlofront.numpy.indexing.tricks import r_ as r_
from hlofront.numpy.indexing.tricks import s_ as s_
from hlofront.numpy.scalars import ComplexWarning as ComplexWarning
from hlofront.numpy.scalars import ScalarType
from hlofront.numpy.scalars import finfo as finfo
from hlofront.numpy.scalars import iinfo as iinfo
from hlofront.numpy.statistics.reductions import minmax as minmax
from hlofront.primitives.linalg.dot_general import PrecisionLike
from hlofront.typing import ArrayLike, DTypeLike

Sharding: TypeAlias = Any
PartitionSpec: TypeAlias = Any
NamedSharding: TypeAlias = Any
Device: TypeAlias = Any

class _Unary(ufunc):
    def __call__(self, x: ArrayLike, /, out: None = None, where: None = None) -> Array: ...

class _Binary(ufunc):
    def __call__(
        self, x: ArrayLike, y: ArrayLike, /, out: None = None, where: None = None
    ) -> Array: ...

def abs(x: ArrayLike, /) -> Array: ...
def absolute(x: ArrayLike, /) -> Array: ...
def acos(x: ArrayLike, /) -> Array: ...
def acosh(x: ArrayLike, /) -> Array: ...

add: _Binary

def all(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array: ...
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: builtins.bool = False,
) -> Array: ...
def amax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def amin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def angle(z: ArrayLike, deg: builtins.bool = False) -> Array: ...
def any(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array: ...
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array: ...
def apply_along_axis(
    func1d: Callable[..., object], axis: int, arr: ArrayLike, *args: object, **kwargs: object
) -> Any: ...
def apply_over_axes(
    func: Callable[[Array, int], Array], a: ArrayLike, axes: Sequence[int]
) -> Array: ...
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def arccos(x: ArrayLike, /) -> Array: ...
def arccosh(x: ArrayLike, /) -> Array: ...
def arcsin(x: ArrayLike, /) -> Array: ...
def arcsinh(x: ArrayLike, /) -> Array: ...
def arctan(x: ArrayLike, /) -> Array: ...
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def arctanh(x: ArrayLike, /) -> Array: ...
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None
) -> Array: ...
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None
) -> Array: ...
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array: ...
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: str | None = None,
    stable: builtins.bool = True,
    descending: builtins.bool = False,
    dtype: DTypeLike | None = None,
) -> Array: ...
def argwhere(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array: ...
def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array: ...
def array(
    object: object,
    dtype: DTypeLike | None = None,
    *args: builtins.bool | str | int,
    copy: builtins.bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def array_equal(
    a1: ArrayLike | Sequence[ArrayLike],
    a2: ArrayLike | Sequence[ArrayLike],
    equal_nan: builtins.bool = False,
) -> Array: ...
def array_equiv(
    a1: ArrayLike | Sequence[ArrayLike], a2: ArrayLike | Sequence[ArrayLike]
) -> Array: ...
def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: builtins.bool | None = None,
) -> str: ...
def array_split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike], axis: int = 0
) -> list[Array]: ...
def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: builtins.bool | None = None,
) -> str: ...
def asarray(
    a: object,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: builtins.bool | None = None,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def asin(x: ArrayLike, /) -> Array: ...
def asinh(x: ArrayLike, /) -> Array: ...
def astype(
    x: ArrayLike,
    dtype: DTypeLike,
    /,
    *,
    copy: builtins.bool = False,
    device: Device | Sharding | None = None,
) -> Array: ...
def atan(x: ArrayLike, /) -> Array: ...
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def atanh(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> list[Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: builtins.bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: builtins.bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: builtins.bool = False,
    keepdims: builtins.bool = False,
) -> Any: ...
def bartlett(M: int) -> Array: ...

bfloat16: ScalarType

def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...

bitwise_and: _Binary

def bitwise_count(x: ArrayLike, /) -> Array: ...
def bitwise_invert(x: ArrayLike, /) -> Array: ...
def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def bitwise_not(x: ArrayLike, /) -> Array: ...

bitwise_or: _Binary

def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...

bitwise_xor: _Binary

def blackman(M: int) -> Array: ...
def block(arrays: ArrayLike | list[Any]) -> Array: ...

bool: ScalarType
bool_: ScalarType

def broadcast_arrays(*args: ArrayLike) -> list[Array]: ...
def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]: ...
def broadcast_to(
    array: ArrayLike,
    shape: int | Sequence[int],
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def can_cast(from_: Any, to: str, casting: str = "safe") -> bool: ...
def cbrt(x: ArrayLike, /) -> Array: ...

cdouble: ScalarType

def ceil(x: ArrayLike, /) -> Array: ...
def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array: ...
def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array: ...
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array: ...

complex128: ScalarType
complex64: ScalarType
complex_: ScalarType

def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array: ...
def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array: ...
def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array: ...
def conj(x: ArrayLike, /) -> Array: ...
def conjugate(x: ArrayLike, /) -> Array: ...
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def copy(a: ArrayLike, order: str | None = None) -> Array: ...
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def corrcoef(
    x: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: builtins.bool = True,
    dtype: DTypeLike | None = None,
) -> Array: ...
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def cos(x: ArrayLike, /) -> Array: ...
def cosh(x: ArrayLike, /) -> Array: ...
def count_nonzero(
    a: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False
) -> Array: ...
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: builtins.bool = True,
    bias: builtins.bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array: ...
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array: ...

csingle: ScalarType

def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array: ...
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array: ...
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: builtins.bool = False,
) -> Array: ...
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: builtins.bool = False,
) -> Array: ...
def deg2rad(x: ArrayLike, /) -> Array: ...
def degrees(x: ArrayLike, /) -> Array: ...
def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: builtins.bool = False,
) -> Array: ...
def diag(v: ArrayLike, k: int = 0) -> Array: ...
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]: ...
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]: ...
def diagflat(v: ArrayLike, k: int = 0) -> Array: ...
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array: ...
def digitize(
    x: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike],
    right: builtins.bool = False,
    *,
    method: str | None = None,
) -> Array: ...
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]: ...
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...

double: ScalarType

def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike]) -> list[Array]: ...
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array: ...
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array: ...
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[int],
    out: None = None,
    optimize: str | builtins.bool | Sequence[tuple[int, ...]] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] = ...,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[int],
    optimize: str | builtins.bool | Sequence[tuple[int, ...]] = "auto",
) -> tuple[list[tuple[int, ...]], object]: ...
def empty(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    *,
    device: Device | Sharding | None = None,
) -> Array: ...
def equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def exp(x: ArrayLike, /) -> Array: ...
def exp2(x: ArrayLike, /) -> Array: ...
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array: ...
def expm1(x: ArrayLike, /) -> Array: ...
def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array: ...
def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
) -> Array: ...
def fabs(x: ArrayLike, /) -> Array: ...
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: builtins.bool = False, *, inplace: builtins.bool = True
) -> Array: ...
def flatnonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array: ...
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array: ...
def fliplr(m: ArrayLike) -> Array: ...
def flipud(m: ArrayLike) -> Array: ...

float16: ScalarType
float32: ScalarType
float4_e2m1fn: ScalarType
float64: ScalarType
float6_e2m3fn: ScalarType
float6_e3m2fn: ScalarType
float8_e3m4: ScalarType
float8_e4m3: ScalarType
float8_e4m3b11fnuz: ScalarType
float8_e4m3fn: ScalarType
float8_e4m3fnuz: ScalarType
float8_e5m2: ScalarType
float8_e5m2fnuz: ScalarType
float8_e8m0fnu: ScalarType
float_: ScalarType

def float_power(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def floor(x: ArrayLike, /) -> Array: ...
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array: ...
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array: ...
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def frexp(x: ArrayLike, /) -> tuple[Array, Array]: ...
def from_dlpack(
    x: object, /, *, device: Device | Sharding | None = None, copy: builtins.bool | None = None
) -> Array: ...
def frombuffer(
    buffer: bytes | bytearray | memoryview, dtype: DTypeLike = ..., count: int = -1, offset: int = 0
) -> Array: ...
def fromfunction(
    function: Callable[..., object],
    shape: int | Sequence[int],
    *,
    dtype: DTypeLike = ...,
    **kwargs: object,
) -> Any: ...
def frompyfunc(
    func: Callable[..., object], /, nin: int, nout: int, *, identity: object = None
) -> ufunc: ...
def fromstring(string: str, dtype: DTypeLike = ..., count: int = -1, *, sep: str) -> Array: ...
def full(
    shape: int | Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array: ...
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: builtins.bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array: ...
def get_printoptions() -> dict[str, object]: ...
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any: ...
def greater(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def hamming(M: int) -> Array: ...
def hanning(M: int) -> Array: ...
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def histogram(
    a: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: builtins.bool | None = None,
) -> tuple[Array, Array]: ...
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike | Sequence[ArrayLike]] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: builtins.bool | None = None,
) -> tuple[Array, Array, Array]: ...
def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array: ...
def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike | Sequence[ArrayLike]] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: builtins.bool | None = None,
) -> tuple[Array, list[Array]]: ...
def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike]) -> list[Array]: ...
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array: ...
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def i0(x: ArrayLike) -> Array: ...
def identity(n: int, dtype: DTypeLike | None = None) -> Array: ...
def imag(val: ArrayLike, /) -> Array: ...
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: builtins.bool = False
) -> Array | tuple[Array, ...]: ...
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def insert(
    arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
) -> Array: ...

int1: ScalarType
int16: ScalarType
int2: ScalarType
int32: ScalarType
int4: ScalarType
int64: ScalarType
int8: ScalarType
int_: ScalarType

def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: builtins.bool = False,
    return_indices: builtins.bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any: ...
def invert(x: ArrayLike, /) -> Array: ...
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: builtins.bool = False,
) -> Array: ...
def iscomplex(x: ArrayLike) -> Array: ...
def iscomplexobj(x: object) -> bool: ...
def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool: ...
def isfinite(x: ArrayLike, /) -> Array: ...
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: builtins.bool = False,
    invert: builtins.bool = False,
    *,
    method: str = "auto",
) -> Array: ...
def isinf(x: ArrayLike, /) -> Array: ...
def isnan(x: ArrayLike, /) -> Array: ...
def isneginf(x: ArrayLike, /, out: None = None) -> Array: ...
def isposinf(x: ArrayLike, /, out: None = None) -> Array: ...
def isreal(x: ArrayLike) -> Array: ...
def isrealobj(x: object) -> bool: ...
def isscalar(element: object) -> bool: ...
def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool: ...
def iterable(y: object) -> bool: ...
def ix_(*args: ArrayLike) -> tuple[Array, ...]: ...
def kaiser(M: int, beta: ArrayLike) -> Array: ...
def kron(a: ArrayLike, b: ArrayLike) -> Array: ...
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array: ...
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def less(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: builtins.bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: builtins.bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Device | Sharding | None = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: builtins.bool = True,
    retstep: builtins.bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Any: ...
def load(file: IO[bytes] | str | os.PathLike[str], *args: ArrayLike, **kwargs: object) -> Array: ...
def log(x: ArrayLike, /) -> Array: ...
def log10(x: ArrayLike, /) -> Array: ...
def log1p(x: ArrayLike, /) -> Array: ...
def log2(x: ArrayLike, /) -> Array: ...

logaddexp: _Binary
logaddexp2: _Binary
logical_and: _Binary

def logical_not(x: ArrayLike, /) -> Array: ...

logical_or: _Binary
logical_xor: _Binary

def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: builtins.bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array: ...
def mask_indices(
    n: int, mask_func: Callable[..., ArrayLike], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]: ...
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def matrix_transpose(x: ArrayLike, /) -> Array: ...
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def max(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...

maximum: _Binary

def mean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array: ...
def median(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    keepdims: builtins.bool = False,
) -> Array: ...
def meshgrid(
    *xi: ArrayLike, copy: builtins.bool = True, sparse: builtins.bool = False, indexing: str = "xy"
) -> list[Array]: ...
def min(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...

minimum: _Binary

def mod(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]: ...
def moveaxis(
    a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]
) -> Array: ...

multiply: _Binary

def nan_to_num(
    x: ArrayLike,
    copy: builtins.bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array: ...
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None
) -> Array: ...
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None
) -> Array: ...
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array: ...
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array: ...
def nanmax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nanmean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    where: ArrayLike | None = None,
) -> Array: ...
def nanmedian(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    keepdims: builtins.bool = False,
) -> Array: ...
def nanmin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: builtins.bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array: ...
def nanprod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: builtins.bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array: ...
def nanstd(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: builtins.bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array: ...
def nansum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nanvar(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: builtins.bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array: ...
def ndim(a: ArrayLike | Sequence[object]) -> int: ...

negative: _Unary

def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def nonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]: ...
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def ones(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array: ...
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array: ...
def pad(
    array: ArrayLike,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: str | Callable[..., ArrayLike | None] = "constant",
    **kwargs: object,
) -> Array: ...
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array: ...
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: builtins.bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array: ...
def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[ArrayLike | Callable[..., ArrayLike]],
    *args: object,
    **kw: object,
) -> Array: ...
def place(
    arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: builtins.bool = True
) -> Array: ...
def poly(seq_of_zeros: ArrayLike) -> Array: ...
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array: ...
def polyder(p: ArrayLike, m: int = 1) -> Array: ...
def polydiv(
    u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: builtins.bool = False
) -> tuple[Array, Array]: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: builtins.bool = False,
    w: ArrayLike | None = None,
    cov: builtins.bool | str = False,
) -> Any: ...
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array: ...
def polymul(
    a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: builtins.bool = False
) -> Array: ...
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array: ...
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array: ...
def positive(x: ArrayLike, /) -> Array: ...
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def power(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def printoptions(*args: object, **kwargs: object) -> AbstractContextManager[dict[str, object]]: ...
def prod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: builtins.bool = True,
) -> Array: ...
def promote_types(a: object, b: object) -> np.dtype[Any]: ...
def ptp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
) -> Array: ...
def put(
    a: ArrayLike,
    ind: ArrayLike,
    v: ArrayLike,
    mode: str | None = None,
    *,
    inplace: builtins.bool = True,
) -> Array: ...
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: builtins.bool = True,
    *,
    mode: str | GatherScatterMode | None = None,
) -> Array: ...
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: builtins.bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array: ...
def rad2deg(x: ArrayLike, /) -> Array: ...
def radians(x: ArrayLike, /) -> Array: ...
def ravel(
    a: ArrayLike, order: str = "C", *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array: ...
def real(val: ArrayLike, /) -> Array: ...
def reciprocal(x: ArrayLike, /) -> Array: ...
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def reshape(
    a: ArrayLike,
    shape: int | Sequence[int],
    order: str = "C",
    *,
    copy: builtins.bool | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def resize(a: ArrayLike, new_shape: int | Sequence[int]) -> Array: ...
def result_type(*args: ArrayLike | DTypeLike | None) -> np.dtype[Any]: ...
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def rint(x: ArrayLike, /) -> Array: ...
def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array: ...
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array: ...
def roots(p: ArrayLike, *, strip_zeros: builtins.bool = True) -> Array: ...
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array: ...
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array: ...
def save(
    file: IO[bytes] | str | os.PathLike[str], arr: ArrayLike, allow_pickle: builtins.bool = True
) -> None: ...
def savez(
    file: IO[bytes] | str | os.PathLike[str],
    *args: ArrayLike,
    allow_pickle: builtins.bool = True,
    **kwds: ArrayLike,
) -> None: ...
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array: ...
def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array: ...
def set_printoptions(*args: object, **kwargs: object) -> None: ...
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: builtins.bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: builtins.bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
def shape(a: ArrayLike | Sequence[object]) -> tuple[int, ...]: ...
def sign(x: ArrayLike, /) -> Array: ...
def signbit(x: ArrayLike, /) -> Array: ...
def sin(x: ArrayLike, /) -> Array: ...
def sinc(x: ArrayLike, /) -> Array: ...

single: ScalarType

def sinh(x: ArrayLike, /) -> Array: ...
def size(a: ArrayLike | Sequence[object], axis: int | Sequence[int] | None = None) -> int: ...
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: str | None = None,
    stable: builtins.bool = True,
    descending: builtins.bool = False,
) -> Array: ...
def sort_complex(a: ArrayLike) -> Array: ...
def spacing(x: ArrayLike, /) -> Array: ...
def split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike], axis: int = 0
) -> list[Array]: ...
def sqrt(x: ArrayLike, /) -> Array: ...
def square(x: ArrayLike, /) -> Array: ...
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array: ...
def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array: ...
def std(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array: ...

subtract: _Binary

def sum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: builtins.bool = True,
) -> Array: ...
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array: ...
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | GatherScatterMode | None = None,
    unique_indices: builtins.bool = False,
    indices_are_sorted: builtins.bool = False,
    fill_value: ArrayLike | None = None,
) -> Array: ...
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: builtins.bool | None = None,
) -> Array: ...
def tan(x: ArrayLike, /) -> Array: ...
def tanh(x: ArrayLike, /) -> Array: ...
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array: ...
def trace(
    a: ArrayLike,
    offset: ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array: ...
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array: ...
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array: ...
def tri(
    N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None
) -> Array: ...
def tril(m: ArrayLike, k: int = 0) -> Array: ...
def tril_indices(n: int, k: ArrayLike = 0, m: ArrayLike | None = None) -> tuple[Array, Array]: ...
def tril_indices_from(arr: ArrayLike, k: ArrayLike = 0) -> tuple[Array, Array]: ...
def trim_zeros(
    filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None
) -> Array: ...
def triu(m: ArrayLike, k: int = 0) -> Array: ...
def triu_indices(n: int, k: ArrayLike = 0, m: ArrayLike | None = None) -> tuple[Array, Array]: ...
def triu_indices_from(arr: ArrayLike, k: ArrayLike = 0) -> tuple[Array, Array]: ...
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def trunc(x: ArrayLike) -> Array: ...

uint: ScalarType
uint1: ScalarType
uint16: ScalarType
uint2: ScalarType
uint32: ScalarType
uint4: ScalarType
uint64: ScalarType
uint8: ScalarType

def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array: ...
def unique(
    ar: ArrayLike,
    return_index: builtins.bool = False,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    axis: int | None = None,
    *,
    equal_nan: builtins.bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: builtins.bool = True,
) -> Any: ...
def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueAllResult: ...
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult: ...
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult: ...
def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array: ...
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array: ...
def unravel_index(
    indices: ArrayLike, shape: ArrayLike | Sequence[ArrayLike]
) -> tuple[Array, ...]: ...
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]: ...
def unwrap(
    p: ArrayLike,
    discont: ArrayLike | None = None,
    axis: int = -1,
    period: ArrayLike = 6.283185307179586,
) -> Array: ...
def vander(x: ArrayLike, N: int | None = None, increasing: builtins.bool = False) -> Array: ...
def var(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array: ...
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def vectorize(
    pyfunc: Callable[..., object],
    *,
    excluded: Collection[int | str] = ...,
    signature: str | None = None,
) -> Any: ...
def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike]) -> list[Array]: ...
def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
def zeros(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
