"""The table of programs inside equations, for operations of ours and of other packages."""

import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import (
    called_by,
    closed_programs_in,
    closed_programs_of,
    executed_by,
    inputs_among,
    may_hold_programs,
    replace_programs,
    split_inputs,
    subprograms_of,
    with_program,
)
from hlofront.custom_derivatives import linear_call
from hlofront.lowering import rules

ONES = np.ones(3, np.float32)


def equation_of(function, *args, name):
    (equation,) = [e for e in jax.make_jaxpr(function)(*args).eqns if e.primitive.name == name]
    return equation


def loop(x):
    return lax.while_loop(
        lambda c: c[1].sum() < x.sum() * 9, lambda c: (c[0] + 1, c[1] + x), (0, x)
    )


@jax.custom_jvp
def tripled(x):
    return x * 3


tripled.defjvps(lambda t, ans, x: t * 3)


@jax.custom_vjp
def halved(x):
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, t: (t / 2,))


@jax.custom_batching.custom_vmap
def incremented(x):
    return x + 1


incremented.def_vmap(lambda size, batched, x: (x + 1, batched[0]))

OPERATIONS = {
    "jit": lambda x: jax.jit(lambda y: jnp.sin(y))(x),
    "remat2": lambda x: jax.checkpoint(lambda y: jnp.sin(y))(x),
    "custom_jvp_call": tripled,
    "custom_vjp_call": halved,
    "custom_vmap_call": incremented,
    "linear_call": lambda x: linear_call(lambda r, y: y * r, lambda r, y: y * r, x, x),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(
        lambda y: y * x, x, lambda f, b: b / x, symmetric=True
    ),
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "while": loop,
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x),
    "reduce": lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + a, (0,)),
    "scatter-add": lambda x: x.at[0].add(1.0),
}


def programs_in(value):
    """Return the programs in a value by going through it: what the table must list."""
    if isinstance(value, Jaxpr | ClosedJaxpr):
        return [value]
    return [p for v in value for p in programs_in(v)] if isinstance(value, tuple | list) else []


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_table_lists_the_programs_among_the_parameters(name):
    equation = equation_of(OPERATIONS[name], ONES, name=name)
    listed = [part.program for part in subprograms_of(equation)]
    assert list(map(id, listed)) == list(map(id, programs_in(tuple(equation.params.values()))))


@pytest.mark.parametrize("name", OPERATIONS)
def test_inputs_and_results_have_the_types_that_the_map_says(name):
    equation = equation_of(OPERATIONS[name], ONES, name=name)
    for part in subprograms_of(equation):
        if part.operands is not None:
            inputs = inputs_among(part, equation.invars)
            for index, (atom, aval) in enumerate(zip(inputs, part.jaxpr.in_avals, strict=True)):
                shape = atom.aval.shape[1:] if index in part.sliced else atom.aval.shape
                assert (shape, atom.aval.dtype) == (aval.shape, aval.dtype)
        for index, aval in zip(part.results or (), part.jaxpr.out_avals, strict=False):
            assert equation.outvars[index].aval.dtype == aval.dtype


def test_inputs_of_a_scan_are_constants_carries_and_slices():
    def function(x):
        return lax.scan(lambda c, row: (c * x[0], row), x[1], x)

    equation = equation_of(function, ONES, name="scan")
    part = executed_by(equation)
    assert part.role == "body" and part.iterations == 3
    constants, carries, slices = split_inputs(part, equation.invars)
    assert [len(constants), len(carries), len(slices)] == [1, 1, 1]
    assert slices[0].aval.shape == (3,)


def test_programs_are_replaced_where_they_stand():
    equation = equation_of(OPERATIONS["custom_linear_solve"], ONES, name="custom_linear_solve")
    copies = replace_programs(equation, lambda program: program.replace())
    assert copies["jaxprs"].solve is not equation.params["jaxprs"].solve
    assert type(copies["jaxprs"]) is type(equation.params["jaxprs"])
    assert replace_programs(equation, lambda program: program) is equation.params
    part = called_by(equation)
    assert with_program(copies, part, part.program)["jaxprs"].solve is part.program


# ---- an operation of another package -------------------------------------------------------------

twice_p = Primitive("my_twice")
twice_p.def_abstract_eval(lambda x, *, inner: x)
twice_p.def_impl(lambda x, *, inner: jax.core.jaxpr_as_fun(inner)(x)[0])


def test_an_operation_without_a_rule_has_the_programs_in_its_parameters():
    inner = jax.make_jaxpr(jnp.log)(ONES)
    equation = equation_of(lambda x: twice_p.bind(x, inner=inner), ONES, name="my_twice")
    (part,) = subprograms_of(equation)
    assert part.program is inner and part.role == "unknown"
    assert list(part.operands) == [0] and list(part.results) == [0]
    # Nothing says that it does what its program does, so nothing runs the program in its place.
    assert called_by(equation) is None and executed_by(equation) is None


def test_primitives_of_ours_without_programs_are_known_before_lowering_is_imported():
    code = """
import sys
import hlofront.numpy
from hlofront.core.programs.subprograms import may_hold_programs
from hlofront.higher_order.calls.jit_call import jit_p
from hlofront.primitives.elementwise.elementwise import add_p
print(may_hold_programs(add_p), may_hold_programs(jit_p), "hlofront.lowering" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
    assert may_hold_programs(Primitive("of_another_package"))


def test_equations_of_primitives_that_hold_programs_are_asked(monkeypatch):
    inner = jax.make_jaxpr(jnp.log)(ONES)

    def function(x):
        return jnp.sin(twice_p.bind(OPERATIONS["scan"](x)[1] * 2, inner=inner))

    equations = jax.make_jaxpr(function)(ONES).eqns
    programs = [program for e in equations for program in closed_programs_of(e)]
    assert len(programs) == 2
    asked = []
    monkeypatch.setattr(
        "hlofront.core.programs.subprograms.subprograms_of",
        lambda e: asked.append(e.primitive.name) or subprograms_of(e),
    )
    lower_all_that_is_ours()
    assert list(map(id, closed_programs_in(equations))) == list(map(id, programs))
    assert asked == ["scan", "my_twice"]


def lower_all_that_is_ours():
    """Import the lowering rules, by which operations of other packages are told from ours."""
    rules.import_all()
