"""Dumps of XLA: what each pass changed, which passes made an operation, and code of kernels."""

import io
import json
import shutil

import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront.cli.main import main
from hlofront.inspect import dumped, kernels, timeline
from hlotools.dumps.dump_files import main_module
from hlotools.dumps.kernels import MissingToolError
from hlotools.dumps.snapshots import snapshot
from hlotools.profiles.xplane import ProfileError

# Two passes of the dump of a module that is written by hand: one joins two operations into a third,
# one fuses, and one changes a layout.
LOWERED = """\
HloModule jit_f, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY %main.1 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0)
  %two.1 = f32[8]{0} constant({...})
  %div.1 = f32[8]{0} divide(%x.1, %two.1), metadata={op_name="jit(f)/div" stack_frame_id=1}
  %exp.1 = f32[8]{0} exponential(%div.1), metadata={op_name="jit(f)/layer/exp" stack_frame_id=2}
  ROOT %neg.1 = f32[8]{0} negate(%exp.1), metadata={op_name="jit(f)/neg" stack_frame_id=3}
}
"""
SIMPLER = """\
HloModule jit_f, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY %main.1 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0)
  %half.1 = f32[8]{0} constant({...})
  %multiply.1 = f32[8]{0} multiply(%x.1, %half.1), metadata={op_name="jit(f)/div"}
  %exp.1 = f32[8]{0} exponential(%multiply.1), metadata={op_name="jit(f)/layer/exp"}
  ROOT %neg.1 = f32[8]{0} negate(%exp.1), metadata={op_name="jit(f)/neg"}
}
"""
FUSED = """\
HloModule jit_f, entry_computation_layout={(f32[8]{0:T(256)})->f32[8]{0:T(256)}}

%fused_computation (param_0.1: f32[8]) -> f32[8] {
  %param_0.1 = f32[8]{0:T(256)} parameter(0)
  ROOT %exp.2 = f32[8]{0:T(256)} exponential(%param_0.1), metadata={op_name="jit(f)/layer/exp"}
}

ENTRY %main.1 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0:T(256)} parameter(0)
  %half.1 = f32[8]{0:T(256)} constant({...})
  %multiply.1 = f32[8]{0:T(256)} multiply(%x.1, %half.1), metadata={op_name="jit(f)/div"}
  %fusion.1 = f32[8]{0:T(256)} fusion(%multiply.1), kind=kLoop, calls=%fused_computation
  ROOT %neg.1 = f32[8]{0:T(256)} negate(%fusion.1), metadata={op_name="jit(f)/neg"}
}
"""


@pytest.fixture
def folder(tmp_path):
    """A folder as libtpu's compiler writes it, with a module of one stage beside the main one."""
    name = "module_0002.jit_f.cl_123"
    files = {
        f"{name}.before_optimizations.txt": LOWERED,
        f"{name}.0000.simplification.after_pipeline-start.before_algsimp.txt": LOWERED,
        f"{name}.0001.simplification.after_algsimp.before_dce.txt": SIMPLER,
        f"{name}.0002.Main_fusion.after_tpu_fusion.before_pipeline-end.txt": FUSED,
        f"{name}.after_optimizations.txt": FUSED,
        f"{name}.after_optimizations-buffer-assignment.txt": "BufferAssignment:",
        "module_0003.fused_add.1.0000.cublaslt.after_pipeline-start.before_rewriter.txt": LOWERED,
    }
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    return tmp_path


def run(*arguments):
    out = io.StringIO()
    status = main([str(each) for each in arguments], out)
    return status, out.getvalue()


def test_stages_are_in_the_order_of_the_passes(folder):
    modules = hlotools.dumped_modules(folder)
    assert [(each.function, len(each.stages)) for each in modules] == [
        ("jit_f", 5),
        ("fused_add", 1),
    ]
    assert [stage.title for stage in main_module(modules).stages] == [
        "before optimizations",
        "before simplification",
        "simplification > algsimp",
        "Main_fusion > tpu_fusion",
        "after optimizations",
    ]


def test_a_table_says_what_each_pass_changed(folder):
    changes = timeline(main_module(hlotools.dumped_modules(folder)))
    _, first, second, third, note = changes.text().splitlines()
    assert first.split() == ["3", "before", "optimizations"]
    assert second.endswith("simplification > algsimp  +constant, +multiply; -constant, -divide")
    assert third.startswith("4 +1  Main_fusion > tpu_fusion")
    assert third.endswith(
        "+fusion; into fusions: exponential; other layouts: constant, multiply, negate"
    )
    assert note == "2 other dumps equal the one before them"


def test_the_history_of_an_operation_goes_back_to_what_was_lowered(folder):
    changes = timeline(main_module(hlotools.dumped_modules(folder)))
    assert changes.history("exp.2") == [
        "before optimizations: exponential exp.1",
        "Main_fusion > tpu_fusion: fused into fusion.1",
    ]
    assert changes.history("multiply.1") == [
        "simplification > algsimp: made instead of divide div.1",
        "Main_fusion > tpu_fusion: f32[8]{0} became f32[8]{0:T(256)}",
    ]
    with pytest.raises(KeyError, match=r"no operation 'exp\.1'"):
        changes.history("exp.1")


def test_types_with_tuples_and_comments_are_read():
    text = """
%fused_computation.3 (p.1: f32[4]) -> (f32[4], s32[]) {
  %p.1 = f32[4]{0} parameter(0)
  ROOT %t.1 = (f32[4]{0:T(128)S(1)}, /*index=1*/s32[]{:T(128)}) tuple(%p.1, %c.1)
}
ENTRY %main (x: f32[4]) -> (f32[4], s32[]) {
  ROOT %fusion.3 = (f32[4]{0}, s32[]) fusion(%x), kind=kLoop, calls=%fused_computation.3
}
"""
    read = snapshot(text)
    assert list(read.operations) == ["t.1", "fusion.3"]
    operation = read.operations["t.1"]
    assert operation.shape_and_opcode == ("(f32[4]{0:T(128)S(1)}, s32[]{:T(128)})", "tuple")
    assert read.fusion_of(operation) == "fusion.3"


def loss(w, x):
    with jax.named_scope("layer"):
        hidden = jnp.tanh(x @ w)
    return jax.nn.softmax(hidden).sum()


SHAPES = (jax.ShapeDtypeStruct((16, 16), "float32"), jax.ShapeDtypeStruct((8, 16), "float32"))


@pytest.fixture(scope="module")
def compiled_dumps(tmp_path_factory):
    return dumped(jax.grad(loss), tmp_path_factory.mktemp("dumps"))(*SHAPES)


def test_each_operation_of_a_compiled_program_has_a_history(compiled_dumps):
    changes = timeline(compiled_dumps)
    program = hlotools.parse(compiled_dumps.optimized.read_text())
    named = {each.name for each in program.instructions() if each.opcode != "parameter"}
    histories = changes.histories()
    assert named == set(histories)
    (tanh,) = [each for each in program.instructions() if each.opcode == "tanh"]
    assert histories[tanh.name][0].startswith("before optimizations: tanh ")
    assert "fused into" in histories[tanh.name][-1]


def test_kernels_have_their_operation_and_code(compiled_dumps):
    listed = kernels(compiled_dumps)
    (tanh,) = [each for each in listed if "tanh" in each.name]
    assert tanh.operation is not None and tanh.operation.name == tanh.name
    assert f"@{tanh.name}(" in tanh.code("llvm")
    with pytest.raises(ValueError, match="no code of kind 'ptx': it has llvm, assembly"):
        tanh.code("ptx")
    if shutil.which("objdump") or shutil.which("llvm-objdump"):
        assert f"<{tanh.name}>:" in tanh.code("assembly")


def test_a_missing_disassembler_is_an_error_that_says_what_to_install(compiled_dumps, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MissingToolError, match="objdump is not installed here: install binutils"):
        kernels(compiled_dumps)[0].code("assembly")


def test_executables_on_disk_are_not_used_and_folders_are_empty(tmp_path):
    module = dumped(loss, tmp_path / "one")(*SHAPES)
    again = dumped(loss, tmp_path / "two")(*SHAPES)
    assert len(module.stages) == len(again.stages) > 10
    with pytest.raises(FileExistsError, match="is not empty"):
        dumped(loss, tmp_path / "two")(*SHAPES)


def test_the_command_line_shows_passes_of_a_function(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(
        "import hlofront.numpy as jnp\ndef f(x):\n    return jnp.exp(x) * 2 + 1\n"
        "example_args = (jnp.ones(8),)\n"
    )
    status, text = run("show", f"{file}:f", "--passes", "--dump", tmp_path / "kept")
    assert status == 0 and "operations after each pass" in text
    changes, _, times = text.partition("\n\nf: compiled in ")
    assert run("show", tmp_path / "kept", "--passes") == (0, changes + "\n")
    assert "by pass, on all threads:" in times
    status, text = run("show", tmp_path / "kept", "--kernels", "--json")
    (kernel,) = json.loads(text)
    status, text = run("show", tmp_path / "kept", "--kernel", kernel["operation"])
    assert status == 0 and "define" in text
    status, text = run("show", tmp_path / "kept", "--passes", "--json")
    assert json.loads(text)["module"].endswith("jit_f")


def test_passes_are_shown_where_the_compiler_does_not_tell_their_times(tmp_path, monkeypatch):
    def untold(*_):
        raise ProfileError("the recording has no pass of XLA")

    monkeypatch.setattr("hlofront.inspect.pass_times.times_of", untold)
    file = tmp_path / "model.py"
    file.write_text("import hlofront.numpy as jnp\nf, example_args = jnp.exp, (jnp.ones(8),)\n")
    status, text = run("show", f"{file}:f", "--passes")
    assert status == 0 and "operations after each pass" in text
    assert text.endswith("\nno times of passes: the recording has no pass of XLA\n")


def test_pages_tell_which_passes_made_an_operation(folder, tmp_path):
    assert run("show", folder, "--passes", "--html", tmp_path / "page.html")[0] == 0
    text = (tmp_path / "page.html").read_text()
    assert "Main_fusion \\u003e tpu_fusion: fused into fusion.1" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["FOLDER", "--operation", "nothing", "--passes"], "no operation 'nothing'"),
        (["FOLDER", "--kernel", "nothing"], "there is no kernel 'nothing'"),
        (["FOLDER", "--target", "cuda:h100"], "is a folder of dumps"),
        (["FOLDER", "--passes", "--stage", "hlo"], "do not go with --passes"),
        (["FOLDER/empty", "--passes"], "no module's passes are in this folder"),
        (["FOLDER", "--code", "ptx"], "--code goes with --kernel"),
        (["FOLDER", "--kernels", "--operation", "x"], "--operation goes with --passes"),
        (["FOLDER", "--kernels", "--passes"], "two reports"),
        (["FOLDER", "--kernel", "x", "--json"], "is text"),
        (["FOLDER", "--kernels", "--html", "p.html"], "--html with --kernels is for TPUs"),
        (["FOLDER", "--kernel", "x", "--html", "p.html"], "--html goes with --passes and"),
        (["model.py:f", "--dump", "x"], "--dump goes with"),
        (["model.py:f", "--operation", "x"], "--operation goes with --passes"),
    ],
)
def test_wrong_command_lines_are_told(folder, arguments, message, capsys):
    (folder / "empty").mkdir()
    arguments = [each.replace("FOLDER", str(folder)) for each in arguments]
    assert run("show", *arguments)[0] == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "codes"), [("tpu:v5e:1x1", None), ("cuda:h100", {"llvm", "ptx", "sass"})]
)
def test_dumps_of_targets_that_are_absent(name, codes, tmp_path):
    """libtpu and the CUDA plugin dump as the CPU's compiler does; libtpu's kernels have no LLVM."""
    try:
        target = jax.target(name)
        assert target.devices
    except RuntimeError as error:
        pytest.skip(str(error))
    module = dumped(loss, tmp_path, target)(*SHAPES)
    assert any("fusion" in each.stage.title for each in timeline(module).changes if each)
    listed = kernels(module)
    assert bool(listed) == bool(codes)
    for kernel in listed:
        assert kernel.operation is not None
        assert set(kernel.codes) == codes
    if listed and shutil.which("nvdisasm"):
        assert f".text.{listed[0].name}" in listed[0].code("sass")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        hlotools.dumped_modules(tmp_path / "absent")
