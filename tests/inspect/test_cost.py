"""What a program costs: against XLA's own counts, by line, in time and in memory."""

import json
import pathlib

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.inspect import costs, parse
from hlofront.pjrt.targets import Description
from hlotools.cost.estimates import Estimates

TEXTS = pathlib.Path(__file__).with_name("texts")
DEVICE = Description(
    "test:1", "a device", "test", 1, 1 << 20, 1e9, {"float32": 1e9, "bfloat16": 4e9}, "", ()
)


def text_of(name):
    return (TEXTS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "flops", "transcendentals", "moved"),
    [
        # As XLA's own analysis of these modules has it, but that it counts 337,152 bytes for the
        # first: all of an array of which fusions read thirds.
        ("gpt_block.hlo", 743_936, 4160, 324_864),
        ("layer.hlo", 272_352, 4096, 100_108),
    ],
)
def test_totals(name, flops, transcendentals, moved):
    report = costs(text_of(name))
    assert report.total["flops"] == flops
    assert report.total["transcendentals"] == transcendentals
    assert report.total["bytes"] == moved
    assert sum(row.flops for row in report.lines) == flops
    assert sum(row.bytes for row in report.instructions) == moved


def test_as_xla_counts_it():
    def f(x, w):
        return jnp.tanh(x @ w).sum(0)

    sizes = jax.ShapeDtypeStruct((8, 16), "float32"), jax.ShapeDtypeStruct((16, 32), "float32")
    compiled = jax.jit(f).lower(*sizes).compile()
    theirs = compiled.cost_analysis()
    ours = costs(compiled)
    assert ours.total["flops"] == theirs["flops"]
    assert ours.total["transcendentals"] == theirs["transcendentals"]
    assert ours.total["bytes"] == theirs["bytes accessed"]
    line = next(row for row in ours.lines if row.code and "jnp.tanh" in row.code)
    assert line.file == __file__ and line.flops >= 2 * 8 * 16 * 32
    memory = compiled.memory_analysis()
    arguments = [b.bytes for b in ours.buffers if b.kind == "argument"]
    assert sum(arguments) == memory.argument_size_in_bytes
    before = costs(jax.jit(f).lower(*sizes))
    assert before.total["transcendentals"] == 8 * 32


def test_loops_run_as_often_as_they_do():
    report = costs(text_of("scan_grad.hlo"))
    dot = next(row for row in report.instructions if row.opcode == "dot")
    assert dot.runs == 8 and dot.flops == 8 * 2 * 16 * 16
    endless = costs(text_of("while_loop.hlo"))
    assert {row.runs for row in endless.instructions if "region" in row.computation} == {None}


def test_what_is_unknown_is_none():
    report = costs(text_of("linalg.hlo"), target=DEVICE)
    unknown = [row for row in report.instructions if row.opcode == "custom-call"]
    assert len(unknown) == report.total["unknown"] == 3
    assert all(row.flops is None and row.seconds is None for row in unknown)
    known = sum(row.seconds or 0 for row in report.instructions)
    assert known > 0 and report.total["seconds"] == pytest.approx(known)
    assert "3 instructions have parts" in report.text()


def test_time_is_bounded_by_work_or_by_memory():
    report = costs(text_of("gpt_block.hlo"), target=DEVICE)
    for row in report.instructions:
        assert row.seconds >= row.bytes / 1e9
    dot = next(row for row in report.instructions if row.name == "ynn_fusion.4")
    assert dot.seconds == pytest.approx(max(dot.flops / 1e9, dot.bytes / 1e9))
    assert report.total["seconds"] == pytest.approx(sum(r.seconds for r in report.instructions))
    gemm = next(
        row for row in costs(text_of("gpu_triton.hlo")).instructions if row.name == "cublas-gemm.2"
    )
    assert gemm.flops == 2 * 128 * 32 * 64


def test_the_peak():
    text = (
        "HloModule m\n\nENTRY %e (a: f32[256]) -> f32[] {\n"
        "  %a = f32[256]{0} parameter(0)\n  %big = f32[1024]{0} concatenate(%a, %a, %a, %a), "
        "dimensions={0}\n  %view = f32[32,32]{1,0} bitcast(%big)\n"
        "  %small = f32[256]{0} slice(%big), slice={[0:256]}\n"
        "  %other = f32[2048]{0} broadcast(%one), dimensions={}\n"
        "  %one = f32[] constant(1)\n  %r = f32[32,32]{1,0} negate(%view)\n"
        '  ROOT %out = f32[] custom-call(%r, %small, %other), custom_call_target="end"\n}\n'
    )
    report = costs(text)
    # %r is written over %big, of which %view is a view, for nothing else needs it.
    assert report.peak_bytes == 4 * (256 + 1024 + 256 + 2048 + 1 + 1)
    assert report.buffers[0].name == "other"


def test_the_peak_is_in_the_loop():
    def f(x, ws):
        def body(c, w):
            wide = jnp.tanh(c @ w)
            return wide @ w.T, wide.sum()

        return jax.lax.scan(body, x, ws)

    sizes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 64), (8, 64, 2048))]
    compiled = jax.jit(f).lower(*sizes).compile()
    memory = compiled.memory_analysis()
    theirs = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    report = costs(compiled)
    assert report.peak_bytes == pytest.approx(theirs, rel=0.02)
    (wide,) = [b for b in report.buffers if b.bytes == 4 * 256 * 2048]
    assert wide.kind == "temporary" and wide.file == __file__


def test_json_and_text():
    report = costs(text_of("layer.hlo"), target=DEVICE)
    told = json.loads(report.json())
    assert told["format"] == "hlofront.costs/1"
    assert set(told) == set(
        "format program target total lines instructions buffers uncounted contradictions".split()
    )
    assert told["target"] == "test:1"
    assert set(told["lines"][0]) == set(
        "file line code instructions flops transcendentals bytes intensity seconds unknown".split()
    )
    assert "model.py:18" in report.text()
    assert "ynn_fusion (fusion)" in report.text("instruction")
    with pytest.raises(ValueError, match="'line' or 'instruction'"):
        report.text("file")
    with pytest.raises(TypeError, match="got int"):
        costs(3)


def test_every_text_has_its_estimate():
    for path in sorted(TEXTS.glob("*.hlo")):
        module = parse(path.read_text())
        totals = Estimates(module).totals()
        assert totals["operations"] > 0 and totals["bytes"] > 0
        assert costs(module).peak_bytes > 0


def test_what_xla_counts():
    def convolved(x, k):
        return lax.conv_general_dilated(x, k, (2, 2), "SAME", feature_group_count=2)

    def transposed_convolution(x, k):
        return lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=("NCHW", "IOHW", "NCHW"))

    def branched(i, x):
        return lax.switch(i, [jnp.sin, jnp.cos, lambda x: jnp.exp(jnp.exp(x))], x)

    f32 = np.float32
    image, kernel = np.ones((2, 8, 16, 16), f32), np.ones((4, 4, 3, 3), f32)
    for function, args in (
        (convolved, (image, kernel)),
        (transposed_convolution, (image, np.ones((8, 4, 3, 3), f32))),
        (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2), (np.ones((4, 64), f32),)),
        (branched, (np.int32(1), np.ones(8, f32))),
        (jnp.sort, (np.ones(100, f32),)),
    ):
        compiled = jax.jit(function).lower(*args).compile()
        ours, theirs = costs(compiled).total, compiled.cost_analysis()
        for key in ("flops", "transcendentals"):
            assert ours[key] == pytest.approx(theirs.get(key, 0), rel=0.01, abs=1), function


@pytest.mark.parametrize(
    ("target", "result", "operands"),
    [
        ("convForward", "f32[2,4,7,6]", ("f32[2,3,9,7]", "f32[4,3,3,2]")),
        ("convBackwardInput", "f32[2,3,9,7]", ("f32[2,4,7,6]", "f32[4,3,3,2]")),
        ("convBackwardFilter", "f32[4,3,3,2]", ("f32[2,3,9,7]", "f32[2,4,7,6]")),
    ],
)
def test_cudnn_s_convolutions_and_their_gradients_have_as_many_products(target, result, operands):
    text = (
        "HloModule m\n\nENTRY %e {\n"
        + "".join(f"  %p{n} = {shape} parameter({n})\n" for n, shape in enumerate(operands))
        + f"  ROOT %c = ({result}, u8[0]) custom-call(%p0, %p1), window={{size=3x2}}, "
        f'dim_labels=bf01_oi01->bf01, custom_call_target="__cudnn${target}"\n}}\n'
    )
    assert costs(text).total["flops"] == 2 * (2 * 4 * 7 * 6) * (3 * 3 * 2)


def test_tiles_take_what_fills_them():
    def stored(text):
        return parse(f"HloModule m\n\nENTRY e {{ ROOT a = {text} parameter(0) }}").entry.root.shape

    assert stored("f32[9,200]{1,0:T(8,128)}").stored_bytes == 16 * 256 * 4
    assert stored("bf16[3,9,200]{2,1,0:T(8,128)(2,1)}").stored_bytes == 3 * 16 * 256 * 2
    assert stored("f32[9,200]{0,1:T(8,128)}").stored_bytes == 200 * 128 * 4
    assert stored("(f32[9]{0:T(128)}, f32[])").stored_bytes == 512 + 4
    assert stored("f32[9,200]{1,0}").stored_bytes == 9 * 200 * 4
