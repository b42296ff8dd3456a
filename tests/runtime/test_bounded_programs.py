"""Programs on arrays that are padded to a bucket: what is masked, and what is refused."""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export, lax
from hlofront.errors import PaddingError
from hlofront.runtime.buckets import bounding
from hlofront.runtime.buckets import program as _rules  # noqa: F401

SIZE, LENGTH = 8, 6


def bounded(fun, *args):
    """Trace `fun` with axes of length 6 symbolic; return it on padded arrays, and its masks."""
    (n,) = export.symbolic_shape("n", constraints=[f"n >= {LENGTH - 1}", f"n <= {SIZE}"])
    shapes = [[n if size == LENGTH else size for size in arg.shape] for arg in args]
    traced = jax.make_jaxpr(fun)(
        *[jax.ShapeDtypeStruct(s, arg.dtype) for s, arg in zip(shapes, args, strict=True)]
    )
    masked = []

    def call(length, *padded):
        interpreter = bounding.Bounded({"n": SIZE}, {"n": length})
        results = interpreter.run(traced, padded)
        masked.extend(line.split(" at ")[0] for line in interpreter.masked)
        return results

    return call, masked


def poisoned(arg):
    rows = [(0, SIZE - LENGTH if size == LENGTH else 0) for size in arg.shape]
    return np.pad(arg, rows, constant_values=np.nan if arg.dtype.kind == "f" else 99)


def check(fun, *args):
    """Compare `fun` on poisoned arrays with `fun` on arrays without padding; return the masks."""
    call, masked = bounded(fun, *args)
    results = jax.jit(call)(np.int32(LENGTH), *map(poisoned, args))
    expected = jax.tree.leaves(fun(*map(jnp.asarray, args)))
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(result[tuple(map(slice, want.shape))], want, rtol=2e-5)
    return masked


def refusal(fun, *args):
    call, _ = bounded(fun, *args)
    with pytest.raises(PaddingError) as caught:
        jax.make_jaxpr(call)(np.int32(LENGTH), *map(poisoned, args))
    return str(caught.value)


rng = np.random.RandomState(0)
X = rng.randn(6, 4).astype(np.float32)
INDICES = rng.randint(0, 6, 6).astype(np.int32)


def test_elementwise_operations_leave_the_padding_alone():
    assert check(lambda x: (jnp.tanh(x) * 2, x > 0, jnp.where(x > 0, x, 0).T), X) == []


def test_reductions_over_a_padded_axis_are_masked():
    assert check(lambda x: x.sum(0), X) == ["reduce_sum"]
    assert check(lambda x: x.sum(1), X) == []
    assert check(lambda x: (x.max(), x.argmin(0), (x > -9).all(), x.prod()), X) == [
        "reduce_max",
        "argmin",
        "reduce_and",
        "reduce_prod",
    ]


def test_a_mean_divides_by_the_true_length():
    check(lambda x: (x.mean(), x.var(0), jax.nn.softmax(x, axis=0)), X)


def test_products_mask_both_operands_as_zero_times_nan_is_nan():
    assert check(lambda x: x.T @ x, X) == ["dot_general"]
    assert check(lambda x: x @ x.T, X) == []


def test_sorting_puts_the_padding_last():
    check(
        lambda x, i: (jnp.sort(x, 0), jnp.argsort(i), -jnp.sort(-i), lax.top_k(x.T, 2)), X, INDICES
    )
    top = np.full(6, np.iinfo(np.int32).max, np.int32)
    check(lambda i: jnp.argsort(i), top)
    # Equal keys of an unstable sort may come in any order, but without those of the padding.
    check(lambda i, x: jnp.sort(lax.sort((i, x), num_keys=1, is_stable=False)[1]), top, X[:, 0])


def test_what_counts_from_the_end_counts_from_the_true_end():
    check(lambda x: (x[-1], x[-3:], x[:-1], x[::-1], jnp.roll(x, 2, axis=0), x[1::2]), X)
    check(lambda x: (jnp.concatenate([x, x]), jnp.pad(x, ((1, 2), (0, 0)))), X)
    check(lambda x: lax.cumsum(x, 0, reverse=True), X)


def test_computed_indices_are_clamped_or_dropped_as_without_padding():
    check(lambda x: lax.dynamic_slice(x, (9, 0), (2, 4)), X)
    check(lambda x: lax.dynamic_update_slice(x, jnp.ones((2, 4)), (9, 0)), X)
    for start in (0, 1, 7):
        check(lambda x, at=start: lax.dynamic_update_slice(jnp.ones((9, 4)), x, (at, 0)), X)
    for mode in ("fill", "clip"):
        check(lambda x, i, mode=mode: jnp.take(x, i + 3, axis=0, mode=mode), X, INDICES)
        check(lambda x, i, mode=mode: jnp.zeros_like(x).at[i + 3].add(x, mode=mode), X, INDICES)


def test_updates_that_are_padding_are_dropped():
    assert check(lambda x, i: jax.ops.segment_sum(x, i % 3, 3), X, INDICES) == ["scatter-add"]
    assert check(jax.grad(lambda e, i: (e[i] ** 2).sum()), np.ones((9, 2), np.float32), INDICES)


def test_scan_over_a_padded_axis_has_the_true_number_of_iterations():
    def step(carry, x):
        return jnp.tanh(carry * 0.5 + x), carry

    check(lambda x: lax.scan(step, jnp.zeros(4), x), X)
    check(lambda x: lax.scan(step, jnp.zeros(4), x, reverse=True), X)
    check(jax.grad(lambda x: lax.scan(step, jnp.zeros(4), x)[0].sum()), X)
    check(lambda x: lax.scan(lambda c, r: (c + r.mean(), r - r.mean()), 0.0, x.T), X)


def test_loops_that_are_mapped_over_a_padded_axis_end():
    def until_large(row):
        return lax.while_loop(lambda c: c.sum() < 100, lambda c: 2 * c + 1, row)

    check(lambda x: jax.vmap(until_large)(abs(x)), X)
    # The condition of an example that is padding is masked, whose loop may not end.
    call, _ = bounded(jax.vmap(until_large), X)
    program = jax.make_jaxpr(call)(np.int32(LENGTH), poisoned(X))
    (loop,) = [e for e in program.eqns if e.primitive.name == "while"]
    assert "and" in [e.primitive.name for e in loop.params["cond_jaxpr"].eqns]


def test_branches_calls_and_checkpoints_are_entered():
    check(lambda x: lax.cond(x.sum() > 0, lambda: x.mean(0), lambda: x.max(0)), X)
    check(lambda x: jax.jit(lambda y: y.mean())(x) + jax.nn.relu(x).mean(), X)
    loss = jax.checkpoint(lambda w, x: jnp.tanh(x @ w).mean())
    check(jax.grad(lambda w, x: loss(w, x)), np.ones((4, 2), np.float32), X)


def test_a_program_that_is_called_at_many_levels_is_made_once():
    fun = jnp.sin
    for _ in range(40):
        fun = jax.jit(lambda x, fun=fun: fun(x) + fun(x).mean())
    call, masked = bounded(fun, X)
    program = jax.make_jaxpr(call)(np.int32(LENGTH), poisoned(X))
    assert masked == ["reduce_sum"]
    assert len(str(program)) < 200_000
    check(jax.jit(lambda x: jax.jit(jnp.mean)(x) + x), X)


def test_random_numbers_of_each_index_are_those_without_padding():
    key = jax.random.key(0)
    check(lambda x: jax.random.normal(key, x.shape) + x, X)
    assert "random_bits" in refusal(lambda x: jax.random.normal(key, x.T.shape) + x.T, X)


def test_random_bits_of_each_width_are_those_without_padding():
    key = jax.random.key(3)
    for dtype in ("uint8", "uint16", "uint32"):
        check(lambda x, dtype=dtype: jax.random.bits(key, x.shape, dtype), X)
    with jax.enable_x64(True):
        check(lambda x: jax.random.bits(key, x.shape, "uint64"), X)
    with jax.threefry_partitionable(False):
        assert "random_bits" in refusal(lambda x: jax.random.bits(key, x.shape), X)
    rbg = jax.random.key(3, impl="rbg")
    assert "random_bits" in refusal(lambda x: jax.random.bits(rbg, x.shape), X)


def test_keys_of_a_padded_axis():
    key = jax.random.key(0)

    def of_seed(seed):
        mine = jax.random.fold_in(jax.random.key(seed), seed)
        again = jax.random.wrap_key_data(jax.random.key_data(jax.random.clone(mine)))
        return jax.random.normal(again, (2,))

    check(jax.vmap(of_seed), INDICES)
    check(lambda x: jax.vmap(jax.random.uniform)(jax.random.split(key, x.shape[0])), X)
    assert "random_split" in refusal(
        lambda x: jax.random.key_data(jax.random.split(key, (2, x.shape[0]))), X
    )


def test_rules_of_the_user_and_what_passes_values_on():
    @jax.custom_vjp
    def halved(x):
        return x / 2

    halved.defvjp(lambda x: (x / 2, None), lambda _, ct: (ct.mean() + ct,))
    scaled = jax.custom_batching.custom_vmap(lambda x: x * 3)
    scaled.def_vmap(lambda size, batched, x: (x * 3, True))
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    check(lambda x: (halved(x), jax.grad(lambda y: (halved(y) ** 2).sum())(x)), X)
    check(lambda x: (scaled(x), jax.vmap(scaled)(x)), X)
    check(lambda x: jax.lax.with_sharding_constraint(x, here).sum(), X)
    check(jax.grad(lambda x: (jax.ad_checkpoint.checkpoint_name(x, "x") * x).mean()), X)
    check(lambda x: jax.lax.optimization_barrier(x).sum(), X)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: x.T.reshape(-1), "reshape .* Move that axis to the front"),
        (lambda x: jnp.fft.fft(x, axis=0), "fft .* depends on all along the padded axis"),
        (lambda x: jnp.linalg.cholesky(x @ x.T), "cholesky .* depends on all along"),
        (lambda x: jnp.tile(x, (2, 1)), "tile .* padding between"),
        (lambda x: jax.pure_callback(np.sin, x, x), "pure_callback .* is not known"),
        (lambda x: jnp.zeros(20 - x.shape[0]), "broadcast_in_dim .* size - n \\+ 20"),
    ],
)
def test_operations_through_which_padding_would_reach_results_are_refused(fun, words):
    message = refusal(fun, X).replace("\n", " ")
    assert re.search(words, message)
    assert "test_bounded_programs.py" in message
    assert "is not possible in buckets (n up to 8)" in message
