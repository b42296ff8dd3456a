"""What the commands say about folders, binary files and wrong arguments, and in which colors."""

import io
import pathlib

import pytest

import hlotools
from hlofront.cli.main import main
from hlotools.matching.changes import Effect

TEXTS = pathlib.Path(__file__).with_name("texts")
LAYER = (TEXTS / "layer.hlo").read_text(encoding="utf-8")


def command(*arguments):
    out = io.StringIO()
    return main([*map(str, arguments)], out), out.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "module_0001.jit_f.cpu_after_optimizations.hlo.pb",
        "module_0001.jit_f.hlo_module.pb",
        "module_0001.jit_f.hlo_snapshot",
        "module_0001.jit_f.hlo_unoptimized_snapshot.0.pb",
        "f.pb",
    ],
)
@pytest.mark.parametrize("verb", ["show", "cost"])
def test_binary_files_without_a_module_are_named_with_what_to_do(name, verb, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(b"\x0a\x05jit_f\x12\x00\xff\x08")
    assert command(verb, path)[0] == 2
    said = capsys.readouterr().err
    assert "has no module of HLO" in said and "--xla_dump_hlo_as_proto" in said
    with pytest.raises(ValueError, match="has no module of HLO"):
        hlotools.page(path)


@pytest.mark.parametrize("verb", ["show", "diff", "cost", "profile", "cache", "doctor"])
def test_wrong_arguments_show_the_usage_of_the_command(verb, capsys):
    operands = {"show": ["a"], "diff": ["a", "b"], "cost": ["a"], "cache": ["ls"]}
    for wrong in ("--nonsense", "--color=loud"):
        with pytest.raises(SystemExit) as ended:
            command(verb, *operands.get(verb, ()), wrong)
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert said.startswith(f"usage: python -m hlofront {verb} ")


def test_cost_has_colors():
    path = TEXTS / "layer.hlo"
    plain = command("cost", path)[1]
    assert plain == command("cost", path, "--color", "never")[1] and "\x1b" not in plain
    colored = command("cost", path, "--color", "always")[1]
    assert colored.startswith("\x1b[1mjit_layer\x1b[0m\n\x1b[1m")
    assert "\x1b[2mmodel.py:6" in colored


def test_bytes_have_binary_units_and_operations_decimal_ones():
    assert str(Effect(3 << 20, 3_000_000)) == "+3 MiB, +3 MFLOP"
    assert str(Effect(-1536, 0)) == "-1.5 KiB"
