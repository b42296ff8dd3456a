"""Kernels of TPUs: what libtpu's dumps say of their bundles, and what bounds their time."""

import io
import json
import pathlib

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.cli.main import main
from hlofront.inspect import dumped, tpu_kernels
from hlotools.dumps.llo import (
    allocated_bytes,
    bundles_of,
    duplicates_of,
    loops_of,
    profiles_of,
    slot_uses,
    times_run,
)

# Dumps of libtpu 0.0.52 for a v5e, with most bundles and operations left out.
HLO = """
HloModule jit_step, is_scheduled=true

FileNames
1 "/home/me/model.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%fused_computation (p.1: f32[1024,512]) -> f32[1024,512] {
  %p.1 = f32[1024,512]{1,0:T(8,128)} parameter(0)
  ROOT %exp.1 = f32[1024,512]{1,0:T(8,128)} exponential(%p.1), metadata={op_name="jit(step)/exp" stack_frame_id=1}
}

%fused_computation.1 (p.2: f32[1024,512]) -> f32[1024,512] {
  %p.2 = f32[1024,512]{1,0:T(8,128)} parameter(0)
  ROOT %exp.2 = f32[1024,512]{1,0:T(8,128)} exponential(%p.2), metadata={op_name="jit(step)/exp" stack_frame_id=1}
}

ENTRY %main.1 (x.1: f32[1024,512]) -> f32[1024,512] {
  %x.1 = f32[1024,512]{1,0:T(8,128)} parameter(0)
  %copy.3 = f32[1024,512]{0,1:T(8,128)S(1)} copy(%x.1)
  %fusion.1 = f32[1024,512]{1,0:T(8,128)} fusion(%x.1), kind=kLoop, calls=%fused_computation, metadata={op_name="jit(step)/exp" stack_frame_id=1}
  ROOT %fusion.2 = f32[1024,512]{1,0:T(8,128)} fusion(%fusion.1), kind=kLoop, calls=%fused_computation.1, metadata={op_name="jit(step)/exp" stack_frame_id=1}
}
"""  # noqa: E501
# The counter is in s18874_s14: a trip that only loads, four steps, and a trip that only stores.
PIPELINED = """\
= control target key start
LB: loop body
= control target key end

     0   :  { %14 = vsyncpa [#allocation3], 0 } /* Start region 2 */
   0x1   :  { %s19150_s14 = smov.u32 0 /* copy for cssa */ } /* Start region 2345 :: End region 2345 */
   0x2 LB: > { %p13455_p0 = scmp.ge.s32.totalorder %s18874_s14, 4  ;;  %s18874_s14 = sphi %s19150_s14, %s22_s14 /* phi copy :: iteration index, stage = 0 */ } /* Start region 2350 :: Start region 14 */
   0x3   : > { %36 = sbr.rel (%p13455_p0) target = $region17 }
   0x4   :  {} /* End region 15 */
   0x5   : > { %51 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s49_s21, /*size_in_granules=*/64 /*
iteration_bounds: (4)
element_size_in_bytes: 2048 */ }
   0x6 PF: > { %p60_p4 = scmp.ge.s32.totalorder %s18874_s14, 1  ;;  %p61_p5 = scmp.lt.s32.totalorder %s18874_s14, 5 } /* Start/End empty region 17 */
   0x7   : > { %p62_p6 = pnand %p60_p4, %p61_p5 }
   0x8   : > { %65 = sbr.rel (%p62_p6) target = $region21 }
   0x9   : > { %v24_v2 = vld [vmem:[%s42_s0] sm:$0xff]  ;;  %v25_v3 = vexp2.f32 %v23_v1 }
   0xa   : > { %v26_v4 = vpop.erf %25 }
   0xb   : > { %v27_v4 = vpop.erf %25 }
   0xc   : > { %v28_v4 = vpop.erf %25 }
   0xd PF: > { %s22_s14 = sadd.s32 1, %s18874_s14 /* copy for cssa :: iteration index, stage = 0 */ } /* Start/End empty region 21 */
   0xe   : > { %p19_p8 = scmp.ge.s32.totalorder %s22_s14, 6 /* loop exit test */ } /* End region 4 */
   0xf   :  { %21 = sbr.rel (!%p19_p8) target = $region2350 }
  0x10   :  {}
  0x11   :  {}
  0x12   :  {}
  0x13   :  {} /* End region 5 :: End region 2349 */
  0x14   :  { %9586 = vsyncpa [#allocation3], 1 } /* exit bundle: %fusion.1 = fusion(%x.1) */
"""  # noqa: E501
# An outer loop of three trips; the inner one ends where an address says.
NESTED = """\
     0   :  { %s9_s1 = smov.u32 0 }
   0x1 LB: > { %s7_s1 = sphi %s9_s1, %s8_s1 } /* Start region 10 */
   0x2 LB: >> { %s50_s26 = scalar_lea.vmem %s55775_s26, 8 /* copy */ } /* Start region 20 :: Start region 21 */
   0x3   : >> { %p45_p2 = scmp.gt.s32.totalorder %s50_s26, %s56408_s15 }
   0x4   : > { %47 = sbr.rel (!%p45_p2) target = $region20 }
   0x5   :  {}
   0x6   :  {}
   0x7   :  {}
   0x8   :  {}
   0x9   : > { %s8_s1 = sadd.s32 2, %s7_s1  ;;  %p3_p3 = scmp.ge.s32.totalorder %s8_s1, 5 }
   0xa   :  { %48 = sbr.rel (!%p3_p3) target = $region10 }
"""  # noqa: E501
ALLOCATIONS = """\
$region0: #{fusion.1}
  #allocation0 [shape = 'f32[1000,512]{1,0:T(8,128)}', space=vmem, size = 0x1f4000, offset = 0, scoped, tag = 'x']
  #allocation4 [shape = 's32[]', space=sflag, size = 0x4, offset = 0, fixed_abs, tag = 'dummy sync flag']
  #allocation7_spill [shape = 'u32[1]{0}', space=smem, size = 0x4, offset = 0x44, scoped, tag = 'spilled sreg/preg']
  $region1: #{fusion.1} parent=0
    #allocation1 [shape = 'u8[65536]{0}', space=vmem, size = 0x10000, offset = 0x1f4000, scoped, tag = 'input window']
"""  # noqa: E501
PROFILE = """\
HLO: <no-hlo-instruction>
 - SCALAR_ALU: (7/10) - 0.7

HLO: %fusion.1 = f32[1024,512]{1,0:T(8,128)} fusion(%x.1), "estimated_cycles":"9044"
 - MXU_0 matmul: (2/20) - 0.1
 - MXU_1 matpush: (2/80) - 0.025
 - MXU_1 matmul: (4/20) - 0.2
 - MXU_1 matmul_packed: (1/10) - 0.1
 - XLU_0 rpu: (2/20) - 0.1
 - XLU_0 all: (4/20) - 0.2
 - VECTOR_ALU: (72/80) - 0.9
 - VECTOR_EUP: (10/42) - 0.238
 - VECTOR_STORE: (2/20) - 0.1
 - SMEM_SPILL_COUNT: (1/20) - 0.05
 - VMEM_SPILL_COUNT: (3/20) - 0.15
 - VMEM_FILL_COUNT: (5/20) - 0.25
"""
# Products, pushes of their operands, and one of everything else in bundles 8 to 10.
USES = """\
== CAPACTIY:
MATMUL, MATPUSH, XLU, VALU, VPOP, EUP, VLOAD, VLOAD:FILL, VSTORE, VSTORE:SPILL, SALU
    4     4     3     4     2     1     3     3     1     1     2
== UTILIZATION:
""" + "".join(
    {
        8: "1 4 0 0 0 0 0 0 0 0 0\n",
        9: "2 0 0 0 0 0 3 1 0 0 0\n",
        10: "0 0 0 1 1 1 0 0 1 1 0\n",
    }.get(n, "0 0 0 0 0 0 0 0 0 0 1\n")
    for n in range(21)
)
DUPLICATES = """\
key:<top-inlining-caller>
ordinal:0
equivalent_hlos[size=0]:
key:fusion.1
ordinal:5
equivalent_hlos[size=2]:
  fusion.1
  fusion.2
key:copy.3
ordinal:6
equivalent_hlos[size=1]:
  copy.3
"""


def write_dumps(folder):
    """Write files as libtpu does, after an older program with a kernel of the same name."""
    files = {
        "1000-TLP-hlo.txt": HLO.replace("jit_step", "jit_before"),
        "1001-fusion.1-72-final_bundles.txt": "     0   :  {}\n",
        "2000-TLP-00-deduplication-map.txt": DUPLICATES,
        "2000-TLP-74-hlo-static-bundle-profile.txt": PROFILE,
        "2000-TLP-73-final_bundles.txt": "     0   :  {}\n   0x1   :  {}\n",
        "2000-TLP-hlo.txt": HLO,
        "2001-fusion.1-69-post-delay-converter.txt": ALLOCATIONS,
        "2001-fusion.1-70-final_hlo-static-per-bundle-utilization.txt": USES,
        "2001-fusion.1-71-schedule-analysis_final_bundles.txt": "Schedule analysis:",
        "2001-fusion.1-72-final_bundles.txt": PIPELINED,
        "2002-copy.3-72-final_bundles.txt": NESTED,
        "2003-<late-finalization>-71-final_bundles.txt": "     0   :  {}\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.fixture
def folder(tmp_path):
    write_dumps(tmp_path)
    return tmp_path


def run(*arguments):
    out = io.StringIO()
    status = main([str(each) for each in arguments], out)
    return status, out.getvalue()


def test_bundles_have_their_instructions_without_comments():
    bundles = bundles_of(PIPELINED)
    assert [bundle.address for bundle in bundles] == list(range(21))
    assert bundles[5].instructions == ["%51 = dma.hbm_to_vmem [thread:$0] %s49_s21, 64"]
    assert bundles[9].instructions == [
        "%v24_v2 = vld [vmem:[%s42_s0] sm:$0xff]",
        "%v25_v3 = vexp2.f32 %v23_v1",
    ]
    assert bundles[16].instructions == []


def test_bundles_of_hand_written_kernels_say_their_lines():
    text = """\
   0x4   : > { %241 = sbr.rel (%p5_p7) /* loc("/home/me/a.py":11:5 to :35) */ target = $region2 }
   0x5   :  { %v1_v0 = vadd.f32 1.0, %v2 /* loc("/home/me/a.py":11:5 to 12:9) */  ;;  %v3_v1 = vmul.f32 2.0, %v2 /* loc("/home/me/b c.py":7:2 to :4) :: loc("/home/me/a.py":9:1 to :3) */ }
   0x6   :  { %v2_v0 = vmov 0.0 /* materialized constant */ }
"""  # noqa: E501
    branch, both, neither = bundles_of(text)
    a, b = "/home/me/a.py", "/home/me/b c.py"
    assert [each.places for each in (branch, both, neither)] == [
        ((a, 11),),
        ((a, 11), (b, 7), (a, 9)),
        (),
    ]
    # Without them the code reads as it does without libtpu's flag.
    assert branch.text.strip() == "%241 = sbr.rel (%p5_p7) target = $region2 }"
    assert both.instructions == ["%v1_v0 = vadd.f32 1.0, %v2", "%v3_v1 = vmul.f32 2.0, %v2"]


def test_the_use_of_slots_is_known_for_each_bundle():
    uses = {use.slot: use.shares for use in slot_uses(USES)}
    assert uses["MXU"][8:10] == [1.0, 0.5]
    assert (uses["load"][9], uses["fills"][9], uses["spills"][10]) == (1.0, 1 / 3, 1.0)
    assert {len(shares) for shares in uses.values()} == {21}
    assert slot_uses("") == [] == slot_uses(USES.partition("== UTIL")[0].partition("\n")[0])


def test_the_trips_of_a_pipelined_loop_are_its_steps():
    bundles = bundles_of(PIPELINED)
    (loop,) = loops_of(bundles)
    assert (loop.start, loop.stop, loop.trips) == (2, 20, 4)
    assert times_run(bundles, [loop]) == [1, 1, *[4] * 18, 1]
    # A loop that loads and stores two steps ahead has six trips for two steps.
    text = PIPELINED.replace("s18874_s14, 5 }", "s18874_s14, 4 }")
    (loop,) = loops_of(bundles_of(text.replace("s18874_s14, 1  ;;", "s18874_s14, 2  ;;")))
    assert loop.trips == 2
    # One that need not load, since its operands are in VMEM, and stores in its last three trips.
    (loop,) = loops_of(bundles_of(PIPELINED.replace("(%p62_p6)", "(!%p61_p5)")))
    assert loop.trips == 5


def test_counters_of_loops_may_be_copied_and_spilled():
    slot = "[smem:[#allocation16_spill]]"
    spilled = (
        PIPELINED.replace("sadd.s32 1, %s18874_s14", "sadd.s32 1, %s9_s9")
        .replace("sphi %s19150_s14, %s22_s14", "sphi %s19150_s14, %s3_s3")
        .replace("   0x7   : > {", f"   0x7   : > {{ %7 = sst {slot} %s18874_s14  ;;")
        .replace(
            "   0xd PF: > {",
            f"   0xd PF: > {{ %s9_s9 = sld {slot}  ;;  %s3_s3 = smov.u32 %s22_s14  ;;",
        )
    )
    assert [loop.trips for loop in loops_of(bundles_of(spilled))] == [4]


def test_loops_are_nested_and_may_have_unknown_trips():
    bundles = bundles_of(NESTED)
    loops = loops_of(bundles)
    assert [(loop.start, loop.stop, loop.trips) for loop in loops] == [(1, 11, 3), (2, 9, None)]
    assert times_run(bundles, loops) == [1, *[3] * 10]


def test_allocations_end_at_the_last_byte_of_each_space():
    assert allocated_bytes(ALLOCATIONS) == {"vmem": 0x204000, "smem": 0x48}


def test_slots_are_as_full_as_their_fullest_unit():
    profile = profiles_of(PROFILE)["fusion.1"]
    slots = {slot: round(share, 3) for slot, share in profile.slots.items() if share}
    assert slots == {"MXU": 0.3, "XLU": 0.2, "VALU": 0.9, "EUP": 0.238, "store": 0.1}
    assert (profile.count("FILL"), profile.count("SPILL")) == (5, 4)
    assert (profile.cycles, profile.estimated_cycles) == (42, 9044)


def test_equal_operations_have_one_kernel():
    assert duplicates_of(DUPLICATES)["fusion.1"] == ["fusion.1", "fusion.2"]


def test_a_report_has_a_row_for_each_kernel(folder):
    report = tpu_kernels(folder, "tpu:v5e:1x1")
    fusion, copy = report.kernels
    assert (fusion.name, fusion.operations, fusion.calls) == (
        "fusion.1",
        ("fusion.1", "fusion.2"),
        2,
    )
    assert (fusion.bundles, fusion.trips, fusion.line) == (21, (4,), 12)
    # 75 bundles run in a call, and the code's 21 take 42 cycles.
    assert fusion.cycles == 75 * 2
    moved = 4 * 1024 * 512 * 4
    assert (fusion.bytes, fusion.limit, fusion.seconds) == (moved, "HBM", moved / 819e9)
    assert (fusion.vmem, fusion.smem, fusion.compiler_cycles) == (0x204000, 0x48, 2 * 9044)
    assert (copy.bundles, copy.trips, copy.slots, copy.fills) == (11, (3, None), {}, None)
    assert (report.bundles, report.others) == (2, ["jit_before"])


def test_a_kernel_is_limited_by_its_fullest_slot_if_one_is_half_full(folder):
    assert tpu_kernels(folder).kernels[0].limit == "VALU"
    path = folder / "2000-TLP-74-hlo-static-bundle-profile.txt"
    path.write_text(PROFILE.replace("(72/80)", "(32/80)"))
    report = tpu_kernels(folder)
    assert (report.kernels[0].limit, report.kernels[0].seconds, report.seconds) == (
        "latency",
        None,
        None,
    )


def test_a_kernel_without_a_line_has_that_of_the_call_around_it(folder):
    head, entry = HLO.split("ENTRY")
    body = """%body (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %negate.1 = f32[8]{0} negate(%p)
}

"""
    call = "  %call.1 = f32[8]{0} call(%y.1), to_apply=%body, metadata={stack_frame_id=1}\n  ROOT"
    entry = entry.replace("  ROOT", "  %y.1 = f32[8]{0} parameter(1)\n" + call)
    (folder / "2000-TLP-hlo.txt").write_text(f"{head}{body}ENTRY{entry}")
    (folder / "2004-negate.1-72-final_bundles.txt").write_text("     0   :  {}\n")
    lines = {row.name: row.line for row in tpu_kernels(folder).kernels}
    assert lines["negate.1"] == 12


def test_the_command_line_shows_kernels_and_their_bundles(folder, capsys):
    status, text = run("show", folder, "--kernels", "--target", "tpu:v5e:1x1")
    head, names, first, *_, note, others = text.splitlines()
    assert status == 0 and head == "jit_step on TPU v5e"
    assert names.split()[:5] == ["part", "bound", "limit", "bundles", "trips"]
    assert "HBM" in first and first.endswith("fusion.1, 2 calls  model.py:12")
    assert note == "a loop whose trips are not constant (?) counts as one trip"
    assert others == "the folder has smaller programs as well: jit_before"
    listed = json.loads(run("show", folder, "--kernels", "--json")[1])
    assert listed["kernels"][0]["name"] == "fusion.1"
    status, text = run("show", folder, "--bundles", "fusion.2")
    head, line, *bundles = text.splitlines()
    assert head == "fusion.1: 2 calls of 21 bundles, 150 cycles"
    assert line == "  model.py:12  exponential"
    assert bundles[9] == (
        "    0x9 x4  %v24_v2 = vld [vmem:[%s42_s0] sm:$0xff] ;; %v25_v3 = vexp2.f32 %v23_v1"
    )
    assert run("show", folder, "--bundles", "fusion.9")[0] == 2
    assert "there is no kernel 'fusion.9': " in capsys.readouterr().err
    assert run("show", folder, "--kernel", "fusion.1")[0] == 2
    assert "give --bundles for --kernel" in capsys.readouterr().err


def test_totals_of_bundles_and_cycles_are_by_source_line(folder):
    status, text = run("show", folder, "--kernels", "--by-line", "--target", "tpu:v5e:1x1")
    _, head, fused, copied, *_ = text.splitlines()
    assert status == 0
    assert head.split() == ["part", "bound", "kernels", "calls", "bundles", "cycles", "HBM"]
    assert fused.split()[3:7] == ["1", "2", "21", "300"] and fused.endswith("model.py:12")
    assert copied.split()[3:6] == ["1", "1", "11"] and copied.endswith("(no line)")
    report = tpu_kernels(folder)
    for name in ("bundles", "cycles"):
        whole = sum(kernel.counts[name] for kernel in report.kernels)
        assert sum(each.counts[name] for each in report.lines) == whole


def test_a_grid_of_unknown_size_has_the_steps_of_its_estimate(folder, monkeypatch):
    monkeypatch.setattr("hlotools.dumps.tpu_kernels.estimated_steps", lambda operation: 7)
    # The trips of a loop that are known stay, and only the first loop is that of the grid.
    (folder / "2002-copy.3-72-final_bundles.txt").write_text(
        NESTED.replace("smov.u32 0", "smov.u32 %s1_s1")
    )
    report = tpu_kernels(folder)
    fusion, copy = sorted(report.kernels, key=lambda row: row.name, reverse=True)
    assert (fusion.trips, fusion.steps_by_estimate) == ((4,), None)
    assert (copy.trips, copy.steps_by_estimate, copy.cycles) == ((7, None), 7, 1 + 7 * 10)
    assert " ~7,? " in report.text() and "known only when the kernel runs (~)" in report.text()


def test_folders_without_kernels_say_how_libtpu_writes_them(tmp_path):
    with pytest.raises(ValueError, match="--xla_jf_dump_to=FOLDER"):
        tpu_kernels(tmp_path)


@pytest.mark.slow
def test_libtpu_dumps_the_kernels_of_a_function(tmp_path):
    try:
        assert jax.target("tpu:v5e:1x1").devices
    except RuntimeError as error:
        pytest.skip(str(error))
    shape = jax.ShapeDtypeStruct((256, 128), "float32")
    folder = tmp_path / "with space"
    dumped(lambda x: jnp.exp(x @ x.T).sum(0), folder, "tpu:v5e:1x1")(shape)
    report = tpu_kernels(folder, "tpu:v5e:1x1")
    first = report.kernels[0]
    assert first.file == __file__ and first.bundles > 10 and 0.1 < max(first.slots.values()) <= 1
    assert first.seconds and first.compiler_cycles
    assert "vmatmul" in "".join(report.code(row.name) for row in report.kernels)


def feed_forward(weights, x):
    hidden = jax.nn.gelu(x @ weights["up"])
    return ((x + hidden @ weights["down"]) ** 2).mean()


def ratio_to_estimate(rows):
    estimated = sum(row.compiler_cycles or 0 for row in rows)
    return sum(row.cycles * row.calls for row in rows) / estimated


@pytest.mark.long
def test_products_without_loops_take_the_cycles_that_libtpu_estimates(tmp_path):
    """Loops wait for their transfers, and other fusions for their start, which are not static."""
    try:
        assert jax.target("tpu:v5e:1x1").devices
    except RuntimeError as error:
        pytest.skip(str(error))
    sizes = {"up": (512, 2048), "down": (2048, 512)}
    weights = {name: jax.ShapeDtypeStruct(size, "float32") for name, size in sizes.items()}
    x = jax.ShapeDtypeStruct((1024, 512), "float32")
    dumped(jax.value_and_grad(feed_forward), tmp_path, "tpu:v5e:1x1")(weights, x)
    products = [row for row in tpu_kernels(tmp_path).kernels if row.slots.get("MXU", 0) > 0.5]
    straight = [row for row in products if not row.trips]
    looped = [row for row in products if row.trips]
    assert straight and looped
    assert ratio_to_estimate(straight) == pytest.approx(1, rel=0.05)
    assert all(0.5 < ratio_to_estimate([row]) < 1 for row in looped)


@pytest.mark.slow
def test_the_kernels_of_a_file_of_stablehlo_are_shown(tmp_path, capsys):
    try:
        assert jax.target("tpu:v5e:1x1").devices
    except RuntimeError as error:
        pytest.skip(str(error))
    path = pathlib.Path(__file__).with_name("texts") / "kernels" / "matmul.mlir"
    command = ["show", path, "--kernels", "--target", "tpu:v5e:1x1", "--dump", tmp_path]
    status, text = run(*command)
    assert status == 0 and "matmul.1, 1 call  kernels.py:20" in text
    # libtpu says the lines of its bundles, and how much of each slot they use.
    (kernel,) = tpu_kernels(tmp_path).kernels
    places = {place for bundle in kernel.bundle_list() for place in bundle.places}
    assert places == {("/tmp/kernels/kernels.py", line) for line in (11, 13, 14, 15, 17)}
    assert {len(use.shares) for use in kernel.slot_uses()} == {kernel.bundles}
    bundles = run("show", tmp_path, "--bundles", "matmul.1")[1].splitlines()
    assert any("vmatpush" in line and line.endswith("  kernels.py:14") for line in bundles)
    assert run("show", path, "--kernels")[0] == 2
    assert "with a --target that is not attached" in capsys.readouterr().err
