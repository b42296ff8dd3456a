"""find_nan: the first operation that makes a NaN which is returned, wherever it is."""

import linecache

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import io_callback
from hlofront.inspect import NanReport, find_nan
from hlofront.inspect.nan import find_nan as find_nan_module
from hlofront.inspect.nan import subprogram_search

f32 = np.float32


def says(report: NanReport, primitive: str, expression: str, line: str) -> NanReport:
    """The report names this operation, with this expression, on a line that has this text."""
    assert report and report.has_nan
    found = report.operation
    assert found is not None
    assert (found.primitive, found.expression) == (primitive, expression), report
    assert found.source_line is not None and found.source_line.file == __file__
    assert line in found.source_line.text
    assert line in linecache.getline(__file__, found.source_line.line)
    assert found.expression in str(report)
    return report


# ---- plain programs ------------------------------------------------------------------------------


def test_the_operation_its_line_and_its_operands():
    def loss(params, x):
        with jax.named_scope("layer"):
            shifted = x * params["w"] - 1.0
            return jnp.log(shifted).sum()

    x = np.array([3.0, 2.0, 0.5, 4.0], f32)
    report = says(find_nan(loss)({"w": f32(1.0)}, x), "log", "log(-0.5)", "jnp.log(shifted)")
    found = report.operation
    assert found.kind == "nan" and found.index == (2,) and found.name_stack == ("layer",)
    assert (
        found.source_line.expression == "jnp.log(shifted)" and found.source_line.function == "loss"
    )
    assert (found.result.type, found.result.nans, found.result.infinities) == ("float32[4]", 1, 0)
    (operand,) = found.operands
    assert (operand.element, operand.values.minimum, operand.values.maximum) == (-0.5, -0.5, 3.0)
    assert operand.source.startswith("0.5 - 1.0 at ") and "x * params" in operand.source
    assert [step.primitive for step in found.way] == ["reduce_sum"]
    assert report.function.startswith("test_the") or report.function.startswith("loss at ")
    assert [r.name for r in report.results] == ["result"] and report.kinds == ("nan",)
    text = str(report)
    assert "\n      return jnp.log(shifted).sum()\n             ^^^^^^^^^^^^^^^^\n" in text
    assert not hasattr(report, "__dict__") and not hasattr(found, "__dict__")


def test_no_nan():
    report = find_nan(lambda x: jnp.log(x) * 2)(jnp.ones(3))
    assert not report and report.operation is None and not report.hidden
    assert str(report).startswith("No NaN in the results of <lambda> at ")


@pytest.mark.parametrize(
    ("function", "args", "primitive", "expression"),
    [
        (lambda x, y: x / y, (0.0, 0.0), "div", "0.0 / 0.0"),
        (lambda x, y: jnp.exp(x) - jnp.exp(y), (f32(200), f32(300)), "sub", "inf - inf"),
        (lambda x: jnp.log(x), (jnp.bfloat16(-2),), "log", "log(-2)"),
        (lambda x: x % 0, (f32(2),), "rem", "2.0 % 0.0"),
        (lambda x: jnp.sqrt(x) * 1j, (f32(-4),), "sqrt", "sqrt(-4.0)"),
        (lambda x: x / x, (np.zeros(2, np.complex64),), "div", "0j / 0j"),
        (lambda x: x - x, (f32(np.inf),), "sub", "inf - inf"),
        (lambda x: jnp.where(x > 1, jnp.nan, x), (f32(2),), "select_n", "select_n(True, 2.0, nan)"),
        (lambda x, y: x @ y, (np.array([1.0, 0.0], f32), np.array([2.0, np.inf], f32)),
         "dot_general", "dot_general(... + 0.0 * inf + ...)"),
        (lambda x: jnp.linalg.cholesky(x), (np.array([[1.0, 2.0], [2.0, 1.0]], f32),),
         "cholesky", "cholesky(float32[2,2])"),
    ],
)  # fmt: skip
def test_what_makes_nans(function, args, primitive, expression):
    report = find_nan(function)(*args)
    assert report and report.operation.primitive == primitive
    assert report.operation.expression == expression
    assert report.operation.kind == "nan"


def test_an_overflow_is_named_as_what_made_the_operand():
    def softmax(x):
        e = jnp.exp(x)
        return e / e.sum()

    report = says(find_nan(softmax)(np.array([0.0, 100.0], f32)), "div", "inf / inf", "e / e.sum()")
    since = report.operation.operands[1].infinite_since
    assert since.startswith("exp(100.0) = inf at ") and since.endswith("e = jnp.exp(x)")
    report = find_nan(softmax, inf=True)(np.array([0.0, 100.0], f32))
    assert says(report, "exp", "exp(100.0)", "e = jnp.exp(x)").operation.kind == "inf"
    report = find_nan(jnp.exp, nan=False, inf=True)(f32(100))
    assert report.operation.expression == "exp(100.0)" and report.kinds == ("inf",)
    assert not find_nan(jnp.log, nan=False, inf=True)(f32(-1))
    # A mask of infinities is meant to be so.
    masked = find_nan(lambda x: jnp.where(x > 1, x, -jnp.inf).max(), nan=False, inf=True)
    assert not masked(np.array([0.0, 100.0], f32))


def test_programs_without_floats_and_arrays_without_elements():
    assert not find_nan(lambda x: x // 0 + 1)(np.arange(3))
    assert not find_nan(jnp.log)(np.zeros((0, 3), f32))
    assert not find_nan(lambda: 3)()
    report = find_nan(lambda x: (jnp.log(x), x.sum() / 0))(np.zeros((0,), f32))
    assert report.operation.expression == "0.0 / 0.0"
    assert [r.name for r in report.results] == ["result[1]"]


def test_keys_pass_through():
    def f(key, x):
        key, other = jax.random.split(key)
        noise = jax.random.normal(other, (3,))
        _, keys = lax.scan(lambda k, _: (jax.random.split(k)[0], k), key, None, length=3)
        return keys, jnp.log(x - noise * 0)

    report = find_nan(f)(jax.random.key(0), f32(-1))
    assert report.operation.expression == "log(-1.0)"


# ---- what was bad before, and what reaches no result ---------------------------------------------


def test_an_argument_that_is_bad_is_no_operation_s_fault():
    def f(tree, *, scale):
        return tree["x"][1] * scale

    bad = np.array([1.0, np.nan], f32)
    report = find_nan(f)({"x": [f32(0), bad]}, scale=2.0)
    assert report and report.operation is None
    assert [(a.name, a.index) for a in report.arguments] == [("argument tree['x'][1]", (1,))]
    assert report.inputs == ("argument tree['x'][1]",)
    assert "argument tree['x'][1] is bad already" in str(report) and "gets there" in str(report)
    # It is followed, and goes nowhere here.
    report = find_nan(lambda x: jnp.where(jnp.isnan(x), 0.0, x))(bad)
    assert not report and report.arguments and not report.inputs


def test_a_captured_constant():
    constant = np.array([1.0, np.nan], f32)
    report = find_nan(lambda x: x + constant)(f32(1))
    assert report and report.operation is None
    assert report.inputs == ("a constant that the function captured",)
    assert "captured" in str(report)


def test_elements_are_followed_one_by_one():
    """An operation on elements is to blame for those where its operands have none."""

    def f(x):
        return jnp.log(x)

    report = find_nan(f)(np.array([np.nan, 1.0, -3.0], f32))
    assert report.operation.expression == "log(-3.0)" and report.operation.index == (2,)
    assert report.inputs == ("argument x",)


def test_what_a_where_drops_is_hidden():
    def f(x):
        return jnp.where(x > 0, jnp.log(x), 0.0)

    report = find_nan(f)(np.array([-1.0, 1.0], f32))
    assert not report
    (hidden,) = report.hidden
    assert hidden.expression == "log(-1.0)"
    assert "log(-1.0) = nan" in str(report)

    def both(x):
        return jnp.where(x > 0, jnp.log(x), jnp.sqrt(x - 1))

    report = says(find_nan(both)(f32(-1)), "sqrt", "sqrt(-2.0)", "jnp.sqrt(x - 1)")
    assert [h.expression for h in report.hidden] == ["log(-1.0)"]


def test_the_gradient_of_a_where():
    def f(x):
        return jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()

    report = says(
        find_nan(jax.grad(f))(np.array([4.0, 0.0], f32)), "mul", "0.0 * inf", "jnp.sqrt(x)"
    )
    assert report.operation.index == (1,)
    assert report.operation.operands[1].source.startswith("0.5 / 0.0 at ")
    assert any("sqrt(0.0)" in line for line in report.operation.operands[1].before)
    both = find_nan(jax.value_and_grad(f))(np.array([4.0, 0.0], f32))
    assert [r.name for r in both.results] == ["result[1]"]


# ---- calls, branches and loops -------------------------------------------------------------------


def test_inside_of_jit_checkpoint_and_custom_rules():
    @jax.jit
    def inner(x):
        return jnp.log(x)

    @jax.custom_vjp
    def clipped(x):
        return x * 2

    clipped.defvjp(lambda x: (x * 2, x), lambda x, g: (g / x,))

    @jax.custom_jvp
    def safe(x):
        return jnp.sqrt(x)

    safe.defjvps(lambda t, y, x: t / y)
    report = says(find_nan(lambda x: inner(x) + 1)(f32(-1)), "log", "log(-1.0)", "jnp.log(x)")
    (inside,) = report.operation.inside
    assert (inside.operation, inside.function) == ("jit", "inner")
    assert inside.source_line.text.startswith("report = says(find_nan(lambda x: inner(x)")
    says(find_nan(jax.grad(lambda x: clipped(x) * x * 0))(f32(0)), "div", "0.0 / 0.0", "g / x")
    report = find_nan(safe)(f32(-1))
    assert [i.operation for i in report.operation.inside] == ["custom_jvp_call"]
    report = find_nan(jax.grad(jax.checkpoint(lambda x: jnp.sin(safe(x)))))(f32(-1))
    assert report.operation.expression == "sqrt(-1.0)"
    report = find_nan(lambda x: jnp.linalg.solve(x, jnp.ones(2)))(np.zeros((2, 2), f32))
    assert "jnp.linalg.solve" in report.operation.source_line.text


def test_what_nothing_depends_on_is_not_run():
    """Such as the forward derivative that a custom_vjp function does not have."""

    @jax.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (cube(x), x), lambda x, g: (3 * x**2 * g,))
    assert not find_nan(jax.grad(jax.grad(cube)))(f32(2))
    assert not find_nan(lambda x: (jnp.log(x), x * 2)[1])(f32(-1)).hidden


def test_a_deep_place():
    """In a while in a cond in a jitted function under vmap."""

    @jax.jit
    def f(x):
        def step(state):
            i, y = state
            return i + 1, jnp.sqrt(y - 1.0)

        def loop(y):
            return lax.while_loop(lambda s: s[0] < 5, step, (0, y))[1]

        return lax.cond(x.sum() > 3, lambda y: jnp.log(y), loop, x)

    report = says(
        find_nan(lambda xs: f(jax.vmap(lambda x: x + 1)(xs)))(np.ones(1, f32)),
        "sqrt",
        "sqrt(-1.0)",
        "jnp.sqrt(y - 1.0)",
    )
    where = [(i.operation, i.iteration, i.branch) for i in report.operation.inside]
    assert where == [("jit", None, None), ("cond", None, 0), ("while", 2, None)]
    assert "in iteration 2 of while of step at " in str(report)
    batched = find_nan(jax.vmap(f))(np.array([[0.25], [9.0]], f32))
    assert batched.operation.expression == "sqrt(-0.75)" and batched.operation.index == (0, 0)


# Each is run step by step, and compiled with the bad step found.
both_ways = pytest.mark.parametrize("short", [0, 2_000])


@both_ways
@pytest.mark.parametrize("reverse", [False, True])
def test_the_step_of_a_scan(monkeypatch, short, reverse):
    monkeypatch.setattr(subprogram_search, "SHORT", short)

    def step(carry, x):
        total, count = carry
        total = total + jnp.log(x)
        return (total, count + 1), (total * 2, count, jnp.where(x > 0, 1.0, jnp.sqrt(x)))

    def f(xs):
        return lax.scan(step, (0.0, 0), xs, reverse=reverse)

    xs = np.ones(40, f32)
    xs[17] = -0.25
    report = says(find_nan(f)(xs), "log", "log(-0.25)", "jnp.log(x)")
    (inside,) = report.operation.inside
    assert (inside.operation, inside.function, inside.iteration) == ("scan", "step", 17)
    names = [r.name for r in report.results]
    assert names == ["result[0][0]", "result[1][0]", "result[1][2]"]
    assert [o.expression for o in report.operations] == ["log(-0.25)", "sqrt(-0.25)"]
    assert report.results[1].index == ((0,) if reverse else (17,))
    assert not find_nan(f)(np.ones(40, f32))


@both_ways
def test_a_nan_that_goes_from_one_part_of_the_carry_to_another(monkeypatch, short):
    monkeypatch.setattr(subprogram_search, "SHORT", short)

    def step(carry, x):
        a, b, _ = carry
        b = jnp.where(x == 30, a, b)
        return (a + jnp.sqrt(x - 10), b, jnp.log(x - 20)), None

    def f(xs, a):
        (_, b, noise), _ = lax.scan(step, (a, 1.0, 0.0), xs)
        return b, jnp.where(noise > 0, 0.0, 1.0)

    xs = np.arange(50, 10, -1).astype(f32)
    xs[3] = 9.0
    report = says(find_nan(f)(xs, f32(0)), "sqrt", "sqrt(-1.0)", "jnp.sqrt(x - 10)")
    assert report.operation.inside[0].iteration == 3
    # From the start of the loop.
    xs[3] = 40.0
    report = find_nan(f)(xs, f32(np.nan))
    assert report and report.operation is None and report.inputs == ("argument a",)


@both_ways
def test_the_step_of_a_while_loop(monkeypatch, short):
    monkeypatch.setattr(subprogram_search, "SHORT", short)

    def f(x):
        def step(state):
            i, y = state
            return i + 1, jnp.where(i == 6, jnp.log(y - 100), y + 1)

        return lax.while_loop(lambda s: s[0] < 20, step, (0, x))[1]

    report = says(find_nan(f)(f32(0)), "log", "log(-94.0)", "jnp.log(y - 100)")
    assert report.operation.inside[0].iteration == 6
    # Examples of a batch end at different steps, and what they do after is nothing.
    one = jax.vmap(
        lambda n, x: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sqrt(s[1] - 1)),
                                    (0, x))[1]
    )  # fmt: skip
    n = np.array([0, 3], np.int32)
    assert not find_nan(one)(n, np.array([-9.0, 400.0], f32))
    report = find_nan(one)(n, np.array([400.0, 0.5], f32))
    assert report.operation.expression == "sqrt(-0.5)" and report.operation.index == (1,)


def test_a_loop_in_a_loop_and_its_derivative():
    def inner(c, x):
        return c + jnp.sqrt(x), None

    def outer(c, xs):
        return lax.scan(inner, c, xs)[0], None

    def f(xs):
        return lax.scan(outer, 0.0, xs)[0]

    xs = np.ones((50, 40), f32)
    xs[31, 7] = -1.0
    report = says(find_nan(f)(xs), "sqrt", "sqrt(-1.0)", "jnp.sqrt(x)")
    assert [i.iteration for i in report.operation.inside] == [31, 7]
    xs[31, 7] = 0.0
    report = find_nan(jax.grad(lambda x: f(jnp.maximum(x, 0) * xs)))(np.ones((50, 40), f32))
    assert report.operation.expression == "inf * 0.0"


def test_an_infinity_of_an_earlier_step_of_a_long_loop(monkeypatch):
    monkeypatch.setattr(subprogram_search, "SHORT", 0)

    def step(c, x):
        return jnp.where(x > 5, c - c, c + jnp.log(x)), None

    xs = np.ones(30, f32)
    xs[11], xs[20] = 0.0, 6.0
    report = find_nan(lambda xs: lax.scan(step, 0.0, xs)[0])(xs)
    assert says(report, "sub", "-inf - -inf", "c - c").operation.inside[0].iteration == 20
    assert report.operation.operands[0].infinite_since.startswith("log(0.0) = -inf at ")


@pytest.mark.parametrize("kind", ["scan", "while"])
def test_what_stays_hidden_in_a_long_loop(monkeypatch, kind):
    monkeypatch.setattr(subprogram_search, "SHORT", 0)

    def step(c, x):
        dropped = jnp.where(x > 0, jnp.log(x), 0.0)
        return c + dropped, jnp.where(x > 4, jnp.sqrt(x - 6), 0.0)

    def f(xs):
        if kind == "scan":
            return lax.scan(step, 0.0, xs)
        return lax.fori_loop(0, jnp.int32(len(xs)), lambda i, c: c + step(c, xs[i])[0], 0.0)

    xs = np.full(50, 7, f32)
    assert not find_nan(f)(xs).hidden
    xs[31] = -2.0
    report = find_nan(f)(xs)
    assert not report and "log(-2.0) = nan" in str(report)
    assert [h.expression for h in report.hidden][:1] == ["log(-2.0)"]
    assert report.hidden[0].inside[-1].iteration == 31
    if kind == "scan":
        xs[40] = 5.0
        report = find_nan(f)(xs)
        assert [o.expression for o in report.operations] == ["sqrt(-1.0)"]
        assert [h.expression for h in report.hidden] == ["log(-2.0)"]


def test_ten_thousand_steps_are_quick():
    @jax.jit
    def f(xs):
        return lax.scan(lambda c, x: (c * 0.5 + jnp.log(x), c), 0.0, xs)

    xs = np.ones(10_000, f32)
    xs[7_777] = -1.0
    steps = []
    run = subprogram_search.TrailSearch.run

    def counted(self, program, *args):
        steps.append(program)
        return run(self, program, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprogram_search.TrailSearch, "run", counted)
        report = find_nan(f)(xs)
    assert report.operation.inside[-1].iteration == 7_777
    assert len(steps) == 3  # The function, the step, and the first that collects what it made.


# ---- what a call does beside ---------------------------------------------------------------------


def test_callbacks_run_once():
    seen = []

    def f(x):
        jax.debug.callback(lambda v: seen.append(("debug", float(v))), x)
        y = io_callback(lambda v: seen.append(("io", float(v))) or v, x, x)

        def step(c, i):
            jax.debug.callback(lambda v: seen.append(("step", int(v))), i)
            return jnp.log(c), None

        return lax.scan(step, y, jnp.arange(4))[0]

    report = find_nan(f)(f32(1))
    assert seen == [("debug", 1.0), ("io", 1.0), *(("step", i) for i in range(4))]
    assert report.operation.expression == "log(-inf)"
    assert report.operation.operands[0].infinite_since.startswith("log(0.0) = -inf")


def test_static_donated_and_named_arguments():
    f = jax.jit(
        lambda x, n, *, scale: jnp.log(x * n * scale), static_argnames="n", donate_argnums=0
    )
    x = jnp.ones(3)
    report = find_nan(f)(x, -2, scale=3.0)
    assert report.operation.expression == "log(-6.0)"
    assert not x.is_deleted()


def test_where_it_cannot_look():
    with pytest.raises(TypeError, match="while a function is traced"):
        jax.jit(lambda x: find_nan(jnp.log)(x).has_nan)(1.0)
    with pytest.raises(ValueError, match="looks for nothing"):
        find_nan(jnp.log, nan=False)


def test_a_program_that_goes_bad_only_when_it_is_compiled(monkeypatch):
    monkeypatch.setattr(find_nan_module, "_compiled", lambda *_: [np.array([1.0, np.nan], f32)])
    report = find_nan(jax.jit(lambda x: x + 1))(np.ones(2, f32))
    assert report.only_compiled and report.has_nan and report.operation is None
    assert "compiled as a whole" in str(report)


def test_debug_nans_is_no_hindrance():
    with jax.debug_nans(True):
        assert find_nan(jnp.log)(-1.0).operation.expression == "log(-1.0)"


def test_what_is_before_an_operand_of_another_shape():
    """The index of an element of the transposed array is none of the array before."""
    x = np.ones((2, 3), f32)
    x[1, 2] = -1
    report = find_nan(lambda x: jnp.log((x - 0.0).T))(x)
    assert report.operation.index == (2, 1)
    (operand,) = report.operation.operands
    assert operand.source.startswith("transpose at ") and operand.before[0].startswith("<- sub at ")
