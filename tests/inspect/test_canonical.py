"""One canonical text for texts of one program, and different ones for different programs."""

import base64
import io
import json
import pathlib
import random
import re

import pytest

import hlofront as jax
from hlofront.inspect import canonical, diff, parse, write
from hlotools.ir.digests import is_commutative
from hlotools.ir.payloads import without_paths

TEXTS = pathlib.Path(__file__).with_name("texts")
ALL = {path.name: path.read_text(encoding="utf-8") for path in sorted(TEXTS.glob("*.hlo"))}


def renamed(text):
    """Every name of an instruction and computation, and the module's, is another."""
    text = re.sub(r"(?<=%)[\w.\-]+", lambda found: f"z{found[0][::-1]}.77".replace("-", "_"), text)
    return re.sub(r"HloModule \S+?(?=[,\n])", "HloModule other.9", text)


def reordered(text, seed=0):
    """Operations in another order that respects their operands; computations too."""
    module = parse(text)
    chance = random.Random(seed)
    for computation in module.computations:
        chance.shuffle(computation.instructions)
        computation.instructions = computation.in_order()
        for instruction in computation.instructions:
            if is_commutative(instruction):
                instruction.operands.reverse()
            attributes = list(instruction.attributes.items())
            chance.shuffle(attributes)
            instruction.attributes = dict(attributes)
    chance.shuffle(module.computations)
    return write(module)


def relocated(text):
    """From another folder, other lines, other paths to packages."""
    text = text.replace("/home/someone/models/", "/mnt/data/very/much/longer/")
    text = text.replace("/home/someone/.venv/lib/python3.12/site-packages", "/usr/dist-packages")
    text = re.sub(r"(?<![a-z_])line=(\d+)", lambda found: f"line={int(found[1]) + 100}", text)
    text = re.sub(r"source_line=(\d+)", lambda found: f"source_line={int(found[1]) + 5}", text)
    text = re.sub(r"stack_frame_id=\d+", "stack_frame_id=1", text)
    return re.sub(r"channel_id=(\d+)", lambda found: f"channel_id={int(found[1]) + 40}", text)


@pytest.mark.parametrize("name", ALL)
def test_the_same_program(name):
    text = ALL[name]
    expected = canonical(text)
    assert canonical(expected) == expected
    others = [reordered(text), reordered(relocated(text), seed=5)]
    if parse(text).percent:
        others += [renamed(text), reordered(renamed(relocated(text)), seed=9)]
    for other in others:
        assert other != text
        assert canonical(other) == expected
        found = diff(text, other)
        assert found.equal and not found.changes


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("layer.hlo", "exponential(", "tanh("),
        ("layer.hlo", "constant(-inf)", "constant(0)"),
        ("layer.hlo", "f32[32,64]{1,0} subtract", "f32[32,64]{0,1} subtract"),
        ("layer.hlo", "subtract(%param_0.5, %sub.1)", "subtract(%sub.1, %param_0.5)"),
        ("layer.hlo", "kind=kLoop", "kind=kInput"),
        ("layer.hlo", "__ynn_fusion", "__other"),
        ("layer.hlo", "is_scheduled=true, ", ""),
        ("sorting.hlo", "direction=LT", "direction=GT"),
        ("scan_grad.hlo", '"n":"8"', '"n":"9"'),
        ("linalg.hlo", "lapack_sgeqrf_ffi", "lapack_dgeqrf_ffi"),
        ("linalg.hlo", "uplo = 76", "uplo = 85"),
        ("tpu_tiled.hlo", "T(8,128)(2,1)S(1)} copy-done", "T(8,128)(2,1)} copy-done"),
        ("tpu_tiled.hlo", "may-alias", "must-alias"),
        ("gpu_triton.hlo", "{{0,1},{2,3}}", "{{0,2},{1,3}}"),
        ("gpu_triton.hlo", '"num_warps":"4"', '"num_warps":"8"'),
        ("gpu_triton.hlo", "control-predecessors={%async-start}, ", ""),
        ("plain_names.hlo", "type=TOTALORDER", "type=FLOAT"),
        ("plain_names.hlo", "{ 1, -2.5e-3 }", "{ 1, -2.4e-3 }"),
    ],
)
def test_another_program(name, old, new):
    text = ALL[name]
    assert old in text
    other = text.replace(old, new)
    assert canonical(other) != canonical(text)
    found = diff(text, other)
    assert not found.equal and found.changes


def test_operands_of_a_fusion_in_another_order():
    before = ALL["split_after.hlo"]
    after = (
        before.replace("%m = f32[32]{0} parameter(0)", "%m = f32[32]{0} parameter(1)")
        .replace("%x = f32[32,64]{1,0} parameter(1)", "%x = f32[32,64]{1,0} parameter(0)")
        .replace("fusion(%q, %abs.1)", "fusion(%abs.1, %q)")
    )
    assert after != before
    assert canonical(after) == canonical(before)
    # The operands alone are another program.
    assert canonical(before.replace("fusion(%q, %abs.1)", "fusion(%abs.1, %q)")) != canonical(
        before
    )


def test_equal_computations_are_written_once():
    text = ALL["layer.hlo"]
    assert text.count(" maximum(") > canonical(text).count(" maximum(") == 1


def config_with(payload):
    text = base64.b64encode(payload).decode()
    config = json.dumps({"custom_call_config": {"body": text, "serialization_format": 1}})
    return ALL["gpu_triton.hlo"].replace(
        'backend_config={name = "kernel", opaque = "\\001\\002\\"{", grid = array<i32: 1, 2>}',
        f"backend_config={config}",
    )


def bytecode(folder, code):
    """MLIR's bytecode of a function from a file in that folder."""
    file = folder / "kernel.py"
    namespace = {"__name__": "kernel"}
    exec(compile(code, str(file), "exec"), namespace)
    argument = jax.ShapeDtypeStruct((4,), "float32")
    lowered = jax.jit(namespace["kernel"]).lower(argument)
    buffer = io.BytesIO()
    lowered.compiler_ir().operation.write_bytecode(buffer)
    return buffer.getvalue()


KERNEL = "import hlofront.lax as lax\ndef kernel(x):\n    return lax.sin(x)\n"


def test_paths_inside_of_kernels(tmp_path):
    away = tmp_path / "another" / "much" / "longer" / ("path" * 30)
    here = bytecode(tmp_path / "a", KERNEL)
    there = bytecode(away, "# Another line.\n\n" + KERNEL)
    other = bytecode(tmp_path / "a", KERNEL.replace("sin", "cos"))
    assert here != there and here.startswith(b"ML\xefR")
    assert canonical(config_with(here)) == canonical(config_with(there))
    assert canonical(config_with(here)) != canonical(config_with(other))
    assert diff(config_with(here), config_with(there)).equal
    plain = [b"\x00\x01 /usr/%s/kernel.cu:12 more text" % path for path in (b"one", b"three")]
    assert canonical(config_with(plain[0])) == canonical(config_with(plain[1]))


def test_paths():
    assert without_paths("at /usr/lib/x/model.py:3") == "at <path>/model.py:3"
    assert without_paths("C:\\users\\me\\model.py") == "<path>/model.py"
    assert without_paths("/a/site-packages/jax/_src/core") == "<path>/core"
    # What looks like a path but is none, and what is no base64, stays.
    for text in ("jit(f)/add", "a/b", "1/2", "A" * 24, "abcd" * 10, "z" * 41):
        assert without_paths(text) == text


STABLEHLO = """\
module @jit_{f} attributes {{mhlo.num_partitions = 1 : i32}} {{
  func.func public @main(%{a}: tensor<4xf32>) -> (tensor<4xf32> {{jax.result_info = "result"}}) {{
    %{b} = call @{g}(%{a}) : (tensor<4xf32>) -> tensor<4xf32>{at}
    %{c} = stablehlo.add {operands} : tensor<4xf32>{at}
    return %{c} : tensor<4xf32>
  }}
  func.func private @{g}(%{a}: tensor<4xf32>) -> tensor<4xf32> {{
    %{b} = stablehlo.{op} %{a} : tensor<4xf32>
    return %{b} : tensor<4xf32>
  }}
}}
"""


def test_stablehlo():
    names = {"f": "f", "g": "inner", "a": "arg0", "b": "0", "c": "1", "op": "sine"}
    one = STABLEHLO.format(**names, operands="%0, %arg0", at="")
    names = {"f": "g", "g": "other_3", "a": "x", "b": "y", "c": "z", "op": "sine"}
    two = STABLEHLO.format(**names, operands="%x, %y", at=' loc("/a b/c.py":3:4)')
    assert canonical(one) == canonical(two)
    assert diff(one, two).equal
    names["op"] = "cosine"
    assert canonical(STABLEHLO.format(**names, operands="%x, %y", at="")) != canonical(one)


@pytest.mark.parametrize("path", sorted(TEXTS.glob("*.mlir")) + sorted(TEXTS.glob("*.jaxpr")))
def test_canonical_is_final(path):
    text = path.read_text()
    once = canonical(text)
    assert canonical(once) == once
    assert diff(text, once).equal
