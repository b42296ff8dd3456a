"""Running a jaxpr binds its operations again, and lets values go after their last use."""

import weakref

import numpy as np
import pytest

import hlofront
from hlofront.core.aval import ShapedArray
from hlofront.core.programs.evaluate import eval_jaxpr, jaxpr_as_fun
from hlofront.core.trace import Trace, interpreting_with
from hlofront.primitives.elementwise.elementwise import cos, sin
from tests.core.jaxpr_text import parse

x = np.arange(3.0, dtype=np.float32)
f32 = ShapedArray((3,), np.dtype("float32"))


class Value:
    """What operations give: it knows what it was computed from, by name."""

    def __init__(self, name):
        self.name = name


class Recording(Trace):
    """An interpreter that notes operations, and which earlier values are alive at each."""

    def __init__(self):
        self.values = weakref.WeakValueDictionary()
        self.alive_at = []

    def new(self, name):
        value = self.values[name] = Value(name)
        return value

    def process(self, primitive, args, params):
        self.alive_at.append(sorted(self.values))
        names = [a.name if isinstance(a, Value) else str(a) for a in args]
        text = f"{primitive}({', '.join(names)})"
        if primitive.multiple_results:
            return [self.new(f"{text}[{n}]") for n in range(2)]
        return self.new(text)


def recorded(program, *args):
    trace = Recording()
    with interpreting_with(trace):
        values = [trace.new(name) for name in args]
        outputs = eval_jaxpr(program.jaxpr, [trace.new("C") for _ in program.consts], *values)
    return trace, [getattr(out, "name", out) for out in outputs]


def test_operations_are_bound_in_order():
    _, outputs = recorded(
        parse(
            "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = mul b a; d:f32[3] = add c 2.0:f32[] "
            "in (d, b, a, 1.0:f32[]) }"
        ),
        "x",
    )
    assert outputs[:3] == ["add(mul(x, C), 2.0)", "x", "C"]
    assert str(outputs[3]) == "1.0"


def test_several_results():
    _, outputs = recorded(
        parse("{ lambda ; a:f32[3]. let b:f32[2] c:i32[2] = split a in (c, b) }"), "x"
    )
    assert outputs == ["split(x)[1]", "split(x)[0]"]


def test_values_are_let_go_after_their_last_use():
    trace, outputs = recorded(
        parse(
            "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = cos b; d:f32[3] = tan c; "
            "e:f32[3] = exp d in (e,) }"
        ),
        "x",
    )
    # The argument is the caller's, and operands are held by the call that is running.
    assert trace.alive_at == [
        ["x"],
        ["sin(x)", "x"],
        ["cos(sin(x))", "x"],
        ["tan(cos(sin(x)))", "x"],
    ]
    assert outputs == ["exp(tan(cos(sin(x))))"]


def test_results_that_nobody_uses_are_let_go():
    trace, _ = recorded(
        parse(
            "{ lambda ; a:f32[3]. let _:f32[2] b:i32[2] = split a; c:f32[3] = sin a; "
            "d:i32[2] = neg b in (d,) }"
        ),
        "x",
    )
    assert trace.alive_at == [["x"], ["split(x)[1]", "x"], ["split(x)[1]", "x"]]


def test_a_variable_used_twice_in_one_equation():
    _, outputs = recorded(
        parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b b in (c, c) }"), "x"
    )
    assert outputs == ["mul(sin(x), sin(x))"] * 2


@pytest.mark.parametrize(
    ("consts", "args", "match"),
    [
        ([], [x, x], "has 1 inputs, and 2 values were given"),
        ([], [], "has 1 inputs, and 0 values"),
        ([x], [x], "has 0 constants, and 1 values"),
    ],
)
def test_a_wrong_number_of_values(consts, args, match):
    program = parse("{ lambda ; a:f32[3]. let  in (a,) }")
    with pytest.raises(ValueError, match=match):
        eval_jaxpr(program.jaxpr, consts, *args)


def scoped(x):
    with hlofront.named_scope("inner"):
        y = sin(x)
    return hlofront.jit(cos)(y)


def test_running_a_staged_function():
    program = hlofront.make_jaxpr(scoped)(x)
    np.testing.assert_allclose(jaxpr_as_fun(program, x)[0], np.cos(np.sin(x)), rtol=1e-6)
    np.testing.assert_allclose(
        eval_jaxpr(program.jaxpr, program.consts, x)[0], np.cos(np.sin(x)), rtol=1e-6
    )


def test_staging_again_gives_the_same_program():
    program = hlofront.make_jaxpr(scoped)(x)
    again = hlofront.make_jaxpr(lambda x: jaxpr_as_fun(program, x))(x)
    assert str(again) == str(program)
    for old, new in zip(program.eqns, again.eqns, strict=True):
        assert old.params == new.params


def test_names_and_lines_are_those_of_the_program():
    program = hlofront.make_jaxpr(scoped)(x)

    def outer(x, **options):
        with hlofront.named_scope("outer"):
            return eval_jaxpr(program.jaxpr, program.consts, x, **options)

    def notes(text):
        return [line.split(" # ")[1] for line in text.split("\n") if " # " in line]

    again = hlofront.make_jaxpr(outer)(x)
    assert notes(again.pretty_print(source_info=True)) == notes(
        program.pretty_print(source_info=True)
    )
    assert notes(again.pretty_print(name_stack=True)) == ["[outer/inner]", "[outer]", "[]"]
    here = hlofront.make_jaxpr(lambda x: outer(x, propagate_source_info=False))(x)
    assert all("outer)" in note for note in notes(here.pretty_print(source_info=True))[:2])


def test_an_error_names_the_line_of_the_equation():
    program = parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }")
    program.eqns[0].source_info = hlofront.make_jaxpr(scoped)(x).eqns[0].source_info

    class Failing(Trace):
        def process(self, primitive, args, params):
            raise TypeError("no")

    with pytest.raises(TypeError) as caught, interpreting_with(Failing()):
        eval_jaxpr(program.jaxpr, [], x)
    (note,) = caught.value.__notes__
    assert "y = sin(x)" in note


def test_the_public_jaxpr_as_fun_is_curried():
    double = hlofront.core.jaxpr_as_fun(hlofront.make_jaxpr(lambda x: x * 2)(1.0))
    assert double(3.0) == [6.0]
    assert hlofront.jit(double)(3.0) == [6.0]
    with pytest.raises(ValueError, match="1 inputs"):
        double()
