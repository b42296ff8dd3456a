"""Ref, the mutable reference outside of traced functions, and what calls do to its array."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax


def test_writes_do_not_change_the_array_that_a_reference_was_made_of():
    x = jnp.ones(3)
    ref = jax.new_ref(x)
    before = ref[...]
    ref[...] = jnp.zeros(3)
    assert list(x) == list(before) == [1, 1, 1]
    assert list(ref[...]) == [0, 0, 0]


def test_a_jitted_function_writes_to_the_buffer_of_its_reference():
    ref = jax.new_ref(jnp.zeros(1000))
    step = jax.jit(lambda r: r.addupdate(jnp.ones(1000)))
    step(ref)
    array = ref.array
    address = ref.unsafe_buffer_pointer()
    step(ref)
    assert array.is_deleted()
    assert ref.unsafe_buffer_pointer() == address
    assert ref[0] == 2


def test_a_function_that_only_reads_leaves_the_array_alone():
    ref = jax.new_ref(jnp.ones(3))
    array = ref.array
    assert jax.jit(lambda r: r[...].sum())(ref) == 3
    assert ref.array is array


def test_a_jitted_function_with_references_is_traced_once():
    traced = []
    ref = jax.new_ref(jnp.ones(3))

    @jax.jit
    def step(r):
        traced.append(r)
        r[...] *= 2

    for _ in range(3):
        step(ref)
    assert len(traced) == 1
    assert ref[0] == 8


def test_a_frozen_reference_is_not_used_again():
    ref = jax.new_ref(jnp.ones(3))
    assert list(jax.freeze(ref)) == [1, 1, 1]
    with pytest.raises(RuntimeError, match="frozen or freed"):
        ref[...]
    assert repr(ref) == "Ref(<frozen or freed>, Ref{float32[3]})"


def test_a_freed_reference_has_no_array():
    ref = jax.new_ref(jnp.ones(3))
    array = ref.array
    jax.free_ref(ref)
    assert array.is_deleted()
    with pytest.raises(RuntimeError, match="frozen or freed"):
        ref[0] = 1.0


def test_views_are_read_and_written():
    ref = jax.new_ref(jnp.arange(12.0).reshape(3, 4))
    view = ref.at[1:].at[0]
    assert (view.shape, view.ndim, view.size, len(view)) == ((4,), 1, 4, 4)
    view[0] = 9.0
    view.at[2:].addupdate(jnp.ones(2))
    assert list(ref[1]) == [9, 5, 7, 8]
    assert list(view.get()) == [9, 5, 7, 8]


def test_computed_slices_are_read_and_written():
    ref = jax.new_ref(jnp.zeros(5))
    write = jax.jit(lambda r, i: r.__setitem__(jax.ds(i, 2), jnp.ones(2)))
    write(ref, 3)
    assert list(ref[...]) == [0, 0, 0, 1, 1]
    assert list(ref[jax.ds(2, 2, 2)]) == [0, 1]


def test_out_of_bounds_integers_are_refused():
    ref = jax.new_ref(jnp.zeros(3))
    for index in (3, -4, jnp.int32(17)):
        with pytest.raises(ValueError, match="Out of bound indexer"):
            ref[index]


def test_random_keys_may_be_held():
    ref = jax.new_ref(jax.random.key(0))

    @jax.jit
    def draw(keys):
        keys[...], key = jax.random.split(keys[...])
        return jax.random.normal(key)

    assert draw(ref) != draw(ref)


def test_references_are_leaves_of_pytrees_of_arguments():
    state = {"w": jax.new_ref(jnp.ones(2)), "n": jax.new_ref(0)}

    @jax.jit
    def step(state, x):
        state["w"][...] -= x
        state["n"][...] += 1

    step(state, jnp.ones(2))
    step(state, jnp.ones(2))
    assert list(state["w"][...]) == [-1, -1]
    assert state["n"][...] == 2


def test_loops_and_branches_run_by_themselves():
    ref = jax.new_ref(jnp.zeros(3))
    lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(i, jnp.float32(i)), None)
    lax.while_loop(lambda n: ref[0] < n, lambda n: (ref.__setitem__(0, ref[0] + 1), n)[1], 5.0)
    lax.cond(ref[0] > 4, lambda: ref.__setitem__(1, 7.0), lambda: None)
    assert list(ref[...]) == [5, 7, 2]


def test_a_compiled_function_takes_references_and_closes_over_them():
    total, ref = jax.new_ref(jnp.zeros(2)), jax.new_ref(jnp.ones(2))

    def step(r, x):
        r[...] *= x
        total[...] += r[...]
        return r[0]

    compiled = jax.jit(step).lower(ref, 3.0).compile()
    assert compiled(ref, 3.0) == 3
    assert compiled(ref, 3.0) == 9
    assert list(total[...]) == [12, 12]
    assert compiled.output_formats.sharding == total.sharding


def test_stages_and_compiled_functions_refuse_a_reference_with_two_names():
    first, second = jax.new_ref(jnp.arange(3.0)), jax.new_ref(jnp.zeros(3))

    @jax.jit
    def add(a, b):
        a[...] += b[...]

    @jax.jit
    def add_first(a):
        a[...] += first[...]

    compiled = add.lower(first, second).compile()
    for call in (add, add.trace, add.lower, add.eval_shape, compiled):
        with pytest.raises(ValueError, match=r"appeared at both a and b"):
            call(first, first)
    of_first = add_first.lower(second).compile()
    for call in (add_first, add_first.trace, add_first.lower, of_first):
        with pytest.raises(ValueError, match=r"both closed over and passed as the argument a"):
            call(first)
    compiled(second, first)
    of_first(second)
    assert second[...].tolist() == [0, 2, 4]


def test_the_gradient_of_a_function_that_takes_a_reference():
    ref = jax.new_ref(jnp.arange(3.0))
    value, gradient = jax.value_and_grad(lambda r: (r[...] ** 2).sum())(ref)
    assert value == 5
    assert np.allclose(gradient, [0, 2, 4])


def test_freeze_gives_an_array_of_the_type_that_the_reference_has():
    ref = jax.new_ref(1.0)
    ref[...] += 1
    assert jax.freeze(ref).weak_type


def test_no_reference_is_an_array():
    ref = jax.new_ref(jnp.ones(3))
    assert isinstance(ref, jax.Ref)
    assert not isinstance(ref, jax.Array)
    with pytest.raises(TypeError):
        ref + 1
    assert jax.jit(lambda r: isinstance(r, jax.Ref) and not isinstance(r, jax.Array))(ref)
    with pytest.raises(TypeError, match=r"Read it with \[\.\.\.\]"):
        jnp.sin(ref)
    with pytest.raises(ValueError, match=r"read it with \[\.\.\.\]"):
        jax.lax.sin(ref)
    with pytest.raises(TypeError, match="pytree"):
        jax.new_ref([1, 2])


# ---- views ---------------------------------------------------------------------------------------


def test_a_view_has_another_shape():
    def f(x):
        ref = jax.new_ref(x)
        ref.reshape(-1)[3] = 7.0
        ref.at[1].reshape(2, 2)[:, 0] += 1.0
        return ref[...], ref.at[:].reshape((4, 2))[1:3]

    whole, part = jax.jit(f)(jnp.zeros((2, 4)))
    np.testing.assert_array_equal(whole, [[0, 0, 0, 7], [1, 0, 1, 0]])
    np.testing.assert_array_equal(part, [[0, 7], [1, 0]])


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_a_view_has_the_bits_of_another_dtype_packed_along_rows(dtype):
    """Each word holds two halves that are above each other, the upper row in its lower bits."""
    with jax.enable_x64(True):
        halves = np.arange(24, dtype=f"uint{4 * np.dtype(dtype).itemsize}").reshape(4, 6)
        words = halves[0::2] + (halves[1::2].astype(dtype) << np.dtype(dtype).itemsize * 4)

        def f(x, y):
            ref = jax.new_ref(x)
            read = ref.bitcast(dtype)[...]
            ref.at[:, 0:2].bitcast(dtype)[...] = y
            return read, ref[...]

        read, written = jax.jit(f)(halves, np.zeros((2, 2), dtype))
        np.testing.assert_array_equal(read, words.astype(dtype))
        np.testing.assert_array_equal(written, np.where(np.arange(6) < 2, 0, halves))


def test_a_view_says_which_shapes_it_may_have():
    ref = jax.new_ref(jnp.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"shape \(3, 4\) into shape \(5, -1\): it has 12"):
        ref.at[:].reshape(5, -1)
    halves = jax.new_ref(jnp.zeros((3, 4), "float16"))
    with pytest.raises(ValueError, match="a multiple of 2"):
        halves.at[:].bitcast("float32")


def test_derivatives_pass_through_views_of_another_shape():
    def f(x):
        ref = jax.new_ref(x)
        ref.reshape(-1)[1] = 0.0
        return (ref.reshape(4)[...] ** 2).sum()

    np.testing.assert_array_equal(jax.grad(f)(jnp.ones((2, 2))), [[2, 0], [2, 2]])


def test_a_view_of_a_batch_is_one_of_each_example():
    def f(x, i):
        ref = jax.new_ref(x)
        ref.reshape(4).at[i][...] = 9
        return ref.bitcast("uint32")[...], ref.reshape(4)[1:3]

    x, i = np.arange(12, dtype=np.int32).reshape(3, 2, 2), np.arange(3)
    for axis in (0, 1):
        words, parts = jax.vmap(f, (axis, 0))(np.moveaxis(x, 0, axis), i)
        expected = x.reshape(3, 4).copy()
        expected[i, i] = 9
        np.testing.assert_array_equal(words, expected.reshape(3, 2, 2))
        np.testing.assert_array_equal(parts, expected[:, 1:3])
