"""find_error: the operations at which the relative error of a program jumps, wherever they are."""

import functools

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import io_callback
from hlofront.inspect import ErrorReport, find_error
from tests.inspect.programs import resnet_arguments, resnet_step, spec

f32 = np.float32


def says(report: ErrorReport, kind: str, primitive: str, line: str) -> ErrorReport:
    """The report names this operation first, as of this kind, on a line that has this text."""
    assert report, report
    operation = report.operation
    assert operation is not None, report
    assert (operation.kind, operation.primitive) == (kind, primitive), report
    assert operation.source_line is not None and operation.source_line.file == __file__
    assert line in operation.source_line.text, report
    assert operation.expression in str(report)
    return report


def far_from_zero(x, far):
    """Return x, of which the digits that `far + x` has no room for are lost."""
    moved = x + far
    return moved - far


points = np.linspace(0.1, 1, 7, dtype=f32)


def test_captured_numpy_arrays_of_64_bits_are_narrowed_as_the_program_narrows_them():
    captured = np.arange(3)
    report = find_error(lambda x: jnp.maximum(captured, 1) * x)(np.ones(3, f32))
    assert not report


# ---- the kinds of losses -------------------------------------------------------------------------


def test_a_cancellation_its_line_its_operands_and_its_size():
    report = says(find_error(far_from_zero)(points, 1e6), "cancellation", "sub", "moved - far")
    operation = report.operation
    assert 1e6 < operation.condition < 1e8 and 1e-3 < operation.error < 1
    assert operation.error_before < 1e-7 and operation.own_error == 0
    assert len(operation.operands) == 2 and operation.operands[0].error < 1e-7
    assert operation.operands[0].source.endswith("moved = x + far")
    assert operation.operands[1].source.startswith("convert_element_type")
    assert operation.operands[1].before == ("<- argument far",)
    (result,) = report.results
    assert result.is_lost and result.error == operation.error and result.values.name == "result"
    text = str(report)
    assert text.startswith("Error against float64 in result (")
    assert "\n      return moved - far\n             ^^^^^^^^^^^\n" in text
    assert "of its terms, and the error grows from " in text
    assert not hasattr(report, "__dict__") and not hasattr(operation, "__dict__")


def test_a_cancellation_inside_of_a_sum_and_of_a_product():
    weights = np.array([1e8, 1.0, -1e8, 0.25], f32)
    report = find_error(lambda x: (x * weights).sum())(np.ones(4, f32))
    says(report, "cancellation", "reduce_sum", "(x * weights).sum()")
    report = find_error(lambda x: x @ weights)(np.ones(4, f32))
    says(report, "cancellation", "dot_general", "x @ weights")


def test_an_operation_that_amplifies_the_error_of_its_operand():
    report = find_error(lambda x: jnp.exp(1000 * (x * 0.1)))(f32(0.7))
    assert not report
    report = find_error(lambda x: jnp.tan(x * 0.1))(f32(15.707963))
    says(report, "ill-conditioned", "tan", "jnp.tan")


def test_a_narrower_dtype_and_a_narrower_range():
    def narrow(x):
        return x.astype(jnp.bfloat16).astype(jnp.float32) + 1

    report = find_error(narrow)(points)
    says(report, "rounding", "convert_element_type", "astype")
    assert "rounding: convert_element_type by itself has an error of" in str(report)
    says(find_error(lambda x: jnp.exp(x) / 1e30)(f32(95)), "overflow", "exp", "jnp.exp(x)")
    squares = find_error(lambda x: jnp.sqrt(x * x))(f32(1e-25))
    says(squares, "underflow", "mul", "x * x")


def test_decisions_that_differ():
    def chosen(x):
        return jnp.argmax(x + 1)

    report = find_error(chosen)(np.array([1e-9, 3e-9, 2e-9], f32))
    says(report, "decision", "argmax", "jnp.argmax")
    assert "decision: argmax is another one than in the reference" in str(report)
    assert (report.operation.value, report.operation.reference) == ("0", "1")

    def branched(x):
        return lax.cond(x + 1 > 1, lambda: jnp.sin(3.0), lambda: 5.0)

    report = says(find_error(branched)(f32(1e-9)), "decision", "gt", "x + 1 > 1")
    assert [step.primitive for step in report.operation.way][-1] == "cond"

    def masked(x):
        return jnp.where(x + 1 > 1, x * 1e9, -3.0)

    report = says(find_error(masked)(np.full(4, 1e-9, f32)), "decision", "gt", "x + 1 > 1")
    assert report.operation.differing == 4 and report.operation.error > 1
    steps = find_error(lambda x: jnp.floor(x * 10 + 1e-8))(f32(0.3))
    assert not steps or steps.operation.kind == "decision"


def test_a_decision_that_changes_little_is_hidden():
    report = find_error(lambda x: jnp.where(x + 1 > 1, x, 0.0) + 1)(np.full(4, 1e-9, f32))
    assert not report
    assert [each.primitive for each in report.hidden] == ["gt"]


def test_the_operation_is_where_the_error_came_into_the_element_not_where_it_shows():
    """Beside ones the lost digits of small elements do not count; divided by them they do."""
    report = find_error(lambda x: (1 - jnp.cos(x)) / x**2)(np.logspace(-4, 0, 50, dtype=f32))
    says(report, "cancellation", "sub", "1 - jnp.cos(x)")
    assert report.operation.expression == "1.0 - 1.0"


def test_an_error_that_grows_slowly_has_no_operation():
    def squares(x):
        return lax.fori_loop(0, 16, lambda i, x: x * x, x)

    report = find_error(squares)(f32(1.0001))
    assert report and report.operation is None
    assert "No single operation loses them" in str(report)


def test_what_compiles_to_something_else_is_said():
    """XLA adds the two constants before it adds x."""
    there_and_back = lambda x: (x + 1e6) - 1e6
    if (jax.jit(there_and_back)(points) != points).any():
        pytest.skip("this jaxlib's XLA keeps the order of sums: docs/reference/versions.md")
    report = find_error(there_and_back)(points)
    assert report and report.results[0].compiled_error == 0
    assert "Compiled as a whole, the program computes in another way" in str(report)


# ---- where it happens ----------------------------------------------------------------------------


def gpt(weights, tokens, far, layer):
    """A GPT, one of whose layers adds a large number and takes it away again."""
    x = weights["embedding"][tokens]
    length = tokens.shape[1]
    causal = jnp.tril(jnp.ones((length, length), bool))
    for number, w in enumerate(weights["layers"]):
        with jax.named_scope(f"layer_{number}"):
            x = x + attention(standardized(x), w, causal)
            h = jax.nn.gelu(standardized(x) @ w["up"])
            if number == layer:
                h = far_from_zero(h, far)
            x = x + h @ w["down"]
    logits = standardized(x) @ weights["embedding"].T
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1)
    return -picked.mean()


def standardized(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


@jax.jit
def attention(x, w, causal):
    q, k, v = (x @ w[name] for name in "qkv")
    scores = jnp.where(causal, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -1e30)
    return jax.nn.softmax(scores) @ v @ w["out"]


def gpt_weights(layers, width=16, words=32):
    random = np.random.default_rng(0)

    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(f32)

    each = [
        {
            **{name: matrix(width, width) for name in ("q", "k", "v", "out")},
            "up": matrix(width, 4 * width),
            "down": matrix(4 * width, width),
        }
        for _ in range(layers)
    ]
    return {"embedding": matrix(words, width), "layers": each}


tokens = np.random.default_rng(1).integers(0, 32, (2, 8)).astype(np.int32)


@pytest.mark.long
@pytest.mark.parametrize("transform", [lambda f: f, jax.grad])
def test_a_cancellation_in_one_layer_of_a_gpt(transform):
    weights = gpt_weights(2)
    planted, harmless = (transform(functools.partial(gpt, layer=layer)) for layer in (1, None))
    assert not find_error(harmless)(weights, tokens, 1e7)
    report = find_error(planted)(weights, tokens, 1e7)
    says(report, "cancellation", "sub", "moved - far")
    assert "layer_1" in "/".join(report.operation.name_stack)
    assert [each.kind for each in report.operations] == ["cancellation"]
    assert any("h = far_from_zero(h, far)" in each.text for each in report.operation.callers)


@pytest.mark.long
def test_a_cancellation_in_a_scan_of_hundreds_of_steps():
    def long(x, far, bad_step):
        def step(x, i):
            x = x * 0.999 + 0.001 * jnp.sin(x)
            return jnp.where(i == bad_step, far_from_zero(x, far), x), x.sum()

        return lax.scan(step, x, jnp.arange(500))

    assert not find_error(long)(points, 1e6, -1)
    report = says(find_error(long)(points, 1e6, 413), "cancellation", "sub", "moved - far")
    assert [(each.operation, each.iteration) for each in report.operation.inside] == [("scan", 413)]
    assert [each.values.name for each in report.lost] == ["result[0]", "result[1]"]


@pytest.mark.slow
def test_a_cancellation_of_which_each_step_adds_a_little():
    def long(x, far):
        def step(i, x):
            return x + 1e-3 * far_from_zero(jnp.cos(x), far)

        return lax.fori_loop(0, 1000, step, x)

    assert not find_error(long)(points, 10.0)
    says(find_error(long)(points, 1e6), "cancellation", "sub", "moved - far")


@pytest.mark.long
def test_a_cancellation_in_a_while_loop():
    def loop(x, far):
        def step(state):
            i, x = state
            return i + 1, jnp.where(i == 400, far_from_zero(x, far), x * 1.001)

        return lax.while_loop(lambda state: state[0] < 420, step, (0, x))[1]

    report = says(find_error(loop)(points, 1e6), "cancellation", "sub", "moved - far")
    assert report.operation.inside[0].iteration == 400
    mapped = find_error(jax.vmap(loop, (0, None)))(np.stack([points, 2 * points]), 1e6)
    says(mapped, "cancellation", "sub", "moved - far")


def test_a_loop_that_ends_at_another_step():
    def halvings(x):
        return lax.while_loop(lambda s: s[1] + 1 > 1, lambda s: (s[0] + 1, s[1] / 2), (0, x))[0]

    report = says(find_error(halvings)(f32(1)), "decision", "gt", "s[1] + 1 > 1")
    assert report.operation.inside[-1].iteration == 24
    assert int(report.results[0].error) == 1


def test_a_cancellation_inside_a_custom_vjp():
    @jax.custom_vjp
    def sine(x, far):
        return jnp.sin(x)

    def forward(x, far):
        return far_from_zero(jnp.sin(x), far), (x, far)

    def backward(residuals, ct):
        x, far = residuals
        return ct * far_from_zero(jnp.cos(x), far), None

    sine.defvjp(forward, backward)

    def loss(x, far):
        return sine(x, far).sum()

    assert not find_error(loss)(points, 1e6)
    assert not find_error(jax.grad(loss))(points, 10.0)
    report = find_error(jax.value_and_grad(loss))(points, 1e6)
    assert [each.kind for each in report.operations] == ["cancellation", "cancellation"]
    assert {each.primitive for each in report.operations} == {"sub"}
    texts = {each.source_line.text for each in report.operations}
    assert "return moved - far" in texts


def test_custom_jvp_checkpoint_and_nested_jit():
    @jax.custom_jvp
    def f(x, far):
        return jax.jit(far_from_zero)(x, far)

    f.defjvps(lambda t, y, x, far: t, None)
    for function in (f, jax.checkpoint(f), jax.vmap(f, (0, None)), jax.jit(jax.jit(f))):
        says(find_error(function)(points, 1e6), "cancellation", "sub", "moved - far")


# ---- programs that lose nothing ------------------------------------------------------------------


def filled(arguments):
    random = np.random.default_rng(0)

    def values(x):
        if np.issubdtype(x.dtype, np.integer):
            return random.integers(0, 8, x.shape).astype(x.dtype)
        return (random.standard_normal(x.shape) / np.sqrt(x.shape[-1])).astype(x.dtype)

    return jax.tree.map(values, arguments)


@pytest.mark.long
def test_a_train_step_loses_nothing():
    weights, state, images, labels = filled(resnet_arguments())
    report = find_error(resnet_step)(weights, jax.tree.map(np.abs, state), images, labels)
    assert not report and not report.operations, report
    assert str(report).startswith("No result of ") and "\n" not in str(report)


def test_a_gradient_in_half_precision_loses_what_it_rounds():
    def loss(weights, x):
        half = jax.tree.map(lambda w: w.astype("bfloat16"), weights)
        hidden = jnp.tanh(x.astype("bfloat16") @ half["up"]) @ half["down"]
        return (hidden.astype("float32") ** 2).mean()

    weights = filled({"up": spec(8, 16), "down": spec(16, 4)})
    report = find_error(jax.grad(loss))(weights, np.ones((5, 8), f32))
    conversions = [each for each in report.operations if each.kind == "rounding"]
    assert {each.primitive for each in conversions} == {"convert_element_type"}
    assert any('w.astype("bfloat16")' in each.source_line.text for each in conversions)


@pytest.mark.long
def test_linear_algebra_random_numbers_and_sorting_lose_nothing():
    def program(key, x):
        a = jax.random.normal(key, (5, 5)) + 5 * jnp.eye(5)
        return jnp.linalg.solve(a, x), jnp.linalg.svd(a)[1], jnp.sort(x), jnp.fft.rfft(x)

    assert not find_error(program)(jax.random.key(0), points[:5])


def test_half_precision_has_its_own_tolerance():
    report = find_error(lambda x: jnp.tanh(x @ x.T).sum(0))(jnp.ones((3, 3), jnp.bfloat16) * 0.3)
    assert not report and report.tolerance == pytest.approx(2**-3.5)


# ---- what the search takes -----------------------------------------------------------------------


def test_mutable_references_and_callbacks():
    def writes(x, far):
        ref = jax.new_ref(x)
        ref[...] = far_from_zero(ref[...], far)
        return ref[...]

    says(find_error(writes)(points, 1e6), "cancellation", "sub", "moved - far")
    calls = []

    def calling(x, far):
        y = io_callback(lambda v: calls.append(1) or v, x, x)
        return far_from_zero(y, far)

    report = says(find_error(calling)(points, 1e6), "cancellation", "sub", "moved - far")
    assert len(calls) == 1 and report.own_dtypes == ("io_callback",)
    assert report.results[0].compiled_error is None


def test_against_another_device():
    device = jax.devices("cpu")[0]
    report = find_error(far_from_zero, against=device)(points, 1e6)
    assert not report and report.against == str(device) and report.results[0].error == 0


def test_tolerance():
    assert not find_error(far_from_zero)(points, 100.0)
    assert find_error(far_from_zero, tolerance=1e-6)(points, 100.0)


def test_values_that_float64_cannot_tell_from_zero_are_no_loss():
    """The derivative of softmax sums to zero."""
    report = find_error(lambda x: jax.grad(lambda x: jax.nn.softmax(x)[0])(x).sum())(points)
    assert not report


def test_errors():
    with pytest.raises(ValueError, match=r"'float64', on another device.*got against='float16'"):
        find_error(jnp.sin, against="float16")
    with pytest.raises(ValueError, match="positive tolerance, such as 1e-3: got 0"):
        find_error(jnp.sin, tolerance=0)
    with pytest.raises(ValueError, match="no values in a narrower floating-point dtype"):
        find_error(lambda x: x + 1)(3)
    with pytest.raises(TypeError, match=r"as in find_error\(grad\(f\)\)\(x\)"):
        jax.jit(find_error(jnp.sin))(points)
