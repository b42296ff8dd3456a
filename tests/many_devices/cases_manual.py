"""Programs of shard_map and pmap give the values, jaxprs, collectives and errors of jax 0.10.2."""

import json
import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy
import hlofront.sharding
from hlofront.experimental import checkify
from hlofront.experimental.shard_map import shard_map as old_shard_map
from tests.many_devices.manual_answers import ANSWERS, answer, names_for, programs

KEPT = json.loads(ANSWERS.read_text())


@pytest.fixture(scope="module")
def names():
    return names_for(jax)


@pytest.mark.parametrize("program", programs())
def test_as_jax(program, names):
    ours, kept = answer(program, names), KEPT[program]
    if isinstance(kept["value"], str) and not isinstance(kept.get("under jit", ""), str):
        # jax runs this one under jit alone.
        kept["value"] = kept["under jit"]
    assert_same_arrays(ours.pop("value"), kept.pop("value"))
    assert_same_arrays(ours.pop("under jit", "none"), kept.pop("under jit", "none"))
    assert ours == kept


# A number with a point in an array's text, which has four digits after it.
DECIMAL = re.compile(r"-?\d+\.\d*")
PRINTED = 1e-4


def assert_same_arrays(ours, kept):
    """Assert that arrays' dtypes, shapes and texts are equal, up to the last digits of floats.

    Those depend on the processor. The class of an error stands in the place of the arrays.
    """
    if isinstance(ours, str) or isinstance(kept, str):
        assert ours == kept
        return
    for (*type_, text), (*kept_type, kept_text) in zip(ours, kept, strict=True):
        assert type_ == kept_type
        numbers, kept_numbers = (list(map(float, DECIMAL.findall(t))) for t in (text, kept_text))
        np.testing.assert_allclose(numbers, kept_numbers, rtol=PRINTED, atol=2 * PRINTED)
        if not numbers:
            assert text == kept_text


def test_pbroadcast_sends_what_one_index_has(names):
    """jax lowers it for GPUs alone."""
    sm, p = names["sm"], names["P"]
    values = np.arange(8, dtype=np.float32).reshape(8, 1)

    def sent(x):
        return jax.lax.pbroadcast(x, "i", 2)

    mapped = sm(lambda x: jax.lax.pbroadcast(x, ("x", "y"), 2), p(("x", "y")), p(("x", "y")))
    for call in (mapped, jax.vmap(sent, axis_name="i"), jax.pmap(sent, axis_name="i")):
        np.testing.assert_array_equal(call(values), np.full((8, 1), 2.0))
        gradient = jax.grad(lambda x, call=call: (call(x) * values).sum())(values)
        np.testing.assert_array_equal(gradient[:, 0], [0, 0, 28, 0, 0, 0, 0, 0])


def test_checkify_reports_the_error_of_the_first_device(names):
    def checked(part):
        checkify.check(part[0, 0] < 5, "got {}", part[0, 0])
        return part

    def twice(x):
        y = names["sm"](checked, names["P"](("x", "y")), names["P"](("x", "y")))(x)
        checkify.check(y[0, 0] == 0, "the first is {}", y[0, 0])
        return y

    for shift, message in ((0, "got 5"), (4, "got 5"), (-3, "the first is -3")):
        x = np.arange(8).reshape(8, 1) + shift
        error, y = jax.jit(checkify.checkify(twice))(x)
        assert error.get().startswith(message)
        np.testing.assert_array_equal(y, x)


def test_the_older_name_takes_check_rep(names):
    p = names["P"]
    found = old_shard_map(lambda x: x + 1, names["mesh"], p("x"), p("x"), check_rep=False)(
        np.zeros((2, 3))
    )
    assert found.sharding.spec == p("x")


@pytest.mark.parametrize("spec", [("x",), (None, "x"), ("x", "y")])
def test_devices_write_to_their_parts_of_a_reference(spec, names):
    mapped, p = names["sm"], names["P"]
    values = np.arange(16, dtype=np.float32).reshape(4, 4)

    def write(ref, first):
        ref[0] = ref[0] * 2
        ref[...] += first

    def run(x):
        ref = jax.new_ref(x)
        mapped(write, (p(*spec), p()), None)(ref, np.float32(3))
        return ref[...]

    rows = jax.new_ref(jax.numpy.asarray(values))
    mapped(write, (p(*spec), p()), None)(rows, np.float32(3))
    split_rows = spec[0] == "x"
    factors = np.ones((4, 1), np.float32)
    factors[:: 4 // names["mesh"].shape["x"] if split_rows else 4] = 2
    for result in (run(values), jax.jit(run)(values), rows[...]):
        np.testing.assert_array_equal(result, values * factors + 3)


def test_references_that_all_devices_have_take_no_values_that_vary(names):
    mapped, p = names["sm"], names["P"]
    ref = jax.new_ref(jax.numpy.zeros(2))

    def write(ref, x):
        ref[...] = x

    with pytest.raises(ValueError, match="which is the same on all devices along the mesh axis"):
        mapped(write, (p(), p("x")), None)(ref, np.ones(2 * names["mesh"].shape["x"]))


@pytest.mark.parametrize("entries", [(), (None,), ("i",), ("i", None), (None, "i"), (("i", "j"),)])
def test_results_outside_of_jit_have_the_shardings_of_their_specs(entries, names):
    spec = jax.P(*entries)
    mesh = jax.make_mesh((2, 4), ("i", "j"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    result = jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=spec, out_specs=spec)(x)
    assert result.sharding == jax.sharding.NamedSharding(mesh, spec)
    np.testing.assert_array_equal(result, 2 * x)


def test_operands_without_elements():
    """XLA refuses them as operands of the body, next to a result that has elements."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(hlofront.sharding.AxisType.Auto,))
    spec = hlofront.sharding.PartitionSpec("x")
    split = hlofront.sharding.NamedSharding(mesh, spec)
    empty = jax.device_put(np.ones((8, 0), np.float16), split)

    def body(x, y):
        return hlofront.numpy.ones((1,), "int32"), x, y

    mapped = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))
    ones, *others = mapped(empty, empty)
    np.testing.assert_array_equal(ones, np.ones(8))
    assert [(x.shape, x.dtype) for x in others] == [((8, 0), "float16")] * 2
