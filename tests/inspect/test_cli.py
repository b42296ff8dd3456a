"""`python -m hlofront show`, in a pipe and on a terminal."""

import io

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.inspect.cli import main

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
    assert [h.strip("= ") for h in headings] == [
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


def test_colour_when_asked_for(file):
    _, text = run("show", f"{file}:plain", "--args", "f32[8]", "--color", "always")
    assert "\x1b[" in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nofile.py:f"], "there is no file nofile.py"),
        (["{file}"], "wanted FILE:FUNCTION"),
        (["{file}:nothing"], "has no function 'nothing'. It has: step, plain, broken"),
        (["{file}:plain", "--args", "f99[1]"], "--args: cannot read the argument 'f99[1]'"),
        (["{file}:broken", "--args", "f32[2,3]"], "dot_general"),
    ],
)
def test_trouble_is_said_and_exits_with_2(file, argv, message, capsys):
    code, _ = run("show", *[part.replace("{file}", file) for part in argv])
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_file_without_example_args(tmp_path, capsys):
    path = tmp_path / "bare.py"
    path.write_text("def f(x):\n    return x\n")
    assert run("show", f"{path}:f")[0] == 2
    assert "define example_args() in the file" in capsys.readouterr().err


def test_stages_in_notebooks():
    lowered = jax.jit(lambda x: jnp.sin(x) < 0).lower(np.ones(3, np.float32))
    assert "operations" in repr(lowered) and "for cpu" in repr(lowered)
    page = lowered._repr_html_()
    assert "stablehlo.sine" in page and "tensor&lt;3xf32&gt;" in page
    compiled = lowered.compile()
    assert "bytes of temporaries" in repr(compiled)
    assert "sine" in compiled._repr_html_() and "metadata" not in compiled._repr_html_()


@pytest.mark.parametrize("style", ["raw", "source", "short", "canonical"])
def test_styles_of_the_stages(style):
    lowered = jax.jit(lambda x: jnp.sin(x) * 2).lower(np.ones(3, np.float32))
    texts = lowered.as_text(style=style), lowered.compile().as_text(style=style)
    assert "sine" in texts[0] and "sine" in texts[1]
    for text in texts:
        with_lines = style == "source" or (style == "raw" and text is texts[1])
        assert ("test_cli.py" in text) == with_lines
    with pytest.raises(ValueError, match="a style is one of"):
        lowered.as_text(style="pretty")
