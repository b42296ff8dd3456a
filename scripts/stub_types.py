"""The types that stubs say where the functions themselves say none: a name means one thing."""

# Type -> the parameters that are of it, in functions other than hlofront.numpy's, which say their
# own (hlofront/numpy/signatures.py). One whose default is None may also be None.
_PARAMETERS = {
    "ArrayLike": "a b index init_value operand padding_value pred scatter_indices src x",
    "str": "to",
    "DTypeLike": "dtype",
    "Shape": "update_shape window_dimensions",
    "Sequence[int]": "base_dilation window_dilation window_strides",
    "Sequence[tuple[int, int, int]]": "padding_config",
    "Callable[..., Any]": "computation default false_fun true_fun",
    "Sequence[Callable[..., Any]]": "branches",
    "AxisName": "axis_name",
    "bool | int": "unroll",
}
PARAMETER = {name: kind for kind, names in _PARAMETERS.items() for name in names.split()}

# (the module's name without `hlofront.`, function, parameter) -> its type there; "*" is any.
ELSEWHERE = {
    ("lax", "*", "dimension_numbers"): "Any",
    ("lax", "scan", "init"): "_Carry",
    ("lax", "custom_linear_solve", "b"): "Any",
    ("lax", "reduce", "dimensions"): "Sequence[int]",
    ("lax", "switch", "index"): "ArrayLike",
}

_PAIR, _THREE = "tuple[Array, Array]", "tuple[Array, Array, Array]"
_NOT_KNOWN = (
    "after_all all_gather all_to_all associative_scan axis_index broadcast_shapes composite "
    "cond conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
    "conv_transpose_shape_tuple create_token custom_linear_solve custom_root dce_sink map "
    "padtype_to_pads platform_dependent pmax pmean pmin ppermute pshuffle psum psum_scatter "
    "pswapaxes reduce reduce_window reduce_window_shape_tuple rng_bit_generator switch"
)
# (module, function) -> what it returns, where that is no array.
RESULT = {
    **{("lax", name): "Any" for name in _NOT_KNOWN.split()},
    ("lax", "scan"): "tuple[_Carry, Any]",
    ("lax", "stop_gradient"): "_T",
    ("lax", "optimization_barrier"): "_T",
    ("lax", "approx_max_k"): _PAIR,
    ("lax", "approx_min_k"): _PAIR,
    ("lax", "top_k"): _PAIR,
    ("lax", "sort_key_val"): _PAIR,
    ("lax", "sort"): "Any",
    ("lax", "split"): "Sequence[Array]",
    ("lax", "unstack"): "tuple[Array, ...]",
    ("lax", "conv_dimension_numbers"): "ConvDimensionNumbers",
    ("lax", "broadcast_shapes"): "tuple[int, ...]",
    ("lax", "conv_shape_tuple"): "tuple[int, ...]",
    ("lax", "padtype_to_pads"): "list[tuple[int, int]]",
    ("lax.linalg", "eigh"): _PAIR,
    ("lax.linalg", "eig"): "list[Array]",
    ("lax.linalg", "hessenberg"): _PAIR,
    ("lax.linalg", "schur"): _PAIR,
    ("lax.linalg", "lu"): _THREE,
    ("lax.linalg", "qdwh"): "tuple[Array, Array, Array, Array]",
    ("lax.linalg", "tridiagonal"): "tuple[Array, Array, Array, Array]",
    ("numpy", "can_cast"): "bool",
    ("numpy", "promote_types"): "np.dtype[Any]",
    ("numpy", "vectorize"): "Any",
    # These have several flags.
    **{("numpy", name): "Any" for name in ("unique", "intersect1d", "polyfit", "gradient")},
    ("numpy.linalg", "qr"): "Any",
}
# (module, function) -> a flag and what is returned without and with it.
BY_FLAG = {
    ("numpy", "linspace"): ("retstep", "Array", _PAIR),
    ("numpy", "average"): ("returned", "Array", _PAIR),
    ("numpy.linalg", "svd"): ("compute_uv", "Array", "SVDResult"),
    ("lax.linalg", "svd"): ("compute_uv", "Array", _THREE),
    ("lax.linalg", "qr"): ("pivoting", _PAIR, _THREE),
    ("nn", "logsumexp"): ("return_sign", "Array", _PAIR),
    ("nn", "dot_product_attention"): ("return_residual", "Array", _PAIR),
    ("scipy.special", "logsumexp"): ("return_sign", "Array", _PAIR),
    ("scipy.linalg", "svd"): ("compute_uv", "Array", _THREE),
    ("scipy.linalg", "eigh"): ("eigvals_only", _PAIR, "Array"),
    ("scipy.linalg", "eigh_tridiagonal"): ("eigvals_only", _PAIR, "Array"),
    ("scipy.linalg", "expm_frechet"): ("compute_expm", "Array", _PAIR),
    ("scipy.linalg", "hessenberg"): ("calc_q", "Array", _PAIR),
    ("scipy.linalg", "lu"): ("permute_l", _THREE, _PAIR),
}
_ONE_OR_MANY = """@overload
def {name}(x: ArrayLike, /) -> Array: ...
@overload
def {name}(*arys: ArrayLike) -> list[Array]: ...
"""
# (module, function) -> how it is declared.
DECLARED = {
    ("numpy", name): _ONE_OR_MANY.format(name=name)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d")
}
# Modules whose functions return arrays where nothing else is said; Any in the others.
OF_ARRAYS = (
    *("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "random", "nn", "image", "ops"),
)
# What is a property of arrays is of this type.
PROPERTY = {
    "shape": "tuple[int, ...]",
    "dtype": "np.dtype[Any]",
    **dict.fromkeys(("ndim", "size", "nbytes", "itemsize"), "int"),
    **dict.fromkeys(("T", "mT", "real", "imag"), "Array"),
    "at": "At",
    **dict.fromkeys(
        ("weak_type", "committed", "is_fully_addressable", "is_fully_replicated"), "bool"
    ),
    "addressable_shards": "list[Shard]",
    "global_shards": "list[Shard]",
}
# What methods of arrays return, where that is no array.
METHOD_RESULT = {
    "tolist": "Any",
    "item": "Any",
    "tobytes": "bytes",
    **dict.fromkeys(("delete", "copy_to_host_async"), "None"),
    **dict.fromkeys(("is_deleted", "is_ready"), "bool"),
    "devices": "set[Any]",
    "nonzero": "tuple[Array, ...]",
    "on_device_size_in_bytes": "int",
    "platform": "str",
    "unsafe_buffer_pointer": "int",
    "view": "Array",
}
