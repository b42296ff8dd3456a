"""Fences: where they go, that they change no value, and that XLA keeps them."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.lowering.core.fences import LONGEST_RUN, MAX_ARRAYS_READ, MIN_SUMMED, Fences
from hlofront.pjrt.compile import compile_options

LINES = pathlib.Path(__file__).read_text().splitlines()
with_fences = options["hlofront_fences"]

x = np.linspace(-1, 1, 8 * 16, dtype=np.float32).reshape(8, 16)
w = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32) / 4


def layer(x, w):
    y = (x - x.mean(-1, keepdims=True)) * 0.5
    return x + jnp.tanh(y @ w)


def stream(layer, depth):
    """A residual stream of this many layers, of which each reads it twice."""

    def run(x, w):
        for _ in range(depth):
            x = layer(x, w)
        return x

    return run


def lowered(f, *args):
    return jax.jit(f).lower(*args)


def barriers(text):
    return text.count("stablehlo.optimization_barrier")


def largest_fusion(compiled):
    """How many values the computation that reads most of them reads."""
    return max(
        head.count(": f32")
        for head in re.findall(r"^%fused\S* (\(.*\)) -> ", compiled.as_text(), re.M)
    )


# ---- where they go -------------------------------------------------------------------------------


def test_an_accumulated_value_is_fenced_and_its_line_reported():
    found = lowered(stream(layer, 40), x, w)
    assert barriers(found.as_text()) == len(found.fences) == 2
    for fence in found.fences:
        assert fence.file == __file__ and fence.aval.shape == (8, 16)
        assert LINES[fence.line - 1].strip().startswith(("y =", "return x +"))
        assert str(fence).startswith("float32[8,16] at ") and str(fence).endswith(" in layer")
    assert '/fence"' in found.as_text(debug_info=True)


def test_they_are_never_in_a_jaxpr():
    traced = jax.jit(stream(layer, 40)).trace(x, w)
    assert traced.lower().fences
    assert "optimization_barrier" not in str(traced.jaxpr)
    assert all(e.primitive.name != "optimization_barrier" for e in traced.jaxpr.eqns)


def test_other_programs_have_none():
    def plain(x, w):
        for _ in range(40):
            x = jnp.tanh(x @ w + 1)
        return x

    def multiplied(x, w):
        y = x
        for _ in range(300):
            y = y * x
        return y

    def squared(x, w):
        for _ in range(300):
            x = x * x + 1.0
        return x

    def summed(x, w):
        # Many terms, and each sum is used once.
        total = x
        for _ in range(40):
            total = total + jnp.tanh(x @ w)
            x = jnp.tanh(x @ w)
        return total

    def shallow(x, w):
        return stream(layer, MAX_ARRAYS_READ // 2 - 1)(x, w)

    for f in (
        plain,
        multiplied,
        squared,
        summed,
        shallow,
        jax.grad(lambda x, w: plain(x, w).sum()),
    ):
        assert lowered(f, x, w).fences == []


def test_a_long_row_of_operations_on_one_array_is_cut():
    def run(x, w):
        results = []
        for _ in range(100):
            x = x * 0.9 + 0.1
            results.append(x @ w)
        return results

    # A place for one is after each second operation.
    assert len(lowered(run, x, w).fences) == 100 * 2 // (LONGEST_RUN + 2)

    def of_two_arrays(x, w):
        results = []
        y = x[::-1]
        for _ in range(100):
            x = x * 0.9 + y
            results.append(x @ w)
        return results

    assert lowered(of_two_arrays, x, w).fences == []


def test_slices_of_one_array_are_several_things_to_read():
    def run(x, w):
        total = jnp.zeros((16,))
        results = []
        for i in range(40):
            total = total * 0.9 + w[i % 16]
            results.append(total @ w)
        return results

    assert len(lowered(run, x, w).fences) >= 2


def test_only_processors_need_them():
    traced = jax.jit(stream(layer, 40)).trace(x, w)
    for platform in ("cuda", "tpu"):
        other = traced.lower(lowering_platforms=(platform,))
        assert other.fences == [] and not barriers(other.as_text())


def normalized(x, w):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return jnp.tanh((x - mean) / jnp.sqrt(variance + 1e-5) @ w)


def normalized_loss(x, w):
    return (normalized(normalized(x, w), w) ** 2).sum()


def test_differences_are_fenced_where_products_with_them_are_summed():
    many = np.tile(x, (MIN_SUMMED // x.size, 1))
    found = lowered(jax.grad(normalized_loss), many, w)
    # XLA merges the two that each normalization has.
    assert [str(fence.aval.shape) for fence in found.fences] == [str(many.shape)] * 4
    assert all("x - mean" in LINES[fence.line - 1] for fence in found.fences)
    for fewer in (lowered(normalized_loss, many, w), lowered(jax.grad(normalized_loss), x, w)):
        assert fewer.fences == []
    for f in (
        lambda x, w: ((x - x.mean(-1, keepdims=True)) * x).sum(),
        lambda x, w: ((x - x[::-1]) * x).sum() + (x - x[::-1]).max(),
        lambda x, w: ((x * x.mean(-1, keepdims=True)) * x).sum() + (x - x.mean()).max(),
    ):
        assert lowered(f, many, w).fences == []


def test_fenced_differences_change_no_value():
    many = np.tile(x, (32, 1)) * np.linspace(-1, 1, 256, dtype=np.float32)[:, None]
    step = jax.value_and_grad(normalized_loss, (0, 1))
    found = lowered(step, many, w)
    assert found.fences
    with with_fences(False):
        other = lowered(step, many, w).compile()
    found = found.compile()
    for a, b in zip(*(jax.tree.leaves(c(many, w)) for c in (found, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


# ---- programs in programs ------------------------------------------------------------------------


def test_calls_of_a_jitted_layer():
    found = lowered(stream(jax.jit(layer), 40), x, w)
    text = found.as_text()
    # One function, and the fences are on what some of its calls return.
    assert text.count("func.func private") == 1 + text.count("func.func private @_mean")
    assert len(re.findall(r"call @layer\(", text)) == 40
    assert 1 < barriers(text) == len(found.fences) <= 5
    assert {fence.function for fence in found.fences} == {"run"}
    without = lowered(stream(layer, 40), x, w).compile()
    assert largest_fusion(found.compile()) <= 2 * MAX_ARRAYS_READ
    assert largest_fusion(without) <= 2 * MAX_ARRAYS_READ


def test_a_function_that_accumulates_inside_is_fenced_once():
    inner = jax.jit(stream(layer, 24))
    found = lowered(lambda x, w: inner(inner(x, w), w) + inner(x, w), x, w)
    text = found.as_text()
    assert len(re.findall(r"call @run\(", text)) == 3
    assert barriers(text.split("func.func private @run(")[1]) == 1
    assert len(found.fences) == barriers(text)


def test_calls_in_calls_are_looked_at_once_each():
    def nest(f, depth):
        for _ in range(depth):
            f = jax.jit(lambda x, f=f: f(f(x)))
        return f

    # 2^40 layers, if calls were followed.
    program = jax.make_jaxpr(nest(jax.jit(lambda x: x + jnp.tanh(x)), 40))(x)
    fences = Fences()
    assert fences.of(program.jaxpr) is fences.of(program.jaxpr)


def test_uses_inside_a_called_function_count():
    use = jax.jit(lambda x: (x.sum(), x * 2))

    def run(x, w):
        terms = [jnp.tanh(x @ w) for _ in range(MAX_ARRAYS_READ + 2)]
        return use(sum(terms))

    assert len(lowered(run, x, w).fences) == 1


def test_loops_and_branches():
    deep = stream(layer, 40)

    def in_scan(x, w):
        return lax.scan(lambda c, _: (deep(c, w), c.sum()), x, None, length=2)

    def in_while(x, w):
        return lax.fori_loop(
            0, x.shape[0] + lax.convert_element_type(x[0, 0], int), lambda i, c: deep(c, w), x
        )

    def in_branch(x, w):
        return lax.cond(x.sum() > 0, lambda x: deep(x, w), lambda x: x, x)

    for f in (in_scan, in_while, in_branch):
        assert len(lowered(f, x, w).fences) == 2, f
    assert barriers(lowered(in_scan, x, w).as_text().split("stablehlo.while")[1]) == 2


def test_a_scan_that_is_unrolled_is_a_row_of_steps():
    def run(x, w):
        return lax.scan(lambda c, _: (layer(c, w), None), x, None, length=40, unroll=40)[0]

    found = lowered(run, x, w)
    assert found.fences
    assert largest_fusion(found.compile()) <= 2 * MAX_ARRAYS_READ


def test_under_grad_and_vmap():
    f = stream(layer, 40)

    def loss(x, w):
        return (f(x, w) ** 2).sum()

    gradient = lowered(jax.value_and_grad(loss), x, w)
    assert len(gradient.fences) > len(lowered(loss, x, w).fences)
    assert largest_fusion(gradient.compile()) <= 2 * MAX_ARRAYS_READ
    assert len(lowered(jax.vmap(f, (0, None)), np.stack([x, x]), w).fences) == 2


# ---- what they change ----------------------------------------------------------------------------


def _loss(layer):
    return lambda x, w: (stream(layer, 30)(x, w) ** 2).sum()


@pytest.mark.parametrize(
    "f",
    [
        stream(layer, 30),
        stream(jax.jit(layer), 30),
        jax.grad(_loss(layer), (0, 1)),
        jax.grad(_loss(jax.jit(layer)), (0, 1)),
        jax.grad(_loss(jax.checkpoint(layer)), (0, 1)),
        lambda x, w: jax.vmap(stream(layer, 30), (0, None))(jnp.stack([x, x + 1]), w),
        lambda x, w: lax.scan(lambda c, _: (stream(layer, 30)(c, w), c), x, None, length=3),
        lambda x, w: jax.jvp(stream(layer, 30), (x, w), (x, w)),
        lambda x, w: stream(layer, 30)(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)),
        lambda x, w: stream(layer, 30)(x.astype(complex), w.astype(complex)),
    ],
)
def test_no_value_changes(f):
    found = lowered(f, x, w)
    assert found.fences
    with with_fences(False):
        other = lowered(f, x, w)
        assert other.fences == [] and found.as_text() != other.as_text()
        wanted = jax.tree.leaves(other.compile()(x, w))
    for a, b in zip(jax.tree.leaves(found.compile()(x, w)), wanted, strict=True):
        assert a.dtype == b.dtype
        tolerance = 2e-2 if a.dtype == jnp.bfloat16 else 1e-5
        a, b = np.asarray(a, np.complex64), np.asarray(b, np.complex64)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


def test_donation_holds():
    step = jax.jit(lambda x, w: (stream(layer, 40)(x, w), w * 2), donate_argnums=(0, 1))
    a, b = jnp.asarray(x) + 0, jnp.asarray(w) + 0
    compiled = step.lower(a, b).compile()
    assert compiled.memory_analysis().alias_size_in_bytes == x.nbytes + w.nbytes
    step(a, b)
    assert a.is_deleted() and b.is_deleted()


def test_the_program_grows_with_its_depth_and_not_with_its_square():
    def instructions(depth):
        step = jax.value_and_grad(lambda x, w: (stream(layer, depth)(x, w) ** 2).sum(), (0, 1))
        return len(
            re.findall(r"^ *(?:ROOT )?%\S+ = ", lowered(step, x, w).compile().as_text(), re.M)
        )

    assert instructions(32) < 2.5 * instructions(16)


def test_checkpoint_saves_memory():
    def temporaries(layer):
        step = jax.grad(lambda x, w: (stream(layer, 16)(x, w) ** 2).sum(), (0, 1))
        return lowered(step, wide, w).compile().memory_analysis().temp_size_in_bytes

    wide = np.tile(x, (16, 1))

    def hungry(x, w):
        for _ in range(4):
            x = jnp.tanh(x @ w)
        return x

    assert temporaries(jax.checkpoint(hungry)) < 0.6 * temporaries(hungry)


# ---- the switch ----------------------------------------------------------------------------------


def test_the_option_is_part_of_what_jit_knows_a_program_by():
    f = jax.jit(stream(layer, 40))
    assert len(f.lower(x, w).fences) == 2
    with with_fences(False):
        assert f.lower(x, w).fences == []
    assert len(f.lower(x, w).fences) == 2
    # A program keeps what it was lowered with.
    traced = f.trace(x, w)
    found = traced.lower()
    with with_fences(False):
        assert traced.lower().fences == []
        assert "opt-barrier" in found.compile().as_text()
    assert "opt-barrier" in found.compile().as_text()


@pytest.mark.parametrize(("value", "wanted"), [("0", "False"), ("1", "True")])
def test_the_environment_variable(value, wanted):
    code = "from hlofront.base.config import config; print(config.hlofront_fences)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"HLOFRONT_FENCES": value, "PYTHONPATH": ":".join(sys.path)},
    )
    assert found.stdout.strip() == wanted, found.stderr


# ---- XLA -----------------------------------------------------------------------------------------


def test_barriers_of_users_stay_too():
    def f(x):
        y = lax.optimization_barrier(x * 2)
        return y + 1, y * 3

    assert lowered(f, x).fences == []
    assert "opt-barrier" in lowered(f, x).compile().as_text()
    with with_fences(False):  # as in JAX
        assert "opt-barrier" not in lowered(f, x).compile().as_text()


def test_barriers_in_small_loops_do_not_end_the_process():
    """XLA makes one kernel of a small loop, and aborts where it meets a barrier of two values."""
    code = (
        "import hlofront as jax, hlofront.numpy as jnp; from hlofront import lax\n"
        "step = jax.checkpoint(lambda c, a: (c * jnp.log(a), None))\n"
        "print(jax.grad(lambda x: lax.scan(step, 1.0, x)[0])(jnp.array([1.0, 2.0, 3.0])))\n"
        "f = lambda i, c: lax.optimization_barrier((c[0] * 2, c[1] + 1))\n"
        "print(jax.jit(lambda x: lax.fori_loop(0, 3, f, (x, x)))(jnp.arange(2.0)))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]
    assert "0.7615" in found.stdout and "[0., 8.]" in found.stdout


def in_main(x):
    return lax.optimization_barrier(x * 2)


def in_a_called_function(x):
    return jax.jit(in_main)(x)


def in_another_loop(x):
    return lax.fori_loop(0, 3, lambda i, x: in_main(x), x)


in_a_function = jax.jit(in_main)


def in_a_function_that_a_loop_calls(x):
    return lax.fori_loop(0, 3, lambda i, x: in_a_function(x), in_a_function(x))


def in_a_function_that_is_called_in_one_that_a_loop_calls(x):
    outer = jax.jit(lambda x: in_a_function(x) + 1)
    return lax.fori_loop(0, 3, lambda i, x: outer(x), outer(in_a_function(x)))


@pytest.mark.parametrize(
    ("barrier", "is_kernel"),
    [
        (in_main, True),
        (in_a_called_function, True),
        (in_another_loop, False),
        (in_a_function_that_a_loop_calls, False),
        (in_a_function_that_is_called_in_one_that_a_loop_calls, False),
    ],
)
def test_a_small_loop_is_a_kernel_where_no_barriers_are_in_loops(barrier, is_kernel):
    def f(x):
        return lax.fori_loop(0, 100, lambda i, x: jnp.sin(x) * 0.5, barrier(x))

    compiled = jax.jit(f).lower(np.ones(10, np.float32)).compile()
    text = compiled.as_text()
    assert "opt-barrier" in text
    assert ("small_call" in text) == is_kernel


def test_passes_that_the_user_disables_stay_disabled():
    def disabled(options):
        return dict(options.env_option_overrides)["xla_disable_hlo_passes"]

    device = jax.devices()[:1]
    ours = "cse_barrier_expander,small-while-loop-hoisting"
    assert disabled(compile_options(device, keep_barriers=True)) == ours
    given = {"xla_disable_hlo_passes": "algsimp,cse"}
    both = f"algsimp,cse,{ours}"
    assert disabled(compile_options(device, given, keep_barriers=True)) == both
    outside = compile_options(device, given, keep_barriers=True, barriers_in_loops=False)
    assert disabled(outside) == "algsimp,cse,cse_barrier_expander"
    assert disabled(compile_options(device, given)) == "algsimp,cse"
    assert given == {"xla_disable_hlo_passes": "algsimp,cse"}
    assert "xla_disable_hlo_passes" not in dict(compile_options(device).env_option_overrides)
    compiled = jax.jit(stream(layer, 40), compiler_options=given).lower(x, w).compile()
    assert "opt-barrier" in compiled.as_text()


def test_passes_disabled_in_the_environment_stay_disabled():
    code = (
        "import hlofront; from hlofront.pjrt.compile import compile_options;"
        "print(compile_options(hlofront.devices()[:1], keep_barriers=True).env_option_overrides)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"XLA_FLAGS": "--xla_disable_hlo_passes=algsimp", "PYTHONPATH": ":".join(sys.path)},
    )
    assert "algsimp,cse_barrier_expander" in found.stdout, found.stderr
