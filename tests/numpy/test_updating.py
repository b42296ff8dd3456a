"""Updating by an index: as NumPy assigns, on a new array."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import errors
from tests.numpy.test_indexing import CUBE, INDICES

SQUARE = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
TWICE = np.array([0, 2, 2])


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_sets_what_numpy_sets(index):
    values = -np.ones_like(CUBE[index])
    expected = CUBE.copy()
    expected[index] = values
    x = jnp.asarray(CUBE)
    np.testing.assert_array_equal(x.at[index].set(values), expected)
    np.testing.assert_array_equal(jax.jit(lambda x: x.at[index].set(-1.0))(x), expected)
    np.testing.assert_array_equal(x, CUBE)


METHODS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("method", METHODS)
def test_combines_with_all_values_for_an_index(method):
    values = np.array([[2.0], [3.0], [0.5]], np.float32)
    expected = SQUARE.copy()
    METHODS[method].at(expected, TWICE, values)
    x = jnp.asarray(SQUARE)
    np.testing.assert_allclose(getattr(x.at[TWICE], method)(values), expected, rtol=1e-6)
    expected = SQUARE.copy()
    METHODS[method].at(expected, (slice(None), 1), 2)
    np.testing.assert_allclose(getattr(x.at[:, 1], method)(2), expected, rtol=1e-6)


def test_apply_repeats_for_an_index_given_twice():
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(x.at[TWICE].apply(lambda v: v + 10), [10, 1, 22])


def test_out_of_bounds_is_left_out_unless_told():
    x = jnp.zeros(3)
    far = jnp.array([0, 9, -9])
    np.testing.assert_array_equal(x.at[far].add(1), [1, 0, 0])
    np.testing.assert_array_equal(x.at[far].add(1, mode="drop"), [1, 0, 0])
    np.testing.assert_array_equal(x.at[far].add(1, mode="clip"), [2, 0, 1])
    np.testing.assert_array_equal(x.at[far].add(1, mode=jax.lax.GatherScatterMode.CLIP), [2, 0, 1])
    for index in (100, -100, 2**40):
        np.testing.assert_array_equal(x.at[index].set(7), x)
    np.testing.assert_array_equal(x.at[-1].set(1, wrap_negative_indices=False), x)


def test_get_takes_options():
    x = jnp.arange(3.0)
    far = np.array([0, 9])
    np.testing.assert_array_equal(x.at[far].get(), [0, 2])
    np.testing.assert_array_equal(x.at[far].get(mode="fill"), [0, np.nan])
    np.testing.assert_array_equal(x.at[far].get(mode="fill", fill_value=-1), [0, -1])
    assert x.at[9].get(mode="fill", fill_value=5) == 5
    assert jnp.arange(3).at[9].get(mode="fill") == np.iinfo(np.int32).min
    assert x.at[-1].get(wrap_negative_indices=False) == 0
    with pytest.raises(errors.ConcretizationTypeError):
        jax.jit(lambda x: x.at[0].get(mode="fill", fill_value=x[0]))(x)


MASK = SQUARE > 5


@pytest.mark.parametrize("jit", [False, True])
def test_masks_select(jit):
    def update(x, mask, row):
        return (
            x.at[mask].set(0),
            x.at[mask].add(2.5),
            x.at[mask].divide(2),
            x.at[mask].max(8),
            x.at[mask].apply(jnp.negative),
            x.at[mask[:, 3]].set(row),
            x.at[:, mask[1]].set(row[:1]),
            x.at[mask[:, 0], 1:3].multiply(10),
            x.at[..., mask[2]].set(-1),
        )

    expected = []
    rows, columns = MASK[:, 3], MASK[1]
    row = np.arange(4, dtype=np.float32)
    for index, value in (
        (MASK, lambda v: 0),
        (MASK, lambda v: v + 2.5),
        (MASK, lambda v: v / 2),
        (MASK, lambda v: np.maximum(v, 8)),
        (MASK, np.negative),
        (rows, lambda v: row),
        ((slice(None), columns), lambda v: row[:1]),
        ((MASK[:, 0], slice(1, 3)), lambda v: v * 10),
        ((Ellipsis, MASK[2]), lambda v: -1),
    ):
        changed = SQUARE.copy()
        changed[index] = value(changed[index])
        expected.append(changed)
    found = (jax.jit(update) if jit else update)(*map(jnp.asarray, (SQUARE, MASK, row)))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_as_many_values_as_a_mask_has_true_elements():
    x = jnp.arange(4)
    values = jnp.array([7, 8])
    np.testing.assert_array_equal(x.at[x % 2 == 1].set(values), [0, 7, 2, 8])
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x: x.at[x % 2 == 1].set(values))(x)
    with pytest.raises(IndexError, match="mask of shape"):
        jax.jit(lambda x: x.at[(x > 1)[:2]].set(0))(x)


def test_the_dtype_stays():
    assert jnp.zeros(2, jnp.int8).at[0].set(300)[0] == 44
    assert jnp.zeros(2, jnp.bfloat16).at[0].set(1.5).dtype == jnp.bfloat16
    assert jnp.zeros(2).at[0].set(np.float64(2)).dtype == jnp.float32
    assert jax.jit(lambda x: x.at[()].add(2))(1.0).weak_type
    assert jnp.arange(2).at[0].divide(2).dtype == jnp.float32


def test_a_dtype_that_does_not_fit_warns():
    x = jnp.arange(3)
    for value in (1.5, jnp.float32(1.5), np.array([1.5])):
        with pytest.warns(FutureWarning, match="incompatible types"):
            assert x.at[:1].set(value)[0] == 1
    with pytest.warns(FutureWarning, match="incompatible types"):
        assert x.at[x > 5].set(1.5)[0] == 0


def test_lists_are_values():
    x = jnp.zeros((2, 3))
    np.testing.assert_array_equal(x.at[0].set([1, 2, 3])[0], [1, 2, 3])


PROGRAMS = {
    "int": (
        lambda x, i, y: x.at[0].set(1.0),
        """    d:i32[1] = broadcast_in_dim 0:i32[]
    e:f32[3] = broadcast_in_dim 1.0:f32[]
    f:f32[2,3] = scatter[
      dimension_numbers=ScatterDimensionNumbers(update_window_dims=(0,), \
inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), \
scatter_indices_batching_dims=())
      indices_are_sorted=True
      mode=GatherScatterMode.FILL_OR_DROP
      unique_indices=True
      update_consts=()
      update_jaxpr=None
    ] a d e
  in (f,) }""",
    ),
    "traced int": (
        lambda x, i, y: x.at[i].add(y),
        """    d:bool[] = lt b 0:i32[]
    e:i32[] = add b 2:i32[]
    f:i32[] = select_n d b e
    g:i32[1] = broadcast_in_dim f
    h:f32[2,3] = scatter-add[
      dimension_numbers=ScatterDimensionNumbers(update_window_dims=(0,), \
inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), \
scatter_indices_batching_dims=())
      indices_are_sorted=True
      mode=GatherScatterMode.FILL_OR_DROP
      unique_indices=True
      update_consts=()
      update_jaxpr={ lambda ; i:f32[] j:f32[]. let k:f32[] = add i j in (k,) }
    ] a g c
  in (h,) }""",
    ),
    "reversed slice": (
        lambda x, i, y: x.at[::-1].set(y),
        """    d:i32[2] = iota[dimension=0 dtype=int32 shape=(2,) sharding=None] \n\
    e:i32[2] = mul -1:i32[] d
    f:i32[2] = add 1:i32[] e
    g:i32[2] = rev[dimensions=(0,)] f
    h:i32[2,1] = broadcast_in_dim[broadcast_dimensions=(0,)] g
    i:f32[2,3] = broadcast_in_dim[broadcast_dimensions=(1,)] c
    j:f32[2,3] = rev[dimensions=(0,)] i
    k:f32[2,3] = scatter[
      dimension_numbers=ScatterDimensionNumbers(update_window_dims=(1,), \
inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), \
scatter_indices_batching_dims=())
      indices_are_sorted=True
      mode=GatherScatterMode.FILL_OR_DROP
      unique_indices=True
      update_consts=()
      update_jaxpr=None
    ] a h j
  in (k,) }""",
    ),
}


@pytest.mark.parametrize(("program", "text"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_program_is_jaxs(program, text):
    x, i, y = np.ones((2, 3), np.float32), np.int32(1), np.ones(3, np.float32)
    header = "{ lambda ; a:f32[2,3] b:i32[] c:f32[3]. let\n"
    assert str(jax.make_jaxpr(program)(x, i, y)) == header + text


def _assign(x):
    x[0] = 1


def _assign_at(x):
    x.at[0] = 1


REFUSED = {
    "other shape": (lambda x: x.at[0].set(np.ones(3)), ValueError, r"broadcast to \(4,\)"),
    "more axes": (lambda x: x.at[0].set(np.ones((1, 4))), ValueError, "broadcast"),
    "string": (lambda x: x.at[0].set("a"), TypeError, "dtype"),
    "nothing": (lambda x: x.at[0].set(None), ValueError, "None"),
    "ragged": (lambda x: x.at[0].set([[1], [2, 3]]), ValueError, "shape"),
    "mode": (lambda x: x.at[0].set(1, mode="bounce"), ValueError, "bounce"),
    "list": (lambda x: x.at[[0, 1]].set(1), TypeError, "jnp.array"),
    "too many": (lambda x: x.at[0, 0, 0].set(1), IndexError, "Too many"),
    "no elements": (lambda x: x[:0].at[0].set(1), IndexError, "size 0"),
    "call": (lambda x: x.at(0), TypeError, "not callable"),
    "sharding": (lambda x: x.at[0].set(1, out_sharding=1), TypeError, "out_sharding"),
    "assignment": (_assign, TypeError, r"x\.at\[idx\]\.set"),
    "assignment at": (_assign_at, TypeError, r"x\.at\[index\]\.set"),
}


@pytest.mark.parametrize(("update", "error", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses_inside_jit_as_outside(update, error, text):
    x = jnp.ones((3, 4))
    with pytest.raises(error, match=text):
        update(x)
    with pytest.raises(error, match=text):
        jax.make_jaxpr(update)(x)


def test_a_list_may_hold_traced_values():
    x = jnp.zeros(3)
    result = jax.jit(lambda x, y: x.at[1:].set([y, 2 * y]))(x, 4.0)
    np.testing.assert_array_equal(result, [0, 4, 8])
    gradient = jax.grad(lambda y: x.at[:1].add([y]).sum())(1.0)
    assert gradient == 1
