"""jax.interpreters and source_info_util: rules, partial evaluation and origins for packages."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.api_util import debug_info
from hlofront.core import Primitive
from hlofront.extend import linear_util, source_info_util
from hlofront.interpreters import ad, batching, mlir, partial_eval
from hlofront.interpreters.partial_eval import PartialVal

SCALAR = jax.core.ShapedArray((), np.dtype(np.float32))


def names_of(jaxpr):
    return [equation.primitive.name for equation in jaxpr.eqns]


def wrapped(fun):
    return linear_util.wrap_init(fun, debug_info=debug_info("tests", fun, (1.0, 2.0), {}))


def test_errors_say_how_a_package_gives_its_primitive_each_rule():
    names = {"hlofront": jax, "halve_p": (halve_p := Primitive("halve"))}
    x = jnp.ones(2)
    calls = [
        (lambda: halve_p.bind(1.0), lambda x: x / 2),
        (lambda: jax.make_jaxpr(halve_p.bind)(1.0), lambda x: x),
        (lambda: jax.jit(halve_p.bind)(x), mlir.lower_fun(lambda x: x / 2, multiple_results=False)),
        (lambda: jax.vmap(halve_p.bind)(x), lambda xs, axes: (halve_p.bind(*xs), *axes)),
        (
            lambda: jax.jvp(halve_p.bind, (x,), (x,)),
            lambda xs, ts: tuple(map(halve_p.bind, xs + ts)),
        ),
        (lambda: jax.vjp(halve_p.bind, x)[1](x), lambda ct, x: [halve_p.bind(ct)]),
    ]
    for call, names["rule"] in calls:
        with pytest.raises(jax.errors.NoRuleError, match="register one, by ") as error:
            call()
        exec(str(error.value).partition("register one, by ")[2], names)
        call()


def test_makers_of_rules():
    scale_p = Primitive("scale_by")
    scale_p.def_abstract_eval(lambda x, *, factor: x)
    mlir.register_lowering(
        scale_p, mlir.lower_fun(lambda x, *, factor: factor * x, multiple_results=False)
    )
    ad.deflinear2(scale_p, lambda ct, x, *, factor: [scale_p.bind(ct, factor=factor)])
    batching.defvectorized(scale_p)

    def scale(x):
        return scale_p.bind(x, factor=3.0)

    assert jax.grad(scale)(1.0) == 3.0 and jax.jvp(scale, (1.0,), (2.0,)) == (3.0, 6.0)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(scale)))(jnp.ones(2)), [3.0, 3.0])


def test_batch_axes_moved_and_made():
    assert batching.bdim_at_front(jnp.ones((2, 3)), 1, 3).shape == (3, 2)
    assert batching.bdim_at_front(jnp.ones((2, 3)), None, 5).shape == (5, 2, 3)
    assert batching.broadcast(jnp.ones((2, 3)), 5, 1, None).shape == (2, 5, 3)


def test_trace_to_jaxpr_dynamic():
    constant = jnp.ones(3)
    jaxpr, out_avals, consts = partial_eval.trace_to_jaxpr_dynamic(
        wrapped(lambda x, y: [x + constant, jnp.sin(y)]), [SCALAR, SCALAR]
    )
    assert names_of(jaxpr) == ["add", "sin"] and len(jaxpr.invars) == 2
    assert [aval.shape for aval in out_avals] == [(3,), ()]
    assert consts[0] is constant
    assert jaxpr.debug_info.arg_names == ("x", "y")


def test_trace_to_jaxpr_dynamic_without_dead_code():
    def f(x, y):
        jnp.cos(x)
        return [y]

    jaxpr, _, _ = partial_eval.trace_to_jaxpr_dynamic(wrapped(f), [SCALAR] * 2, auto_dce=True)
    assert names_of(jaxpr) == [] and len(jaxpr.invars) == 2
    jaxpr, _, _ = partial_eval.trace_to_jaxpr_dynamic(
        wrapped(f), [SCALAR] * 2, keep_inputs=[False, True]
    )
    assert len(jaxpr.invars) == 1


def sine_times_y(x, y):
    return [jnp.sin(x) * y, jnp.cos(x), y]


def test_known_arguments_are_computed_and_the_rest_is_written_down():
    pvals = [PartialVal.known(1.0), PartialVal.unknown(SCALAR)]
    jaxpr, out_pvals, consts = partial_eval.trace_to_jaxpr_nounits(wrapped(sine_times_y), pvals)
    assert names_of(jaxpr) == ["mul"]
    assert [pval.is_known() for pval in out_pvals] == [False, True, False]
    assert np.isclose(out_pvals[1].get_known(), np.cos(1.0))
    assert np.isclose(consts[0], np.sin(1.0))
    results = jax.core.eval_jaxpr(jaxpr, consts, 2.0)
    np.testing.assert_allclose(results, [2 * np.sin(1.0), 2.0], rtol=1e-6)


def test_results_are_instantiated_where_asked():
    pvals = [PartialVal.known(1.0), PartialVal.unknown(SCALAR)]
    for instantiate in (True, [False, True, False]):
        jaxpr, out_pvals, _ = partial_eval.trace_to_jaxpr_nounits(
            wrapped(sine_times_y), pvals, instantiate=instantiate
        )
        assert not any(pval.is_known() for pval in out_pvals) and len(jaxpr.outvars) == 3


def test_a_jitted_function_is_split_too():
    f = jax.jit(lambda x, y: jnp.sin(x) * y)
    pvals = [PartialVal.known(1.0), PartialVal.unknown(SCALAR)]
    jaxpr, _, consts = partial_eval.trace_to_jaxpr_nounits(wrapped(lambda x, y: [f(x, y)]), pvals)
    (equation,) = jaxpr.eqns
    assert names_of(equation.params["jaxpr"]) == ["mul"] and np.isclose(consts[0], np.sin(1.0))


def test_partial_values_tell_their_types():
    known, unknown = PartialVal.known(2.0), PartialVal.unknown(SCALAR)
    assert known.is_known() and known.get_known() == 2.0 and known.get_aval().weak_type
    assert not unknown.is_known() and unknown.get_known() is None
    assert unknown.get_aval() is SCALAR and tuple(unknown) == (SCALAR, None)


def test_a_call_is_made_smaller():
    program = jax.make_jaxpr(jax.jit(lambda x, y: (jnp.sin(x), jnp.cos(y))))(1.0, 2.0)
    (equation,) = program.eqns
    used, smaller = partial_eval.dce_jaxpr_call_rule([True, False], equation)
    assert used == [True, False] and names_of(smaller.params["jaxpr"]) == ["sin"]
    assert partial_eval.dce_jaxpr_call_rule([False, False], equation) == ([False, False], None)
    (sine,) = smaller.params["jaxpr"].eqns
    with pytest.raises(TypeError, match="calls no program"):
        partial_eval.dce_jaxpr_call_rule([True], sine)


# ---- source_info_util ----------------------------------------------------------------------------


def test_scopes_are_opened_set_and_reset():
    def f(x):
        with source_info_util.extend_name_stack("outer") as stack:
            assert str(stack) == "outer"
            with (
                source_info_util.transform_name_stack("vmap"),
                source_info_util.extend_name_stack("inner"),
            ):
                y = jnp.sin(x)
            with source_info_util.reset_name_stack():
                z = jnp.cos(y)
            with source_info_util.set_name_stack(source_info_util.new_name_stack("other")):
                return jnp.tan(z)

    infos = [equation.source_info for equation in jax.make_jaxpr(f)(1.0).eqns]
    assert [str(info.name_stack) for info in infos] == ["outer/vmap(inner)", "", "other"]
    assert "test_interpreters.py" in source_info_util.summarize(infos[0])


def test_stacks_grow():
    stack = source_info_util.new_name_stack("a").extend("b").transform("jvp")
    assert str(stack) == "a/b/jvp()"
    assert source_info_util.new_name_stack() == source_info_util.NameStack()
    info = source_info_util.new_source_info()
    assert info.traceback is None and str(info.name_stack) == ""
    assert "test_interpreters.py" in source_info_util.summarize(source_info_util.current())


def test_an_interpreter_passes_on_where_equations_come_from():
    def f(x):
        with jax.named_scope("here"):
            return jnp.sin(x)

    (equation,) = jax.make_jaxpr(f)(1.0).eqns
    info = equation.source_info

    def again(x):
        with source_info_util.user_context(info.traceback, name_stack=info.name_stack):
            return equation.primitive.bind(x, **equation.params)

    (copied,) = jax.make_jaxpr(again)(1.0).eqns
    assert str(copied.source_info.name_stack) == "here"
    assert source_info_util.summarize(copied.source_info) == source_info_util.summarize(info)


def test_jvp_rules_take_tuples():
    seen = []
    echo_p = Primitive("echo_types")
    echo_p.def_impl(lambda x, y: x)
    echo_p.def_abstract_eval(lambda x, y: x)
    mlir.register_lowering(echo_p, mlir.lower_fun(lambda x, y: x, multiple_results=False))

    def rule(primals, tangents):
        seen.append((type(primals), type(tangents)))
        return echo_p.bind(*primals), tangents[0]

    ad.primitive_jvps[echo_p] = rule
    jax.grad(lambda x: echo_p.bind(x, 2.0))(1.0)
    jax.jvp(jax.jit(lambda x: echo_p.bind(x, 2.0)), (1.0,), (1.0,))
    assert seen == [(tuple, tuple)] * 2


def test_jvp_rules_are_given_the_scalars_of_a_program_as_arrays():
    seen = []
    typed_p = Primitive("typed_operands")
    typed_p.def_abstract_eval(lambda x, y: x)
    mlir.register_lowering(typed_p, mlir.lower_fun(lambda x, y: x, multiple_results=False))

    def rule(primals, tangents):
        seen.extend((x.shape, x.dtype) for x in primals)
        return typed_p.bind(*primals), tangents[0]

    ad.primitive_jvps[typed_p] = rule
    jax.grad(jax.jit(lambda x: typed_p.bind(x, 2)))(1.0)
    assert seen == [((), jnp.float32), ((), jnp.int32)]


def test_an_operation_may_hold_a_jaxpr_without_the_values_of_its_constants():
    constant = jnp.arange(3.0)
    program = jax.make_jaxpr(lambda x: x * constant)(1.0)
    held_p = Primitive("holds_open_jaxpr")

    def run(constant, x, *, jaxpr):
        (result,) = jax.core.eval_jaxpr(jaxpr, [constant], x)
        return result

    held_p.def_impl(run)
    held_p.def_abstract_eval(lambda *operands, jaxpr: jaxpr.outvars[0].aval)
    mlir.register_lowering(held_p, mlir.lower_fun(run, multiple_results=False))

    def rule(primals, tangents, *, jaxpr):
        constant, x = primals
        return (
            held_p.bind(constant, x, jaxpr=jaxpr),
            held_p.bind(constant, tangents[1], jaxpr=jaxpr),
        )

    ad.primitive_jvps[held_p] = rule

    def f(x):
        return jnp.sin(held_p.bind(constant, x, jaxpr=program.jaxpr))

    for function in (f, jax.jit(f)):
        value, linear = jax.linearize(function, 0.5)
        np.testing.assert_allclose(value, np.sin(0.5 * constant), rtol=1e-6)
        np.testing.assert_allclose(linear(1.0), constant * np.cos(0.5 * constant), rtol=1e-6)


def test_a_partial_eval_rule_says_what_its_results_are():
    open_p = Primitive("left_open")
    open_p.def_abstract_eval(lambda x: x)

    def rule(trace, x):
        return partial_eval.JaxprTracer(trace, PartialVal.unknown(x.aval), None)

    partial_eval.custom_partial_eval_rules[open_p] = rule
    fun = wrapped(lambda x: [jnp.sin(open_p.bind(x))])
    with pytest.raises(TypeError, match=r"left open what the unknown value float32\[\] is"):
        partial_eval.trace_to_jaxpr_nounits(fun, [PartialVal.unknown(SCALAR)])
    del partial_eval.custom_partial_eval_rules[open_p]


def test_a_recipe_takes_the_context_of_another_equation():
    (equation,) = jax.make_jaxpr(jnp.sin)(1.0).jaxpr.eqns

    def recipe(ctx):
        parts = (equation.primitive, equation.params, equation.effects, equation.source_info)
        return partial_eval.new_eqn_recipe(None, [], [], *parts, ctx)

    assert recipe(equation.ctx).primitive is equation.primitive
    with pytest.raises(TypeError, match=r"is None or the attribute ctx of another one: got \{"):
        recipe({"compute_type": "device_host"})


def test_jaxprs_have_one_level():
    jaxpr = jax.make_jaxpr(jnp.sin)(1.0)
    assert partial_eval.lower_jaxpr2(jaxpr) is jaxpr
    assert partial_eval.lower_jaxpr(jaxpr, [SCALAR]) == (jaxpr, jaxpr.out_avals)
    with pytest.raises(ValueError, match="2 types for the 1 inputs"):
        partial_eval.lower_jaxpr(jaxpr, [SCALAR, SCALAR])


def test_a_function_that_is_evaluated_in_part_sees_what_is_unknown():
    seen = []

    def f(x, y):
        product = x * y
        called = jax.jit(lambda a: a + y)(product)
        gradient = jax.grad(lambda a: a * product)(2.0)
        values = [x, product, called, gradient, y, jnp.sin(y)]
        seen.append([isinstance(value, partial_eval.JaxprTracer) for value in values])
        assert not product.is_known() and product.pval.get_aval() == SCALAR
        return [called + jax.lax.cond(y > 0, jnp.sin, jnp.cos, gradient), y]

    arguments = [PartialVal.unknown(SCALAR), PartialVal.known(jnp.float32(3))]
    jaxpr, out, consts = partial_eval.trace_to_jaxpr_nounits(wrapped(f), arguments)
    assert seen == [[True] * 4 + [False] * 2]
    assert [value.is_known() for value in out] == [False, True]
    (result,) = jax.core.eval_jaxpr(jaxpr, consts, jnp.float32(2))
    np.testing.assert_allclose(result, 9 + np.sin(np.float32(6)), rtol=1e-6)
