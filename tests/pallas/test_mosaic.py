"""Kernels for TPUs become modules of Mosaic, which MLIR verifies and libtpu compiles."""

import json
import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.errors import JaxRuntimeError
from hlofront.bridge.mosaic import has_operation
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.sharding import Mesh
from hlofront.sharding import PartitionSpec as P
from tests.pallas.mosaic_modules import (
    ANYWHERE,
    BF16,
    BOOL,
    F32,
    I8,
    I32,
    SCALARS,
    X,
    array,
    call,
    map_elements,
    module_of,
    on_tpu,
)

WHOLE = pl.BlockSpec()


# ---- operations ----------------------------------------------------------------------------------

ELEMENTWISE = [
    ("addf f32", lax.add, F32, 2, "arith.addf %0, %1 : vector<16x128xf32>"),
    ("addi i32", lax.add, I32, 2, "arith.addi %0, %1 : vector<16x128xi32>"),
    ("addi i8", lax.add, I8, 2, "arith.addi %2, %3 : vector<16x128xi32>"),
    ("max u32", lax.max, jnp.uint32, 2, "arith.maxui"),
    ("max i8", lax.max, I8, 2, "arith.maximumf"),
    ("rem bf16", lax.rem, BF16, 2, "arith.remf %2, %3 : vector<16x128xf32>"),
    ("shift", lax.shift_right_logical, I32, 2, "arith.shrui"),
    ("exp", jnp.exp, F32, 1, "math.exp"),
    ("tanh", jnp.tanh, BF16, 1, "math.tanh %0 : vector<16x128xbf16>"),
    ("rsqrt", lax.rsqrt, F32, 1, "math.rsqrt"),
    ("pow", lax.pow, F32, 2, "math.powf"),
    ("integer_pow", lambda x: x**3, F32, 1, "arith.mulf"),
    ("neg", lambda x: -x, F32, 1, "arith.subf"),
    ("sign", jnp.sign, F32, 1, "arith.select"),
    ("round", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), F32, 1, "roundeven"),
    ("clip", lambda x: jnp.clip(x, 0, 1), F32, 1, "arith.minimumf"),
    ("expm1", jnp.expm1, F32, 1, "math.tanh"),
    ("where", lambda x, y: jnp.where(x > y, x, 0.0), F32, 2, "arith.cmpf ogt"),
    ("differ", lambda x, y: jnp.where(x != y, x, y), I32, 2, "arith.cmpi ne"),
    ("unsigned", lambda x, y: jnp.where(x < y, x, y), jnp.uint8, 2, "arith.cmpi ult"),
    ("booleans", lambda x, y: jnp.where((x > y) & ~(x > 1), x, y), F32, 2, "arith.xori"),
    ("to bf16", lambda x: x.astype(BF16), F32, 1, "arith.truncf"),
    ("to u8", lambda x: x.astype(jnp.uint8), F32, 1, "arith.fptoui"),
    ("from bool", lambda x: (x > 0).astype(BF16), F32, 1, "arith.extui"),
    ("f8 to f8", lambda x: x.astype(jnp.float8_e4m3fn), jnp.float8_e5m2, 1, "arith.extf"),
    ("bits", lambda x: lax.bitcast_convert_type(x, I32), F32, 1, "tpu.bitcast"),
    ("sum", lambda x: x.sum(1, keepdims=True), F32, 1, "multi_reduction <add>"),
    ("sum bf16", lambda x: x.sum(1, keepdims=True), BF16, 1, "arith.extf"),
    ("max i32", lambda x: x.max(0, keepdims=True), I32, 1, "multi_reduction <maxsi>"),
    ("scalar", lambda x: jnp.full((8, 128), x.min()), F32, 1, "vector.extract"),
    ("any", lambda x: jnp.where((x > 0).any(), x, 0.0), F32, 1, "multi_reduction <maximumf>"),
    ("argmax", lambda x: jnp.argmax(x, 1, keepdims=True), F32, 1, "reduction_kind<arg_max>"),
    ("transpose", lambda x: x.T, F32, 1, "tpu.transpose %0, [1, 0]"),
    ("reshape", lambda x: x.reshape(2, 8, 128), F32, 1, "vector.shape_cast"),
    ("row", lambda x: x + x[3], F32, 1, "vector.extract_strided_slice"),
    ("concatenate", lambda x: jnp.concatenate([x, x], 1), F32, 1, "tpu.concatenate"),
    ("tile", lambda x: jnp.tile(x, (2, 1)), F32, 1, "tpu.concatenate"),
    ("gather", lambda x, y: jnp.take_along_axis(x, y.astype(I32), 1), F32, 2, "tpu.dynamic_gather"),
    ("pad", lambda x: jnp.pad(x, ((0, 8), (0, 0))), F32, 1, "tpu.concatenate"),
    ("iota", lambda x: x + lax.broadcasted_iota(F32, x.shape, 1), F32, 1, "tpu.iota"),
    ("softmax", lambda x: jax.nn.softmax(x, -1), F32, 1, "math.exp"),
]


@pytest.mark.parametrize(
    ("function", "dtype", "count", "expected"),
    [row[1:] for row in ELEMENTWISE],
    ids=[row[0] for row in ELEMENTWISE],
)
def test_an_operation_becomes_one_of_mosaic(function, dtype, count, expected):
    assert expected in map_elements(function, *[array((16, 128), dtype)] * count)


def test_the_logistic_function_is_an_operation_where_jaxlib_has_it():
    text = map_elements(lax.logistic, X)
    assert ("tpu.logistic" if has_operation("tpu.logistic") else "arith.divf") in text


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        (lambda x, y: lax.dot(x, y), F32, "[1], [0], [0], [1], [0, 0, 1, 1], [], []"),
        (lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ()))), F32, "[1], [1], [0], [0]"),
        (lambda x, y: x @ y, BF16, "arith.truncf"),
        (lambda x, y: lax.dot(x, y, precision="highest"), F32, "contract_precision<fp32>"),
        (lambda x, y: lax.dot(x, y, preferred_element_type=I32), I8, "vector<128x128xi32>"),
        (lambda x, y: x @ y[0], F32, "[1], [0], [0], [], [0, 0], [], []"),
        (lambda x, y: jnp.stack([x] * 2) @ jnp.stack([y] * 2), F32, "[0, 0, 0, 1, 1, 2], [0], [0]"),
    ],
)
def test_a_product_becomes_one_of_the_matrix_unit(function, dtype, expected):
    text = map_elements(function, *[array((128, 128), dtype)] * 2)
    assert "tpu.matmul" in text
    assert expected in text


def count_in(text, word):
    return len(re.findall(rf"\b{re.escape(word)}\b", text))


# ---- references ----------------------------------------------------------------------------------


def test_a_slice_of_a_reference_is_one_load_with_an_index():
    def kernel(i, x, o):
        o[...] = x[pl.ds(i[0], 8), :] + x[::2, :]

    text = call(kernel, array((4,), I32), X, out=array((8, 128)), in_specs=[SCALARS, WHOLE])
    assert "memref.load" in text
    assert "vector.load %arg1[%1, %c0]" in text
    assert "tpu.strided_load %arg1[%c0, %c0] {strides = array<i32: 2, 1>}" in text


def test_an_old_value_that_is_not_read_is_not_loaded():
    def kernel(x, o):
        o[0] = x[-1]

    text = call(kernel, X)
    assert count_in(text, "vector.load") == 1
    assert "%c15 = arith.constant 15 : index" in text


def test_booleans_are_stored_as_int32():
    def kernel(x, o):
        o[...] = ~x[...]

    text = call(kernel, array((16, 128), BOOL), out=array((16, 128), BOOL))
    assert "memref<16x128xi32" in text
    assert "arith.cmpi ne" in text


def test_a_view_of_a_reference_is_a_slice_of_its_memory():
    def kernel(x, o):
        o.at[0:8][2, :] = x[0, :]

    assert "tpu.memref_slice" in call(kernel, X)


def test_a_masked_store_has_a_mask():
    def kernel(x, o):
        pltpu.store(o, x[...], mask=x[...] > 0)

    assert re.search(r"tpu.vector_store %arg1.* masked %", call(kernel, X))


def test_copies_and_semaphores_are_those_of_mosaic():
    def kernel(x, o, buffer, arrived, ready):
        copy = pltpu.make_async_copy(x.at[1, pl.ds(8, 16)], buffer.at[1], arrived.at[1])
        copy.start()
        copy.wait()
        pl.semaphore_signal(ready, 1)
        pl.semaphore_wait(ready, 1)
        o[...] = buffer[1]

    text = call(
        kernel,
        array((2, 64, 128)),
        in_specs=[ANYWHERE],
        scratch_shapes=[
            pltpu.VMEM((2, 16, 128), F32),
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.REGULAR,
        ],
    )
    for operation in ("enqueue_dma", "wait_dma2", "sem_signal", "sem_wait", "memref_squeeze"):
        assert f"tpu.{operation}" in text


def test_a_buffer_for_a_part_of_a_kernel_is_allocated_in_a_region():
    text = call(lambda x, o: pltpu.sync_copy(x, o), X, in_specs=[ANYWHERE])
    assert '"tpu.region"() ({' in text
    assert "tpu.sem_alloc" in text


# ---- branches and loops --------------------------------------------------------------------------


def test_a_branch_is_an_if_and_several_are_nested():
    def kernel(n, x, o):
        o[...] = lax.switch(n[0], [lambda x: x, jnp.exp, jnp.log], x[...])

    text = call(kernel, array((1,), I32), X, in_specs=[SCALARS, WHOLE])
    assert count_in(text, "scf.if") == 2


@pytest.mark.parametrize("bound", [8, None])
def test_a_loop_over_a_range_is_a_for_whose_index_counts(bound):
    def kernel(n, x, o):
        last = n[0] if bound is None else bound
        o[...] = lax.fori_loop(2, last, lambda i, total: total + x[pl.ds(i, 1), :], x[...])

    text = call(kernel, array((1,), I32), X, in_specs=[SCALARS, WHOLE])
    assert re.search(r"scf.for %arg3 = %c2_i32 to %\w+ step %c1_i32 iter_args\(%arg4 = ", text)


def test_another_loop_is_a_while():
    def kernel(x, o):
        o[...] = lax.while_loop(lambda v: v[0, 0] < 9.0, lambda v: v * 2.0, x[...])

    assert "scf.while" in call(kernel, X)


@pytest.mark.parametrize(("unroll", "products"), [(1, 1), (2, 3), (True, 5)])
def test_a_loop_is_unrolled_as_asked(unroll, products):
    def kernel(x, o):
        o[...] = lax.fori_loop(0, 5, lambda i, v: v * 2.0, x[...], unroll=unroll)

    assert count_in(call(kernel, X), "arith.mulf") == products


# ---- grids and blocks ----------------------------------------------------------------------------


def double(x, o):
    o[...] = x[...] * 2


def over_rows(spec, shape=(64, 128), **options):
    out = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return call(
        double, array(shape), out=array((64, 128)), grid=(8,), in_specs=[spec], out_specs=out,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "shape", "expected"),
    [
        (pl.BlockSpec((8, 128), lambda i: (i, 0)), (64, 128), "window_bounds = array<i64: 8, 128>"),
        (pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)), (8, 8, 128), "memref<1x8x128xf32"),
        (
            pl.BlockSpec((pl.Element(8), 128), lambda i: (i * 8, 0)),
            (64, 128),
            "window_kind = #tpu.element_window<[0, 0], [0, 0]>",
        ),
        (
            pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(1)),
            (64, 128),
            "pipeline_mode = #tpu.pipeline_mode<synchronous>",
        ),
        (pl.BlockSpec((8, 128)), (8, 128), "pipeline_mode = #tpu.pipeline_mode<synchronous>"),
    ],
)
def test_a_block_is_a_window(spec, shape, expected):
    text = over_rows(spec, shape)
    assert expected in text
    assert "iteration_bounds = array<i64: 8>" in text
    assert "dimension_semantics = [#tpu.dimension_semantics<arbitrary>]" in text


def test_index_maps_read_prefetched_scalars():
    def kernel(n, x, o):
        o[...] = x[...] * n[pl.program_id(0)]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, n: (n[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, n: (i, 0)),
    )
    text = call(kernel, array((8,), I32), array((64, 128)), out=array((64, 128)), grid_spec=spec)
    assert "scalar_prefetch = 1" in text
    assert "memref.load %arg1[%0] : memref<8xi32" in text.partition("@transform_0(")[2]


def test_a_dynamic_size_of_the_grid_is_an_operand():
    def kernel(x, o):
        o[...] = x[...] * pl.num_programs(0)

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def function(n, x):
        return pl.pallas_call(kernel, x, grid=(n,), in_specs=[rows], out_specs=rows)(x)

    text = module_of(function, array((), I32), array((64, 128)))
    assert "iteration_bounds = array<i64: -9223372036854775808>" in text
    assert "tpu.iteration_bound" in text


# ---- errors --------------------------------------------------------------------------------------


def write_element(x, o):
    o[0, 0] = x[0, 0]


def copy(x, o):
    o[...] = x[...]


def sort(x, o):
    o[...] = jnp.sort(x[...])


def every_second(x, o):
    o[...] = x[...][:, ::2]


@pytest.mark.parametrize(
    ("kernel", "options", "error", "message"),
    [
        (
            sort,
            {},
            NotImplementedError,
            r"Unimplemented primitive in Pallas TPU lowering for tc: sort.*sort at .*test_mosaic",
        ),
        (write_element, {}, ValueError, r"Cannot store scalars to VMEM.*ref\[i, 0:1\]"),
        (
            copy,
            {"in_specs": [ANYWHERE]},
            ValueError,
            "only allowed on VMEM and SMEM references.*in ANY.*pltpu.sync_copy",
        ),
        (
            every_second,
            {"out": array((16, 64))},
            NotImplementedError,
            r"strides \(1, 2\).*pl.ds\(start, size, stride\)",
        ),
        (
            copy,
            {"grid": (2,), "in_specs": [pl.BlockSpec((16, 128), pipeline_mode=pl.Buffered(3))]},
            pltpu.LoweringException,
            r"Got 3 for args\[0\]",
        ),
    ],
)
def test_what_kernels_cannot_do_says_the_operation_and_the_way_out(kernel, options, error, message):
    with pytest.raises(error, match=message):
        call(kernel, X, **options)


# ---- custom calls --------------------------------------------------------------------------------


def config_of(text):
    (config,) = re.findall(r'backend_config = "((?:[^"\\]|\\.)*)"', text)
    return json.loads(re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), config))


def test_a_call_has_the_options_of_its_compiler():
    params = pltpu.CompilerParams(
        vmem_limit_bytes=1 << 20, has_side_effects=True, flags={"xla_tpu_flag": True}
    )
    cost = pl.CostEstimate(flops=10, transcendentals=0, bytes_accessed=100)

    def function(x):
        return pl.pallas_call(
            double,
            x,
            input_output_aliases={0: 0},
            compiler_params=params,
            cost_estimate=cost,
            name="twice",
            metadata={"made": "here"},
        )(x)

    text = on_tpu(function, X).as_text()
    config = config_of(text)
    assert config["custom_call_config"]["cost_estimate"]["flops"] == 10
    assert config["custom_call_config"]["needs_layout_passes"] is True
    assert config["scoped_memory_configs"] == [{"memory_space": 1, "offset": 0, "size": 1 << 20}]
    assert config["flag_configs"] == [
        {"flag_type": "xla_tpu_flag", "value": {"boolean_value": True}}
    ]
    assert 'kernel_name = "twice"' in text
    assert "operand_index = 0" in text
    assert "has_side_effect = true" in text


def test_a_block_that_does_not_fit_tiles_is_refused_with_sizes_that_do():
    spec = pl.BlockSpec((8, 50), lambda i: (i, 0))

    def function(x):
        return pl.pallas_call(double, x, grid=(8,), in_specs=[spec], out_specs=spec)(x)

    with pytest.raises(
        ValueError, match=r"args\[0\] .*8x50 of float32\[64x100\].*Take 128, or 100"
    ):
        on_tpu(function, array((64, 100)))


def test_an_interpreted_call_has_no_kernel():
    lowered = on_tpu(lambda x: pl.pallas_call(double, x, interpret=True)(x), X)
    assert "tpu_custom_call" not in lowered.as_text()


def accumulate(x, y, o, total):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], y[...], preferred_element_type=F32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o[...] = total[...].astype(o.dtype)


def matmul(x, y):
    return pl.pallas_call(
        accumulate,
        array((256, 256), BF16),
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((128, 128), F32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
    )(x, y)


def copy_rows(n, x, o):
    def run(buffer, arrived):
        @pl.loop(0, 2)
        def _(i):
            pltpu.async_copy(x.at[pl.ds(n[i] * 8, 8)], buffer, arrived).wait()
            o[pl.ds(pl.multiple_of(i * 8, 8), 8), :] = buffer[...]

    pl.run_scoped(run, pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA)


def gather_rows(n, x):
    return pl.pallas_call(copy_rows, X, in_specs=[SCALARS, ANYWHERE])(n, x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "avals"),
    [
        (matmul, [array((256, 256), BF16)] * 2),
        (gather_rows, [array((2,), I32), array((64, 128))]),
    ],
)
def test_libtpu_compiles_kernels_for_absent_tpus(function, avals):
    assert "tpu_custom_call" in on_tpu(function, *avals).compile().as_text()


def keep(x, o, first, rest):
    first[...] = x[...]
    o[...] = first[...] + rest[0]


def test_too_much_vmem_is_told_with_the_buffers_that_fill_it():
    rows = pl.BlockSpec((1024, 2048), lambda i: (i, 0))

    def summed(x):
        scratch = [pltpu.VMEM((1024, 2048), F32), pltpu.VMEM((2, 1024, 2048), F32)]
        return pl.pallas_call(
            keep, x, grid=(4,), in_specs=[rows], out_specs=rows, scratch_shapes=scratch
        )(x)

    lowered = on_tpu(summed, array((4096, 2048)))
    with pytest.raises(JaxRuntimeError) as raised:
        lowered.compile()
    first, *lines = str(raised.value).splitlines()
    assert "summed has a kernel that needs more VMEM than it may use" in first
    assert "kernel keep at test_mosaic.py" in first
    assert lines[:4] == [
        " 16.0 MiB  operand 0: 2 of 1024x2048xf32",
        " 16.0 MiB  result 0: 2 of 1024x2048xf32",
        " 16.0 MiB  scratch 1: 2x1024x2048xf32",
        "  8.0 MiB  scratch 0: 1024x2048xf32",
    ]
    assert "limit 16.00M" in str(raised.value)


def send_right(x, o, sent, arrived):
    right = lax.rem(lax.axis_index("x") + 1, lax.axis_size("x"))
    copy = pltpu.make_async_remote_copy(x, o, sent, arrived, device_id=(right,))
    copy.start()
    copy.wait()


def shift(x):
    scratch = [pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA]
    return pl.pallas_call(
        send_right, x, in_specs=[ANYWHERE], out_specs=ANYWHERE, scratch_shapes=scratch
    )(x)


def test_a_copy_to_another_device_names_it_by_its_place_in_the_mesh():
    try:
        devices = jax.target("tpu:v5e:2x2").devices
    except RuntimeError as error:
        pytest.skip(str(error))
    mesh = Mesh(np.array(devices).reshape(2, 2), ("y", "x"))
    mapped = jax.shard_map(shift, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    with pytest.raises(ValueError, match="device_id has 1 coordinates, and the mesh has the axes"):
        jax.jit(mapped).lower(X)
    mesh = Mesh(np.array(devices), ("x",))
    mapped = jax.shard_map(shift, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    config = config_of(jax.jit(mapped).lower(X).as_text())
    assert config["custom_call_config"]["has_communication"] is True


def test_the_coordinate_of_a_device_has_a_known_range():
    """libtpu makes fewer bundles of the neighbors' numbers by it, also along the first axis."""

    def kernel(x, o):
        o[0, 0] = lax.axis_index("y") * 4 + lax.axis_index("x")

    axes = (("y", 2), ("x", 4))
    options = {"in_specs": [SCALARS], "out_specs": SCALARS}
    text = call(kernel, array((1, 1), I32), out=array((1, 1), I32), axes=axes, **options)
    assert re.findall(r"arith\.(div\w+|rem\w+) %\w+, %c(\d)", text) == [
        ("divui", "4"),
        ("remui", "2"),
        ("remui", "4"),
    ]


def meet(x, o):
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1)
    pl.semaphore_wait(barrier, 1)
    o[...] = x[...]


def copied(x, number):
    params = pltpu.CompilerParams(collective_id=number)
    return pl.pallas_call(meet, X, compiler_params=params)(x)


def test_a_barrier_has_the_number_of_the_kernel():
    assert (
        config_of(on_tpu(lambda x: copied(x, 3), X).as_text())["custom_call_config"][
            "collective_id"
        ]
        == 3
    )
    with pytest.raises(ValueError, match="collective_id=0"):
        on_tpu(lambda x: copied(x, None), X)
    params = pltpu.CompilerParams(collective_id=3)
    with pytest.raises(ValueError, match="when not using a custom barrier"):
        on_tpu(lambda x: pl.pallas_call(double, x, compiler_params=params)(x), X)


def test_a_copy_to_another_device_needs_a_mesh():
    def kernel(x, o, sent, arrived):
        copy = pltpu.make_async_remote_copy(x, o, sent, arrived, device_id=(1,))
        copy.start()

    scratch = [pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA]
    with pytest.raises(ValueError, match="communication in pallas_call without shard_map"):
        call(kernel, X, in_specs=[ANYWHERE], out_specs=ANYWHERE, scratch_shapes=scratch)
