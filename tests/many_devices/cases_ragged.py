"""ragged_all_to_all moves rows as a loop of NumPy does; other platforms get jax's operation."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.errors import NoRuleError
from hlofront.sharding import AxisType
from hlofront.sharding import PartitionSpec as P

EXCHANGES = [(None, 1), (None, 2), ([[0, 3, 4, 5], [1, 2, 6, 7]], 2)]
ROWS, RESULT_ROWS, WIDTH = 60, 60, 3


def by_loop(operand, output, sources, sizes, targets, groups):
    """What each of the indices, which are axis 0, has after the exchange."""
    result = output.copy()
    for group in groups:
        share = sizes.shape[1] // len(group)
        for sender in group:
            for i, size in enumerate(sizes[sender]):
                target, source = targets[sender, i], sources[sender, i]
                result[group[i // share], target : target + size] = operand[
                    sender, source : source + size
                ]
    return result


def exchange(groups, share, seed):
    """Operands for eight indices: random sizes, some 0, and receivers with gaps between slices."""
    random = np.random.default_rng(seed)
    slices = len(groups[0]) * share
    sizes = random.integers(0, 3, (8, slices))
    sources = np.cumsum(sizes, axis=1) - sizes
    targets, received = np.zeros((2, 8, slices), int)
    for group in groups:
        for to, receiver in enumerate(group):
            row = 0
            for by, sender in enumerate(group):
                for i in range(share):
                    size = sizes[sender, to * share + i]
                    targets[sender, to * share + i] = row
                    received[receiver, by * share + i] = size
                    row += size + random.integers(2)
    operand = random.normal(size=(8, ROWS, WIDTH)).astype(np.float32)
    output = random.normal(size=(8, RESULT_ROWS, WIDTH)).astype(np.float32)
    return operand, output, *(x.astype(np.int32) for x in (sources, sizes, targets, received))


def in_vmap(function):
    return jax.vmap(function, axis_name="i")


def in_pmap(function):
    return jax.pmap(function, axis_name="i")


def in_shard_map(function, **options):
    mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))

    def per_shard(*operands):
        return function(*[x[0] for x in operands])[None]

    return jax.shard_map(per_shard, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options)


def in_unchecked_shard_map(function):
    return in_shard_map(function, check_vma=False)


@pytest.mark.parametrize("mapped", [in_vmap, in_pmap, in_shard_map, in_unchecked_shard_map])
@pytest.mark.parametrize(("groups", "share"), EXCHANGES)
def test_values_and_derivatives(mapped, groups, share):
    whole = groups or [list(range(8))]
    operand, output, *numbers = exchange(whole, share, seed=share)

    def moved(operand, output):
        return by_loop(operand, output, *numbers[:3], whole)

    call = mapped(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i", axis_index_groups=groups))
    function = jax.jit(lambda operand, output: call(operand, output, *numbers))
    np.testing.assert_array_equal(function(operand, output), moved(operand, output))
    tangents = np.sin(operand), np.cos(output)
    np.testing.assert_array_equal(
        jax.jvp(function, (operand, output), tangents)[1], moved(*tangents)
    )
    # The exchange is linear, so that <w, exchange(t)> is <pull(w), t> for each t.
    weights = np.cos(np.arange(output.size, dtype=np.float32)).reshape(output.shape)
    of_operand, of_output = jax.vjp(function, operand, output)[1](weights)
    one, none = np.ones_like(operand), np.zeros_like(output)
    np.testing.assert_array_equal(of_output, weights * (1 - moved(one, none)))
    numbered = moved(1 + np.arange(operand.size).reshape(operand.shape), none.astype(int))
    wanted = np.zeros(operand.size, np.float32)
    wanted[numbered[numbered > 0] - 1] = weights[numbered > 0]
    np.testing.assert_array_equal(of_operand.ravel(), wanted)


def test_examples_of_a_batch_are_exchanged_at_once():
    whole = [list(range(8))]
    first, second = exchange(whole, 2, seed=3), exchange(whole, 2, seed=4)
    both = [np.stack(pair, axis=1) for pair in zip(first, second, strict=True)]
    mapped = jax.vmap(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i"))
    wanted = np.stack([by_loop(*each[:5], whole) for each in (first, second)], axis=1)
    np.testing.assert_array_equal(in_pmap(mapped)(*both), wanted)
    text = str(jax.make_jaxpr(in_pmap(mapped))(*both))
    assert text.count("ragged_all_to_all[") == 1


def lowered(function, *operands, platform):
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    call = jax.shard_map(function, mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    return jax.jit(call).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_other_platforms_have_an_operation_for_it(platform):
    """jax 0.10.2 lowers to the same line."""
    rows, numbers = np.ones((8, 3), np.float32), np.zeros(16, np.int32)
    text = lowered(
        lambda *xs: lax.ragged_all_to_all(*xs, axis_name="y", axis_index_groups=[[0, 1], [2, 3]]),
        rows,
        rows,
        numbers,
        numbers,
        numbers,
        numbers,
        platform=platform,
    )
    assert (
        "stablehlo.custom_call @ragged_all_to_all(%arg6, %arg7, %arg8, %arg9, %arg10, %arg11) "
        "{api_version = 4 : i32, backend_config = {channel_id = 1 : i64, replica_groups = "
        "dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>}}"
    ) in text


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({3: np.zeros(8, np.float32)}, ValueError, "send_sizes must be integer type"),
        ({2: np.zeros((8, 1), np.int32)}, ValueError, "input_offsets must be rank 1"),
        ({4: np.zeros(16, np.int32)}, ValueError, "of equal length"),
        ({1: np.zeros((4, 3), np.int32)}, TypeError, "of equal dtype"),
        ({1: np.zeros((4, 2), np.float32)}, ValueError, "differ only in axis 0"),
    ],
)
def test_operands_that_do_not_fit(changed, error, message):
    rows, numbers = np.ones((4, 3), np.float32), np.zeros(8, np.int32)
    operands = [rows, rows, numbers, numbers, numbers, numbers]
    for position, operand in changed.items():
        operands[position] = operand
    with pytest.raises(error, match=message):
        jax.make_jaxpr(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i"), axis_env=[("i", 8)])(
            *operands
        )


def sent_and_received(x):
    token = lax.psend(x, "y", [(0, 1), (1, 2)])
    return lax.precv(token, jax.ShapeDtypeStruct(x.shape, x.dtype), "y", [(0, 1), (1, 2)])


def test_sends_and_receives_are_for_gpus():
    x = np.ones((4, 8), np.float32)
    text = lowered(sent_and_received, x, platform="cuda")
    pairs = "source_target_pairs = dense<[[0, 1], [1, 2], [4, 5], [5, 6]]> : tensor<4x2xi64>"
    assert '"stablehlo.send"(%arg1, %1)' in text and '"stablehlo.recv"(%2)' in text
    assert text.count(pairs) == 2
    with pytest.raises(NoRuleError, match="psend cannot be lowered for cpu, only for cuda"):
        lowered(sent_and_received, x, platform="cpu")


def test_what_nobody_uses_is_sent_all_the_same():
    program = jax.make_jaxpr(
        lambda x: (lax.psend(x, "y", [(0, 1)]), jnp.sin(x))[1], axis_env=[("y", 4)]
    )(1.0)
    assert "psend" in str(program)
    assert {str(effect) for effect in program.effects} == {"Transfer"}
