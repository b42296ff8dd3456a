"""Bounds are bounds: none is above the compiler's own figure; tests/inspect/bounds holds fifty."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.errors import TargetError
from hlofront.inspect import costs
from hlofront.pjrt.targets import install_hint, target
from tests.inspect.bounds.holding import held_of
from tests.inspect.bounds.programs import PROGRAMS

SAMPLE = ("embedding_gradient", "scanned_layers", "perceptron_step", "max_pooling", "softmax")
f32 = "float32"


def needing(*platforms):
    """A mark that skips a test where the compiler of a platform is not installed."""
    missing = list(filter(None, map(install_hint, platforms)))
    return pytest.mark.skipif(bool(missing), reason=f"compiling takes `{missing}`")


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:h100", marks=needing("cuda"))])
def test_no_bound_is_above_the_compilers_figure(name, device):
    rows = held_of(name, PROGRAMS[name], device)
    assert [row for row in rows if not row.is_bound] == []
    assert {"flops", "peak"} <= {row.figure for row in rows}
    assert (device == "cpu") or any(row.figure.startswith("time of") for row in rows)


@pytest.mark.slow
@needing("tpu")
@pytest.mark.parametrize("name", ["product", "perceptron_step"])
def test_no_bound_is_above_libtpus_cycles(name):
    rows = held_of(name, PROGRAMS[name], "tpu:v5e:1x1")
    assert [row for row in rows if not row.is_bound] == []
    assert any(row.figure.startswith("time of") for row in rows)


def hlo(body, parameters="a: f32[4096,4096], b: f32[4096,4096]", before="", header=""):
    return f"HloModule m{header}\n\n{before}\nENTRY %e ({parameters}) -> f32[] {{\n{body}\n}}\n"


def dot(dtype="f32", rest=""):
    return hlo(
        f"  %a = {dtype}[4096,4096]{{1,0}} parameter(0)\n"
        f"  %b = {dtype}[4096,4096]{{1,0}} parameter(1)\n"
        "  ROOT %d = f32[4096,4096]{1,0} dot(%a, %b), lhs_contracting_dims={1}, "
        f"rhs_contracting_dims={{0}}{rest}",
        f"a: {dtype}[4096,4096], b: {dtype}[4096,4096]",
    )


FLOPS = 2 * 4096**3


@pytest.mark.parametrize(
    ("device", "dtype", "rest", "rate"),
    [
        ("cuda:h100", "f32", "", 494.7e12),
        ("cuda:h100", "f32", ", operand_precision={high,high}", 494.7e12),
        ("cuda:h100", "f32", ", operand_precision={highest,highest}", 67e12),
        ("cuda:h100", "f32", ", algorithm=dot_bf16_bf16_f32_x3", 989.4e12 / 3),
        ("cuda:h100", "f32", ", algorithm=dot_tf32_tf32_f32_x3", 494.7e12 / 3),
        ("cuda:h100", "f32", ", algorithm=dot_f32_f32_f32", 67e12),
        ("cuda:h100", "bf16", "", 989.4e12),
        ("cuda:h100", "f64", "", 67e12),
        ("cuda:h100", "f8e4m3fn", "", 1978.9e12),
        ("cuda:t4", "f32", "", 8.1e12),
        ("tpu:v5e:1x1", "f32", "", 197e12),
        ("tpu:v5e:1x1", "bf16", "", 197e12),
        ("tpu:v5e:1x1", "f32", ", operand_precision={high,high}", 197e12 / 3),
        ("tpu:v5e:1x1", "f32", ", operand_precision={highest,highest}", 197e12 / 6),
        ("tpu:v5e:1x1", "bf16", ", operand_precision={highest,highest}", 197e12),
        ("tpu:v5e:1x1", "s8", "", 394e12),
        ("tpu:v5e:1x1", "f8e5m2", "", 197e12),
    ],
)
def test_a_product_takes_the_time_of_its_unit(device, dtype, rest, rate):
    assert costs(dot(dtype, rest), device).total["seconds"] == pytest.approx(FLOPS / rate)


def test_a_librarys_product_takes_the_time_of_its_precision():
    def gemm(precision):
        return hlo(
            "  %a = f32[4096,4096]{1,0} parameter(0)\n  %b = f32[4096,4096]{1,0} parameter(1)\n"
            "  ROOT %g = (f32[4096,4096]{1,0}, s8[4194304]{0}) custom-call(%a, %b), "
            'custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{'
            '"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]},"precision_config":{'
            f'"operand_precision":["{precision}","{precision}"],"algorithm":"ALG_UNSET"}}}}}}'
        )

    default, highest = (costs(gemm(p), "cuda:h100") for p in ("DEFAULT", "HIGHEST"))
    assert default.total["seconds"] == pytest.approx(FLOPS / 494.7e12)
    assert highest.total["seconds"] == pytest.approx(FLOPS / 67e12)
    # The workspace may not be used.
    assert default.total["bytes"] == 3 * 4 * 4096**2


TILED = "f32[1024,1024]{1,0:T(8,128)}"
ON_CHIP = "f32[1024,1024]{1,0:T(8,128)S(1)}"
SIZE = 4 * 1024**2


def test_what_is_on_the_chip_moves_nothing():
    text = hlo(
        f"  %a = {TILED} parameter(0)\n"
        f"  %start = ({ON_CHIP}, {TILED}, u32[]{{:S(2)}}) copy-start(%a)\n"
        f"  %done = {ON_CHIP} copy-done(%start)\n"
        f"  %n = {ON_CHIP} negate(%done)\n"
        f"  %slice = (({TILED}), f32[512,1024]{{1,0:T(8,128)S(1)}}, s32[]{{:S(2)}}) "
        "slice-start(%a), slice={[0:512], [0:1024]}\n"
        "  %half = f32[512,1024]{1,0:T(8,128)S(1)} slice-done(%slice)\n"
        f"  ROOT %t = ({ON_CHIP}, f32[512,1024]{{1,0:T(8,128)S(1)}}) tuple(%n, %half)",
        "a: f32[1024,1024]",
    )
    report = costs(text, "tpu:v5e:1x1")
    moved = {row.name: row.bytes for row in report.instructions}
    assert moved == {"start": SIZE, "n": 0, "slice": SIZE // 2}
    assert report.peak_bytes == SIZE


def test_asynchronous_copies_run_beside_other_operations():
    def text(copy):
        return hlo(
            f"  %a = {TILED} parameter(0)\n  %b = {TILED} parameter(1)\n{copy}"
            f"  %n = {TILED} negate(%a)\n  ROOT %t = ({TILED}, {ON_CHIP}) tuple(%n, %done)",
            "a: f32[1024,1024], b: f32[1024,1024]",
        )

    start = f"  %start = ({ON_CHIP}, {TILED}, u32[]{{:S(2)}}) copy-start(%b)\n"
    report = costs(text(f"{start}  %done = {ON_CHIP} copy-done(%start)\n"), "tpu:v5e:1x1")
    copying = next(row for row in report.instructions if row.name == "start")
    assert copying.is_asynchronous and copying.seconds == pytest.approx(SIZE / 819e9)
    # The memory is shared: it carries the three arrays one after the other.
    assert report.total["seconds"] == pytest.approx(3 * SIZE / 819e9)


def test_a_fusion_reads_what_it_needs():
    def layers(x, weights):
        return lax.scan(lambda h, w: (jnp.tanh(h + w), None), x, weights)[0]

    sizes = jax.ShapeDtypeStruct((256, 256), f32), jax.ShapeDtypeStruct((10, 256, 256), f32)
    report = costs(jax.jit(layers).lower(*sizes).compile())
    (step,) = [row for row in report.instructions if row.transcendentals]
    # The state, a layer of the weights, the number of the layer, and the new state.
    assert step.bytes == 10 * (3 * 4 * 256**2 + 4)


def test_a_padded_window_applies_to_what_is_there():
    text = hlo(
        "  %a = f32[64,1000]{1,0} parameter(0)\n  %z = f32[] constant(0)\n"
        "  ROOT %w = f32[64,1000]{1,0} reduce-window(%a, %z), "
        "window={size=1x1000 pad=0_0x999_0}, to_apply=%add",
        "a: f32[64,1000]",
        "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n"
        "  %y = f32[] parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}\n",
    )
    assert costs(text).total["flops"] == 64 * 1000


@needing("tpu")
def test_the_compilers_own_estimate_is_read():
    with target("tpu:v5e:1x1"):
        args = (jax.ShapeDtypeStruct((1024, 1024), f32),) * 2
        compiled = jax.jit(lambda x, y: x @ y).lower(*args).compile()
    report = costs(compiled, "tpu:v5e:1x1")
    (row,) = [row for row in report.instructions if row.flops]
    assert row.seconds < row.compiler_seconds == report.total["compiler_seconds"]
    assert "the compiler's own estimate of" in report.text()


def collective(opcode, devices, size=1 << 20, rest=""):
    groups = "{" + ",".join(map(str, range(devices))) + "}"
    return (
        f"HloModule m, num_partitions={devices}\n\n"
        "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n"
        "  %y = f32[] parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}\n\n"
        f"ENTRY %e (a: f32[{size}]) -> f32[] {{\n  %a = f32[{size}]{{0}} parameter(0)\n"
        f"  ROOT %c = f32[{size}]{{0}} {opcode}(%a), replica_groups={{{groups}}}, "
        f"use_global_device_ids=true, channel_id=1{rest}\n}}\n"
    )


@pytest.mark.parametrize(
    ("device", "opcode", "rest", "seconds"),
    [
        # A switch of NVLink sums: each GPU sends its array once.
        ("cuda:h100:8", "all-reduce", ", to_apply=%add", 2**22 / 450e9),
        ("cuda:a100:8", "all-reduce", ", to_apply=%add", 2 * 2**22 * 7 / 8 / 300e9),
        ("cuda:h100:8", "all-to-all", ", dimensions={0}", 2**22 * 7 / 8 / 450e9),
        ("cuda:l4:8", "all-reduce", ", to_apply=%add", 2 * 2**22 * 7 / 8 / 32e9),
        # A chip of a slice of 2 by 4 has three neighbors.
        ("tpu:v5e:2x4", "all-reduce", ", to_apply=%add", 2 * 2**22 * 7 / 8 / 150e9),
        # Two hosts: what leaves one goes over eight adapters of 400 Gbit/s.
        ("cuda:h100:16", "all-gather", ", dimensions={0}", 15 * 2**22 / 450e9),
        ("cuda:h100:16", "all-to-all", ", dimensions={0}", 8 * 2**22 / 2 / (8 * 50e9)),
    ],
)
@needing("cuda", "tpu")
def test_collectives_take_the_time_of_the_links(device, opcode, rest, seconds):
    count = target(device).describe().devices
    report = costs(collective(opcode, count, rest=rest), device)
    (row,) = report.instructions
    assert row.seconds == pytest.approx(seconds, rel=1e-6)


@needing("cuda")
def test_the_peak_is_that_of_xlas_buffers():
    def step(x, w):
        return jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

    sizes = (jax.ShapeDtypeStruct((256, 256), f32),) * 2
    for device in ("cpu", "cuda:h100"):
        with target(device):
            compiled = jax.jit(step).lower(*sizes).compile()
        memory = compiled.memory_analysis()
        report = costs(compiled, device)
        assert report.peak_bytes == (
            memory.argument_size_in_bytes
            + memory.output_size_in_bytes
            + memory.temp_size_in_bytes
            - memory.alias_size_in_bytes
        )
        fits = jax.fits(step, *sizes, target=device)
        assert fits.needed_bytes == report.peak_bytes + fits.code_bytes
        listed = sum(buffer.bytes for buffer in fits.buffers if buffer.kind == "temporary")
        assert listed <= fits.temporary_bytes


# ---- never another device -----------------------------------------------------------------------


def over(devices):
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    return jax.ShapeDtypeStruct((64, 64), f32, sharding=sharding)


@needing("cuda", "tpu")
@pytest.mark.parametrize("named", ["tpu:v5e:1x1", "cuda:h100"])
def test_shardings_over_other_devices_than_the_targets_are_refused(named):
    shardings = [
        over(jax.devices("cpu")[:1]),
        over(target("cuda:a100").devices),
        jax.ShapeDtypeStruct(
            (64, 64), f32, sharding=jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
        ),
    ]
    for argument, other in zip(shardings, ("cpu:0", "cuda:a100", "cpu:0"), strict=True):
        with pytest.raises(TargetError, match=f"(?s){named}.*{other}"), target(named):
            jax.jit(jnp.sin).lower(argument)


@needing("cuda")
def test_shardings_over_the_targets_devices_are_taken():
    with target("cuda:h100:2") as two:
        compiled = jax.jit(lambda x: x.sum()).lower(over(two.devices)).compile()
    # The rates are those of the device that the program is compiled for.
    assert costs(compiled).target.name == "cuda:h100:2"
    with pytest.raises(TargetError, match=r"(?s)cuda:h100:2.*tpu:v5e:1x1"):
        costs(compiled, "tpu:v5e:1x1")
    with target("cpu"):
        jax.jit(lambda x: x.sum()).lower(over(jax.devices("cpu")[:1]))
