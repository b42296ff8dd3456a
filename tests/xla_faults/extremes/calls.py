"""Programs with extreme parameters of loops, collectives, shardings and custom calls."""

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import PartitionSpec
from tests.xla_faults.extremes.families import (
    DTYPES,
    SIGNED,
    SIZES,
    Program,
    family,
    of,
)

# ---- loops ---------------------------------------------------------------------------------------


@family(runs=False, length=SIGNED, size=SIZES, unroll=SIGNED)
def scan(length=5, size=3, unroll=1) -> Program:
    return (
        lambda x: lax.scan(lambda c, _: (c + 1, None), x, None, length=length, unroll=unroll),
        [of(size)],
    )


@family(runs=False, size=SIZES, rows=SIZES, reverse=(True,), unroll=(True, 2**31))
def scan_over(size=3, rows=4, reverse=False, unroll=1) -> Program:
    return (
        lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x, reverse=reverse, unroll=unroll),
        [of(rows, size)],
    )


@family(runs=False, size=SIZES, rows=(0, 1, 2**31))
def scan_gradient(size=3, rows=4) -> Program:
    return (
        jax.grad(lambda x: lax.scan(lambda c, y: (c * y, jnp.sin(c)), 1.0, x.sum(1))[0]),
        [of(rows, size)],
    )


@family(branches=(0, 1, 2, 300), index=SIGNED)
def switch(branches=3, index=1) -> Program:
    functions = [lambda x, i=i: x + i for i in range(branches)]
    position = max(min(index, 2**63 - 1), -(2**63))
    return lambda i, x: lax.switch(i, functions, x), [np.int64(position), of(3)]


@family(runs=False, size=SIZES, batch=SIGNED)
def map(size=6, batch=4) -> Program:
    return lambda x: lax.map(jnp.sin, x, batch_size=batch), [of(size)]


@family(size=SIZES, axis=SIGNED)
def associative_scan(size=6, axis=0) -> Program:
    return lambda x: lax.associative_scan(lax.mul, x, axis=axis), [of(size, 2)]


# ---- collectives, of one device ------------------------------------------------------------------

COLLECTIVES = {
    "psum": lambda x, g: lax.psum(x, "a", axis_index_groups=g),
    "pmax": lambda x, g: lax.pmax(x, "a", axis_index_groups=g),
    "all_gather": lambda x, g: lax.all_gather(x, "a", axis_index_groups=g),
    "all_to_all": lambda x, g: lax.all_to_all(x, "a", 0, 0, axis_index_groups=g),
    "psum_scatter": lambda x, g: lax.psum_scatter(x, "a", axis_index_groups=g, tiled=True),
    "ppermute": lambda x, g: lax.ppermute(x, "a", g or [(0, 0)]),
    "pshuffle": lambda x, g: lax.pshuffle(x, "a", (g or [[0]])[0]),
}
GROUPS = ((), ((),), ((0, 0),), ((1,),), ((-1,),), ((0,), (0,)), ((2**31,),), ((2**62,),))


@family(name=tuple(COLLECTIVES), groups=GROUPS, size=SIZES, dtype=DTYPES)
def collective(name="psum", groups=None, size=4, dtype="float32") -> Program:
    mesh = jax.make_mesh((1,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
    as_lists = groups if groups is None else [list(group) for group in groups]

    def function(x):
        return jax.shard_map(
            lambda x: COLLECTIVES[name](x, as_lists),
            mesh=mesh,
            in_specs=PartitionSpec(),
            out_specs=PartitionSpec(),
            check_vma=False,
        )(x)

    return function, [of(size, dtype=dtype)]


# ---- custom calls --------------------------------------------------------------------------------

# Names that XLA's compilers interpret, as strings in their libraries.
NAMES = (
    "AllocateBuffer",
    "ApproxTopK",
    "AssumeGatherIndicesInBound",
    "Cholesky",
    "CreateToken",
    "Eigh",
    "FusedDynamicUpdateSlice",
    "GetDimensionSize",
    "HalfToFull",
    "InspectSharding",
    "LayoutConstraint",
    "LuDecomposition",
    "MoveToDevice",
    "MoveToHost",
    "PadToStatic",
    "Pin",
    "ProductOfElementaryHouseholderReflectors",
    "Qr",
    "ReshardingAnnotation",
    "ResizeNearest",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "Sharding",
    "SliceToDynamic",
    "TopK",
    "Unpin",
    "X64Combine",
    "X64SplitHigh",
    "X64SplitLow",
    "__cublas$gemm",
    "__cublas$lt$matmul",
    "__cublas$lt$matmul$f8",
    "__cublas$triangularSolve",
    "__cub$DeviceRadixSort",
    "__cudnn$convBackwardFilter",
    "__cudnn$convForward",
    "__cudnn$convBiasActivationForward",
    "__cudnn$fusion",
    "__cudnn$norm",
    "__cudnn$blockScaledDot",
    "__cudnn$convBackwardInput",
    "__cudnn$convForwardGraph",
    "__cudnn$convReorderFilterAndBias",
    "__cublas$lt$groupedMatmul",
    "__gpu$TopK",
    "__gpu$xla.gpu.ptx",
    "__onednn$convolution",
    "__cudnn$fmhaSoftmax",
    "__cusolver$cholesky",
    "__gpu$xla.gpu.triton",
    "__nvshmem$barrier",
    "__onednn$matmul",
    "__onednn$layernorm",
    "__onednn$softmax",
    "__triton_gemm",
    "annotate_device_placement",
    "barrier",
    "dce_sink",
    "erf",
    "mhlo.erf",
    "mhlo.topk",
    "mosaic_gpu",
    "mosaic_gpu_v2",
    "shape_assertion",
    "stablehlo.dynamic_approx_top_k",
    "stablehlo.dynamic_reduce_window",
    "stablehlo.dynamic_rng_bit_generator",
    "stablehlo.dynamic_top_k",
    "tpu_custom_call",
    "triton_kernel_call",
    "xla.gpu.ext.sort",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.Sharding",
    "xla_python_cpu_callback",
    "xla_ffi_python_cpu_callback",
    "lapack_spotrf",
    "lapack_spotrf_ffi",
    "no_such_function",
    "",
)
TYPES = {
    "vector": ((3,), "float32"),
    "matrix": ((3, 3), "float32"),
    "scalar": ((), "float32"),
    "integers": ((4, 3), "int32"),
    "double": ((3,), "float64"),
    "complex": ((3,), "complex128"),
    "int4": ((3,), "int4"),
    "empty": ((0,), "float32"),
}


def _of(names: tuple[str, ...]):
    return [of(*TYPES[name][0], dtype=TYPES[name][1]) for name in names]


OPERANDS = (
    (),
    ("scalar",),
    ("matrix",),
    ("integers",),
    ("double",),
    ("empty",),
    ("vector", "vector"),
    ("vector", "integers", "scalar"),
)


@family("name", name=NAMES, operands=OPERANDS, results=OPERANDS)
def custom_call(name="no_such_function", operands=("vector",), results=("vector",)) -> Program:
    return foreign(name, operands, results)


@family(
    name=NAMES,
    operands=OPERANDS,
    version=(0, 1, 2, 3, 5, -1, 2**31, 2**62),
    config=("x", "{}", "{k = 1 : i64}", '{"a": 1}', "\x00"),
    effect=(True,),
    alias=((0, 0), (0, 1), (5, 0), (-1, 0), (2**62, 2**62)),
    layout=((), (0, 0), (1,), (-1,), (2**62,)),
)
def foreign(
    name="no_such_function",
    operands=("vector",),
    results=("vector",),
    version=4,
    config="",
    effect=False,
    alias=None,
    layout=None,
) -> Program:
    types = _of(results)

    def function(*xs):
        call = jax.ffi.ffi_call(
            name,
            types[0] if len(types) == 1 else types,
            has_side_effect=effect,
            custom_call_api_version=version,
            legacy_backend_config=None if version >= 4 else config,
            input_output_aliases=None if alias is None else dict([alias]),
            output_layouts=layout,
        )
        return call(*xs)

    return function, _of(operands)
