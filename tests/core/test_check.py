"""check_jaxpr accepts what staging writes, and says what is wrong with anything else."""

import numpy as np
import pytest

import hlofront
import hlofront.nn
from hlofront import lax
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.effects import Effect
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.check import check_jaxpr
from hlofront.errors import JaxprTypeError
from hlofront.primitives.elementwise.elementwise import cos, sin, sin_p
from tests.core.jaxpr_text import parse, primitive

f32 = ShapedArray((3,), np.dtype("float32"))
f32_4 = ShapedArray((4,), np.dtype("float32"))
weak = f32.update(weak_type=True)
x = np.ones(3, np.float32)


def staged(function):
    return hlofront.make_jaxpr(function)(x)


def two():
    """{ lambda ; a. let b = cos a; c = sin b in (c,) }"""
    return staged(lambda x: sin(cos(x))).jaxpr


def broken(program, match):
    with pytest.raises(JaxprTypeError, match=match) as caught:
        check_jaxpr(program)
    return str(caught.value)


def test_what_is_staged_is_right():
    check_jaxpr(two())
    check_jaxpr(staged(lambda x: hlofront.jit(lambda y: (sin(y), y))(cos(x))))


def test_a_closed_program_is_checked_with_its_constants():
    program = parse("{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = sin a in (b, c) }")
    check_jaxpr(program)
    with_other = program.replace(consts=[np.ones(4, np.float32)])
    broken(with_other, r"type f32\[4\] is given for the constant 'a' of type f32\[3\]")


def test_used_before_it_is_bound():
    program = two()
    first, second = program.eqns
    text = broken(program.replace(eqns=[second, first]), "Variable '.' not defined")
    assert "\n\nin equation:\n\n" in text
    assert "from source: " + __file__ in text
    assert "\n\nwhile checking jaxpr:\n\n{ lambda ; a:f32[3]. let" in text


def test_an_output_that_is_not_bound():
    program = two()
    text = broken(program.replace(eqns=program.eqns[:1]), "Variable 'b' not defined")
    assert text.endswith("jaxpr:\n\n{ lambda ; a:f32[3]. let _:f32[3] = cos a in (b,) }")


def test_bound_twice():
    program = two()
    first, second = program.eqns
    text = broken(program.replace(eqns=[first, first, second]), "Variable 'b' already bound")
    assert "in equation:\n\nb:f32[3] = cos a\n" in text
    broken(program.replace(invars=program.invars * 2), "Variable 'a' already bound")


def test_a_type_that_is_not_inferred():
    var = Var(f32_4)
    first, second = two().eqns
    equations = [first.replace(outvars=[var]), second.replace(invars=[var])]
    broken(
        two().replace(invars=first.invars, eqns=equations, outvars=second.outvars),
        r"Value for variable 'b' inconsistently typed as f32\[3\] for let-binder of type f32\[4\]",
    )


def test_weak_types_may_differ():
    a, b = Var(f32), Var(weak)
    check_jaxpr(Jaxpr((), (a,), (b,), (Equation([a], [b], sin_p, {"accuracy": None}),)))


def test_a_wrong_number_of_results_or_operands():
    a, b, c = Var(f32), Var(f32), Var(f32)
    params = {"accuracy": None}
    broken(
        Jaxpr((), (a,), (b,), (Equation([a], [b, c], sin_p, params),)),
        "binds 2 variables to the 1 results of sin",
    )
    broken(Jaxpr((), (), (b,), (Equation([], [b], sin_p, params),)), "refuses")


CALL = """\
{ lambda ; a:f32[3]. let
    b:f32[3] = jit[
      name=f
      jaxpr={ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    ] a
  in (b,) }"""


def call(**changes):
    """The program CALL, with changes to its equation."""
    program = parse(CALL).jaxpr
    (equation,) = program.eqns
    inner = equation.params["jaxpr"].jaxpr
    for sin_equation in inner.eqns:
        sin_equation.params["accuracy"] = None
    equation = equation.replace(primitive=primitive("jit", True), **changes)
    return program.replace(eqns=(equation,), outvars=equation.outvars)


def test_calls():
    check_jaxpr(call())
    broken(call(invars=[]), "jit with 0 operands cannot call jaxpr with 1 input")
    other = Var(f32_4)
    wrong = call(invars=[other]).replace(invars=[other])
    broken(wrong, r"operand 0 of type f32\[4\] to a jaxpr whose input has type f32\[3\]")
    broken(call(outvars=[Var(f32_4)]), "inconsistently typed")


def test_a_call_of_no_program():
    program = call()
    program.eqns[0].params["jaxpr"] = 4
    broken(program, "jit has no jaxpr to call: its parameter 'jaxpr' is 4")
    relu = hlofront.make_jaxpr(hlofront.nn.relu)(x)
    for equation in relu.eqns:
        for name in equation.params:
            if name in ("jaxpr", "call_jaxpr"):
                equation.params[name] = "x"
    broken(relu, "has no jaxpr to call")


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("reverse", (4, None, "x", ())),
        ("unroll", (-1, True, None, "x")),
        ("num_carry", (-1, 4, True, None)),
        ("num_consts", (-1, 4, True, None)),
        ("length", (4, None, "x")),
        ("jaxpr", (4, None)),
    ],
)
def test_parameters_of_scan(parameter, values):
    program = staged(lambda x: lax.scan(lambda carry, a: (carry + a, carry), 1.0, x))
    (equation,) = [e for e in program.eqns if e.primitive.name == "scan"]
    own = equation.params[parameter]
    for value in values:
        equation.params[parameter] = value
        broken(program, "scan")
    equation.params[parameter] = own
    check_jaxpr(program)


@pytest.mark.parametrize(
    ("name", "function", "parameters"),
    [
        ("cond", lambda x: lax.cond(x[0] > 0, sin, cos, x), ("branches",)),
        (
            "while",
            lambda x: lax.while_loop(lambda x: x[0] < 3, cos, x),
            ("cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts"),
        ),
        (
            "custom_linear_solve",
            lambda x: lax.custom_linear_solve(lambda x: x, x, solve=lambda _, b: b, symmetric=True),
            ("jaxprs", "const_lengths"),
        ),
        ("remat2", hlofront.checkpoint(sin), ("jaxpr",)),
    ],
)
def test_parameters_of_other_operations_on_programs(name, function, parameters):
    program = staged(function)
    (equation,) = [e for e in program.eqns if e.primitive.name == name]
    for parameter in parameters:
        own = equation.params[parameter]
        for value in (4, None, "x", (4,)):
            equation.params[parameter] = value
            broken(program, name)
        equation.params[parameter] = own
    check_jaxpr(program)


def test_inner_programs_are_checked():
    program = call()
    inner = program.eqns[0].params["jaxpr"]
    inner.jaxpr = inner.jaxpr.replace(eqns=())
    text = broken(program, "Variable 'b' not defined")
    assert "while checking jaxpr:\n\n{ lambda ; a:f32[3]. let  in (b,) }" in text
    assert "which is the parameter 'jaxpr' of jit, from source: unknown" in text
    open_program = ClosedJaxpr(inner.jaxpr).jaxpr
    held = primitive("example", False)
    a, b = Var(f32), Var(f32)
    equation = Equation([a], [b], held, {"branches": (open_program,)})
    broken(Jaxpr((), (a,), (b,), (equation,)), "(?s)not defined.*'branches' of example")


class Ink(Effect):
    def __str__(self):
        return "Ink"


def test_effects():
    print_p = Primitive("test_check_print")
    a, b = Var(f32), Var(f32)
    ink = frozenset({Ink()})
    rules.infer(print_p)(lambda a: a)
    rules.effects(print_p)(lambda a: ink)
    try:
        equation = Equation([a], [b], print_p, {}, ink)
        check_jaxpr(Jaxpr((), (a,), (b,), (equation,), ink))
        broken(Jaxpr((), (a,), (b,), (equation,)), r"lacks effects of its equation: \{Ink\}")
        without = equation.replace(effects=frozenset())
        broken(Jaxpr((), (a,), (b,), (without,)), r"effects are \{\}, and those .* are \{Ink\}")
    finally:
        del rules.infer[print_p], rules.effects[print_p]
        from hlofront.core import primitive as registry

        del registry.ALL["test_check_print"]


def test_a_missing_rule_is_named():
    a, b = Var(f32), Var(f32)
    program = Jaxpr((), (a,), (b,), (Equation([a], [b], primitive("no_rules", False), {}),))
    with pytest.raises(hlofront.errors.NoRuleError, match="Abstract evaluation for"):
        check_jaxpr(program)


def test_an_error_fits_on_a_screen():
    def long(x):
        for _ in range(100):
            x = sin(x)
        return x

    program = staged(long).jaxpr
    equations = list(program.eqns)
    equations[50] = equations[50].replace(outvars=[Var(f32_4)])
    text = broken(program.replace(eqns=equations), "inconsistently typed")
    assert len(text.split("\n")) < 30
    assert "... 42 more lines ..." in text
    assert "f32[4] = sin" in text.split("while checking")[1]


def test_repeated_programs_are_checked_once():
    program = parse("{ lambda ; a:f32[3]. let  in (a,) }")
    for _ in range(60):
        a, b, c = Var(f32), Var(f32), Var(f32)
        jit = primitive("jit", True)
        params = {"jaxpr": program, "name": "f"}
        calls = [Equation([a], [b], jit, params), Equation([b], [c], jit, params)]
        program = ClosedJaxpr(Jaxpr((), (a,), (c,), calls))
    check_jaxpr(program)
