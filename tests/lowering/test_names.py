"""The paths of operations, as profilers show them: scopes, transformations and structure."""

import re

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront.base import source
from hlofront.core.names import JVP, TRANSPOSE, VMAP, path_of


def scoped(x):
    with jax.named_scope("a"):
        return lax.sin(x)


def inner(x):
    return scoped(x)


def looped(x):
    return lax.while_loop(lambda c: lax.lt(lax.sin(c), 0.5), lambda c: scoped(lax.add(c, 1.0)), x)


def scanned(x):
    return lax.scan(lambda c, _: (scoped(c), None), x, None, length=3)[0]


def branched(x):
    return lax.cond(lax.lt(x, 1.0), scoped, lax.exp, x)


def collected(x):
    return lax.scan(lambda c, _: (c, scoped(c)), x, np.ones(3, np.float32))[1]


# What jax 0.10.2 gives, also that it repeats the transformations around checkpoint.
PATHS = {
    "scope": (scoped, {"jit(f)/a/sin"}),
    "grad": (jax.grad(scoped), {"jit(f)/jvp(a)/cos"}),
    "vmap_of_grad": (
        lambda x: jax.vmap(jax.grad(lambda x: lax.mul(scoped(x), scoped(x))))(
            lax.broadcast(x, (2,))
        ),
        {"jit(f)/vmap(jvp(a))/cos", "jit(f)/vmap(transpose(jvp(a)))/mul"},
    ),
    "scope_around_grad": (
        lambda x: jax.named_scope("o")(jax.grad(scoped))(x),
        {"jit(f)/o/jvp(a)/cos"},
    ),
    "jit": (lambda x: jax.jit(inner)(x), {"jit(f)/jit(inner)/a/sin"}),
    "grad_of_jit": (
        lambda x: jax.value_and_grad(jax.jit(inner))(x),
        {"jit(f)/jvp(jit(inner))/a/sin", "jit(f)/jvp(jit(inner))/a/cos"},
    ),
    "while": (looped, {"jit(f)/while/body/a/sin", "jit(f)/while/cond/sin"}),
    "scan": (scanned, {"jit(f)/while/body/closed_call/a/sin", "jit(f)/while/cond/lt"}),
    "grad_of_scan": (
        jax.grad(scanned),
        {
            "jit(f)/jvp()/while/body/closed_call/a/cos",
            "jit(f)/transpose(jvp())/while/body/closed_call/a/mul",
        },
    ),
    "cond": (branched, {"jit(f)/cond/branch_0_fun/exp", "jit(f)/cond/branch_1_fun/a/sin"}),
    "checkpoint": (
        jax.grad(jax.checkpoint(lambda x: scoped(scoped(x)))),
        {
            "jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/a/sin",
            "jit(f)/transpose(jvp(jvp()))/checkpoint/a/mul",
        },
    ),
    "vmap_of_grad_of_checkpoint": (
        lambda x: jax.vmap(jax.grad(jax.checkpoint(lambda x: scoped(scoped(x)))))(
            lax.broadcast(x, (2,))
        ),
        {"jit(f)/vmap(transpose(jvp(vmap(jvp()))))/checkpoint/a/mul"},
    ),
    "grad_of_cos": (
        jax.grad(lambda x: lax.mul(lax.cos(x), x)),
        {"jit(f)/jvp()/sin", "jit(f)/transpose(jvp())/neg"},
    ),
    "custom_jvp_in_a_scope": (
        lambda x: jax.named_scope("o")(jax.nn.relu)(x),
        {"jit(f)/o/max"},
    ),
}


def test_parts_of_scans_and_moved_axes_have_paths():
    def f(x):
        return jax.vmap(collected)(x)

    text = jax.jit(f).lower(np.ones((2, 2), np.float32)).as_text(debug_info=True)
    for path in (
        "broadcast_in_dim",
        "transpose",
        "while/body/jit(dynamic_update_index_in_dim)/broadcast_in_dim",
    ):
        assert f'"jit(f)/vmap()/{path}"' in text
    assert '"jit(f)/transpose"' not in text


@pytest.mark.parametrize("name", PATHS)
def test_compiled_operations_have_paths(name):
    function, wanted = PATHS[name]

    def f(x):
        return function(x)

    text = jax.jit(f).lower(np.float32(0.5)).compile().as_text()
    found = {path for names in re.findall(r'op_name="([^"]*)"', text) for path in names.split(";")}
    assert wanted <= found
    assert not [path for path in found if path.count("jit(f)") > 1]


def test_a_transformation_stands_around_the_next_scope():
    assert path_of(("jit(f)", TRANSPOSE, JVP, "a", "b")) == "jit(f)/transpose(jvp(a))/b"
    assert path_of(("jit(f)", VMAP)) == "jit(f)/vmap()"
    assert path_of(("jit(f)", "o", JVP, "jit(g)")) == "jit(f)/o/jvp(jit(g))"


def test_equations_have_paths_within_their_program():
    jaxpr = jax.make_jaxpr(jax.vmap(scoped))(np.ones(3, np.float32)).jaxpr
    assert [path_of(equation.name_stack) for equation in jaxpr.eqns] == ["vmap(a)"]


def test_source_info_has_the_traceback_and_a_printed_name_stack():
    x = np.float32(1)
    equation = jax.make_jaxpr(lambda x: jax.jvp(scoped, (x,), (x,)))(x).eqns[0]
    info = equation.source_info
    assert str(info.name_stack) == f"{info.name_stack}" == "jvp(a)"
    assert str(info.name_stack.extend("b")) == "jvp(a)/b"
    assert str(info.name_stack.transform("vmap").extend("b")) == "jvp(a)/vmap(b)"
    assert info.name_stack.stack == equation.name_stack
    assert source.user_frame(info.traceback).function == "scoped"
    assert info == equation.source_info and hash(info) == hash(equation.source_info)
    assert "(scoped)" in repr(info)

    outer = info.replace(name_stack=("o",))
    assert str(outer.name_stack) == "o" and outer.traceback is info.traceback and outer != info
    moved = equation.replace(source_info=outer)
    assert moved.source_info == outer and moved.primitive is equation.primitive
    assert type(moved.name_stack) is tuple
