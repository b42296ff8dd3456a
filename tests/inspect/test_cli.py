"""`python -m hlofront show`, in a pipe and on a terminal."""

import io
import json
import pathlib
import sys
import types

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.source import unregister_exclusion
from hlofront.cli.main import main
from hlofront.inspect.sharding import sharding_text

PROGRAM = '''
"""A file to show."""
import hlofront as jax
import hlofront.numpy as jnp


@jax.jit
def step(x, w):
    """One layer."""
    return jnp.tanh(x @ w)


def plain(x):
    return x * 2.0


def broken(x):
    return x @ x


def example_args():
    return jax.ShapeDtypeStruct((2, 3), "float32"), jax.ShapeDtypeStruct((3, 4), "float32")
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "shown.py"
    path.write_text(PROGRAM)
    return str(path)


def run(*argv):
    out = io.StringIO()
    return main(argv, out), out.getvalue()


def test_every_stage_under_its_heading(file):
    code, text = run("show", f"{file}:step")
    assert code == 0
    headings = [line for line in text.splitlines() if line.startswith("== ")]
    # The headings go on with the guards against XLA's faults, which depend on jaxlib.
    assert [h.strip("= ").partition(",")[0] for h in headings] == [
        "Source",
        "Jaxpr",
        "StableHLO",
        "Optimized HLO",
        "Cost and memory",
    ]
    for part in ("def step(x, w):", "dot_general", "stablehlo.tanh", "HloModule jit_step"):
        assert part in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("stage", "start"),
    [
        ("jaxpr", "{ lambda ; a:f32[8]. let"),
        ("stablehlo", "module @jit_plain"),
        ("hlo", "HloModule jit_plain"),
        ("cost", "floating-point operations"),
        ("source", "def plain(x):"),
    ],
)
def test_one_stage_alone(file, stage, start):
    code, text = run("show", f"{file}:plain", "--args", "f32[8]", "--stage", stage)
    assert code == 0
    assert text.startswith(start)
    assert "==" not in text.splitlines()[0]


def test_cost_counts_the_work(file):
    _, text = run("show", f"{file}:plain", "--args", "f32[8]", "--stage", "cost")
    rows = dict(line.rsplit(None, 1) for line in text.splitlines())
    assert rows["floating-point operations"] == "8"
    assert rows["bytes of arguments"] == "32"


def test_color_when_asked_for(file):
    _, text = run("show", f"{file}:plain", "--args", "f32[8]", "--color", "always")
    assert "\x1b[" in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nofile.py:f"], "there is no file nofile.py\n"),
        (["{file}"], "expected FILE:FUNCTION: name a function of {file}"),
        (["{file}:nothing"], "has no function 'nothing'. It has: step, plain, broken"),
        (["{file}:plain", "--args", "f99[1]"], "--args: cannot read the argument 'f99[1]'"),
        (["{file}:broken", "--args", "f32[2,3]"], "dot_general"),
    ],
)
def test_trouble_is_said_and_exits_with_2(file, argv, message, capsys):
    code, _ = run("show", *[part.replace("{file}", file) for part in argv])
    assert code == 2
    assert message.replace("{file}", file) in capsys.readouterr().err


def test_a_file_without_example_args(tmp_path, capsys):
    path = tmp_path / "bare.py"
    path.write_text("def f(x):\n    return x\n")
    assert run("show", f"{path}:f")[0] == 2
    said = capsys.readouterr().err
    assert "define example_args in the file: a tuple" in said
    assert "where one is a dict" in said


@pytest.mark.parametrize("arguments", ["(1.0, [2.0])", "lambda: (1.0, [2.0])", "[1.0, [2.0]]"])
def test_example_args_are_a_tuple_or_a_function(arguments, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(f"def f(x, y):\n    return x + y[0]\n\nexample_args = {arguments}\n")
    code, text = run("show", f"{path}:f", "--stage", "jaxpr")
    assert code == 0 and "add a b" in text


TEXTS = pathlib.Path(__file__).with_name("texts")


@pytest.fixture
def stdin(monkeypatch):
    def put(name):
        data = (TEXTS / name).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


def test_programs_as_text(stdin, tmp_path):
    layer = str(TEXTS / "layer.hlo")
    code, text = run("show", layer)
    assert code == 0 and text.startswith("HloModule jit_layer") and "metadata" not in text
    stdin("layer.hlo")
    assert run("show", "-") == (0, text)
    assert "# model.py:" in run("show", layer, "--style", "source")[1]
    assert run("show", str(TEXTS / "scan_grad.jaxpr"))[1].startswith("{ lambda")
    told = json.loads(run("show", layer, "--json")[1])
    assert [s["stage"] for s in told["sections"]] == ["hlo"]
    assert told["sections"][0]["text"] + "\n" == text
    assert run("show", layer, "--html", str(tmp_path / "page.html"))[0] == 0
    code, text = run("cost", layer, "--target", "cuda:h100")
    assert code == 0 and "H100" in text and "model.py:" in text
    stdin("layer.hlo")
    assert json.loads(run("cost", "-", "--json")[1])["program"] == "jit_layer"


def test_what_is_shown_as_json(file):
    told = json.loads(run("show", f"{file}:plain", "--args", "f32[8]", "--json")[1])
    stages = [section["stage"] for section in told["sections"]]
    assert stages == ["source", "jaxpr", "stablehlo", "hlo", "cost"]


def test_a_diff_of_standard_input(stdin):
    layer = str(TEXTS / "layer.hlo")
    stdin("layer.hlo")
    assert run("diff", layer, "-")[0] == 0
    stdin("layer.v0.6.2.hlo")
    code, text = run("diff", "-", layer)
    assert code == 1 and "a: standard input" in text and "are folded" in text
    stdin("layer.v0.6.2.hlo")
    code, verbose = run("diff", "-", layer, "--verbose")
    assert code == 1 and len(verbose.splitlines()) > len(text.splitlines())


def test_what_is_no_program(tmp_path, capsys):
    layer = str(TEXTS / "layer.hlo")
    dump = tmp_path / "module.cpu_after_optimizations-buffer-assignment.txt"
    dump.write_text("BufferAssignment:\nallocation 0: size 4\n")
    (tmp_path / "module.cpu_after_optimizations.txt").write_text((TEXTS / "layer.hlo").read_text())
    binary = tmp_path / "program.mlirbc"
    binary.write_bytes(b"ML\xefR\r\x01\x00")
    cut = tmp_path / "cut.hlo"
    cut.write_text((TEXTS / "layer.hlo").read_text()[:700])
    for argv, said in (
        (["diff", str(dump), layer], "but XLA's assignment of buffers; the program itself is in"),
        (["diff", str(tmp_path), layer], "is a folder: name a file in it, such as"),
        (["cost", str(binary)], "MLIR's bytecode"),
        (["cost", str(TEXTS / "scan_grad.mlir")], "is StableHLO: only HLO has costs"),
        (["show", str(cut)], f"{cut}, line 17, column 1: expected an entry of FileLocations"),
        (["show", layer, "--args", "f32[]"], "is a program as text"),
        (["show", layer, "--html", str(tmp_path / "no" / "page.html")], "cannot be written"),
        (["diff", "-", "-"], "standard input holds one program"),
    ):
        assert run(*argv)[0] == 2
        assert said in capsys.readouterr().err, argv


def test_the_script_on_the_path_is_not_part_of_the_program(file, tmp_path, monkeypatch, capsys):
    script = tmp_path / "bin" / "hlofront"
    code = compile("import sys; sys.exit(main())", str(script), "exec")
    arguments = ["show", f"{file}:step", "--stage", "hlo", "--style", "raw"]
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    # This process, in which other tests run, is to have no module jax.
    monkeypatch.setattr("hlofront.cli.main.open_names", lambda: None)
    try:
        with pytest.raises(SystemExit):
            exec(code, {"main": main})
    finally:
        unregister_exclusion(str(script))
    shown = capsys.readouterr().out
    assert file in shown and str(script) not in shown


def test_an_error_of_the_function_begins_with_its_own_lines(tmp_path, capsys):
    path = tmp_path / "failing.py"
    path.write_text("def f(x):\n    return x + unknown\n")
    assert run("show", f"{path}:f", "--args", "f32[]", "--stage", "hlo")[0] == 2
    said = capsys.readouterr().err
    assert "NameError" in said and "failing.py" in said and "cli/main.py" not in said


def test_stages_in_notebooks():
    lowered = jax.jit(lambda x: jnp.sin(x) < 0).lower(np.ones(3, np.float32))
    assert "operations" in repr(lowered) and "for cpu" in repr(lowered)
    page = lowered._repr_html_()
    assert "stablehlo.sine" in page and "tensor&lt;3xf32&gt;" in page
    compiled = lowered.compile()
    assert "bytes of temporaries" in repr(compiled)
    folded = compiled._repr_html_().partition("<iframe")[0]
    assert "sine" in folded and "metadata" not in folded


@pytest.mark.parametrize("style", ["raw", "source", "short", "canonical"])
def test_styles_of_the_stages(style):
    lowered = jax.jit(lambda x: jnp.sin(x) * 2).lower(np.ones(3, np.float32))
    texts = lowered.as_text(style=style), lowered.compile().as_text(style=style)
    assert "sine" in texts[0] and texts[1] and "sine" in texts[1]
    for text in filter(None, texts):
        with_lines = style == "source" or (style == "raw" and text is texts[1])
        assert ("test_cli.py" in text) == with_lines
    with pytest.raises(ValueError, match="a style is one of"):
        lowered.as_text(style="pretty")


@pytest.mark.parametrize(
    ("specs", "told"),
    [
        ("f32[2,3]", "--args has 1 argument: missing a required argument: 'w'"),
        ("f32[2,3], f32[3,4], i32", "--args has 3 arguments: too many positional arguments"),
        (None, "example_args has 2 arguments: too many positional arguments"),
    ],
)
def test_a_wrong_number_of_arguments_is_told_in_one_sentence(specs, told, file, capsys):
    function, takes = ("plain", "(x)") if specs is None else ("step", "(x, w)")
    code, text = run("show", f"{file}:{function}", *(["--args", specs] if specs else []))
    error = capsys.readouterr().err
    assert (code, text) == (2, "") and len(error.splitlines()) == 1
    assert f":{function} takes {takes}, and {told}" in error and "example_args" in error


def test_where_a_target_has_several_devices_it_is_told_how_to_use_them(file):
    jitted = jax.jit(lambda x: x * 2)
    lowered = jitted.lower(jnp.ones(4))
    target = types.SimpleNamespace(name="tpu:v5e:2x2", devices=[None] * 4)
    text = sharding_text(lowered, lowered.compile(), target)
    assert text.startswith("one device: nothing is split. tpu:v5e:2x2 has 4: arguments with shard")
    assert 'Mesh(hlofront.target("tpu:v5e:2x2").devices, ("x",))' in text
    code, text = run("show", f"{file}:step", "--stage", "sharding", "--target", "cpu")
    assert code == 0 and text == "one device: nothing is split\n"


def test_arguments_that_are_trees(file, tmp_path):
    path = tmp_path / "trees.py"
    path.write_text("def loss(params, x):\n    return x @ params['w1'] + params['b'][0]\n")
    specs = "{w1: f32[2,3], b: [f32[3], i32[]]}, f32[4,2]"
    code, text = run("show", f"{path}:loss", "--args", specs, "--stage", "jaxpr")
    assert code == 0 and "a:f32[3] b:i32[] c:f32[2,3] d:f32[4,2]" in text
