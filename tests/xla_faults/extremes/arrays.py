"""Programs with extreme parameters that make, move, sort and reduce arrays."""

import numpy as np

import hlofront.numpy as jnp
from hlofront import lax
from tests.xla_faults.extremes.families import (
    DTYPES,
    SIGNED,
    SIZES,
    Program,
    family,
    of,
)

SHAPES = (
    (),
    (0,),
    (0, 0),
    (2**62, 0),
    (0, 2**62),
    (2**31, 2**31),
    (2**40, 2**40, 0),
    (1,) * 70,
    (2,) * 20,
    (2**31,),
    (2**62,),
    (3, 2**40),
)
NONSENSE_AXES = ((), (0, 0), (-1,), (5,), (2**31,), (2**62,), (1, 0), (-(2**62),))


# ---- making --------------------------------------------------------------------------------------


@family(shape=SHAPES, dimension=(-1, 1, 5, 2**31, 2**62), dtype=DTYPES)
def iota(shape=(4,), dimension=0, dtype="float32") -> Program:
    return lambda: lax.broadcasted_iota(dtype, shape, dimension), ()


@family(shape=SHAPES, dtype=DTYPES)
def full(shape=(4,), dtype="float32") -> Program:
    return lambda: lax.full(shape, 1, dtype), ()


@family(shape=SHAPES, axes=NONSENSE_AXES, dtype=DTYPES)
def broadcast_in_dim(shape=(4, 3), axes=(1,), dtype="float32") -> Program:
    return lambda x: lax.broadcast_in_dim(x, shape, axes), [of(3, dtype=dtype)]


@family(start=SIGNED, stop=SIGNED, step=(*SIGNED, 1e-300))
def arange(start=0, stop=5, step=1) -> Program:
    return lambda: jnp.arange(start, stop, step), ()


@family(count=SIGNED, dtype=DTYPES)
def linspace(count=5, dtype="float32") -> Program:
    return lambda: jnp.linspace(0, 1, count, dtype=dtype), ()


@family(n=SIGNED, m=SIGNED, k=SIGNED)
def eye(n=4, m=3, k=0) -> Program:
    return lambda: jnp.eye(n, m, k), ()


@family(n=SIGNED, m=SIGNED, k=SIGNED)
def tri(n=4, m=3, k=0) -> Program:
    return lambda: jnp.tri(n, m, k), ()


@family(n=SIZES, k=SIGNED)
def diag(n=4, k=0) -> Program:
    return lambda x: jnp.diag(x, k), [of(n)]


@family(size=SIZES, repeats=SIGNED, shape=SHAPES)
def tile(size=3, repeats=2, shape=(2, 3)) -> Program:
    return lambda x, y: (jnp.tile(x, repeats), jnp.tile(y, (2, repeats))), [of(size), of(*shape)]


@family(repeats=SIGNED, total=SIGNED)
def repeat(repeats=2, total=7) -> Program:
    return (
        lambda x: jnp.repeat(x, np.array([1, 2, repeats % 2**62]), total_repeat_length=total),
        [of(3)],
    )


# ---- moving --------------------------------------------------------------------------------------


@family(size=SIZES, low=SIGNED, high=SIGNED, between=SIGNED, rows=(0, 2**31, 2**60), dtype=DTYPES)
def pad(size=4, low=1, high=1, between=0, rows=2, dtype="float32") -> Program:
    config = [(0, 0, 0), (low, high, between)]
    return (
        lambda x, v: lax.pad(x, v, config),
        [of(rows, size, dtype=dtype), of(dtype=dtype)],
    )


MODES = ("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "empty")


@family(width=SIGNED, mode=MODES, size=SIZES)
def numpy_pad(width=2, mode="constant", size=3) -> Program:
    return lambda x: jnp.pad(x, (width, 1), mode=mode), [of(size)]


@family(size=SIZES, start=SIGNED, stop=SIGNED, stride=SIGNED, dtype=DTYPES)
def slice(size=8, start=1, stop=7, stride=2, dtype="float32") -> Program:
    return lambda x: lax.slice(x, (start,), (stop,), (stride,)), [of(size, dtype=dtype)]


@family(size=SIZES, start=SIGNED, length=SIGNED, dtype=DTYPES, index=("uint8", "int64", "uint64"))
def dynamic_slice(size=8, start=1, length=4, dtype="float32", index="int64") -> Program:
    limits = np.iinfo(index)
    position = np.array(max(min(start, limits.max), limits.min), index)
    return (
        lambda x, i: lax.dynamic_slice(x, (i,), (length,)),
        [of(size, dtype=dtype), position],
    )


@family(size=SIZES, start=SIGNED, length=SIZES, dtype=DTYPES)
def dynamic_update_slice(size=8, start=1, length=4, dtype="float32") -> Program:
    return (
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i,)),
        [of(size, dtype=dtype), of(length, dtype=dtype), np.int64(max(start, -(2**63)))],
    )


@family(a=SIZES, b=SIZES, axis=SIGNED, dtype=DTYPES)
def concatenate(a=3, b=4, axis=0, dtype="float32") -> Program:
    return (
        lambda x, y: lax.concatenate([x, y, x], axis),
        [of(a, 2, dtype=dtype), of(b, 2, dtype=dtype)],
    )


@family(shape=SHAPES, new=(*SHAPES, (-1,), (-1, -1), (2, -1), (-2, -3), (2**62, 4)))
def reshape(shape=(2, 3), new=(3, 2)) -> Program:
    return lambda x: jnp.reshape(x, new), [of(*shape)]


@family(shape=SHAPES, axes=NONSENSE_AXES, dtype=DTYPES)
def transpose(shape=(2, 3), axes=(1, 0), dtype="float32") -> Program:
    return lambda x: lax.transpose(x, axes), [of(*shape, dtype=dtype)]


@family(shape=SHAPES, axes=NONSENSE_AXES, dtype=DTYPES)
def rev(shape=(2, 3), axes=(1,), dtype="float32") -> Program:
    return lambda x: lax.rev(x, axes), [of(*shape, dtype=dtype)]


@family(shape=SHAPES, shift=SIGNED, axis=SIGNED)
def roll(shape=(2, 3), shift=1, axis=1) -> Program:
    return lambda x: jnp.roll(x, shift, axis), [of(*shape)]


@family(sizes=((), (0,), (3, 4), (2**62, 2**62), (-1, 8), (7, 0, 0)), size=SIZES, axis=SIGNED)
def split(sizes=(3, 4), size=7, axis=0) -> Program:
    return lambda x: lax.split(x, sizes, axis), [of(size)]


# ---- gathering and scattering --------------------------------------------------------------------

GATHER_MODES = ("fill", "clip", "promise_in_bounds", "wrap", "one_hot")


@family(
    size=SIZES,
    count=SIZES,
    length=SIGNED,
    index=SIGNED,
    columns=(0, 1, 3, 2**31, 2**62),
    offset=NONSENSE_AXES,
    collapsed=NONSENSE_AXES,
    start_map=(*NONSENSE_AXES, (0, 1)),
    batching=((0,), (1,), (0, 0), (7,)),
    mode=GATHER_MODES,
    dtype=DTYPES,
    index_dtype=("uint8", "uint64", "int8", "int64", "float32"),
)
def gather(
    size=8,
    count=4,
    length=1,
    index=2,
    columns=3,
    offset=(1,),
    collapsed=(0,),
    start_map=(0,),
    batching=(),
    mode="fill",
    dtype="float32",
    index_dtype="int32",
) -> Program:
    numbers = lax.GatherDimensionNumbers(offset, collapsed, start_map, batching, batching)
    return (
        lambda x, i: lax.gather(x, i, numbers, (length, columns), mode=mode),
        [of(size, columns, dtype=dtype), of(count, 1, dtype=index_dtype)]
        if index == 2 or count > 100
        else [
            of(size, columns, dtype=dtype),
            np.full((count, 1), index % 2**64, np.uint64).astype(index_dtype),
        ],
    )


SCATTERS = (
    "scatter",
    "scatter_add",
    "scatter_mul",
    "scatter_min",
    "scatter_max",
    "scatter_sub",
)


@family(
    kind=SCATTERS,
    size=SIZES,
    count=SIZES,
    length=SIZES,
    window=NONSENSE_AXES,
    inserted=NONSENSE_AXES,
    to_operand=(*NONSENSE_AXES, (0, 1)),
    batching=((0,), (1,), (0, 0), (7,)),
    mode=GATHER_MODES,
    dtype=DTYPES,
    index_dtype=("uint8", "uint64", "int8", "int64", "float32"),
    unique=(True,),
)
def scatter(
    kind="scatter_add",
    size=8,
    count=4,
    length=3,
    window=(1,),
    inserted=(0,),
    to_operand=(0,),
    batching=(),
    mode="fill",
    dtype="float32",
    index_dtype="int32",
    unique=False,
) -> Program:
    numbers = lax.ScatterDimensionNumbers(window, inserted, to_operand, batching, batching)
    return (
        lambda x, i, u: getattr(lax, kind)(
            x, i, u, numbers, mode=mode, unique_indices=unique, indices_are_sorted=unique
        ),
        [
            of(size, 3, dtype=dtype),
            of(count, 1, dtype=index_dtype),
            of(count, length, dtype=dtype),
        ],
    )


@family(size=SIZES, index=SIGNED, mode=("fill", "clip", "wrap", "promise_in_bounds"))
def indexing(size=8, index=2, mode="fill") -> Program:
    return (
        lambda x: (x.at[index].get(mode=mode), x.at[[index, index]].add(1, mode=mode)),
        [of(size)],
    )


@family(size=SIZES, count=SIZES, axis=SIGNED)
def take_along_axis(size=8, count=4, axis=0) -> Program:
    return (
        lambda x, i: jnp.take_along_axis(x, i, axis),
        [of(size, 3), of(count, 3, dtype="int32")],
    )


# ---- sorting -------------------------------------------------------------------------------------


@family(size=SIZES, rows=SIZES, axis=SIGNED, keys=SIGNED, stable=(False,), dtype=DTYPES)
def sort(size=8, rows=2, axis=1, keys=1, stable=True, dtype="float32") -> Program:
    return (
        lambda x, y: lax.sort((x, y), dimension=axis, num_keys=keys, is_stable=stable),
        [of(rows, size, dtype=dtype), of(rows, size, dtype="int32")],
    )


@family(operands=(0, 1, 2, 40, 400))
def sort_of_many(operands=2) -> Program:
    return lambda *xs: lax.sort(xs, num_keys=max(operands - 1, 0)), [of(5)] * operands


@family(size=SIZES, rows=SIZES, k=SIGNED, axis=SIGNED, dtype=DTYPES)
def top_k(size=8, rows=2, k=3, axis=1, dtype="float32") -> Program:
    return lambda x: lax.top_k(x, k, axis=axis), [of(rows, size, dtype=dtype)]


@family(
    size=SIZES,
    k=SIGNED,
    axis=SIGNED,
    recall=(0.0, -1.0, 1.0, 2.0, 1e-30),
    total=SIGNED,
    aggregate=(False,),
    dtype=DTYPES,
)
def approx_max_k(
    size=8, k=3, axis=1, recall=0.95, total=-1, aggregate=True, dtype="float32"
) -> Program:
    return (
        lambda x: lax.approx_max_k(
            x,
            k,
            reduction_dimension=axis,
            recall_target=recall,
            reduction_input_size_override=total,
            aggregate_to_topk=aggregate,
        ),
        [of(2, size, dtype=dtype)],
    )


@family(size=SIZES, count=SIZES, method=("scan_unrolled", "sort", "compare_all"), dtype=DTYPES)
def searchsorted(size=8, count=4, method="scan", dtype="float32") -> Program:
    return (
        lambda a, v: jnp.searchsorted(a, v, method=method),
        [of(size, dtype=dtype), of(count, dtype=dtype)],
    )


@family(size=SIZES, found=SIGNED, dtype=DTYPES)
def nonzero(size=8, found=3, dtype="float32") -> Program:
    return lambda x: (jnp.nonzero(x, size=found), jnp.unique(x, size=found)), [
        of(size, dtype=dtype)
    ]


@family(size=SIZES, length=SIGNED, minimum=SIGNED)
def bincount(size=8, length=5, minimum=0) -> Program:
    return (
        lambda x: jnp.bincount(x, minlength=minimum, length=length),
        [of(size, dtype="int32")],
    )


@family(size=SIZES, bins=SIGNED)
def histogram(size=8, bins=3) -> Program:
    return lambda x: jnp.histogram(x, bins=bins, range=(0, 1)), [of(size)]


# ---- reducing ------------------------------------------------------------------------------------

REDUCTIONS = ("sum", "max", "min", "prod", "and", "or", "xor")


@family(kind=REDUCTIONS, shape=SHAPES, axes=NONSENSE_AXES, dtype=DTYPES)
def reduce(kind="sum", shape=(4, 3), axes=(0,), dtype="int32") -> Program:
    return lambda x: getattr(lax, f"reduce_{kind}")(x, axes), [of(*shape, dtype=dtype)]


@family(shape=SHAPES, axis=SIGNED, dtype=DTYPES, index=("int8", "uint8", "int4", "int64"))
def argmax(shape=(4, 3), axis=0, dtype="float32", index="int32") -> Program:
    return lambda x: lax.argmax(x, axis, index), [of(*shape, dtype=dtype)]


@family(kind=("cummax", "cumprod", "cumlogsumexp"), size=SIZES, axis=SIGNED, dtype=DTYPES)
def cumulate(kind="cumsum", size=8, axis=0, dtype="float32") -> Program:
    return lambda x: getattr(lax, kind)(x, axis), [of(size, 2, dtype=dtype)]


OPERATIONS = {"add": (lax.add, 0), "max": (lax.max, -9), "own": (lambda a, b: a * b + a, 1)}


@family(
    op=("max", "own"),
    size=SIZES,
    window=SIGNED,
    stride=SIGNED,
    low=SIGNED,
    high=SIGNED,
    base=SIGNED,
    dilation=SIGNED,
    rows=(0, 2**31, 2**60),
    dtype=DTYPES,
)
def reduce_window(
    op="add",
    size=8,
    window=2,
    stride=1,
    low=0,
    high=0,
    base=1,
    dilation=1,
    rows=2,
    dtype="float32",
) -> Program:
    combine, start = OPERATIONS[op]
    return (
        lambda x: lax.reduce_window(
            x,
            np.array(max(start, 0), dtype),
            combine,
            (1, window),
            (1, stride),
            ((0, 0), (low, high)),
            (1, base),
            (1, dilation),
        ),
        [of(rows, size, dtype=dtype)],
    )


@family(size=SIZES, window=SIGNED, stride=SIGNED, low=SIGNED, high=SIGNED, dtype=DTYPES)
def pooling_gradient(size=8, window=2, stride=1, low=0, high=0, dtype="float32") -> Program:
    import hlofront as jax

    def pooled(x):
        return lax.reduce_window(
            x, np.array(-7, dtype), lax.max, (window,), (stride,), ((low, high),)
        )

    return (
        lambda x: jax.vjp(pooled, x)[1](jnp.ones(jax.eval_shape(pooled, x).shape, dtype)),
        [of(size, dtype=dtype)],
    )


# ---- elements ------------------------------------------------------------------------------------


@family(exponent=SIGNED, mantissa=SIGNED, dtype=DTYPES)
def reduce_precision(exponent=5, mantissa=4, dtype="float32") -> Program:
    return lambda x: lax.reduce_precision(x, exponent, mantissa), [of(3, dtype=dtype)]


@family(source=DTYPES, target=DTYPES, size=(0, 1, 7))
def convert(source="float32", target="int32", size=3) -> Program:
    return lambda x: lax.convert_element_type(x, target), [of(size, dtype=source)]


@family(source=DTYPES, target=DTYPES, size=(0, 1, 2, 4, 8, 2**62))
def bitcast(source="float32", target="int32", size=3) -> Program:
    return lambda x: lax.bitcast_convert_type(x, target), [of(3, size, dtype=source)]


@family(exponent=SIGNED, dtype=DTYPES)
def integer_pow(exponent=3, dtype="float32") -> Program:
    return lambda x: lax.integer_pow(x, exponent), [of(3, dtype=dtype)]


UNARY = (
    "abs sign neg floor ceil round is_finite exp exp2 expm1 log log1p log2 logistic sin cos tan "
    "sinh cosh tanh asin acos atan asinh acosh atanh sqrt rsqrt cbrt square reciprocal lgamma "
    "digamma erf erfc erf_inv bessel_i0e bessel_i1e clz population_count bitwise_not real imag conj"
).split()
BINARY = (
    "add sub mul div rem pow max min atan2 nextafter bitwise_and bitwise_or shift_left "
    "shift_right_arithmetic shift_right_logical igamma igammac igamma_grad_a random_gamma_grad "
    "zeta polygamma eq lt complex mulhi"
).split()


@family(name=UNARY, dtype=DTYPES)
def unary(name="sin", dtype="float32") -> Program:
    return lambda x: getattr(lax, name)(x), [of(7, dtype=dtype)]


@family(name=BINARY, dtype=DTYPES)
def binary(name="add", dtype="float32") -> Program:
    return lambda x, y: getattr(lax, name)(x, y), [of(7, dtype=dtype)] * 2


SPECIAL = (0.0, -0.0, 1e-45, 1e-310, 3e38, 1e308, float("inf"), -float("inf"), float("nan"), -1.0)


@family(
    name=("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "zeta", "polygamma", "pow"),
    a=tuple(map(str, SPECIAL)),
    b=tuple(map(str, SPECIAL)),
    dtype=("float64", "bfloat16"),
)
def of_special_values(name="igamma", a="1", b="1", dtype="float32") -> Program:
    x, y = (np.full(7, float(text)).astype(dtype) for text in (a, b))
    return lambda x, y: getattr(lax, name)(x, y), [x, y]


@family(
    a=tuple(map(str, SPECIAL)),
    b=tuple(map(str, SPECIAL)),
    x=tuple(map(str, SPECIAL)),
    dtype=("float64", "bfloat16"),
)
def betainc(a="1", b="1", x="0.5", dtype="float32") -> Program:
    return lax.betainc, [np.full(7, float(text)).astype(dtype) for text in (a, b, x)]
