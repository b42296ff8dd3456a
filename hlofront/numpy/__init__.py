"""hlofront.numpy: NumPy's functions on device arrays, traced and compiled."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules="fft linalg",
    now={
        "hlofront.bridge.fast_parts": "Array=ndarray",
        "hlofront.numpy.arrays.casting": "astype",
        "hlofront.numpy.arrays.creation": (
            "array asarray copy from_dlpack frombuffer fromfile fromiter fromstring"
        ),
        "hlofront.numpy.arrays.filling": (
            "empty empty_like full full_like ones ones_like zeros zeros_like"
        ),
        "hlofront.numpy.arrays.joining": (
            "append array_split block column_stack concat concatenate dsplit dstack hsplit hstack "
            "split stack unstack vsplit vstack"
        ),
        "hlofront.numpy.arrays.ranges": (
            "arange fromfunction geomspace indices linspace logspace meshgrid mgrid ogrid"
        ),
        "hlofront.numpy.arrays.rearranging": (
            "flip fliplr flipud repeat resize roll rot90 tile trim_zeros"
        ),
        "hlofront.numpy.arrays.shape": (
            "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to "
            "expand_dims matrix_transpose moveaxis ndim permute_dims ravel reshape rollaxis shape "
            "size squeeze swapaxes transpose"
        ),
        "hlofront.numpy.arrays.sorting": (
            "argpartition argsort lexsort partition searchsorted sort sort_complex top_k"
        ),
        "hlofront.numpy.constants": "e euler_gamma inf nan newaxis pi",
        "hlofront.numpy.einsum": "einsum einsum_path",
        "hlofront.numpy.elementwise.bitwise": (
            "bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_right_shift "
            "invert left_shift packbits right_shift unpackbits"
        ),
        "hlofront.numpy.elementwise.complex": "angle conj conjugate imag real",
        "hlofront.numpy.elementwise.division": "divmod floor_divide fmod gcd lcm mod remainder",
        "hlofront.numpy.elementwise.logic": (
            "allclose array_equal array_equiv equal greater greater_equal isclose iscomplex "
            "iscomplexobj isfinite isinf isnan isneginf isposinf isreal isrealobj isscalar "
            "iterable less less_equal logical_not not_equal"
        ),
        "hlofront.numpy.elementwise.powers": "float_power pow power",
        "hlofront.numpy.elementwise.rounding": "around ceil clip floor rint round trunc",
        "hlofront.numpy.elementwise.ufunc": "frompyfunc ufunc",
        "hlofront.numpy.elementwise.ufuncs": (
            "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin "
            "asinh atan atan2 atanh cbrt cos cosh deg2rad degrees divide exp exp2 expm1 fabs fmax "
            "fmin log log1p log2 log10 positive rad2deg radians reciprocal sign sin sinh sqrt "
            "square tan tanh true_divide"
        ),
        "hlofront.numpy.elementwise.universal": (
            "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or "
            "logical_xor maximum minimum multiply negative subtract"
        ),
        "hlofront.numpy.indexing.choosing": "choose",
        "hlofront.numpy.indexing.selecting": (
            "argwhere compress extract flatnonzero nonzero piecewise select where"
        ),
        "hlofront.numpy.indexing.taking": (
            "fill_diagonal place put put_along_axis take take_along_axis"
        ),
        "hlofront.numpy.namespace": (
            "ARRAY_API_VERSION=__array_api_version__ array_namespace_info=__array_namespace_info__"
        ),
        "hlofront.numpy.products.contraction": "dot inner matmul matvec trace vdot vecdot vecmat",
        "hlofront.numpy.products.matrices": (
            "diag diag_indices diag_indices_from diagflat diagonal eye identity tri tril "
            "tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
        ),
        "hlofront.numpy.scalars": (
            "ComplexWarning bfloat16 bool_=bool bool_ can_cast cdouble character complex64 "
            "complex128 complex_ complexfloating csingle double dtype finfo flexible float4_e2m1fn "
            "float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
            "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float16 float32 float64 "
            "float_ floating generic iinfo inexact int1 int2 int4 int8 int16 int32 int64 int_ "
            "integer isdtype issubdtype number object_ promote_types result_type signedinteger "
            "single uint uint1 uint2 uint4 uint8 uint16 uint32 uint64 unsignedinteger"
        ),
        "hlofront.numpy.statistics.cumulative": (
            "cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum"
        ),
        "hlofront.numpy.statistics.moments": "average mean std var",
        "hlofront.numpy.statistics.reductions": (
            "all amax amin any argmax argmin count_nonzero max min minmax prod ptp sum"
        ),
        "hlofront.numpy.vectorize": "apply_along_axis apply_over_axes vectorize",
    },
    later={
        "hlofront.numpy.arrays.padding": "pad",
        "hlofront.numpy.arrays.saving": "load save savez",
        "hlofront.numpy.arrays.set_operations": "intersect1d setdiff1d setxor1d union1d",
        "hlofront.numpy.arrays.sets": (
            "isin unique unique_all unique_counts unique_inverse unique_values"
        ),
        "hlofront.numpy.elementwise.floats": (
            "copysign frexp heaviside hypot ldexp modf nan_to_num nextafter signbit spacing"
        ),
        "hlofront.numpy.indexing.coordinates": "ix_ mask_indices ravel_multi_index unravel_index",
        "hlofront.numpy.indexing.inserting": "delete insert",
        "hlofront.numpy.indexing.tricks": "c_ index_exp r_ s_",
        "hlofront.numpy.products.convolution": "convolve correlate",
        "hlofront.numpy.products.polynomial": (
            "polyadd polyder polydiv polyint polymul polysub polyval"
        ),
        "hlofront.numpy.products.polynomial_roots": "poly polyfit roots",
        "hlofront.numpy.products.tensor_products": "cross kron outer tensordot",
        "hlofront.numpy.statistics.correlation": "bincount corrcoef cov digitize",
        "hlofront.numpy.statistics.differences": "diff ediff1d gradient interp trapezoid unwrap",
        "hlofront.numpy.statistics.histograms": (
            "histogram histogram2d histogram_bin_edges histogramdd"
        ),
        "hlofront.numpy.statistics.nan_reductions": (
            "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar"
        ),
        "hlofront.numpy.statistics.quantiles": (
            "median nanmedian nanpercentile nanquantile percentile quantile"
        ),
        "hlofront.numpy.support.near_zero": "i0 sinc",
        "hlofront.numpy.support.printing": (
            "array_repr array_str get_printoptions printoptions set_printoptions"
        ),
        "hlofront.numpy.windows": "bartlett blackman hamming hanning kaiser",
    },
)
