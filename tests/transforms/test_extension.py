"""The functions of jax.interpreters that transform functions and programs."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.api_util import debug_info
from hlofront.core.axes import AxisData
from hlofront.extend import linear_util
from hlofront.extend.core import TraceTag
from hlofront.interpreters import ad, batching, partial_eval

one = np.float32(1)
SCALAR = jax.typeof(one)
ZERO = ad.Zero(SCALAR)
CONSTANT = np.arange(3, dtype=np.float32)


def wrapped(fun, *args):
    return linear_util.wrap_init(fun, debug_info=debug_info("tests", fun, args, {}))


def f(x, y):
    return [lax.sin(x) * y, y]


def program():
    return jax.make_jaxpr(lambda x, y: (lax.sin(x) * y, lax.cos(y), np.float32(3)))(one, one)


def run(closed_jaxpr, *args):
    return jax.core.eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


# ---- derivatives of functions --------------------------------------------------------------------


@pytest.mark.parametrize("fun", [f, wrapped(f, 1.0, 1.0)])
def test_a_derivative_with_symbolic_zeros(fun):
    results, tangents = ad.jvp(fun, (one, one), (one, one))
    np.testing.assert_allclose([results, tangents], [[np.sin(1), 1], [np.cos(1) + np.sin(1), 1]])
    _, (moved, zero) = ad.jvp(fun, (one, one), (one, ZERO), instantiate=False)
    assert np.isclose(moved, np.cos(1)) and isinstance(zero, ad.Zero)
    assert ad.jvp(fun, (one, one), (one, ZERO), instantiate=[False, True])[1][1] == 0.0
    with pytest.raises(ValueError, match="structure"):
        ad.jvp(fun, (one, one), (one,))


def test_a_derivative_of_pytrees_with_an_auxiliary_output():
    fun = lambda tree: ({"b": tree["a"] * 2}, {"same": tree["a"]})
    assert ad.jvp(fun, ({"a": one},), ({"a": one},), has_aux=True) == (
        {"b": 2.0},
        {"b": 2.0},
        {"same": 1.0},
    )
    result, zero, jaxpr, consts, auxiliary = ad.linearize(fun, ({"a": one},), has_aux=True)
    assert result == {"b": 2.0} and zero == [False] and auxiliary == {"same": 1.0}
    assert jax.core.eval_jaxpr(jaxpr, consts, np.float32(3)) == [6.0]


def test_the_linear_program_takes_all_tangents_and_returns_those_that_move():
    results, zero, jaxpr, consts = ad.linearize(lambda x, n: [x * x, n, one], (one, np.int32(2)))
    assert results == [1.0, 2, 1.0] and zero == [False, True, True]
    assert [aval.dtype for aval in jaxpr.in_avals] == [np.float32, jax.dtypes.float0]
    no_tangent = np.zeros((), jax.dtypes.float0)
    assert jax.core.eval_jaxpr(jaxpr, consts, one, no_tangent) == [2.0]


# ---- derivatives of programs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nonzeros", "instantiate", "present"),
    [
        ([True, False], False, [True, False, False]),
        ([True, False], True, [True, True, True]),
        ([False, True], [True, False, True], [True, True, True]),
    ],
)
def test_a_program_of_primals_and_tangents(nonzeros, instantiate, present):
    made, flags = ad.jvp_jaxpr(program(), nonzeros, instantiate)
    assert flags == present and len(made.out_avals) == 3 + sum(present)
    assert np.isclose(run(made, one, one, one)[3], np.cos(1) if nonzeros[0] else np.sin(1))


def test_cotangents_of_linear_inputs():
    linear = jax.make_jaxpr(lambda x, y: x * 3.0 + y * 2.0)(one, one).jaxpr
    unknown = ad.UndefinedPrimal(SCALAR)
    assert ad.backward_pass(linear, False, [], [unknown, unknown], [one]) == [3.0, 2.0]
    assert ad.backward_pass(linear, True, [], [unknown] * 2, [one], return_logs=True)[1] == {}
    assert all(
        isinstance(ct, ad.Zero)
        for ct in ad.backward_pass(linear, False, [], [unknown, unknown], [ZERO])
    )
    product = jax.make_jaxpr(lambda x, y: x * y)(one, one).jaxpr
    known, ct = ad.backward_pass(product, False, [], [np.float32(4), unknown], [one])
    assert isinstance(known, ad.Zero) and ct == 4.0


# ---- batching ------------------------------------------------------------------------------------


def test_a_batched_program_with_wanted_axes():
    axis = AxisData(None, 3)
    made, batched = batching.batch_jaxpr_axes(program(), axis, [0, None], [0, 0, 0])
    assert batched == [True] * 3 and [aval.shape for aval in made.out_avals] == [(3,)] * 3
    wish = [batching.zero_if_mapped] * 3
    made, batched = batching.batch_jaxpr_axes(program(), axis, [0, None], wish)
    assert batched == [True, False, False]
    np.testing.assert_allclose(run(made, CONSTANT, one)[0], np.sin(CONSTANT), rtol=1e-6)
    double = jax.make_jaxpr(lambda x: x * 2)(np.ones(4, np.float32))
    made, _ = batching.batch_jaxpr_axes(double, axis, [0], [1])
    assert made.out_avals[0].shape == (4, 3)
    with pytest.raises(ValueError, match="out_axes is None"):
        batching.batch_jaxpr_axes(program(), axis, [0, None], [None] * 3)


def test_a_batched_wrapped_function_tells_its_axes():
    fun = wrapped(lambda x, y: [x * y, y, one], 1.0, 1.0)
    batched, axes = batching.batch_subtrace(fun)
    results = batched.call_wrapped(TraceTag(), AxisData(None, 3), [0, None], CONSTANT, one)
    np.testing.assert_array_equal(results[0], CONSTANT)
    assert results[1:] == [1.0, 1.0] and axes() == (0, None, None)


# ---- programs ------------------------------------------------------------------------------------


def test_the_types_of_a_functions_results():
    info = debug_info("tests", f, (1.0, 1.0), {})
    assert partial_eval.abstract_eval_fun(f, SCALAR, SCALAR, debug_info=info) == [SCALAR] * 2
    scale = lambda x, factor: x * factor
    assert partial_eval.abstract_eval_fun(scale, SCALAR, debug_info=info, factor=2) == [SCALAR]


def test_programs_with_other_inputs_and_outputs():
    p = program()
    assert partial_eval.close_jaxpr(p.jaxpr).jaxpr is p.jaxpr and partial_eval.close_jaxpr(p) is p
    moved = partial_eval.move_binders_to_back(p, [True, False])
    x, y = np.float32(2), np.float32(5)
    assert run(moved, y, x) == run(p, x, y)
    pruned = partial_eval.prune_closed_jaxpr_outputs(p, [False, True, False])
    assert run(pruned, x, y) == run(p, x, y)[1:2]
    adds = jax.make_jaxpr(lambda x: x + jnp.asarray(CONSTANT))(one)
    opened = partial_eval.convert_constvars_jaxpr(adds.jaxpr)
    assert not opened.constvars and [aval.shape for aval in opened.in_avals] == [(3,), ()]


@pytest.mark.parametrize(
    ("unknowns", "instantiate", "unknown_out", "residuals"),
    [
        ([False, True], False, [True, True, False], 1),
        ([False, True], True, [True, True, True], 1),
        ([True, False], [False, True, False], [True, True, False], 2),
    ],
)
def test_a_program_is_split_by_what_is_known(unknowns, instantiate, unknown_out, residuals):
    p, args = program(), [np.float32(2), np.float32(5)]
    known, unknown, out, avals = partial_eval.partial_eval_jaxpr_nounits(p, unknowns, instantiate)
    assert out == unknown_out and len(avals) == residuals
    first = run(known, args[unknowns.index(False)])
    count = out.count(False)
    assert len(first) == count + residuals
    results = iter(first[:count])
    rest = iter(run(unknown, *first[count:], args[unknowns.index(True)]))
    np.testing.assert_allclose([next(rest) if u else next(results) for u in out], run(p, *args))
