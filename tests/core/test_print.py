"""Jaxprs print as JAX 0.10.2 prints them, character for character."""

import collections
import enum
import itertools
import pathlib
import re
import sys

import ml_dtypes
import numpy as np
import pytest

import hlofront
from hlofront.base import show
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.effects import Effect
from hlofront.core.jaxpr import DropVar, Equation, Jaxpr, Literal, Var
from hlofront.core.programs import print as printing
from hlofront.primitives.elementwise.elementwise import sin
from tests.core.jaxpr_text import closed, parse, primitive

# What make_jaxpr(f)(...) of jax 0.10.2 printed for 84 functions.
PRINTED = dict(
    section.rstrip("\n").split("\n", 1)
    for section in re.split(
        r"^## ",
        (pathlib.Path(__file__).parent / "printed_by_jax.txt").read_text(),
        flags=re.MULTILINE,
    )[1:]
)
f32 = ShapedArray((3,), np.dtype("float32"))


def one_equation(name, /, **params):
    """{ lambda ; a. let b = name[params] a in (b,) }"""
    a, b = Var(f32), Var(f32)
    return Jaxpr((), (a,), (b,), (Equation([a], [b], primitive(name, False), params),))


def shown(name, /, **params):
    """How the parameters of an equation are shown, on one line."""
    text = one_equation(name, **params).pretty_print(width=10**6)
    return re.fullmatch(r".* let b:f32\[3\] = (.*) a in \(b,\) }", text, re.DOTALL)[1]


@pytest.mark.parametrize("name", PRINTED)
def test_prints_as_jax_does(name):
    assert str(parse(PRINTED[name])) == PRINTED[name]


# ---- options ---------------------------------------------------------------------------------

NESTED = """\
{ lambda ; a:f32[3]. let
    b:f32[3] = jit[
      name=f
      jaxpr={ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    ] a
  in (b,) }"""


def test_width():
    program = parse(NESTED)
    assert program.pretty_print(width=200) == (
        "{ lambda ; a:f32[3]. let b:f32[3] = jit[name=f jaxpr={ lambda ; a:f32[3]. let "
        "b:f32[3] = sin a in (b,) }] a in (b,) }"
    )
    assert program.pretty_print(width=40) == (
        "{ lambda ; a:f32[3]. let\n    b:f32[3] = jit[\n      name=f\n"
        "      jaxpr={ lambda ; a:f32[3]. let\n          b:f32[3] = sin a\n        in (b,) }\n"
        "    ] a\n  in (b,) }"
    )


def test_without_types():
    text = parse(PRINTED["jit, a literal operand"]).pretty_print(print_shapes=False)
    assert text.startswith("{ lambda ; a. let\n    b = add a 1.0:f32[]\n    c = jit[")


def test_with_all_parameters():
    text = parse(NESTED).pretty_print(custom_pp_eqn_rules=False)
    assert text == (
        "{ lambda ; a:f32[3]. let\n    b:f32[3] = jit[\n"
        "      jaxpr={ lambda ; c:f32[3]. let d:f32[3] = sin c in (d,) }\n"
        "      name=f\n    ] a\n  in (b,) }"
    )


def test_name_stacks_stand_beside_equations():
    program = parse(NESTED)
    (call,) = program.eqns
    call.source_info = call.source_info.inside("outer", "inner")
    assert program.pretty_print(name_stack=True) == (
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[3] = jit[                                             # [outer/inner]\n"
        "      name=f\n"
        "      jaxpr={ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } # []\n"
        "    ] a\n  in (b,) }"
    )
    text = program.pretty_print(source_info=True, name_stack=True, annotation_prefix=";; ")
    assert text.split("\n")[1:3] == [
        "    b:f32[3] = jit[" + 44 * " " + ";; unknown",
        " " * 63 + ";; [outer/inner]",
    ]


def test_source_lines_stand_beside_equations():
    def double(x):
        return sin(x)

    text = hlofront.make_jaxpr(double)(1.0).pretty_print(source_info=True)
    line = double.__code__.co_firstlineno + 1
    assert re.fullmatch(
        rf"{{ lambda ; a:f32\[\]\. let b:f32\[\] = sin a in \(b,\) }} # .*{line}:15 \(.*double\)",
        text,
    )


class Ink(Effect):
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


def test_effects():
    program = parse("{ lambda ; a:f32[3]. let  in (a,) }").jaxpr
    assert program.pretty_print(print_effects=True) == (
        "{ lambda ; a:f32[3]. let  in (a,) : {  } }"
    )
    with_effects = program.replace(effects=frozenset({Ink("Red"), Ink("Blue")}))
    assert with_effects.pretty_print(print_effects=True).endswith("in (a,) : { Blue, Red } }")


def test_colors():
    text = parse("{ lambda c:f32[]; a:f32[3]. let b:f32[3] = mul a c in (b,) }").pretty_print(
        use_color=True
    )
    assert text == (
        "{ \x1b[34;1mlambda \x1b[39;22ma\x1b[35m:f32[]\x1b[39m; b\x1b[35m:f32[3]\x1b[39m. "
        "\x1b[34;1mlet\x1b[39;22m c\x1b[35m:f32[3]\x1b[39m = mul b a \x1b[34;1min \x1b[39;22m(c,) }"
    )


def test_colors_where_there_is_a_terminal(monkeypatch):
    program = parse("{ lambda ; a:f32[3]. let  in (a,) }")
    assert "\x1b" not in str(program)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b" in str(program)
    assert "\x1b" not in program.pretty_print(use_color=False)
    option = hlofront.config.jax_pprint_use_color
    hlofront.config.update("jax_pprint_use_color", False)
    try:
        assert "\x1b" not in str(program)
    finally:
        hlofront.config.update("jax_pprint_use_color", option)


def test_options_that_there_are_not():
    with pytest.raises(TypeError, match="no_such_option"):
        parse(NESTED).pretty_print(no_such_option=1)


# ---- names -----------------------------------------------------------------------------------


def test_names_count_in_base_26():
    names = list(itertools.islice(printing.spellings(), 26**3 + 1))
    assert names[:3] == ["a", "b", "c"]
    assert names[25:28] == ["z", "ba", "bb"]
    assert names[26**2 - 1 : 26**2 + 1] == ["zz", "baa"]
    assert names[-2:] == ["zzz", "baaa"]
    assert len(set(names)) == len(names)


def test_names_of_programs_are_not_names_of_variables():
    names = printing.spellings(frozenset({"a", "c", "ba"}))
    assert list(itertools.islice(names, 26)) == [*"bdefghijklmnopqrstuvwxyz", "bb", "bc"]


def test_equal_labels_are_numbered_until_they_differ():
    distinct = printing._distinct
    assert distinct(["f", "f", "f1", "f1"]) == ["f", "f1", "f11", "f12"]
    # JAX gives the name f1 twice here; a name that means two programs is of no use.
    assert distinct(["f1", "f", "f", "f"]) == ["f1", "f", "f2", "f3"]


def test_an_equation_alone_is_not_named_ahead():
    program = parse(PRINTED["jit, a name that a variable could have"])
    text = str(program.eqns[0])
    assert text.startswith("b:f32[3] = jit[\n  name=b\n  jaxpr={ lambda ; a:f32[3]. let\n")
    assert text.endswith("] a")


def test_dropped_results():
    dropped = Equation([Var(f32)], [Var(f32), DropVar(f32)], primitive("top_k", True), {})
    assert str(dropped) == "a:f32[3] _:f32[3] = top_k b"


def test_results_that_are_unused_in_inner_programs_have_names():
    text = """\
{ lambda ; a:f32[3]. let
    b:f32[3] = scan[
      jaxpr={ lambda ; c:f32[3]. let d:f32[3] = sin c in (c,) }
    ] a
  in (b,) }"""
    assert parse(text).pretty_print(width=70) == text


def test_programs_are_named_in_the_order_of_the_parameters():
    long = parse(PRINTED["more variables than letters"])
    other = closed(long.jaxpr.replace())
    text = str(one_equation("while", cond_jaxpr=long, body_jaxpr=other))
    assert "while[body_jaxpr=jaxpr1 cond_jaxpr=jaxpr]" in text


def test_sharing_takes_linear_time():
    """Each program calls the one before twice: as a tree, it has 2**60 calls."""
    program = parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }")
    for _ in range(60):
        x, y, z = Var(f32), Var(f32), Var(f32)
        call = primitive("jit", True)
        calls = [
            Equation([x], [y], call, {"jaxpr": program, "name": "f"}),
            Equation([y], [z], call, {"jaxpr": program, "name": "f"}),
        ]
        program = closed(Jaxpr((), (x,), (z,), calls))
    assert str(program).count("\nlet f") == 59


# ---- literals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2.0"),
        (0.1, "0.1"),
        (True, "True"),
        (np.float32(0.1), "0.10000000149011612"),
        (np.array(-1, np.int32), "-1"),
        (np.uint8(200), "200"),
        (np.bool_(False), "False"),
        (np.float32("nan"), "nan"),
        (np.float32("-inf"), "-inf"),
        (ml_dtypes.bfloat16(0.1), "0.10009765625"),
        (ml_dtypes.int4(-3), "-3"),
        (np.complex64(0.1 + 2j), "(0.10000000149011612+2j)"),
    ],
)
def test_literals(value, text):
    literal = Literal(value, ShapedArray((), np.dtype("float32")))
    assert str(Jaxpr((), (), (literal,), ())) == f"{{ lambda ; . let  in ({text}:f32[],) }}"


# ---- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sin", "exp", "logistic", "tanh", "cbrt"])
def test_accuracy_is_shown_where_it_is_given(name):
    assert shown(name, accuracy=None) == name
    assert shown(name, accuracy="HIGHEST") == f"{name}[accuracy=HIGHEST]"


def test_parameters_that_results_tell():
    shape = {"shape": (4, 3), "sharding": None}
    assert shown("broadcast_in_dim", broadcast_dimensions=(), **shape) == "broadcast_in_dim"
    assert (
        shown("broadcast_in_dim", broadcast_dimensions=(0,), **shape)
        == "broadcast_in_dim[broadcast_dimensions=(0,)]"
    )
    assert (
        shown("convert_element_type", new_dtype=np.dtype("int32"), weak_type=False, sharding=None)
        == "convert_element_type[new_dtype=int32 weak_type=False]"
    )
    assert shown("iota", shape=(2,), sharding=None) == "iota[shape=(2,) sharding=None]"


def test_dot_general():
    numbers = (((1,), (0,)), ((), ()))
    unset = {"precision": None, "out_sharding": None, "preferred_element_type": None}
    assert (
        shown("dot_general", dimension_numbers=numbers, **unset)
        == "dot_general[dimension_numbers=(([1], [0]), ([], []))]"
    )
    given = {**unset, "precision": "HIGHEST", "preferred_element_type": np.dtype("float32")}
    assert shown("dot_general", dimension_numbers=numbers, **given) == (
        "dot_general[dimension_numbers=(([1], [0]), ([], [])) precision=HIGHEST "
        "preferred_element_type=float32]"
    )


def test_jit_shows_the_parameters_that_are_set():
    inner = parse("{ lambda ; a:f32[3]. let  in (a,) }")
    unset = {
        "jaxpr": inner,
        "name": "f",
        "donated_invars": (False,),
        "in_shardings": (None,),
        "ctx_mesh": None,
        "compiler_options_kvs": (),
        "inline": False,
        "keep_unused": False,
    }
    program = "jaxpr={ lambda ; a:f32[3]. let  in (a,) }"
    assert shown("jit", **unset) == f"jit[name=f {program}]"
    given = {**unset, "donated_invars": (True,), "keep_unused": True}
    assert shown("jit", **given) == f"jit[name=f donated_invars=(True,) {program} keep_unused=True]"


class Color(enum.Enum):
    RED = 1


class Here:
    """Prints as its address."""


Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (("text", 1), "('text', 1)"),
        (None, "None"),
        (float("nan"), "nan"),
        ((), "()"),
        (np.dtype("float32"), "float32"),
        (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
        (int, "<class 'int'>"),
        (Color.RED, "Color.RED"),
        (frozenset({"b", "a", "c"}), "frozenset({'a', 'b', 'c'})"),
        (frozenset(), "frozenset({})"),
        (frozenset({"a", 1}), "frozenset({'a', 1})"),
        (f32, "float32[3]"),
        ((f32,), "(ShapedArray(float32[3]),)"),
    ],
    # The order in which a set prints its strings differs from process to process.
    ids=lambda value: str(sorted(value, key=str) if isinstance(value, frozenset) else value),
)
def test_values_of_parameters(value, text):
    assert shown("example", value=value) == f"example[value={text}]"


@pytest.mark.parametrize(
    "value",
    [shown, (shown, shown), Here(), [Here()]],
    ids=("function", "functions", "object", "objects"),
)
def test_addresses_are_masked(value):
    text = shown("example", value=value)
    assert re.search(r" at 0xX+>", text)
    assert len(text) == len(f"example[value={value}]")


def test_programs_as_parameters():
    program = parse("{ lambda ; a:f32[3]. let  in (a,) }")
    inner = "{ lambda ; c:f32[3]. let  in (c,) }"
    assert shown("example", value=program) == f"example[value={inner}]"
    assert shown("example", value=program.jaxpr) == f"example[value={inner}]"
    assert shown("example", value=(program,)) == f"example[value=({inner})]"
    # Where there is something else with it, programs are printed as they are alone.
    alone = str(program)
    assert shown("example", value=((program,), 1)) == f"example[value=(({alone},), 1)]"
    assert (
        shown("example", value=Pair(program, 1)) == f"example[value=Pair(first={alone}, second=1)]"
    )


def test_a_primitive_may_have_a_rule_of_its_own():
    peek = primitive("peek", False)

    @rules.show(peek)
    def _(equation, printing):
        (ref,) = equation.invars
        return show.concat((printing.bound(equation.outvars[0]), f" <- {printing.used(ref)}[...]"))

    try:
        x, y = Var(f32), Var(f32)
        program = Jaxpr((), (x,), (y,), (Equation([x], [y], peek, {"at": 1}),))
        assert str(program) == "{ lambda ; a:f32[3]. let b:f32[3] <- a[...] in (b,) }"
        everything = program.pretty_print(custom_pp_eqn_rules=False)
        assert everything == "{ lambda ; a:f32[3]. let b:f32[3] = peek[at=1] a in (b,) }"
    finally:
        del rules.show[peek]
