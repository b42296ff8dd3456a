"""Scans of a few elementwise operations take several steps at once on CPUs, with equal results."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import enable_x64, options

LENGTH = 1000
ten = np.arange(10, dtype=np.float32) / 10
one = np.float32(0.3)
numbers = np.sin(np.arange(LENGTH, dtype=np.float32))
rows = np.sin(np.arange(10 * LENGTH, dtype=np.float32)).reshape(LENGTH, 10)


def steps_of(function, *args, platforms=("cpu",)):
    """Return the number of steps of each iteration, of each loop of a function."""
    text = hlofront.jit(function).trace(*args).lower(lowering_platforms=platforms).as_text()
    found = re.findall(r"dense<(\d+)> : tensor<i32>\n[^\n]*stablehlo.add", text)
    return [*map(int, found)]


def scan_of(body, **params):
    return lambda carry, xs=None: lax.scan(
        body, carry, xs, **{"length": LENGTH, **params} if xs is None else params
    )


def affine(c, _):
    return c * 0.9 + 0.1, None


def walk(c, x):
    return c * 0.5 + x, None


def filtered(c, x):
    c = c * 0.9 + 0.1 * x
    return c, c


def orbit(c, _):
    c = c * 0.9 + 0.1
    return c, c * 2


def rotated(c, _):
    x, y = c
    return (x * 0.99 + y * 0.01, y * 0.99 - x * 0.01), None


def affine_integers(c, _):
    return c * 5 + 3, c


def compared(c, x):
    return jnp.where(c < x, c + 1, jnp.maximum(c, x) - 2), None


def reset(c, x):
    c = jnp.where(x < -0.9, x, jnp.maximum(c, x))
    return c, c


def xorshift(c, _):
    c = c ^ (c << 13)
    c = c ^ (c >> 17)
    return c ^ (c << 5), None


def flipped(c, x):
    return c ^ (x > 0), c


def newton(c, _):
    return c - (c * c - 2) / (2 * c), None


def scaled(factor):
    return lambda c, _: (c * np.float32(factor), None)


TAKEN = {
    "affine": (affine, ten, None, 8),
    "affine of a number": (affine, one, None, 8),
    "affine of 100": (affine, np.ones(100, np.float32), None, 8),
    "affine of 500": (affine, np.ones(500, np.float32), None, 4),
    "affine of float64": (affine, ten.astype(np.float64), None, 8),
    "sums of rows": (lambda c, x: (c * 0.9 + x.sum(), None), ten, rows[:, :3], 8),
    "walk": (walk, ten, numbers, 8),
    "walk of rows": (walk, ten, rows, 8),
    "walk of longer rows": (walk, np.zeros(30, np.float32), np.tile(rows, (1, 3)), 4),
    "filter": (filtered, one, numbers, 8),
    "orbit": (orbit, ten, None, 4),
    "orbit of a number": (orbit, one, None, 8),
    "rotation": (rotated, (ten, ten + 1), None, 8),
    "rotation of 20": (rotated, (np.ones(20, np.float32),) * 2, None, 4),
    "rotation of 50": (rotated, (np.ones(50, np.float32),) * 2, None, 4),
    "integers": (affine_integers, np.uint32(7), None, 8),
    "wide integers": (affine_integers, np.uint64(7), None, 8),
    "comparisons": (compared, ten, numbers, 8),
    "maximum, reset": (reset, one, numbers, 8),
    "xorshift": (xorshift, np.uint32(2463534242), None, 8),
    "booleans": (flipped, np.False_, numbers, 8),
    "Newton's iteration": (newton, np.float32(1), None, 4),
    "sine": (lambda c, _: (jnp.sin(c), None), one, None, 4),
    "relu": (lambda c, x: (hlofront.nn.relu(c * 0.9 + x), None), ten, numbers, 8),
}
LEFT = {
    "sine of 10": (lambda c, _: (jnp.sin(c), None), ten, None),
    "quotient of 10": (lambda c, _: (1 / (c + 1), None), ten, None),
    "filter of 10": (filtered, ten, rows),
    "orbit of 20": (orbit, np.ones(20, np.float32), None),
    "walk of rows of 100": (walk, np.zeros(100, np.float32), np.tile(rows, (1, 10))),
    "layer": (lambda c, _: (jnp.tanh(c @ np.eye(10, dtype=np.float32)), None), ten, None),
    "sum of the carry": (lambda c, _: (c * 0.5 + c.sum() * 0.01, None), ten, None),
    "polynomial of 60": (
        lambda c, _: (((c * 0.2 + 0.1) * c + 0.3) * c, None),
        np.ones(60, np.float32),
        None,
    ),
    "bfloat16": (affine, jnp.asarray(ten, "bfloat16"), None),
    "float16": (affine, ten.astype(np.float16), None),
    "complex": (affine, ten.astype(np.complex64), None),
    "rounded": (lambda c, _: ((c.astype("float16") * 0.5).astype("float32"), None), ten, None),
    "quotients of exponentials": (lambda c, x: (x / jnp.exp(c), None), one, numbers),
    "same dtype": (lambda c, _: (lax.convert_element_type(c * 1e10, "float32"), None), ten, None),
    "factors": (scaled(0.5), ten, None),
    "great factors": (scaled(1e10), ten, None),
    "sums of tenths": (lambda c, _: (c + 0.1, None), ten, None),
    "exchanged sums of tenths": (lambda c, _: ((c[1], c[0] + 0.1), None), (ten, ten), None),
    "differences after an absolute value": (lambda c, _: (abs(c - 0.1) - 0.1, None), ten, None),
    "quotients of numbers": (lambda c, x: (c / x, None), one, numbers),
    "gather": (lambda c, _: (c[::-1] * 0.5, None), ten, None),
    "long": (lambda c, _: (sum((c * (i / 99) for i in range(1, 20)), c * c), None), one, None),
}


def looped(function, *args):
    """Return the results of the loop as it is."""
    with options["hlofront_cpu_formulas"](False):
        return hlofront.jit(function)(*args)


def assert_equal_to_loop(function, *args):
    results, wanted = hlofront.jit(function)(*args), looped(function, *args)
    assert hlofront.tree.structure(results) == hlofront.tree.structure(wanted)
    for result, each in zip(*map(hlofront.tree.leaves, (results, wanted)), strict=True):
        assert result.aval == each.aval
        if np.issubdtype(result.dtype, np.floating):
            np.testing.assert_allclose(result, each, rtol=2e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(result, each)


@pytest.mark.parametrize("name", TAKEN)
def test_several_steps_at_once_on_cpus_alone(name):
    body, carry, xs, steps = TAKEN[name]
    with enable_x64(True):
        function = scan_of(body)
        assert steps_of(function, carry, xs) == [steps]
        for platforms in (("tpu",), ("cuda",), ("cpu", "tpu")):
            assert steps_of(function, carry, xs, platforms=platforms) == [1]
        with options["hlofront_cpu_formulas"](False):
            assert steps_of(function, carry, xs) == [1]
        assert steps_of(scan_of(body, unroll=2), carry, xs) == [2]


@pytest.mark.parametrize("name", LEFT)
def test_other_loops_are_left(name):
    body, carry, xs = LEFT[name]
    assert steps_of(scan_of(body), carry, xs) == [1]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", TAKEN)
def test_results_of_the_loop(name, reverse):
    body, carry, xs, _ = TAKEN[name]
    with enable_x64(True):
        assert_equal_to_loop(scan_of(body, reverse=reverse), carry, xs)


@pytest.mark.long
@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(
    st.sampled_from(["walk", "filter", "orbit", "rotation", "integers", "maximum, reset"]),
    st.integers(512, 560),
    st.booleans(),
)
def test_any_length(name, length, reverse):
    body, carry, xs, _ = TAKEN[name]
    xs = None if xs is None else xs[:length]
    function = scan_of(body, reverse=reverse, length=length)
    assert max(steps_of(function, carry, xs)) > 1
    with enable_x64(True):
        assert_equal_to_loop(function, carry, xs)


def test_length_decides():
    assert steps_of(scan_of(affine, length=511), ten) == [1]
    assert steps_of(scan_of(affine, length=512), ten) == [8]
    assert steps_of(scan_of(affine, length=516), ten) == [4]
    assert steps_of(scan_of(affine, length=517), ten) == [8]


def test_python_results():
    carry, ys = np.float64(0.25), []
    for x in numbers:
        carry = carry * 0.9 + 0.1 * x
        ys.append(carry)
    result, collected = hlofront.jit(scan_of(filtered))(np.float32(0.25), numbers)
    np.testing.assert_allclose(result, carry, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(collected, ys, rtol=1e-4, atol=1e-6)


def test_fori_loop_with_its_index():
    def function(x):
        return lax.fori_loop(0, LENGTH, lambda i, x: x * 0.9 + i * 0.001, x)

    assert max(steps_of(function, ten)) == 8
    assert_equal_to_loop(function, ten)


def picked(i, c, xs):
    return c * 0.5 + xs[i]


def picked_twice(i, c, xs):
    return c * 0.5 + (xs[i] - xs[-i]) ** 2


def picked_beside_all(i, c, xs):
    return c * 0.5 + xs[i] + xs * 0.1


def from_table(i, c, xs):
    return c * 0.5 + xs[i % 7]


SLICED = {
    "numbers": (picked, one, numbers, 4),
    "rows": (picked, ten, rows, 4),
    "beyond the end": (picked, one, numbers[:50], 4),
    "one number": (picked, one, numbers[:1], 4),
    "rows of one": (picked, one.reshape(1), numbers.reshape(-1, 1), 4),
    "two numbers": (picked_twice, one, numbers, 4),
    "long rows": (picked, np.ones(100, np.float32), np.ones((LENGTH, 100), np.float32), 1),
    "all numbers": (picked_beside_all, numbers, numbers, 1),
    "of 16 bits": (picked, jnp.asarray(one, "bfloat16"), jnp.asarray(numbers, "bfloat16"), 1),
    "a table": (from_table, one, numbers, 1),
}


@pytest.mark.parametrize("name", SLICED)
def test_elements_that_the_index_picks(name):
    step, carry, xs, steps = SLICED[name]

    def function(carry, xs):
        return lax.fori_loop(0, LENGTH, lambda i, c: step(i, c, xs), carry)

    assert steps_of(function, carry, xs)[0] == steps
    assert_equal_to_loop(function, carry, xs)


def test_special_numbers():
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38, -3e38, 0], np.float32)
    for body in (affine, scaled(0.5), scaled(-2), scaled(4096), scaled(1e10), scaled(1e-10)):
        results = hlofront.jit(scan_of(body))(special)[0]
        wanted = looped(scan_of(body), special)[0]
        np.testing.assert_allclose(results, wanted, rtol=1e-5)


def test_sums_are_rounded_after_each_step():
    total = hlofront.jit(lambda x: lax.fori_loop(0, 100_000, lambda _, c: c + 0.1, x))(
        np.float32(0)
    )
    wanted = np.add.accumulate(np.full(100_000, 0.1, np.float32))[-1]
    assert total == wanted


def test_empty_and_single_elements():
    for shape in ((0,), (1,), (1, 1), (2, 0, 3)):
        assert_equal_to_loop(scan_of(affine), np.ones(shape, np.float32))


def test_derivatives():
    def loss(x, xs):
        carry, ys = lax.scan(lambda c, x: (c * 0.9 + x * c * 0.01, c * x), x, xs)
        return carry + ys.sum()

    assert min(steps_of(hlofront.grad(loss), one, numbers)) > 1
    assert_equal_to_loop(hlofront.grad(loss, (0, 1)), one, numbers)
    assert_equal_to_loop(lambda x, xs: hlofront.jvp(loss, (x, xs), (x, xs)), one, numbers)
    hessian = hlofront.hessian(lambda x: loss(x, numbers))
    assert_equal_to_loop(hessian, one)


def test_batches():
    function = hlofront.vmap(scan_of(filtered))
    assert_equal_to_loop(function, np.ones(3, np.float32), np.stack([numbers] * 3))
    function = hlofront.vmap(lambda c: scan_of(rotated)((c, c + 1)))
    assert steps_of(function, ten) == [8]
    assert_equal_to_loop(function, ten)


def test_nested_scans():
    def outer(c, x):
        c, _ = lax.scan(lambda c, _: (c * 0.99 + x, None), c, None, length=600)
        return c, c

    assert sorted(steps_of(scan_of(outer), ten, numbers[:20])) == [1, 8]
    assert_equal_to_loop(scan_of(outer), ten, numbers[:20])


def test_second_call():
    function = hlofront.jit(scan_of(filtered))
    for carry in (0.0, 1.0):
        carry = np.float32(carry)
        wanted = looped(scan_of(filtered), carry, numbers)
        np.testing.assert_allclose(function(carry, numbers)[1], wanted[1], rtol=1e-5, atol=1e-6)


def test_effects_keep_the_loop():
    seen = []

    def body(c, _):
        hlofront.debug.callback(lambda c: seen.append(float(c)), c)
        return c * 0.5 + 1, None

    assert steps_of(scan_of(body, length=600), one) == [1]
    hlofront.block_until_ready(hlofront.jit(scan_of(body, length=600))(one))
    hlofront.effects_barrier()
    assert len(seen) == 600


def test_checkpoints_keep_the_loop():
    body = hlofront.checkpoint(affine)
    assert steps_of(scan_of(body), one) == [1]
    assert_equal_to_loop(hlofront.grad(lambda x: scan_of(body)(x)[0]), one)


@pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "tpu")])
def test_exported_modules(platforms):
    def function(x):
        return scan_of(affine)(x)[0]

    exported = hlofront.export.export(hlofront.jit(function), platforms=platforms)(ten)
    is_unrolled = "dense<8> : tensor<i32>" in exported.mlir_module()
    assert is_unrolled == (platforms == ("cpu",))
    results = hlofront.export.deserialize(exported.serialize()).call(ten)
    np.testing.assert_allclose(results, looped(function, ten), rtol=1e-5)


def test_fewer_steps_where_fences_would_be_between_them():
    def body(carry, _):
        x, mean = carry
        return (abs((x * 0.9 - 0.1) * 0.95 + 0.05) - 0.01, mean * 0.9 + x), None

    assert steps_of(scan_of(body), (ten, ten)) == [4]
    assert_equal_to_loop(scan_of(body), (ten, ten))


def test_unknown_lengths_keep_the_loop():
    (size,) = hlofront.export.symbolic_shape("n")
    x = hlofront.ShapeDtypeStruct((size,), np.float32)
    exported = hlofront.export.export(hlofront.jit(lambda x: lax.scan(filtered, one, x)))(x)
    results, wanted = exported.call(numbers), looped(scan_of(filtered), one, numbers)
    np.testing.assert_allclose(results[1], wanted[1], rtol=1e-5, atol=1e-6)

    def sized(x):
        return lax.fori_loop(0, x.shape[0], lambda i, y: y * 0.9 + i, one)

    exported = hlofront.export.export(hlofront.jit(sized))(x)
    np.testing.assert_allclose(exported.call(numbers), looped(sized, numbers), rtol=1e-5)


def test_many_equations_are_not_looked_at():
    def body(c, _):
        for _ in range(5000):
            c = c + 1
        return c, None

    assert steps_of(scan_of(body), np.int32(0)) == [1]
