"""Modules for several platforms: one argument says which, and they branch where rules differ."""

import re

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, lower
from hlofront.pjrt.compile import compile_module, compile_options

PLATFORMS = ("tpu", "cpu", "rocm")
X = np.array([[0.25, -0.5], [0.5, 1.0]], np.float32)


def lowered(function, *args, platforms=PLATFORMS, **options):
    return hlofront.jit(function, **options).trace(*args).lower(lowering_platforms=platforms)


def on_each(function, *args):
    """What the module computes here when it is told that it is on each of the platforms."""
    device = hlofront.devices("cpu")[0]
    module = lowered(function, *args).compiler_ir()
    program = compile_module(device.client, module, [device], compile_options([device]))
    found = []
    for number in range(len(PLATFORMS)):
        operands = [hlofront.device_put(x, device) for x in (np.int32(number), *args)]
        results = program.execute_sharded(operands).disassemble_into_single_device_arrays()
        found.append(np.asarray(results[0][0]))
    return found


def by_platform(x):
    return lax.platform_dependent(x, cpu=jnp.sin, rocm=jnp.tanh, default=jnp.cos)


def nested(x):
    """In calls, in a loop, in branches of branches."""
    step = hlofront.jit(lambda x: by_platform(x) / 2)
    x = lax.platform_dependent(
        x,
        rocm=lambda x: by_platform(x) + 1,
        default=lambda x: lax.platform_dependent(x, tpu=jnp.abs, default=step),
    )
    return lax.fori_loop(0, 3, lambda _, x: step(x), x) + step(x)


def nested_on(first, step, x):
    x = first(x)
    y = x
    for _ in range(3):
        y = step(y)
    return y + step(x)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (by_platform, (np.cos, np.sin, np.tanh)),
        (
            nested,
            (
                lambda x: nested_on(np.abs, lambda x: np.cos(x) / 2, x),
                lambda x: nested_on(lambda x: np.sin(x) / 2, lambda x: np.sin(x) / 2, x),
                lambda x: nested_on(lambda x: np.tanh(x) + 1, lambda x: np.tanh(x) / 2, x),
            ),
        ),
    ],
)
def test_each_branch_is_that_of_its_platform(function, wanted):
    for found, each in zip(on_each(function, X), wanted, strict=True):
        np.testing.assert_allclose(found, each(X), rtol=1e-5)


def test_random_numbers_are_the_same_on_all():
    def draw(seed):
        return hlofront.random.normal(hlofront.random.key(seed), (5,))

    text = lowered(draw, 3).as_text()
    # XLA's compiler for CPUs is given the rounds as a loop, the others in a row.
    assert text.count("func.func private @threefry2x32") >= 2
    wanted = np.asarray(draw(3))
    for found in on_each(draw, np.int32(3)):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_first_argument_says_which():
    text = lowered(jnp.sin, X).as_text()
    assert '(%arg0: tensor<i32> {jax.global_constant = "_platform_index"}, %arg1' in text
    assert "stablehlo.case" not in text
    assert "_platform_index" not in lowered(jnp.sin, X, platforms=("tpu",)).as_text()
    assert lowered(jnp.sin, X, platforms=["cpu", "cpu"]).compile()(X).shape == X.shape


def test_it_comes_before_large_constants_and_donated_arguments():
    table = jnp.arange(10_000.0)
    text = lowered(lambda x: x + by_platform(table)[0], X, donate_argnums=0).as_text()
    arguments = re.search(r"@main\((.*)\) ->", text).group(1)
    assert re.findall(r"tensor<([^>]*)>", arguments) == ["i32", "10000xf32", "2x2xf32"]
    assert arguments.endswith("{tf.aliasing_output = 0 : i32}")


def test_rules_for_a_platform_are_told_apart():
    here_p = Primitive("here")
    infer(here_p)(lambda x: x)
    lower(here_p)(lambda build, x: build.op("stablehlo.negate", (x,)))
    lower(here_p, platform="tpu")(lambda build, x: build.op("stablehlo.sine", (x,)))
    tpu, cpu, rocm = on_each(here_p.bind, X)
    np.testing.assert_allclose(tpu, np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(cpu, -X)
    np.testing.assert_array_equal(rocm, -X)
    # The rule of one platform goes before the table of what is one operation everywhere.
    lower(lax.neg_p, platform="rocm")(lambda build, x: build.op("stablehlo.cosine", (x,)))
    try:
        tpu, cpu, rocm = on_each(lambda x: -x, X)
        np.testing.assert_array_equal(cpu, -X)
        np.testing.assert_allclose(rocm, np.cos(X), rtol=1e-6)
    finally:
        del lower.on_platform[lax.neg_p, "rocm"]
        lower.on_some.remove(lax.neg_p)


def test_a_match_chooses_the_rule_of_an_equation():
    conditional_p = Primitive("conditional")
    infer(conditional_p)(lambda x: x)
    lower(conditional_p)(lambda build, x: build.op("stablehlo.negate", (x,)))

    def sine(build, x):
        return build.op("stablehlo.sine", (x,))

    @lower.match(conditional_p, platform="cpu")
    def _(build):
        return sine if build.avals_in[0].size > 2 else None

    tpu, cpu, rocm = on_each(conditional_p.bind, X)
    np.testing.assert_array_equal([tpu, rocm], [-X, -X])
    np.testing.assert_allclose(cpu, np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(on_each(conditional_p.bind, X[0]), [-X[0]] * 3)
    assert "case" in lowered(conditional_p.bind, X).as_text()
    assert "case" not in lowered(conditional_p.bind, X[0]).as_text()


def test_a_rule_that_asks_where_it_is_says_so():
    asking_p = Primitive("asking")
    infer(asking_p)(lambda x: x)

    def rule(build, x):
        on_tpu = build.module.platform == "tpu"
        return build.op("stablehlo.sine" if on_tpu else "stablehlo.negate", (x,))

    lower(asking_p)(rule)
    with pytest.raises(RuntimeError, match=r"for several, tpu, cpu, rocm: .*platform='each'"):
        lowered(asking_p.bind, X)
    lower.pop(asking_p)
    lower(asking_p, platform="each")(rule)
    tpu, cpu, _ = on_each(asking_p.bind, X)
    np.testing.assert_allclose(tpu, np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(cpu, -X)


def test_what_has_no_module_for_several():
    def calling(x):
        return hlofront.pure_callback(np.sin, x, x)

    with pytest.raises(NotImplementedError, match="multi-platform lowering for pure_callback"):
        lowered(calling, X)
    with pytest.raises(NotImplementedError, match="no branch for the platform 'rocm'"):
        lowered(lambda x: lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos), X)
    with pytest.raises(NotImplementedError, match="in the body of an operation"):
        lowered(lambda x: lax.reduce(x, np.float32(0), lambda x, y: by_platform(x + y), (0,)), X)


def test_what_it_costs_is_known():
    assert lowered(by_platform, X).cost_analysis()["bytes accessed"] > 0
    assert "ENTRY" in lowered(by_platform, X).as_text("hlo")
    assert "for tpu, cpu, rocm" in repr(lowered(by_platform, X))


def largest(x):
    return lax.reduce_window(x, -np.inf, lax.max, (2, 3), (1, 2), "SAME")


BYTES = np.array([[100, -128, 127], [3, -5, 127]], np.int8)
RAGGED = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((), ())), (1,), (0,))


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (
            lambda x, y: lax.dot(x, y, preferred_element_type=np.float32),
            (BYTES, BYTES.T.copy()),
        ),
        (
            lambda x, y: lax.dot(x, y, preferred_element_type=np.float32),
            (BYTES.view(np.uint8), BYTES.view(np.uint8).T.copy()),
        ),
        (lambda x: lax.clamp(False, x, True), (np.array([True, False]),)),
        (lambda low, x: lax.clamp(low, x, True), (np.array([True, False]), np.zeros(2, np.bool_))),
        (
            lambda x: lax.clamp(np.complex64(0), x, np.complex64(1 + 1j)),
            (np.array([2j, 0.5, 3 - 1j], np.complex64),),
        ),
        (
            lambda x, y, n: lax.ragged_dot_general(x, y, n, RAGGED),
            (
                np.arange(24, dtype=np.float32).reshape(2, 3, 4),
                np.arange(40, dtype=np.float32).reshape(2, 4, 5),
                np.array([1, 2], np.int32),
            ),
        ),
        (
            lambda x: lax.sort(x.astype("int4"), dimension=1, is_stable=True).astype("int8"),
            (BYTES // 16,),
        ),
        (lambda x: lax.argmax(x.astype("int4"), 1, np.int32), (BYTES // 16,)),
        (
            hlofront.grad(lambda x: (largest(x) ** 2).sum()),
            (np.sin(np.arange(54, dtype=np.float32)).reshape(6, 9),),
        ),
    ],
)
def test_what_others_compilers_are_given_means_the_same(function, operands):
    """What is told apart because a compiler would fail, run here for each of the platforms."""
    tpu, cpu, rocm = on_each(function, *operands)
    for other in (tpu, rocm):
        assert other.dtype == cpu.dtype
        np.testing.assert_allclose(other, cpu, rtol=1e-6)


def test_narrow_uniform_numbers_on_tpus():
    low, high = np.float32(1), np.float32(1.0625)

    def draw(low, high):
        low, high = low.astype("bfloat16"), high.astype("bfloat16")
        return lax.rng_uniform(low, high, (1000,)).astype(np.float32)

    drawn = on_each(draw, low, high)[0]
    # There are 8 numbers of bfloat16 from the first to the last, which is not one of them.
    assert drawn.min() == 1 and drawn.max() < 1.0625
    assert len(np.unique(drawn)) == 8


def test_scatters_of_what_may_be_the_places_themselves():
    """XLA's compiler of TPUs ends the process where both are one constant: see test_apart.py."""
    places = np.zeros(3, np.int32)

    def add(x, updates):
        return x.at[places].add(updates)

    for updates, barriers in ((places, 1), (places.astype(np.float32), 0)):
        text = lowered(add, updates[:1].repeat(5), updates, platforms=("tpu",)).as_text()
        assert text.count("optimization_barrier") == barriers, updates.dtype
        there = lowered(add, updates[:1].repeat(5), updates, platforms=("cpu",)).as_text()
        assert "optimization_barrier" not in there
