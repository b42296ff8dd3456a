"""The comparer of drawn programs excuses what an excuse names, and nothing beside it."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import numpy as jnp
from tests.against_jax.fuzz import excuses, shrinking


def program(*steps, planted=False):
    mistake = [[0, 0]] if planted else []
    return {
        "seed": 0,
        "x64": False,
        "args": [],
        "steps": [[name, 0, [], *mistake] for name in steps],
        "layers": [],
        "out": 0,
        "modes": ["shape"],
    }


def refused(error, message):
    return {"error": [error, "Exception"], "message": message, "traceback": ""}


RESULT = {"structure": "PyTreeDef(*)", "leaves": [("struct", "float32[] weak=False", None)]}
ESCAPED = refused("UnexpectedTracerError", "float32[] wrapped in a BatchTracer to escape the scope")
OF_OTHER_RANK = refused(
    "TypeError", "add: arrays must have the same number of dimensions, got {2, 3}"
)
FLAG_SET = refused("AssertionError", "[False, True]")


def differs(one, ours, theirs):
    return bool(shrinking.difference(one, {"shape": ours}, {"shape": theirs}))


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("custom_over_mapped", ESCAPED),
        ("custom_over_mapped", OF_OTHER_RANK),
        ("custom_vmap_closure", FLAG_SET),
        ("collective", refused("ValueError", "Expected cotangent type f32[2,1] but got f32[1,2]")),
        ("updated", refused("NotImplementedError", "scatter_apply JVP not implemented")),
    ],
)
def test_a_stumble_of_jax_is_excused_in_programs_with_its_step(step, error):
    assert not differs(program("unary", step), RESULT, error)
    assert differs(program("unary"), RESULT, error)


def test_the_class_and_the_whole_text_of_a_stumble_count():
    with_step = program("custom_vmap_closure")
    assert differs(with_step, RESULT, refused("ValueError", "[True]"))
    assert differs(with_step, RESULT, refused("AssertionError", "[True] is not a flag"))


def test_a_refusal_of_hlofront_is_excused_where_a_mistake_was_planted():
    ours = refused("TypeError", "`out_sharding` of reduce is a PartitionSpec: got 3")
    assert not differs(program("combining", planted=True), ours, RESULT)
    assert differs(program("combining"), ours, RESULT)


def test_an_excuse_holds_for_the_error_that_hlofront_raises_instead():
    theirs, one = (
        refused("IndexError", "list index out of range"),
        program("combining", planted=True),
    )
    ours = refused(
        "ValueError", "lax.associative_scan requires at least one array, and elems has none."
    )
    assert not differs(one, ours, theirs)
    assert differs(one, refused("ValueError", "the arrays differ in size"), theirs)
    assert differs(one, RESULT, theirs)


def test_a_list_of_traced_values_is_excused_where_jax_asks_numpy_for_its_shape():
    theirs = refused(
        "TracerArrayConversionError", "method __array__() was called on traced array with shape"
    )
    ours = refused("TypeError", "a value of type builtins.list is not a valid array operand")
    assert not differs(program("ordered", planted=True), ours, theirs)
    assert differs(program("ordered"), ours, theirs)
    assert differs(program("ordered", planted=True), RESULT, theirs)


def test_a_rule_that_returns_no_pair_is_excused_where_jax_unpacks_it():
    theirs = refused("TypeError", "cannot unpack non-iterable NoneType object")
    ours = refused("ValueError", "custom vmap rule (f) must return a pair: got None.")
    assert not differs(program("custom_vmap_of_vmap", planted=True), ours, theirs)
    assert differs(program("unary", planted=True), ours, theirs)
    assert differs(program("custom_vmap_of_vmap", planted=True), RESULT, theirs)


def test_a_text_is_excused_where_jax_takes_each_letter_as_an_axis():
    theirs = refused("ValueError", "duplicate value in 'axis': ('t', 'e', 'x', 't')")
    ours = refused("NameError", "Found an unbound axis name: text.")
    assert not differs(program("reduction", planted=True), ours, theirs)
    without_names = refused("NotImplementedError", "jnp.prod has no named axes, got ('text',).")
    assert not differs(program("reduction", planted=True), without_names, theirs)
    assert differs(program("reduction", planted=True), RESULT, theirs)
    of_places = refused("ValueError", "duplicate value in 'axis': (0, 0)")
    assert differs(program("reduction", planted=True), ours, of_places)


def test_a_float_is_excused_where_jax_looks_for_the_axis_in_a_list():
    theirs = refused("IndexError", "list assignment index out of range")
    ours = refused("TypeError", "an axis must be an integer, got 1.5 of type float")
    assert not differs(program("taken", planted=True), ours, theirs)
    assert differs(program("taken"), ours, theirs)
    assert differs(program("taken", planted=True), RESULT, theirs)


def test_an_axis_that_is_a_float_is_excused_where_jax_drops_its_fraction():
    ours, one = refused("TypeError", excuses.NO_INDEX), program("reduction", planted=True)
    assert not differs(one, ours, RESULT)
    assert not differs(
        one, ours, refused("ValueError", "axis 1 is out of bounds for array of shape ()")
    )
    assert differs(one, ours, refused("ValueError", "the shapes do not match"))
    assert differs(program("contraction", planted=True), ours, RESULT)


@pytest.mark.parametrize("later", ["ValueError", "TypeError"])
def test_a_mistake_that_hlofront_alone_refuses_is_excused_where_both_fail_later(monkeypatch, later):
    """hlofront is run once more without the mistake, which jax did not look at."""

    def described(one, _):
        assert not excuses.has_mistake(one)
        return {"shape": refused(later, "the shapes do not match")}

    monkeypatch.setattr(excuses.running, "described", described)
    ours = refused("TypeError", "Invalid inline option: 'text'.")
    theirs = refused("ValueError", "the shapes do not match")
    assert differs(program("jit", planted=True), ours, theirs) == (later == "TypeError")


@pytest.mark.parametrize("optimized", [True, False])
def test_a_linearization_that_fails_is_excused_where_a_rule_has_optimize_remat(
    monkeypatch, optimized
):
    def described(*_):
        custom = jax.custom_vjp(lambda x: x)
        custom.defvjp(lambda x: (x, None), lambda _, c: (c,), optimize_remat=optimized)
        return {"shape": {}}

    monkeypatch.setattr(excuses.running, "described", described)
    theirs = refused("ValueError", "Linearization failed to produce known values for all outputs")
    ours = refused("TypeError", f"{excuses.NO_FORWARD}.")
    assert differs(program("custom_vjp"), ours, theirs) == (not optimized)
    assert differs(program("custom_vjp"), RESULT, theirs) == (not optimized)
    assert differs(program("custom_vjp"), refused("TypeError", "another"), theirs)


def closing_over_its_argument(x):
    """x * x, by a custom_jvp function under jit whose rule says that the derivative is 1."""
    custom = jax.custom_jvp(lambda a: a * x)
    custom.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0]))
    return jax.jit(custom)(x)


@pytest.mark.parametrize(("derivative", "same"), [(1.0, True), (3.0, False)])
def test_where_jax_drops_a_derivative_the_rest_of_it_is_compared(monkeypatch, derivative, same):
    """hlofront is run once more, without its refusal; what jax gives must be that."""

    def outcome(value):
        leaf = ("array", "float32[] weak=False", np.array(value, np.float32))
        return {"value": {"structure": "PyTreeDef(*)", "leaves": [leaf]}}

    def described(*_):
        try:
            return outcome(jax.grad(closing_over_its_argument)(jnp.float32(2)))
        except jax.errors.UnexpectedTracerError as error:
            return {"value": refused("UnexpectedTracerError", str(error))}

    monkeypatch.setattr(excuses.running, "described", described)
    one = program("custom_jvp_closure")
    assert (not shrinking.difference(one, described(), outcome(derivative))) is same


@pytest.mark.parametrize("later", ["ValueError", "TypeError"])
def test_where_jax_drops_a_derivative_the_error_that_follows_is_compared(monkeypatch, later):
    def described(*_):
        try:
            jax.grad(closing_over_its_argument)(jnp.float32(2))
        except jax.errors.UnexpectedTracerError as error:
            return {"value": refused("UnexpectedTracerError", str(error))}
        return {"value": refused(later, "the types do not match")}

    monkeypatch.setattr(excuses.running, "described", described)
    theirs = {"value": refused("ValueError", "the types do not match")}
    one = program("custom_jvp_closure")
    assert bool(shrinking.difference(one, described(), theirs)) == (later == "TypeError")
    assert shrinking.difference(program("unary"), described(), theirs)


@pytest.mark.parametrize("kind", ["float32", "int32"])
@pytest.mark.parametrize("form", ["array", "numpy"])
def test_a_python_number_of_a_derivative_may_be_an_array_on_the_other_side(form, kind):
    def outcome(*leaf):
        return {"structure": "PyTreeDef(*)", "leaves": [leaf]}

    number = outcome("python", "float", 0.5)
    array = outcome(form, f"{kind}[] weak=True", np.asarray(0.5, kind))
    other = outcome(form, f"{kind}[] weak=True", np.asarray(2.5, kind))
    derived = {**program("derivative"), "modes": ["value"]}
    for ours, theirs in ((number, array), (array, number)):
        found, wanted = {"value": ours}, {"value": theirs}
        assert bool(shrinking.difference(derived, found, wanted)) == (kind == "int32")
        assert shrinking.difference(program("unary"), found, wanted)
    assert shrinking.difference(derived, {"value": number}, {"value": other})


def test_a_second_transposition_of_one_value_is_a_difference():
    def counted(*equations):
        lines = "\n".join(f"    {x}:f32[2,3] = {text}" for x, text in equations)
        text = f"{{ lambda ; a:f32[3,2]. let\n{lines}\n  in (b,) }}"
        return {"count": len(equations), "text": text}

    transposed = ("b", "transpose[permutation=(1, 0)] a")
    again = ("c", "transpose[permutation=(1, 0)] a")
    other = ("c", "transpose[permutation=(1, 0)] b")
    once, one = counted(transposed), program("unary")
    for more, expected in ((again, True), (other, False)):
        ours = {"equations": counted(transposed, more)}
        assert bool(shrinking.difference(one, ours, {"equations": once})) is expected


def test_a_custom_vjp_function_that_jax_refuses_is_excused_where_hlofront_derives_one(monkeypatch):
    theirs = refused("TypeError", excuses.NO_FORWARD + ".")
    custom = jax.custom_vjp(jnp.sin)
    custom.defvjp(lambda x: (jnp.sin(x), None), lambda _, cotangent: (cotangent,))
    for function, expected in ((custom, False), (jnp.sin, True)):
        unread = lambda x, function=function: (jax.jvp(function, (x,), (x,)), x)[1]
        monkeypatch.setattr(
            excuses.running, "described", lambda *_, f=unread: jax.make_jaxpr(f)(1.0)
        )
        assert differs(program("custom_vjp"), RESULT, theirs) is expected


def described_by(monkeypatch, function):
    """Let the program of the comparer be a function, and return what it gives."""

    def described(*_):
        x = function()
        leaf = ("array", f"{x.dtype}{list(x.shape)} weak={x.weak_type}", np.asarray(x))
        return {"value": {"structure": "PyTreeDef(*)", "leaves": [leaf]}}

    monkeypatch.setattr(excuses.running, "described", described)
    return described()


def test_a_jitted_function_of_another_generator_is_excused_as_jax_runs_it(monkeypatch):
    """jax runs a program that was traced under another generator; the numbers must be its."""

    def bits(generator):
        with jax.default_prng_impl(generator):
            return jax.random.bits(jax.random.key(3), (2,))

    def under_options():
        jitted = jax.jit(lambda: jax.random.bits(jax.random.key(3), (2,)))
        with jax.default_prng_impl("rbg"):
            jitted()
        return jitted()

    one = program("jit_under_options")
    stale = described_by(monkeypatch, lambda: bits("rbg"))
    others = described_by(monkeypatch, lambda: bits("rbg") + 1)
    ours = described_by(monkeypatch, under_options)
    assert not shrinking.difference(one, ours, stale)
    assert shrinking.difference(program("unary"), ours, stale)
    assert shrinking.difference(one, ours, others)
