"""What the code of a Mosaic kernel computes and moves, next to what its CostEstimate says."""

import json
import pathlib
import re

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

import hlofront as jax
import hlofront.extend.core
from hlofront.inspect import costs, parse
from hlofront.interpreters import mlir
from hlotools.cost.kernel_work import estimated_steps, work_of, work_of_code
from hlotools.ir import custom_kernels
from tests.inspect.test_custom_kernels import planted

KERNELS = pathlib.Path(__file__).with_name("texts") / "kernels"
MATMUL = (KERNELS / "matmul.hlo").read_text()
PRODUCTS = 2 * 512**3

# A kernel as Pallas writes one for blocks of queries and keys: it skips those above the diagonal,
# and multiplies with itself in a loop.
CAUSAL = """\
module attributes {stable_mosaic.version = 15 : i64} {
  func.func @attention(%arg0: i32, %arg1: i32, %arg2: memref<8x128xbf16, #tpu.memory_space<vmem>>, %arg3: memref<8x128xbf16, #tpu.memory_space<vmem>>, %arg4: memref<8x8xf32, #tpu.memory_space<vmem>>, %arg5: memref<8x8xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 4, 4>, scalar_prefetch = 0 : i64, scratch_operands = 1 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}, {transform_indices = @transform_1, window_bounds = array<i64: 8, 128>}, {transform_indices = @transform_2, window_bounds = array<i64: 8, 8>}]} {
    %0 = arith.cmpi sle, %arg1, %arg0 : i32
    %1 = arith.extui %0 : i1 to i32
    %c0_i32 = arith.constant 0 : i32
    %2 = arith.cmpi ne, %1, %c0_i32 : i32
    scf.if %2 {
      %c0 = arith.constant 0 : index
      %3 = vector.load %arg2[%c0, %c0] : memref<8x128xbf16, #tpu.memory_space<vmem>>, vector<8x128xbf16>
      %cst = arith.constant dense<0.000000e+00> : vector<8x8xf32>
      %4 = tpu.matmul %3, %3, %cst {dimension_numbers = #tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>} : vector<8x128xbf16>, vector<8x128xbf16>, vector<8x8xf32> -> vector<8x8xf32>
      %5 = math.exp %4 : vector<8x8xf32>
      %c0_i32_1 = arith.constant 0 : i32
      %c6_i32 = arith.constant 6 : i32
      %c2_i32 = arith.constant 2 : i32
      scf.for %arg6 = %c0_i32_1 to %c6_i32 step %c2_i32  : i32 {
        %6 = arith.mulf %5, %5 : vector<8x8xf32>
      }
    } else {
    }
    return
  }
  func.func @transform_0(%arg0: i32, %arg1: i32) -> (i32, i32) {
    %c0_i32 = arith.constant 0 : i32
    return %arg0, %c0_i32 : i32, i32
  }
  func.func @transform_1(%arg0: i32, %arg1: i32) -> (i32, i32) {
    %0 = arith.minsi %arg1, %arg0 : i32
    %c0_i32 = arith.constant 0 : i32
    return %0, %c0_i32 : i32, i32
  }
  func.func @transform_2(%arg0: i32, %arg1: i32) -> (i32, i32) {
    return %arg0, %arg0 : i32, i32
  }
}
"""  # noqa: E501
# Of the 4 x 4 steps, those on and below the diagonal.
LIVE = 10


def with_estimate(text, **figures):
    """Return HLO whose kernel has a CostEstimate, as jax writes it."""
    estimate = json.dumps({name: str(value) for name, value in figures.items()})
    found, count = re.subn(r'("custom_call_config":\{)', rf'\1"cost_estimate":{estimate},', text)
    assert count == 1
    return found


def test_a_kernel_counts_for_each_step_of_its_grid():
    total = costs(MATMUL, "tpu:v5e:1x1").total
    # A sum for each of four products.
    assert total["flops"] == PRODUCTS + 4 * 512**2 and total["unknown"] == 0
    # Blocks of 128: each operand is read four times, the result is written once.
    assert total["bytes"] == (4 + 4 + 1) * 512**2 * 4
    assert total["seconds"] == total["bytes"] / 819e9
    rows = costs((KERNELS / "matmul_rows.hlo").read_text()).total
    assert (rows["flops"], rows["bytes"]) == (total["flops"], (4 + 2 + 1) * 512**2 * 4)


def test_what_a_kernel_skips_does_not_count():
    work = work_of_code(CAUSAL)
    products = 2 * 8 * 8 * 128
    assert work.flops == LIVE * (products + 3 * 64)
    assert work.transcendentals == LIVE * 64
    assert work.products == {("bf16", 1): LIVE * products}
    # The block of keys stays at the diagonal, and the second row begins with that of the first.
    assert work.windows == (4 * 8 * 128 * 2, (LIVE - 1) * 8 * 128 * 2, 4 * 8 * 8 * 4)


def test_code_of_unknown_conditions_counts_but_does_not_bound():
    unknown = "%0 = memref.load %arg5[%arg1] : memref<8xi1, #tpu.memory_space<smem>>"
    work = work_of_code(CAUSAL.replace("%0 = arith.cmpi sle, %arg1, %arg0 : i32", unknown))
    assert work.flops == 16 * (2 * 8 * 8 * 128 + 3 * 64) and work.products == {}


@pytest.mark.parametrize(
    "edit",
    [
        ("%c6_i32 = arith.constant 6 : i32", "%c6_i32 = memref.load %arg4[%c0] : memref<8xi32>"),
        ("array<i64: 4, 4>", "array<i64: 4, -9223372036854775808>"),
    ],
)
def test_loops_and_grids_of_unknown_sizes_have_no_work(edit):
    assert edit[0] in CAUSAL and work_of_code(CAUSAL.replace(*edit)) is None


def test_a_call_may_have_fewer_operands_than_its_kernel():
    text = MATMUL.replace("custom-call(%x.1, %y.1)", "custom-call(%x.1)")
    assert text != MATMUL and costs(text).total["flops"] == PRODUCTS + 4 * 512**2


ONCE = """\
module attributes {stable_mosaic.version = 15 : i64} {
  func.func @add(%arg0: memref<8x128xf32, #tpu.memory_space<vmem>>, %arg1: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = [], scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>} {
    %c0 = arith.constant 0 : index
    %0 = vector.load %arg0[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    %1 = arith.addf %0, %0 : vector<8x128xf32>
    tpu.vector_store %arg1[%c0, %c0], %1 {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,
    return
  }
}
"""  # noqa: E501


def test_a_kernel_without_a_grid_runs_once():
    work = work_of_code(ONCE)
    assert (work.flops, work.windows) == (8 * 128, (None, None))


def test_text_that_is_cut_raises_nothing():
    lines = CAUSAL.splitlines()
    for n, line in enumerate(lines):
        for instead in ([], [line.partition(", ")[0]], [line, line]):
            work = work_of_code("\n".join([*lines[:n], *instead, *lines[n + 1 :]]))
            assert work is None or work.flops >= 0


def test_grids_with_too_many_steps_have_no_work():
    assert work_of_code(CAUSAL.replace("array<i64: 4, 4>", "array<i64: 1000000, 1000>")) is None


def test_copies_that_a_kernel_starts_count_by_their_size():
    copy = """\
      tpu.enqueue_dma source(%arg2 : memref<16x128xbf16, #tpu.memory_space<any>>) \
target(%arg5 : memref<16x128xbf16, #tpu.memory_space<vmem>>) target_semaphore(%arg4 : memref<1x>)
      %5 = math.exp"""
    assert work_of_code(CAUSAL.replace("      %5 = math.exp", copy)).copied == LIVE * 16 * 128 * 2


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"flops": PRODUCTS // 4},
         ["CostEstimate says 67,108,864 flops, and its code 269,484,032"]),
        ({"bytes_accessed": 3 * 512**2 * 4},
         ["CostEstimate says 3,145,728 bytes accessed, and its code 9,437,184"]),
        ({"transcendentals": 7}, ["CostEstimate says 7 transcendentals, and its code 0"]),
        ({"flops": PRODUCTS, "transcendentals": 0, "bytes_accessed": 5_000_000}, []),
    ],
)  # fmt: skip
def test_an_estimate_that_differs_by_more_than_two_is_named(figures, words):
    report = costs(with_estimate(MATMUL, **figures))
    assert [str(row).partition("its ")[2] for row in report.contradictions] == words
    assert all(each in report.text() for each in words)
    named = json.loads(report.json())["contradictions"]
    assert [row["instruction"] for row in named] == ["matmul.1"] * len(words)


def test_without_a_decoder_the_estimate_counts(monkeypatch):
    monkeypatch.setattr(custom_kernels, "_decoders", [custom_kernels._no_decoder])
    report = costs(with_estimate(MATMUL, flops=1000))
    assert report.total["flops"] == 1000 and report.contradictions == []
    assert report.total["bytes"] == 3 * 512**2 * 4


# ---- fits ----------------------------------------------------------------------------------------


def kernel_call(config):
    """Return a function that calls the kernel of `matmul.mlir` with other entries in its config."""
    written = re.search(
        r'backend_config = "((?:[^"\\]|\\.)*)"', (KERNELS / "matmul.mlir").read_text()
    )
    known = json.loads(written[1].replace(r"\22", '"'))
    known["custom_call_config"].update(config.pop("custom_call_config", {}))
    text = json.dumps({**known, **config})
    call_p = hlofront.extend.core.Primitive("call_kernel")
    call_p.def_abstract_eval(lambda x, y: x)

    def lowered(context, x, y):
        index = ir.IndexType.get()
        layout = ir.DenseIntElementsAttr.get(np.array([1, 0]), type=index)
        call = stablehlo.CustomCallOp(
            [x.type],
            [x, y],
            call_target_name="tpu_custom_call",
            backend_config=ir.StringAttr.get(text),
            api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1),
            operand_layouts=ir.ArrayAttr.get([layout, layout]),
            result_layouts=ir.ArrayAttr.get([layout]),
        )
        return list(call.results)

    mlir.register_lowering(call_p, lowered, platform="tpu")
    return lambda x, y: call_p.bind(x, y)


@pytest.mark.slow
def test_fits_says_what_contradicts_a_kernel_and_what_exceeds_vmem():
    try:
        assert jax.target("tpu:v5e:1x1").devices
    except RuntimeError as error:
        pytest.skip(str(error))
    x = jax.ShapeDtypeStruct((512, 512), "float32")
    estimate = {"flops": 5, "transcendentals": 0, "bytes_accessed": 5_000_000}
    small = kernel_call({"custom_call_config": {"cost_estimate": estimate}})
    found = jax.fits(small, x, x, target="tpu:v5e:1x1")
    assert found and "CostEstimate says 5 flops, and its code 269,484,032" in str(found)
    limit = [{"memory_space": 1, "offset": 0, "size": 65536}]
    found = jax.fits(kernel_call({"scoped_memory_configs": limit}), x, x, target="tpu:v5e:1x1")
    assert found.fits is False
    assert found.notes[0].startswith("VMEM exceeded: ") and "needs 448.0K" in found.notes[0]


def test_steps_of_a_grid_whose_size_is_known_at_run_time_follow_from_the_estimate():
    whole = work_of(parse(MATMUL).entry.root)
    bounds = "iteration_bounds = array<i64: "
    text = planted("matmul.hlo", (f"{bounds}4,", f"{bounds}-9223372036854775808,"))
    assert estimated_steps(parse(text).entry.root) is None
    estimate = f'"custom_call_config":{{"cost_estimate":{{"flops":{2 * whole.flops}}},'
    call = parse(text.replace('"custom_call_config":{', estimate)).entry.root
    # Twice the operations of the grid of 4 x 4 x 4 steps.
    assert work_of(call) is None and estimated_steps(call) == 2 * 4**3
    given = parse(MATMUL.replace('"custom_call_config":{', estimate)).entry.root
    assert estimated_steps(given) is None
