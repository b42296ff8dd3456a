"""Reading by an index: as NumPy does, by the operations that JAX uses."""

import itertools

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import errors
from hlofront.numpy.indexing import reading as indexing

CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ROWS = np.array([2, 0, -1])
INDICES = {
    "int": 1,
    "last": -1,
    "ints": (1, 2),
    "all ints": (0, -1, 2),
    "numpy int": np.int64(1),
    "slice": slice(1, 3),
    "slices": (slice(1, None), slice(None, -1), slice(0, 4, 3)),
    "reversed": slice(None, None, -1),
    "reversed with step": (slice(None), slice(3, 0, -2)),
    "past the end": slice(1, 100),
    "empty slice": (slice(2, 1), slice(0, 2)),
    "empty reversed": slice(0, 2, -1),
    "int and slice": (0, slice(1, 3)),
    "slice and int": (slice(1, 3), 0),
    "ellipsis": Ellipsis,
    "ellipsis, int": (Ellipsis, 0),
    "int, ellipsis, int": (1, Ellipsis, 2),
    "new axes": (slice(None), None, 0, None),
    "nothing": (),
    "array": ROWS,
    "array of rank 0": np.array(1),
    "array of rank 2": ROWS.reshape(3, 1),
    "uint8 array": np.array([2, 0], np.uint8),
    "arrays that broadcast": (ROWS[:, None], ROWS[None, :]),
    "array and int": (ROWS, 1),
    "int, slice, array": (0, slice(None), ROWS),
    "slice, array": (slice(1, 3), ROWS),
    "array, reversed slice": (ROWS, slice(None, None, -2)),
    "array, slice, array": (ROWS, slice(None), ROWS),
    "array, new axis": (ROWS, None, slice(1, 2)),
    "new axis, array": (None, ROWS, Ellipsis, None),
    "array, ellipsis, array": (ROWS, Ellipsis, ROWS),
    "new axis, array, ellipsis of no axis, array": (None, ROWS, Ellipsis, ROWS, slice(1, 3)),
    "empty array": np.zeros((0,), np.int32),
    "tuple in a tuple": ([0, 2],),
    "mask": np.array([True, False, True]),
    "mask of rank 2": CUBE[..., 0] > 20,
    "mask of full rank": CUBE % 7 == 1,
    "mask of nothing": np.zeros(3, bool),
    "mask and int": (np.array([True, False, True]), 1),
    "slice and mask": (slice(None), np.array([True, False, True, True])),
    "true": True,
    "false": (Ellipsis, False),
    "true and array": (True, ROWS),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_reads_what_numpy_reads(index):
    expected = CUBE[index]
    x = jnp.asarray(CUBE)
    for found in (x[index], jax.jit(lambda x: x[index])(x)):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def test_traced_indices_read_the_same():
    @jax.jit
    def read(x, i, many):
        return x[i], x[i, 1:3], x[0, i, ::2], x[:, i], x[many], x[many, 1], x[1:, many, i]

    x = jnp.asarray(CUBE)
    for i in (1, -2):
        found = read(x, i, ROWS)
        expected = (
            CUBE[i],
            CUBE[i, 1:3],
            CUBE[0, i, ::2],
            CUBE[:, i],
            CUBE[ROWS],
            CUBE[ROWS, 1],
            CUBE[1:, ROWS, i],
        )
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("place", [4, 100, -5, -100])
def test_out_of_bounds_reads_the_nearest(place):
    x = jnp.arange(4)
    nearest = 3 if place > 0 else 0
    assert x[place] == nearest
    assert x[jnp.array([place])][0] == nearest
    assert jax.jit(lambda x, i: x[i])(x, place) == nearest
    assert jax.jit(lambda x: x[place])(x) == nearest


def test_narrow_indices_reach_all_of_a_long_axis():
    x = jnp.arange(300)
    assert x[jnp.array([-1], jnp.int8)][0] == 299
    assert x[jnp.int8(-2)] == 298


def test_unsigned_indices_beyond_int32_are_out_of_bounds_at_the_end():
    x = jnp.arange(4)
    far = jnp.uint32(2**32 - 2)
    assert x[far] == jax.jit(lambda x, i: x[i])(x, far) == 3
    assert x.at[far].get(mode="clip", wrap_negative_indices=False) == 3
    assert "lt" not in str(jax.make_jaxpr(lambda x, i: x[i])(x, jnp.uint8(1)))
    with jax.enable_x64(True):
        for index, nearest in ((2**32 + 1, 3), (-(2**32) - 1, 0)):
            assert x[jnp.int64(index)] == nearest


def test_the_dtype_and_weakness_stay():
    x = jnp.ones(3, jnp.bfloat16)
    assert x[0].dtype == x[jnp.array([1])].dtype == jnp.bfloat16
    assert jax.jit(lambda x: x[None])(1.0).weak_type


def test_ints_and_starts_of_slices_share_an_executable():
    x = jnp.asarray(CUBE)
    assert (x[1, 2:4].shape, x[0].shape) == ((2, 5), (4, 5))
    made = indexing._basic._cache_size()
    np.testing.assert_array_equal(x[2], CUBE[2])
    np.testing.assert_array_equal(x[-3], CUBE[0])
    np.testing.assert_array_equal(x[2, 1:3], CUBE[2, 1:3])
    assert indexing._basic._cache_size() == made


def test_what_changes_nothing_is_the_array_itself():
    x = jnp.asarray(CUBE)
    assert x[...] is x
    assert x[:, :] is x


PROGRAMS = {
    "slice, int": (
        lambda x, i: x[1:2, 0],
        """{ lambda ; a:f32[2,3] b:i32[]. let
    c:f32[1,1] = slice[limit_indices=(2, 1) start_indices=(1, 0) strides=None] a
    d:f32[1] = squeeze[dimensions=(1,)] c
  in (d,) }""",
    ),
    "new axis": (
        lambda x, i: x[None, :, -1],
        """{ lambda ; a:f32[2,3] b:i32[]. let
    c:f32[2,1] = slice[limit_indices=(2, 3) start_indices=(0, 2) strides=None] a
    d:f32[2] = squeeze[dimensions=(1,)] c
    e:f32[1,2] = broadcast_in_dim[broadcast_dimensions=(1,)] d
  in (e,) }""",
    ),
    "reversed": (
        lambda x, i: x[::-1, ::-2],
        """{ lambda ; a:f32[2,3] b:i32[]. let
    c:f32[2,2] = slice[limit_indices=(2, 3) start_indices=(0, 0) strides=(1, 2)] a
    d:f32[2,2] = rev[dimensions=(0, 1)] c
  in (d,) }""",
    ),
    "traced int": (
        lambda x, i: x[:, i],
        """{ lambda ; a:f32[2,3] b:i32[]. let
    c:bool[] = lt 0:i32[] 0:i32[]
    d:i32[] = add 0:i32[] 2:i32[]
    e:i32[] = select_n c 0:i32[] d
    f:bool[] = lt b 0:i32[]
    g:i32[] = add b 3:i32[]
    h:i32[] = select_n f b g
    i:f32[2,1] = dynamic_slice[slice_sizes=(2, 1)] a e h
    j:f32[2] = squeeze[dimensions=(1,)] i
  in (j,) }""",
    ),
    "traced array": (
        lambda x, i: x[i[None]],
        """{ lambda ; a:f32[2,3] b:i32[]. let
    c:i32[1] = broadcast_in_dim b
    d:bool[1] = lt c 0:i32[]
    e:i32[1] = add c 2:i32[]
    f:i32[1] = select_n d c e
    g:i32[1,1] = broadcast_in_dim[broadcast_dimensions=(0,)] f
    h:f32[1,3] = gather[
      dimension_numbers=GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), \
start_index_map=(0,), operand_batching_dims=(), start_indices_batching_dims=())
      fill_value=None
      indices_are_sorted=False
      mode=GatherScatterMode.PROMISE_IN_BOUNDS
      slice_sizes=(1, 3)
      unique_indices=False
    ] a g
  in (h,) }""",
    ),
    "rows": (
        lambda x, i: list(x)[1],
        """{ lambda ; a:f32[2,3] b:i32[]. let
    c:f32[1,3] = slice[limit_indices=(1, 3) start_indices=(0, 0) strides=(1, 1)] a
    _:f32[3] = squeeze[dimensions=(0,)] c
    d:f32[1,3] = slice[limit_indices=(2, 3) start_indices=(1, 0) strides=(1, 1)] a
    e:f32[3] = squeeze[dimensions=(0,)] d
  in (e,) }""",
    ),
}


@pytest.mark.parametrize(("program", "text"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_program_is_jaxs(program, text):
    assert str(jax.make_jaxpr(program)(np.ones((2, 3), np.float32), np.int32(1))) == text


REFUSED = {
    "list": (lambda x: x[[0, 1]], TypeError, "jnp.array"),
    "list with a slice": (lambda x: x[[slice(1)]], TypeError, "tuple"),
    "float": (lambda x: x[1.0], TypeError, "integer or boolean"),
    "float array": (lambda x: x[np.array([0.0])], TypeError, "float64"),
    "string": (lambda x: x["a"], TypeError, "string"),
    "slice of floats": (lambda x: x[0.0:2.0], TypeError, "slice indices"),
    "step zero": (lambda x: x[::0], ValueError, "zero"),
    "object": (lambda x: x[object()], IndexError, "only integers"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "2-dimensional"),
    "too many after an ellipsis": (lambda x: x[..., 0, 0, 0], IndexError, "Too many"),
    "two ellipses": (lambda x: x[..., ...], IndexError, "single ellipsis"),
    "mask of another length": (lambda x: x[np.array([True])], IndexError, "boolean index"),
    "arrays that do not fit": (lambda x: x[ROWS, ROWS[:2]], ValueError, "ix_"),
    "huge": (lambda x: x[2**40], OverflowError, "int32"),
    "of a scalar": (lambda x: x[0, 0][0], IndexError, "0-dimensional"),
    "no elements": (lambda x: x[:0][0], IndexError, "size 0"),
    "no elements, array": (lambda x: x[:0][ROWS], TypeError, "size 0"),
    "iterating over a scalar": (lambda x: list(x[0, 0]), TypeError, "0-d array"),
}


@pytest.mark.parametrize(("read", "error", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses_inside_jit_as_outside(read, error, text):
    x = jnp.ones((3, 4))
    with pytest.raises(error, match=text):
        read(x)
    with pytest.raises(error, match=text):
        jax.make_jaxpr(read)(x)


def test_a_traced_mask_or_slice_is_refused_with_advice():
    x = jnp.arange(3.0)
    with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"jnp\.where"):
        jax.jit(lambda x: x[x > 1])(x)
    with pytest.raises(IndexError, match="dynamic_slice"):
        jax.jit(lambda x, n: x[:n])(x, 2)


def test_slices_whose_start_is_computed():
    x, rows = jnp.arange(6.0), jnp.arange(12.0).reshape(3, 4)
    at = jax.jit(lambda i: x[jax.ds(i, 2)])
    assert [at(i).tolist() for i in (0, 3, 5, -2)] == [[0, 1], [3, 4], [4, 5], [4, 5]]
    assert x[jax.ds(4, 4)].tolist() == [2, 3, 4, 5] and x[jax.ds(-1, 2)].tolist() == [4, 5]
    assert x[jax.ds(2)].tolist() == [0, 1] and x[jax.ds(None)].shape == (6,)
    assert x[jax.ds(1, 2, 2)].tolist() == [1, 3]
    assert jax.jit(lambda i: x[jax.ds(i, 3, 2)])(0).tolist() == [0, 2, 4]
    np.testing.assert_array_equal(rows[jax.ds(1, 2), 1], [5, 9])
    np.testing.assert_array_equal(rows[..., jax.ds(1, 2)], rows[:, 1:3])
    np.testing.assert_array_equal(rows[None, jax.ds(1, 2)], rows[None, 1:])
    np.testing.assert_array_equal(rows[jax.ds(0, 2), jnp.array([0, 1])], rows[:2, :2])
    np.testing.assert_array_equal(jax.vmap(at)(jnp.arange(3)), [[0, 1], [1, 2], [2, 3]])
    assert jax.jit(lambda i: x.at[jax.ds(i, 2)].set(9.0))(1).tolist() == [0, 9, 9, 3, 4, 5]
    assert jax.grad(lambda x: x[jax.ds(1, 2)].sum())(x).tolist() == [0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("size", [9, -2])
def test_slices_that_do_not_fit(size):
    with pytest.raises(TypeError, match="elements long"):
        jnp.arange(6)[jax.ds(1, size)]


def test_slices_are_pytrees_of_what_is_traced():
    assert jax.tree.leaves(jax.ds(1, 2)) == []
    window = jax.jit(lambda i: jax.tree.map(lambda leaf: leaf + 1, jax.ds(i, 2)).start)
    assert int(window(3)) == 4
    assert type(jax.ds(1, 2)).from_slice(slice(1, 5, 2), 6) == jax.ds(1, 2, 2)
    with pytest.raises(ValueError, match="stride"):
        jax.ds(1, 2, -1)
    with pytest.raises(TypeError, match="size that is known"):
        jax.jit(lambda n: jnp.arange(6)[jax.ds(1, n)])(2)


def test_devices_are_of_a_public_class():
    assert all(isinstance(device, jax.Device) for device in jax.devices())


@pytest.mark.parametrize("step", [1, -1, 2, -2])
def test_slices_beside_a_computed_index(step):
    x = np.arange(21.0, dtype=np.float32).reshape(3, 7)
    for start, stop in itertools.product((None, -8, -3, 0, 5, 9), (None, -9, -2, 1, 8)):
        part = slice(start, stop, step)
        program = jax.make_jaxpr(lambda x, i, part=part: x[i, part])(x, 1)
        found = jax.core.eval_jaxpr(program.jaxpr, (), x, np.int32(1))[0]
        np.testing.assert_array_equal(found, x[1, part])
