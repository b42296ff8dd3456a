"""Kernels of Mosaic and Triton in custom calls: decoded, shown, and compared as what they are.

The texts in texts/kernels/ are what jax 0.10.2 wrote for `pallas_call`: a product of matrices for
TPUs with blocks of 128 and of 256 rows, as StableHLO and as optimized HLO, and a sum for GPUs.
"""

import base64
import io
import json
import pathlib
import re

import pytest
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _mosaic_gpu_ext, _tpu_ext, _triton_ext
from jaxlib.mlir.passmanager import PassManager

from hlofront.bridge.state import jaxlib_version
from hlofront.cli import main
from hlofront.inspect import canonical, diff, page, parse
from hlotools import golden
from hlotools.ir import custom_kernels
from hlotools.ir.kernel_parameters import kernels_in, parameters_of

FOLDER = pathlib.Path(__file__).with_name("texts") / "kernels"
TEXTS = {path.name: path.read_text() for path in FOLDER.iterdir()}


def encoded(mlir, serde):
    """Return MLIR text as the bytecode of a payload."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    for dialect in (_mosaic_gpu_ext, _tpu_ext, _triton_ext):
        dialect.register_dialect(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    with context:
        module = ir.Module.parse(mlir)
        if serde:
            PassManager.parse(f"builtin.module({serde}{{serialize=true}})").run(module.operation)
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
    return buffer.getvalue()


BODY = re.compile(r"TUzvUg[A-Za-z0-9+/=]*")
IR = re.compile(r'"ML\\EFR(?:[^"\\]|\\.)*"')


def escaped(payload):
    """Return bytecode in a string of MLIR, which begins as MLIR writes it."""
    return "ML\\EFR" + "".join(f"\\{byte:02X}" for byte in payload[4:])


def with_payload(name, payload):
    """Return a text with another payload of its kernel."""
    if name == "triton.mlir":
        return IR.sub(lambda _: f'"{escaped(payload)}"', TEXTS[name])
    return BODY.sub(base64.b64encode(payload).decode(), TEXTS[name])


def planted(name, *edits):
    """Return a text whose kernel is edited by pairs of a pattern and what replaces it."""
    ((_, kernel),) = kernels_in(TEXTS[name])
    mlir = kernel.mlir
    for pattern, replacement in edits:
        assert re.search(pattern, mlir, re.DOTALL), pattern
        mlir = re.sub(pattern, replacement, mlir, flags=re.DOTALL)
    return with_payload(name, encoded(mlir, "" if name == "triton.mlir" else "mosaic-serde"))


LAUNCH = """
module {
  func.func @copy(%x: memref<128xf32>) {
    %c1 = arith.constant 1 : index
    %blocks = arith.constant 4 : index
    %threads = arith.constant 128 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%nx = %threads, %ny = %c1, %nz = %c1) {
      %v = memref.load %x[%tx] : memref<128xf32>
      memref.store %v, %x[%tx] : memref<128xf32>
      gpu.terminator
    }
    return
  }
}
"""
MOSAIC_GPU = """\
HloModule copy

ENTRY main {
  x = f32[128]{0} parameter(0)
  ROOT y = f32[128]{0} custom-call(x), custom_call_target="mosaic_gpu_v2", \
api_version=API_VERSION_TYPED_FFI, backend_config={kernel_hash = "\\01", module = "PAYLOAD", \
use_custom_barrier = false}
}
"""


def mosaic_gpu(mlir=LAUNCH):
    return MOSAIC_GPU.replace("PAYLOAD", escaped(encoded(mlir, "mosaic_gpu-serde")))


ALL = {**TEXTS, "mosaic_gpu.hlo": mosaic_gpu()}
of_its_jaxlib = pytest.mark.skipif(
    jaxlib_version >= (0, 11),
    reason="Triton's bytecode has no versions: jaxlib 0.10 wrote this one",
)
NAMES = [pytest.param(name, marks=of_its_jaxlib) if "triton" in name else name for name in ALL]


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_is_decoded_and_shown(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(ALL[name])
    assert main.main(["show", str(path)]) == 0
    program, _, kernels = capsys.readouterr().out.partition("Kernels in custom calls")
    expected = {
        "matmul": ("Mosaic TPU kernel matmul", "grid: 4x4x4", "tpu.matmul"),
        "matmul_rows": ("block sizes: operand 0 256x128", "grid: 2x4x4", "vector<256x128xf32>"),
        "triton": ("Triton kernel add at kernels.py", "load 0 64x64", "num_warps: 4", "tt.store"),
        "mosaic_gpu": ("Mosaic GPU kernel", "grid: 4x1x1", "threads: 128x1x1", "gpu.launch"),
    }
    for words in expected[path.stem]:
        assert words in kernels
    assert "loc(" not in kernels
    assert len(max(program.splitlines(), key=len)) < 700, "the bytecode itself is not shown"
    assert main.main(["show", str(path), "--json"]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert [section["stage"] for section in sections][1:] == ["kernels"]


def test_an_instruction_has_its_kernel_with_the_lines_of_its_source():
    call = parse(TEXTS["matmul.hlo"]).entry.root
    assert call.kernel.name == "matmul" and 'kernels.py":' in call.kernel.mlir
    assert parameters_of(call.kernel)["memory spaces"]["scratch 0"] == "vmem"
    assert parameters_of(call.kernel)["dimension semantics"] == {
        "": "parallel, parallel, arbitrary"
    }
    assert call.operands[0].kernel is None


@pytest.mark.parametrize("name", ["matmul.mlir", "matmul.hlo"])
def test_a_page_has_the_kernel_folded(name):
    text = page(TEXTS[name])
    assert '"Mosaic TPU kernel matmul at kernels.py:' in text
    assert "tpu.matmul" in text and 'el("details"' in text


# ---- differences ---------------------------------------------------------------------------------


def unconditional(branch):
    """Return the operations of a branch, whose names its block may have for others."""
    return branch[1] + re.sub(r"%(?!arg)(\w+)", r"%of_branch_\1", branch[2])


SKIP = (r"\A(.*?)scf\.if %\S+ \{\n(.*?)\} else \{\s*\} loc\([^\n]*", unconditional)
CHANGES = {
    "block sizes": (
        [("128x128", "256x256"), ("array<i64: 128, 128>", "array<i64: 256, 256>")],
        "kernel matmul, block sizes of operand 0, operand 1, result 0, scratch 0: "
        "128x128 -> 256x256",
    ),
    "memory space": (
        [(r"(%arg4: memref<128x128xf32, #tpu.memory_space<)vmem", r"\1smem"),
         (r"(%arg4\[[^\n]*memory_space<)vmem", r"\1smem")],
        "kernel matmul, memory spaces of operand 1: vmem -> smem",
    ),
    "precision": (
        [("transpose_lhs_hint", "precision = #tpu.contract_precision<fp32>, transpose_lhs_hint")],
        "kernel matmul, precision of tpu.matmul: none -> fp32",
    ),
    "grid": (
        [("iteration_bounds = array<i64: 4,", "iteration_bounds = array<i64: 8,")],
        "kernel matmul, grid: 4x4x4 -> 8x4x4",
    ),
    "index maps": (
        [("@transform_0, (.*)@transform_1, ", r"@transform_1, \1@transform_0, ")],
        "kernel matmul, index maps of operand 0: (i, k) -> (k, j)",
    ),
    "index": (
        [(r"return %arg0, %arg2 ", "return %arg2, %arg2 ")],
        "kernel matmul, index maps of operand 0: (i, k) -> (k, k)",
    ),
    "skip": ([SKIP], "kernel matmul: removed scf.if"),
    "dimension semantics": (
        [("<parallel>", "<arbitrary>")],
        "kernel matmul, dimension semantics: parallel, parallel, arbitrary -> "
        "arbitrary, arbitrary, arbitrary",
    ),
    "operation": (
        [(r"arith\.addf", "arith.subf")],
        "kernel matmul: removed arith.addf; added arith.subf",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", ["matmul.mlir", "matmul.hlo"])
def test_a_planted_change_is_the_first_cause(what, name):
    edits, sentence = CHANGES[what]
    found = diff(TEXTS[name], planted(name, *edits))
    assert not found.equal
    assert found.changes[0].sentence.startswith(sentence)
    assert "payload" not in found.text(verbose=True)
    again = diff(planted(name, *edits), planted(name, *edits))
    assert again.equal


@pytest.mark.parametrize("suffix", ["mlir", "hlo"])
def test_the_grid_follows_from_the_block_sizes(suffix):
    found = diff(TEXTS[f"matmul.{suffix}"], TEXTS[f"matmul_rows.{suffix}"])
    heading = found.changes[0]
    assert heading.is_cause and heading.sentence == (
        "kernel matmul, block sizes of operand 0, result 0, scratch 0: 128x128 -> 256x128"
    )
    assert heading.sources == ["kernels.py:20"]
    assert heading.parts[0].sentence == "kernel matmul, grid: 4x4x4 -> 2x4x4"
    # Sizes of values follow as well, and are not listed.
    assert len(heading.parts) <= 2
    assert "kernel matmul, block sizes" in found.markdown()
    assert "kernel matmul, block sizes" in found.html()


def test_a_lost_skip_has_the_line_of_its_source():
    found = diff(TEXTS["matmul.mlir"], planted("matmul.mlir", SKIP))
    assert "kernels.py:11" in found.changes[0].sources
    assert "added scf.if" in diff(planted("matmul.mlir", SKIP), TEXTS["matmul.mlir"]).text()


def test_the_order_of_loads_and_stores_is_compared():
    both = r"( +%\d+ = vector\.load %arg6[^\n]*\n)( +tpu\.vector_store[^\n]*\n)"
    found = diff(TEXTS["matmul.mlir"], planted("matmul.mlir", (both, r"\2\1")))
    assert not found.equal


@of_its_jaxlib
def test_the_options_of_triton_are_compared():
    other = TEXTS["triton.mlir"].replace("num_warps = 4", "num_warps = 8")
    sentence = "kernel add, num_warps: 4 -> 8"
    assert [change.sentence for change in diff(TEXTS["triton.mlir"], other).changes] == [sentence]


def test_the_grid_of_mosaic_gpu_is_compared():
    found = diff(ALL["mosaic_gpu.hlo"], mosaic_gpu(LAUNCH.replace("constant 4", "constant 8")))
    assert found.changes[0].sentence == "kernel copy, grid: 4x1x1 -> 8x1x1"


@of_its_jaxlib
def test_the_blocks_of_triton_are_those_of_loads_and_stores():
    blocks = planted("triton.mlir", (r"(?<=[<x])64(?=x)|(?<=end = )64", "32"))
    first = diff(TEXTS["triton.mlir"], blocks).changes[0]
    assert first.sentence == "kernel add, block sizes of load 0, load 1, store 0: 64x64 -> 32x32"


@pytest.mark.parametrize("name", NAMES)
def test_source_lines_of_a_kernel_do_not_count(name):
    ((_, kernel),) = kernels_in(ALL[name])
    moved = re.sub(r'kernels\.py":(\d+)', r'moved/kernels.py":9\1', kernel.mlir)
    if name == "mosaic_gpu.hlo":
        texts = [mosaic_gpu("\n\n" + LAUNCH).replace('hash = "\\01"', 'hash = "\\02"'), ALL[name]]
    else:
        serde = "" if "triton" in name else "mosaic-serde"
        texts = [with_payload(name, encoded(mlir, serde)) for mlir in (moved, kernel.mlir)]
    assert texts[0] != texts[1]
    assert canonical(texts[0]) == canonical(texts[1])
    # The text of jax has another version of the bytecode, and the same code.
    assert diff(ALL[name], texts[0]).equal


# ---- goldens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["mlir", "hlo"])
def test_a_golden_holds_the_kernel(suffix, tmp_path):
    path = tmp_path / "step.txt"
    golden.check(TEXTS[f"matmul.{suffix}"], path)
    assert "//       scf.if" in path.read_text() and "kernels.py" not in path.read_text()
    assert not golden.check(TEXTS[f"matmul.{suffix}"], path).written
    with pytest.raises(golden.GoldenMismatch, match=r"matmul, block sizes of .*128x128 -> 256"):
        golden.check(TEXTS[f"matmul_rows.{suffix}"], path)


# ---- what cannot be decoded ----------------------------------------------------------------------

BROKEN = {
    "cut": lambda payload: payload[: len(payload) // 2],
    "other version": lambda payload: payload[:4] + b"\xff" + payload[5:],
    "noise": lambda payload: b"ML\xefR" + bytes(range(256)),
}


def test_another_change_next_to_another_encoding_counts():
    ((_, kernel),) = kernels_in(TEXTS["matmul.hlo"])
    again = with_payload("matmul.hlo", encoded(kernel.mlir, "mosaic-serde"))
    other = again.replace('needs_layout_passes":true', 'needs_layout_passes":false')
    assert again != other != TEXTS["matmul.hlo"]
    assert "needs_layout_passes" in diff(TEXTS["matmul.hlo"], other).text()


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("name", ["matmul.hlo", "triton.mlir"])
def test_a_broken_payload_is_as_before_with_a_word(how, name, tmp_path, capsys):
    ((_, kernel),) = kernels_in(TEXTS[name])
    whole = encoded(kernel.mlir, "" if "triton" in name else "mosaic-serde")
    path = tmp_path / name
    path.write_text(with_payload(name, BROKEN[how](whole)))
    assert main.main(["show", str(path)]) == 0
    assert "not decoded: " in capsys.readouterr().out
    found = diff(TEXTS[name], path.read_text()).text()
    assert "payload" in found and "(the kernel is not decoded: " in found
    assert diff(path.read_text(), path.read_text()).equal


def test_base64_that_is_none():
    text = BODY.sub("TUzvUg!", TEXTS["matmul.hlo"])
    assert "base64 is broken" in parse(text).entry.root.kernel.problem


def test_without_a_decoder_it_says_what_is_missing(monkeypatch):
    def missing(kind, payload):
        raise custom_kernels.CannotDecode(f"this jaxlib has no dialect of {kind}")

    monkeypatch.setattr(custom_kernels, "_decoders", [custom_kernels._no_decoder])
    assert "hlofront show FILE" in diff(TEXTS["matmul.hlo"], TEXTS["matmul_rows.hlo"]).text()
    assert "hlofront show FILE" in page(TEXTS["matmul.hlo"])
    custom_kernels.set_kernel_decoder(missing)
    found = diff(TEXTS["matmul.mlir"], TEXTS["matmul_rows.mlir"]).text()
    assert "this jaxlib has no dialect of Mosaic TPU" in found


def test_a_function_without_kernels_says_so(tmp_path, capsys):
    path = tmp_path / "model.py"
    path.write_text("def double(x):\n    return 2 * x\n")
    assert main.main(["show", f"{path}:double", "--args", "f32[4]", "--stage", "kernels"]) == 0
    assert capsys.readouterr().out == "no kernels of Mosaic or Triton\n"
    assert main.main(["show", f"{path}:double", "--args", "f32[4]"]) == 0
    assert "Kernels in custom calls" not in capsys.readouterr().out
