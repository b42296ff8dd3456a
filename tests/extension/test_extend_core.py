"""jax.extend.core: programs, calls of functions, and the state of tracing."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.extend import core, linear_util
from hlofront.extend.core import primitives
from hlofront.extend.core.primitives import call_p, closed_call_p
from hlofront.interpreters import mlir


def sine():
    return linear_util.wrap_init(lambda x: [jnp.sin(x)])


def names_of(program):
    return [equation.primitive.name for equation in program.eqns]


# ---- calls ---------------------------------------------------------------------------------------


def test_a_call_is_an_equation_with_the_program_of_its_function():
    program = jax.make_jaxpr(lambda x: call_p.bind(x, subfuns=(sine(),), name="f"))(1.0)
    (equation,) = program.eqns
    assert equation.primitive is call_p and equation.params["name"] == "f"
    assert names_of(equation.params["call_jaxpr"]) == ["sin"]


def test_a_call_runs_differentiates_batches_and_lowers():
    def f(x):
        return call_p.bind(x, subfuns=(sine(),), name="my_sine")[0]

    assert np.isclose(f(1.0), np.sin(1.0)) and np.isclose(jax.jit(f)(1.0), np.sin(1.0))
    assert np.isclose(jax.grad(f)(1.0), np.cos(1.0))
    assert np.isclose(jax.jit(jax.grad(jax.grad(f)))(1.0), -np.sin(1.0))
    np.testing.assert_allclose(jax.vmap(f)(jnp.arange(3.0)), np.sin(np.arange(3.0)), rtol=1e-6)
    assert "func.func private @my_sine" in jax.jit(f).lower(1.0).as_text()


def test_a_called_function_may_close_over_traced_values():
    @jax.jit
    def f(x, y):
        return call_p.bind(x, subfuns=(linear_util.wrap_init(lambda x: [x * y]),))[0]

    assert f(2.0, 3.0) == 6.0
    assert jax.grad(f, argnums=1)(2.0, 3.0) == 2.0


def test_the_equation_of_a_call_can_be_bound_again():
    program = jax.make_jaxpr(lambda x: call_p.bind(x, subfuns=(sine(),)))(1.0)
    (equation,) = program.eqns
    params = call_p.get_bind_params(equation.params)
    assert "call_jaxpr" not in params
    assert np.isclose(call_p.bind(2.0, **params)[0], np.sin(2.0))
    assert np.isclose(jax.core.eval_jaxpr(program.jaxpr, [], 2.0)[0], np.sin(2.0))


@pytest.mark.parametrize("primitive", [call_p, closed_call_p])
def test_calls_run_under_every_interpreter(primitive):
    def f(x):
        return primitive.bind(x, subfuns=(sine(),))[0]

    sin, cos = np.sin(np.float32(0.5)), np.cos(np.float32(0.5))
    assert np.allclose([f(0.5), jax.jit(f)(0.5), *jax.vmap(f)(np.full(2, 0.5, "f4"))], sin)
    assert np.allclose([jax.grad(f)(0.5), jax.jvp(f, (0.5,), (1.0,))[1]], cos)
    assert np.allclose(jax.linearize(f, 0.5)[1](1.0), cos)


def test_a_closed_call_of_an_equation_can_be_bound_again():
    jaxpr = jax.make_jaxpr(lambda x: [np.float32(2) * x])(1.0)
    params = closed_call_p.get_bind_params({"call_jaxpr": jaxpr})
    assert closed_call_p.bind(3.0, **params)[0] == 6.0


def test_a_call_wants_a_function():
    with pytest.raises(TypeError, match="subfuns"):
        call_p.bind(1.0)


def test_a_call_primitive_of_another_package():
    mine_p = core.CallPrimitive("mine")
    mine_p.def_impl(core.call_impl)
    assert mine_p.call_primitive and mine_p.multiple_results

    def f(x):
        return mine_p.bind(x, subfuns=(sine(),))[0]

    assert np.isclose(f(1.0), np.sin(1.0))
    with pytest.raises(NotImplementedError, match="mine"):
        jax.jit(f)(1.0)
    mlir.register_lowering(
        mine_p, lambda ctx, *args, **params: mlir.core_call_lowering(ctx, *args, name="m", **params)
    )
    assert np.isclose(jax.jit(jax.grad(f))(1.0), np.cos(1.0))


@pytest.mark.parametrize("inline", [True, False])
def test_create_call_primitive_has_all_rules(inline):
    p = core.create_call_primitive("created", inline_jax_late=inline)

    def f(x):
        return p.bind(x, subfuns=(sine(),))[0]

    assert np.isclose(jax.jit(jax.vmap(jax.grad(f)))(jnp.ones(2))[0], np.cos(1.0))
    assert ("@created" in jax.jit(f).lower(1.0).as_text()) is not inline


def test_a_call_may_be_transposed_in_its_place():
    p = core.CallPrimitive("opened_backwards")
    core.register_call_primitive_rules(p, transpose_rule=core.eval_jaxpr_transpose)

    def f(x):
        return p.bind(x, subfuns=(linear_util.wrap_init(lambda x: [3.0 * x]),))[0]

    transposed = jax.make_jaxpr(jax.linear_transpose(f, 1.0))(1.0)
    assert names_of(transposed) == ["mul"]
    assert jax.grad(f)(1.0) == 3.0


# ---- programs ------------------------------------------------------------------------------------


def test_a_program_made_by_hand():
    aval = jax.core.ShapedArray((), np.dtype(np.float32))
    new_variable = core.gensym()
    x, y, z = new_variable(aval), new_variable(aval), new_variable(aval)
    info = jax.make_jaxpr(jnp.sin)(1.0).eqns[0].source_info
    equations = [
        core.new_jaxpr_eqn([x], [y], primitives.sin_p, {"accuracy": None}, core.no_effects, info),
        core.new_jaxpr_eqn([y, y], [z], primitives.mul_p, {"out_dtype": None}, core.no_effects),
    ]
    jaxpr = core.Jaxpr([], [x], [z], equations)
    core.check_jaxpr(jaxpr)
    assert equations[0].source_info is info
    sine = equations[0]
    fields = sine.invars, sine.outvars, sine.primitive, sine.params, sine.effects, info, sine.ctx
    assert str(core.JaxprEqn(*fields)) == str(sine) == str(sine.replace())
    assert sine.replace(params={}).params == {} and sine.replace(params={}).source_info is info
    with pytest.raises(TypeError):
        sine.replace(name="sine")
    program = core.ClosedJaxpr(jaxpr, [])
    assert np.isclose(core.jaxpr_as_fun(program)(1.0)[0], np.sin(1.0) ** 2)
    assert list(core.jaxprs_in_params({"a": program, "b": (jaxpr, 1), "c": 2})) == [jaxpr, jaxpr]


def test_an_equation_is_run_again_in_its_context():
    (equation,) = jax.make_jaxpr(jnp.sin)(1.0).eqns
    assert isinstance(equation, core.JaxprEqn)
    with equation.ctx.manager:
        assert equation.primitive.bind(0.0, **equation.params) == 0.0


def test_avals_of_one_axis_more_or_less():
    aval = jax.core.ShapedArray((3, 2), np.dtype(np.float32))
    assert core.mapped_aval(3, 0, aval).shape == (2,)
    assert core.mapped_aval(2, 1, aval).shape == (3,)
    assert core.unmapped_aval(4, 1, aval).shape == (3, 4, 2)
    assert core.mapped_aval(3, None, aval) is core.unmapped_aval(3, None, aval) is aval
    token = core.AbstractToken()
    assert core.unmapped_aval(3, 0, token) is token
    with pytest.raises(ValueError, match="not of size 4"):
        core.mapped_aval(4, 0, aval)


def test_questions_of_values():
    assert all(map(core.valid_jaxtype, (1, 1.0, True, np.ones(2), jnp.ones(2), jax.random.key(0))))
    assert not any(map(core.valid_jaxtype, ("a", None, np.array("a"), object(), [1])))
    dtypes = [np.dtype(name) for name in ("float32", "complex64", "int32", "bool")]
    tangents = [core.primal_dtype_to_tangent_dtype(dtype) for dtype in dtypes]
    assert tangents == [*dtypes[:2], jax.dtypes.float0, jax.dtypes.float0]
    assert np.ndarray in core.array_types and np.float32 in core.array_types


def test_concrete_or_error():
    assert core.concrete_or_error(int, 3.0) == 3
    assert core.concrete_or_error(None, "anything") == "anything"
    with pytest.raises(jax.errors.ConcretizationTypeError, match="needed for this"):
        jax.jit(lambda x: core.concrete_or_error(int, x, "needed for this"))(1)


# ---- the state of tracing ------------------------------------------------------------------------


def test_trace_states_differ_by_trace_and_axes():
    outside = core.get_opaque_trace_state()
    assert outside == core.get_opaque_trace_state(convention="flax")
    states = []

    def f(x):
        states.append(core.get_opaque_trace_state())
        assert states[-1] == core.get_opaque_trace_state()
        assert states[-1] != outside
        return x

    jax.make_jaxpr(f)(1.0)
    jax.vmap(f, axis_name="i")(jnp.ones(2))
    assert states[0] != states[1] != outside
    assert core.get_opaque_trace_state() == outside
    with pytest.raises(TypeError, match="unhashable"):
        hash(outside)


def test_what_is_around():
    seen = []

    def look(x):
        seen.append(
            (
                core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                core.unsafe_get_axis_names_DO_NOT_USE(),
                core.nonempty_axis_env_DO_NOT_USE(),
            )
        )
        return x

    look(1.0)
    jax.jit(look)(1.0)
    jax.vmap(look)(jnp.ones(2))
    jax.vmap(jax.jit(look), axis_name="i")(jnp.ones(2))
    jax.grad(look)(1.0)
    assert seen == [
        (False, False, [], False),
        (True, False, [], False),
        (False, True, [], False),
        (True, True, ["i"], True),
        (False, False, [], False),
    ]


def test_the_tracers_of_a_transformation_have_its_identity():
    def f(x, y):
        main = core.find_top_trace([x]).main
        assert x._trace.main is main is y._trace.main

        def inner(z):
            assert core.find_top_trace([z]).main is not main
            return z

        return jax.jvp(inner, (x,), (x,))[0] * y

    jax.jvp(f, (1.0, 2.0), (1.0, 1.0))
    jax.vmap(f)(jnp.ones(2), jnp.ones(2))


def test_an_interpreter_takes_the_trace_and_sets_it_again():
    def f(x):
        with core.take_current_trace() as trace:
            assert core.find_top_trace([x]) is not trace
            assert jnp.sin(0.0) == 0.0
            with core.set_current_trace(trace):
                assert core.find_top_trace([x]) is trace
                return jnp.sin(x)

    assert names_of(jax.make_jaxpr(f)(1.0)) == ["sin"]
    assert core.TraceTag() == core.TraceTag()


def test_a_primitive_decides_what_bind_does():
    p = core.Primitive("at_least")
    p.def_abstract_eval(lambda x, *, bound: x)
    p.def_impl(lambda x, *, bound: max(x, bound))
    seen = []

    @p.def_bind_with_trace
    def bind(trace, args, avals, params):
        seen.append([aval.str_short() for aval in avals])
        return trace.process_primitive(p, args, {"bound": 1.0, **params})

    assert p.bind(0.5) == 1.0 and p.bind(0.5, bound=0.0) == 0.5
    program = jax.make_jaxpr(p.bind)(0.5)
    assert program.eqns[0].params == {"bound": 1.0} and seen == [["float32[]"]] * 3
    assert jax.core.eval_jaxpr(program.jaxpr, [], 3.0) == [3.0] and len(seen) == 4


def test_tracers_of_a_trace_that_has_ended_are_errors():
    trace = jax.core.Trace()
    tracer = jax.core.Tracer(trace, jax.typeof(1.0))
    assert trace.is_valid()
    trace.invalidate()
    assert not trace.is_valid()
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.make_jaxpr(lambda: jnp.sin(tracer))()


def test_our_interpreters_have_the_methods_of_other_packages():
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), 5 * t[0]))

    def passed_on(x):
        with core.take_current_trace() as trace:
            y = trace.process_primitive(primitives.mul_p, [x, x], {"out_dtype": None})
            (equation,) = jax.make_jaxpr(f)(1.0).eqns
            params = equation.primitive.get_bind_params(equation.params)
            (z,) = equation.primitive.bind_with_trace(trace, (y,), (jax.typeof(y),), params)
            (w,) = trace.process_call(call_p, sine(), (z,), {})
            return w

    assert np.isclose(passed_on(2.0), np.sin(np.sin(4.0)))
    assert np.isclose(jax.jit(jax.grad(passed_on))(2.0), np.cos(np.sin(4.0)) * 5 * 4)


@pytest.mark.usefixtures("frozen_heap")
def test_set_current_trace_finds_leaks():
    leaked = []

    def f(x):
        with core.take_current_trace() as trace, core.set_current_trace(trace, check_leaks=True):
            leaked.append(jnp.sin(x))
        return x

    with jax.checking_leaks(), pytest.raises(Exception, match="Leaked trace"):
        jax.make_jaxpr(f)(1.0)


def test_all_primitives_are_offered():
    assert primitives.add_jaxvals_p.name == "add_any"
    (equation,) = jax.make_jaxpr(jax.checkpoint(jnp.sin))(1.0).eqns
    assert equation.primitive is primitives.remat_p
    named = [name for name in dir(primitives) if name.endswith("_p")]
    assert len(named) > 170
    assert all(isinstance(getattr(primitives, name), core.Primitive) for name in named)
