"""Folders of XLA's dumps: which programs they have, and what to read for what."""

import io
import json
import pathlib

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.cli.main import main
from hlofront.inspect import dumped
from hlotools import dump_folder

LAYER = (pathlib.Path(__file__).with_name("texts") / "layer.hlo").read_text(encoding="utf-8")
REPORT = "Memory Space: default (color=0)\nTotal bytes: 1024 (1.0KiB)\n"
# The rest of the names of a program's files, by the platform that it is compiled for.
FILES = {
    "cpu": ["cpu_after_optimizations.txt", "add_kernel_module.ir-with-opt.ll",
            "add_kernel_module.ir-no-opt.ll", "obj-file.add_kernel_module.o"],
    "gpu": ["sm_9.0a_gpu_after_optimizations.txt", "1.ir-with-opt.ll", "1.ptx", "2.ptx"],
    "tpu": ["cl_123.after_optimizations.txt", "cl_123.0003.fusion.after_cse.before_dce.txt",
            "cl_123.after_optimizations_before_buffer_assignment.txt"],
}  # fmt: skip


def command(*arguments):
    out = io.StringIO()
    return main([*map(str, arguments)], out), out.getvalue()


def make(folder, module, rests, text=LAYER):
    for rest in rests:
        (folder / f"{module}.{rest}").write_text(text)


@pytest.mark.parametrize(
    ("platform", "kernels", "passes"), [("cpu", 1, 0), ("gpu", 2, 0), ("tpu", 0, 1)]
)
def test_programs_of_each_platform_are_listed(platform, kernels, passes, tmp_path):
    make(tmp_path, "module_0001.jit_f", FILES[platform])
    (program,) = dump_folder(tmp_path).programs
    assert program.name == "module_0001.jit_f" + (".cl_123" if platform == "tpu" else "")
    assert (program.kernels, program.passes) == (kernels, passes)
    assert program.program.name.endswith(FILES[platform][0])
    assert program.operations > 1 and program.bytes == len(LAYER.encode())


def test_the_main_program_says_what_to_read(tmp_path):
    make(tmp_path, "module_0001.jit_f", ["cpu_after_optimizations.txt"], LAYER[:700])
    make(tmp_path, "module_0003.jit_g", ["before_optimizations.txt", *FILES["cpu"]])
    ending = "cpu_after_optimizations-memory-usage-report.txt"
    make(tmp_path, "module_0003.jit_g", [ending], REPORT)
    status, text = command("show", tmp_path)
    assert status == 0
    rows = {line.split()[0]: line.split() for line in text.splitlines() if "module_" in line}
    assert rows["module_0003.jit_g"][-2:] == ["1.0", "KiB"]
    assert rows["module_0001.jit_f"][-1] == "?"
    program = tmp_path / "module_0003.jit_g.cpu_after_optimizations.txt"
    assert "to read of module_0003.jit_g:" in text
    assert f"show {program}\n" in text and f"show {program} --stage memory" in text
    assert str(tmp_path / "module_0003.jit_g.*.ll") in text
    listed = json.loads(command("show", tmp_path, "--json")[1])
    assert [each["memory"] for each in listed["programs"]] == [None, 1024]


def test_protocol_buffers_snapshots_and_times_in_names_are_known(tmp_path):
    make(tmp_path, "module_0001.jit_f", ["cpu_after_optimizations.hlo.pb"])
    make(tmp_path, "module_0002.jit_g", ["snapshot.-2000814697.pb"])
    make(tmp_path, "module_0003.jit_h", ["execution_0000.hlo_unoptimized_snapshot.pb"])
    make(tmp_path, "1796015556717708.module_0004.jit_i", ["cpu_after_optimizations.txt"])
    make(tmp_path, "1796015556717708.module_0004.jit_i", ["cpu_after_optimizations.hlo.pb"])
    programs = dump_folder(tmp_path).programs
    assert [each.name[-5:] for each in programs] == ["jit_f", "jit_g", "jit_h", "jit_i"]
    assert programs[-1].program.suffix == ".txt", "a text is read rather than a protocol buffer"


def test_a_folder_with_one_program_shows_it_on_request(tmp_path, capsys):
    make(tmp_path, "module_0001.jit_layer", ["cpu_after_optimizations.txt"])
    code, text = command("show", tmp_path, "--style", "short")
    assert code == 0 and text.startswith("HloModule jit_layer")
    assert command("show", tmp_path, "--stage", "memory")[1].startswith("jit_layer: the peak")
    make(tmp_path, "module_0002.jit_g", ["cpu_after_optimizations.txt"])
    assert command("show", tmp_path, "--style", "short")[0] == 2
    said = capsys.readouterr().err
    assert "has 2 programs: show one of" in said
    assert str(tmp_path / "module_0002.jit_g.cpu_after_optimizations.txt") in said


def test_a_folder_without_dumps_says_what_was_expected(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("HloModule")
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt").mkdir()
    assert command("show", tmp_path)[0] == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path} has no dumps of XLA: expected files such as module_0001.jit_f" in said
    assert "XLA_FLAGS" in said and "LIBTPU_INIT_ARGS" in said


def test_the_dumps_of_a_compiled_function_are_listed(tmp_path):
    dumped(lambda x: jnp.tanh(x).sum(), tmp_path)(jnp.ones((8, 8)))
    program = dump_folder(tmp_path).main
    assert program.passes > 5 and program.kernels and program.memory and program.operations
    assert f"show {tmp_path} --passes" in dump_folder(tmp_path).text()


def test_the_kernels_of_a_tpu_are_counted(tmp_path):
    try:
        target = jax.target("tpu:v5e:1x1")
        assert target.devices
    except RuntimeError as error:
        pytest.skip(str(error))
    dumped(lambda x: jnp.tanh(x @ x), tmp_path, target)(jax.ShapeDtypeStruct((64, 64), "float32"))
    folder = dump_folder(tmp_path)
    (count,) = folder.tpu_kernels.values()
    assert count and f"show {tmp_path} --kernels" in folder.text()


# The beginnings of files in dumps that are no programs, and what `show` says that they are.
OTHERS = {
    "BufferAssignment:\nallocation 0: size 8": "assignment of buffers",
    "// [Enable stack traces via -xla_jf_collect_llo_stack_trace]\n$region0: #{fusion.4}": "kernel",
    "Schedule analysis:\n\ttotal schedule len": "schedule of a kernel",
    "= control target key start\nLH: loop header": "bundles of a TPU's kernel",
    "HLO: <no-hlo-instruction>\n - MXU": "use of slots by operation",
    "xla_cpu_enable_fast_min_max: false\n": "the compiler's flags",
    "executable_build_options {\n  device_ordinal: -1": "options of a compilation",
    "; ModuleID = 'm'\n": "code of LLVM",
}


@pytest.mark.parametrize("text", OTHERS)
def test_other_files_of_dumps_are_named(text, tmp_path, capsys):
    (tmp_path / "f.txt").write_text(text)
    assert command("show", tmp_path / "f.txt")[0] == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "f.txt is not the text of a program but" in said and OTHERS[text] in said


def test_files_that_were_cut_off_are_named(tmp_path, capsys):
    name = "module_0001.jit_f"
    stage = "0001.simplification.after_algsimp.before_dce.txt"
    make(tmp_path, name, ["before_optimizations.txt", stage, "add.ir-with-opt.ll"])
    cut = tmp_path / f"{name}.cpu_after_optimizations.txt"
    cut.write_text(LAYER[: LAYER.rindex("ROOT") + 30])
    status, text = command("show", tmp_path)
    assert status == 0 and str(cut) in text
    assert command("show", tmp_path, "--passes")[0] == 0
    assert command("show", cut)[0] == 2
    assert f"{cut}, line" in capsys.readouterr().err
    assert command("show", tmp_path, "--kernels")[0] == 2
    assert f"{cut}, line" in capsys.readouterr().err


def test_a_program_of_a_tpu_that_was_cut_off_is_named(tmp_path, capsys):
    (tmp_path / "12-TLP-hlo.txt").write_text("HloModule jit_f\n\nENTRY %e {\n  %fusion.1 = f32[")
    (tmp_path / "13-fusion.1-02-final_bundles.txt").write_text("0x0   :  { %s1 = ")
    assert "1 kernel of a TPU in jit_f" in command("show", tmp_path)[1]
    assert command("show", tmp_path, "--kernels")[0] == 2
    assert f"{tmp_path / '12-TLP-hlo.txt'}, line 4" in capsys.readouterr().err
