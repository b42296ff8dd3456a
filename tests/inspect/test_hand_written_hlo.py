"""HLO as people write it: what XLA's parser takes is read alike, and what it refuses is refused."""

import json
import subprocess
import sys

import pytest

import hlotools
from hlotools.ir.program_text import is_path, program_of_text

BARE = """\
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  a = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=add
}
"""
WHOLE = "HloModule m\n\n" + BARE


def _with(old, new, text=WHOLE):
    assert old in text
    return text.replace(old, new, 1)


def _attribute(text):
    return _with("to_apply=add", "to_apply=add" + text)


def _constant(text):
    return _with("z = f32[] constant(0)", "z = f32[] constant(0)" + text)


TAKEN = {
    "as XLA writes it": WHOLE,
    "no header": BARE,
    "no header, one computation": "ENTRY e {\n  ROOT a = f32[4] parameter(0)\n}",
    "no header, a signature": "ENTRY %e (a: f32[4]) -> f32[4] {ROOT %a = f32[4] parameter(0)}",
    "no header, no ENTRY": "%f {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] abs(p)\n}\n",
    "no header, no ENTRY, several": BARE.replace("ENTRY ", "%"),
    "no header, comment first": "// RUN: hlo-opt %s | FileCheck %s\n\n" + BARE,
    "no header, block comment first": "/* one\ntwo */ // three\n" + BARE,
    "block comment first": "/* Copyright: the authors\n * HloModule other */\n" + WHOLE,
    "header between comments": _with("HloModule m", "/*a*/ HloModule /*\n*/ m // b"),
    "header of several lines": _with(
        "HloModule m", "HloModule m, is_scheduled=true, // c\n  num_partitions=2 /*d*/"
    ),
    "after an attribute": _attribute("  // 25"),
    "after attributes, with commas": _with(
        "dimensions={0}, to_apply=add", "dimensions={0}, // why, x={\n  to_apply=add // 25, a=b"
    ),
    "after an opening brace": _with("ENTRY main {", "ENTRY main { // the main one"),
    "before an opening brace": _with("ENTRY main {", "ENTRY main // c\n {"),
    "after the last brace": WHOLE.rstrip() + " // end\n// CHECK: add",
    "between all words": _with(
        "ROOT r = f32[] reduce(a, z)",
        "/*1*/ ROOT /*2*/ r /*3*/ = /*4*/ f32[] /*5*/ reduce( /*6*/ a /*7*/, z /*8*/) /*9*/",
    ),
    "in a signature": _with("add {", "add (x: f32[], /*index=1*/ y: f32[] // b\n) -> f32[] {"),
    "in a value": _with("dimensions={0}", "dimensions={0 /*rows*/}"),
    "in a literal": _with("constant(0)", "constant(/*zero*/ 0 // x\n)"),
    "in a shape": _with("a = f32[4]", "a = f32[/*n*/4]"),
    "quotes in a comment": _constant(" // it's \"open"),
    "brackets in a comment": _constant(" // } { ( "),
    "a block in a line": _constant(" // /* "),
    "a line in a block": _constant(" /* // */"),
    "slashes in strings": _attribute(', metadata={op_name="h://x // y /* z" source_file="a//b"}'),
    "an escaped quote before slashes": _attribute(', metadata={op_name="a\\"// y"} // "quote'),
    "slashes in JSON": _attribute(', backend_config={"a":"b//c","d":{"e":[1]}} // 1'),
    "slashes in frontend attributes": _attribute(', frontend_attributes={a="b // c",d="e"} // 1'),
    "JSON of several lines": _attribute(', backend_config={\n  "a":{\n   "b":[{"c":[2]}]\n  }\n }'),
    "operands on lines": _with("reduce(a, z)", "reduce(\n    a,\n    // the init\n    z)"),
    "attributes on lines": _with(", dimensions={0}, ", "\n  , dimensions={0},\n\n   "),
    "one line": " ".join(WHOLE.split()),
    "one line, no header": " ".join(BARE.split()),
    "carriage returns": WHOLE.replace("\n", "\r\n"),
    "carriage returns only": "HloModule m // c\r" + BARE.replace("\n", "\r"),
    "tabs": WHOLE.replace("  ", "\t"),
    "spaces in a shape": _with("a = f32[4] parameter", "a = f32 [ 4 ] {0 } parameter"),
    "a space before a parenthesis": _with("parameter(0)\n  y", "parameter (0)\n  y"),
    "operands with shapes and tabs": _with("reduce(a, z)", "reduce(f32[4]\t%a, f32[]\n%z)"),
}  # fmt: skip

REFUSED = {
    "no name": "{\n  a = f32[4] parameter(0)\n  ROOT r = f32[4] add(a, a)\n}\n",
    "an open comment": WHOLE + "/* never",
    "one slash": _with("z = f32[]", "/ z = f32[]"),
    "a hash": _with("z = f32[]", "# z\n z = f32[]"),
    "a semicolon": _with("parameter(0)\n  y", "parameter(0);\n  y"),
    "a last comma": _attribute(","),
    "a space before an equals sign": _with("dimensions={0}", "dimensions = {0}"),
    "two headers": "HloModule a\nHloModule b\n" + BARE,
    "a header and nothing": "HloModule m\n",
    "a value without a name": _with("z = f32[] constant(0)\n", "f32[] constant(0)\n"),
}

_ASK_XLA = """
import json, sys
from jaxlib import _hlo
def text_of(text):
    try:
        return _hlo.hlo_module_from_text(text).to_string()
    except Exception:
        return None
print(json.dumps({name: text_of(text) for name, text in json.load(sys.stdin).items()}))
"""


@pytest.fixture(scope="module")
def by_xla():
    """What XLA's parser makes of each text, None for errors; it may end its process."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK_XLA],
        input=json.dumps(TAKEN | REFUSED),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _graph(module):
    """Return what a module computes: its operations by computation, the entry's last."""
    computations = [c for c in module.computations if c is not module.entry]
    return [
        sorted((i.opcode, i.shape.without_layout(), i.dimensions, len(i.operands), sorted(i.called))
               for i in computation)
        for computation in (*computations, module.entry)
    ]  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_xla_takes_is_read_alike(name, by_xla):
    text = TAKEN[name]
    assert by_xla[name] is not None
    expected = hlotools.parse(by_xla[name])
    module = hlotools.parse(text)
    assert _graph(module) == _graph(expected)
    assert module.name == expected.name
    assert not is_path(text)
    assert program_of_text(text, "it").kind == "hlo"
    # What is written again is as XLA writes it, which all tools read.
    again = hlotools.write(module)
    assert hlotools.diff(again, text).equal
    assert hlotools.costs(text).total["flops"] == hlotools.costs(by_xla[name]).total["flops"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_xla_refuses_is_refused(name, by_xla):
    assert by_xla[name] is None
    with pytest.raises(hlotools.HloSyntaxError):
        hlotools.parse(REFUSED[name])


def test_errors_quote_the_text_with_its_comments():
    with pytest.raises(hlotools.HloSyntaxError, match=r"abs\(a\) // the text") as caught:
        hlotools.parse("// first\n/* 2 */ ENTRY main {\n  ROOT r = f32[4] abs(a) // the text\n}")
    assert (caught.value.line, caught.value.column) == (3, 23)


def test_labels_are_the_module_names_behind_comments():
    commented = "// a comment\n/* b */ HloModule jit_f, is_scheduled=true\n\n" + BARE
    difference = hlotools.diff(commented, BARE)
    assert (difference.a.label, difference.b.label) == ("text: jit_f", "text")


def test_other_kinds_may_begin_with_comments():
    stablehlo = "/* a */ // b\nmodule {\n  func.func public @main() {\n    return\n  }\n}\n"
    assert program_of_text(stablehlo, "it").kind == "stablehlo"
    assert program_of_text("// b\n{ lambda ; a:f32[]. let in (a,) }", "it").kind == "jaxpr"
    # A computation may have the name of MLIR's module.
    named = "module {\n  ROOT p = f32[] parameter(0)\n}\n"
    assert program_of_text(named, "it").kind == "hlo"


@pytest.mark.parametrize("token", ["/*", "//", '"', '\\"', "/* a */", "/*index=1*/", "a {"])
def test_many_open_comments_and_strings_take_linear_time(token):
    # Quadratic time would be minutes here.
    for text in (token * 200_000, "HloModule m // c\n" + token * 200_000):
        with pytest.raises(hlotools.HloSyntaxError):
            hlotools.parse(text)
        program = f"{text[:20]}"
        assert isinstance(is_path(program), bool)
