"""Names and source files of others do not control the terminal that shows them."""

import io
import re

import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront import bundle
from hlofront.cli.main import main
from hlotools.terminal_text import on_one_line, visible

# Sets a title and clears the screen; rings; a C1 control; turns the direction of writing.
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HLO = f"""HloModule m{EVIL}, is_scheduled=true

ENTRY main {{
  a = f32[8]{{0}} parameter(0), metadata={{op_name="a{EVIL}"}}
  b = f32[8]{{0}} negate(a), metadata={{op_name="{EVIL}" source_file="/{EVIL}\\nforged.py" source_line=3}}
  ROOT c = f32[8]{{0}} custom-call(b), custom_call_target="t{EVIL}", backend_config="{EVIL}"
}}
"""  # noqa: E501
OTHER = HLO.replace("negate", "exponential").replace('target="t', 'target="u')
MLIR = f"""module @jit_f {{
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = stablehlo.custom_call @f(%arg0) {{note = "{EVIL}"}} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }}
}}
"""


def is_safe(text):
    return UNSAFE.search(text) is None


def test_controls_are_shown_as_escapes():
    assert visible("a\x1b[0m\x07\u202eb\ud800") == "a\\x1b[0m\\x07\\u202eb\\ud800"
    assert visible("a\tb\r\nc\rd") == "a\tb\r\nc\\x0dd"
    assert on_one_line("a\nb") == "a\\x0ab"
    assert visible("naïve 数 ✓ 👍") == "naïve 数 ✓ 👍"
    assert is_safe(visible(EVIL))


@pytest.mark.parametrize(
    "shown",
    [
        lambda: hlotools.costs(HLO).text(by="line"),
        lambda: hlotools.costs(HLO).text(by="instruction"),
        lambda: repr(hlotools.costs(HLO)),
        lambda: hlotools.memory_use(HLO).text(),
        lambda: "\n".join(hlotools.memory_use(HLO).peak_lines()),
        lambda: hlotools.collectives(HLO).text(),
        lambda: str(hlotools.diff(HLO, OTHER)),
        lambda: hlotools.diff(HLO, OTHER, labels=(EVIL, "b")).text(verbose=True),
        lambda: hlotools.diff(HLO, OTHER).markdown(),
        lambda: str(hlotools.diff(MLIR, MLIR.replace("evil", "devil"))),
        lambda: repr(hlotools.parse(HLO)),
    ],
)
def test_reports_are_safe(shown):
    text = shown()
    assert is_safe(text)
    assert "\nforged.py" not in text


def test_colors_are_those_of_the_report_only():
    text = hlotools.diff(HLO, OTHER).text(color=True)
    assert is_safe(re.sub("\x1b\\[[0-9]+m", "", text))


def test_errors_are_safe():
    with pytest.raises(hlotools.HloSyntaxError) as caught:
        hlotools.parse(HLO.replace("negate(a)", "negate(nothing)"))
    assert is_safe(str(caught.value))


@pytest.mark.parametrize(
    "options", [(), ("--style", "raw"), ("--style", "source"), ("--stage", "memory")]
)
def test_files_are_shown_safely(options, tmp_path):
    path = tmp_path / "evil.hlo"
    path.write_text(HLO)
    out = io.StringIO()
    assert main(["show", str(path), *options], out) == 0
    assert out.getvalue() and is_safe(out.getvalue())


def test_errors_on_the_command_line_are_safe(tmp_path, capsys):
    path = tmp_path / "evil.hlo"
    path.write_text(HLO.replace("negate(a)", f"negate({EVIL})"))
    assert main(["cost", str(path)], io.StringIO()) == 2
    assert main(["show", str(tmp_path / f"no{EVIL}")], io.StringIO()) == 2
    assert is_safe(capsys.readouterr().err)


def test_bundles_are_listed_safely(tmp_path):
    def step(x):
        return x + 1

    step.__name__ = EVIL
    path = tmp_path / "step.hlob"
    bundle.save(path, jax.jit(step), bundle.arguments(jnp.zeros(4)), targets=["cpu"])
    shown = [str(bundle.ls(path)), *map(str, bundle.verify(path))]
    assert all(map(is_safe, shown)) and "\\x1b]0;owned" in shown[0]
    for command in ("ls", "verify"):
        out = io.StringIO()
        assert main(["bundle", command, str(path)], out) == 0
        assert is_safe(out.getvalue())
