"""Mutable references under each interpreter: a function goes in, the text of a jaxpr comes out.

A reference has a type, `Ref{f32[3]}`; `c <- b[...]` reads it, `b[0] <- c` writes to it, `b[0] += c`
adds to it. Discharge turns references into values, which can be lowered.
"""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.transforms.discharge import discharge_program
from tests.support.jaxprs import VECTOR, assert_prints

make_jaxpr = jax.make_jaxpr


def doubled(x):
    ref = jax.new_ref(x)
    ref[0] *= 2
    return ref[...]


def test_tracing_writes_reads_and_writes_in_order():
    assert_prints(
        make_jaxpr(doubled)(VECTOR),
        """
        { lambda ; a:f32[3]. let
            b:Ref{f32[3]} = new_ref[kind=None memory_space=None] a
            c:f32[] <- b[0]
            d:f32[] = mul c 2.0:f32[]
            b[0] <- d
            e:f32[3] <- b[...]
          in (e,) }
        """,
    )


def test_discharge_makes_values_of_references():
    program, written = discharge_program(make_jaxpr(doubled)(VECTOR))
    assert_prints(
        program,
        """
        { lambda ; a:f32[3]. let
            b:f32[1] = slice[limit_indices=(1,) start_indices=(0,) strides=None] a
            c:f32[] = reshape[dimensions=None new_sizes=() sharding=None] b
            d:f32[] = mul c 2.0:f32[]
            e:f32[1] = reshape[dimensions=None new_sizes=(1,) sharding=None] d
            f:f32[3] = dynamic_update_slice a e 0:i32[]
          in (f,) }
        """,
    )
    assert written == (False,)


def test_discharge_returns_the_new_arrays_of_inputs_that_are_written_to():
    def f(read, written):
        written.addupdate(read[...])

    refs = [jax.new_ref(np.zeros(3, np.float32)) for _ in range(2)]
    program, written = discharge_program(make_jaxpr(f)(*refs))
    assert_prints(program, "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add b a in (c,) }")
    assert written == (False, True)


def test_discharge_carries_what_a_loop_writes_to():
    def f(x):
        ref = jax.new_ref(x)
        lax.scan(lambda _, y: (ref.addupdate(y), None), None, jnp.ones((2, 3)))
        return ref[...]

    program, _ = discharge_program(make_jaxpr(f)(VECTOR))
    (scan,) = [e for e in program.eqns if e.primitive.name == "scan"]
    assert (scan.params["num_consts"], scan.params["num_carry"]) == (0, 1)
    assert not program.effects


def test_jvp_has_a_reference_to_the_tangent():
    assert_prints(
        make_jaxpr(lambda x, t: jax.jvp(doubled, (x,), (t,))[1])(VECTOR, VECTOR),
        """
        { lambda ; a:f32[3] b:f32[3]. let
            c:Ref{f32[3]} = new_ref[kind=None memory_space=None] a
            d:Ref{f32[3]} = new_ref[kind=None memory_space=None] b
            e:f32[] <- c[0]
            f:f32[] <- d[0]
            g:f32[] = mul e 2.0:f32[]
            h:f32[] = mul f 2.0:f32[]
            c[0] <- g
            d[0] <- h
            _:f32[3] <- c[...]
            i:f32[3] <- d[...]
          in (i,) }
        """,
    )


def test_linearize_stages_the_reference_to_the_tangent_alone():
    _, linear = jax.linearize(doubled, np.ones(3, np.float32))
    assert_prints(
        linear.spec.jaxpr,
        """
        { lambda ; a:f32[3]. let
            b:Ref{f32[3]} = new_ref[kind=None memory_space=None] a
            c:f32[] <- b[0]
            d:f32[] = mul c 2.0:f32[]
            b[0] <- d
            e:f32[3] <- b[...]
          in (e,) }
        """,
    )


def test_cotangents_accumulate_in_a_reference():
    assert_prints(
        make_jaxpr(lambda x, t: jax.linear_transpose(doubled, x)(t)[0])(VECTOR, VECTOR),
        """
        { lambda ; a:f32[3] b:f32[3]. let
            c:Ref{f32[3]} = new_ref[kind=None memory_space=None] b
            d:f32[], c[0] <- c[0], 0.0:f32[]
            e:f32[] = mul d 2.0:f32[]
            c[0] += e
            f:f32[3] = freeze c
          in (f,) }
        """,
    )


def test_vmap_makes_batched_references():
    assert_prints(
        make_jaxpr(jax.vmap(doubled))(np.ones((2, 3), np.float32)),
        """
        { lambda ; a:f32[2,3]. let
            b:Ref{f32[2,3]} = new_ref[kind=None memory_space=None] a
            c:f32[2] <- b[:,0]
            d:f32[2] = mul c 2.0:f32[]
            b[:,0] <- d
            e:f32[2,3] <- b[...]
          in (e,) }
        """,
    )


def test_the_cotangent_of_a_loop_is_in_a_constant_of_the_backward_loop():
    def f(xs):
        ref = jax.new_ref(jnp.float32(0))
        lax.scan(lambda _, x: (ref.addupdate(jnp.sin(x)), None), None, xs)
        return ref[...]

    jaxpr = make_jaxpr(jax.grad(f))(VECTOR)
    backwards = jaxpr.eqns[-1] if jaxpr.eqns[-1].primitive.name == "scan" else jaxpr.eqns[-2]
    assert backwards.primitive.name == "scan"
    assert any(type(v.aval).__name__ == "AbstractRef" for v in backwards.invars)


def test_what_checkpoint_reads_again_it_writes_again():
    def f(x):
        ref = jax.new_ref(x)
        ref[...] = jnp.sin(ref[...])
        return jnp.sin(ref[...]).sum()

    x = jnp.arange(3.0)
    assert np.allclose(jax.grad(jax.checkpoint(f))(x), jnp.cos(jnp.sin(x)) * jnp.cos(x))


def test_functions_with_custom_derivatives_may_use_references():
    @jax.custom_jvp
    def f(x):
        ref = jax.new_ref(x)
        ref[...] *= 2
        return ref[...]

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 5))
    assert jax.jit(f)(3.0) == 6
    assert jax.jit(jax.grad(f))(3.0) == 5


def test_a_checkpoint_of_a_loop_with_references_is_differentiated():
    def f(xs):
        ref = jax.new_ref(jnp.float32(1))
        lax.scan(lambda _, x: (ref.__setitem__(..., ref[...] * x), None), None, xs)
        return ref[...]

    x = jnp.array([2.0, 3.0, 4.0])
    assert np.allclose(jax.jit(jax.grad(jax.checkpoint(f)))(x), [12, 8, 6])


def test_references_from_outside_are_written_to_once_by_a_checkpoint():
    count = jax.new_ref(0.0)

    @jax.checkpoint
    def f(x):
        count[...] += 1.0
        return jnp.sin(x * count[...])

    assert np.allclose(jax.grad(f)(2.0), np.cos(2.0))
    assert count[...] == 1


def test_cotangents_are_added_to_references_that_are_given_to_a_pullback():
    x = jnp.arange(3.0)
    _, pullback = jax.vjp(lambda x, z: (x * x).sum() * z, x, 3.0)
    total = jax.new_ref(jnp.ones(3))
    results = pullback.with_refs(total, jax.ad.GradValue())(1.0)
    assert results == (jax.ad.GradRef(), 5)
    assert list(total[...]) == [1, 7, 13]
    assert pullback.with_refs(total, jax.ad.DontWant())(1.0)[1] == jax.ad.DidntWant()
    assert list(total[...]) == [1, 13, 25]


def test_cotangents_of_references_are_added_to_references():
    ref = jax.new_ref(jnp.arange(1.0, 4.0))
    _, pullback = jax.vjp(lambda r, x: r[0] * r[1] * x, ref, 2.0)
    total, of_x = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.float32(10))
    pullback.with_refs(total, of_x)(1.0)
    assert list(total[...]) == [4, 2, 0]
    assert of_x[...] == 12


def test_with_refs_adds_each_part_as_it_arrives():
    def backwards(x, total):
        return jax.vjp(lambda x: (jnp.sin(x) * x).sum(), x)[1].with_refs(total)(1.0)

    jaxpr = make_jaxpr(backwards)(VECTOR, jax.new_ref(jnp.zeros(3)))
    assert [str(e).count("+=") for e in jaxpr.eqns[-4:]].count(1) == 2
    assert not jaxpr.out_avals


def test_a_while_loop_that_writes_in_its_condition_writes_once_more_than_it_iterates():
    def f(n):
        ref = jax.new_ref(0)

        def condition(i):
            ref[...] += 1
            return i < n

        return lax.while_loop(condition, lambda i: i + 1, 0), ref[...]

    assert tuple(map(int, jax.jit(f)(5))) == (5, 6)
    assert tuple(map(int, f(5))) == (5, 6)


def test_a_while_loop_may_read_in_its_condition_what_its_body_writes():
    def f(n):
        ref = jax.new_ref(0)

        def body(i):
            ref[...] += 2
            return i + 1

        return lax.while_loop(lambda i: ref[...] < n, body, 0), ref[...]

    assert tuple(map(int, jax.jit(f)(5))) == tuple(map(int, f(5))) == (3, 6)


@pytest.mark.parametrize("axes", [(0, None), (0, 0), (1, 0), (None, 0)])
def test_batched_indices_select_what_a_loop_over_the_examples_selects(axes):
    x = np.arange(24.0, dtype=np.float32).reshape(4, 2, 3) if 0 in axes[:1] else None
    x = np.arange(24.0, dtype=np.float32).reshape((4, 2, 3)) if x is None else x
    if axes[0] == 1:
        x = np.moveaxis(x, 0, 1)
    if axes[0] is None:
        x = x[0]
    i = np.array([0, 1, 1, 0]) if axes[1] == 0 else np.int32(1)

    def reads(x, i):
        ref = jax.new_ref(x)
        return ref[i], ref[:, i], ref[i, jax.ds(i, 2)], ref[np.array([1, 0]), i + 1]

    batched = jax.vmap(reads, axes)(x, i)
    for n in range(4):
        one = reads(
            x if axes[0] is None else np.take(x, n, axes[0]), i if axes[1] is None else i[n]
        )
        for whole, part in zip(batched, one, strict=True):
            assert np.array_equal(whole[n], part)


def test_an_index_of_32_bits_goes_with_slices_and_64_bit_dtypes():
    def f(x, i):
        ref = jax.new_ref(x)
        ref[i, 1:3] = ref[i, 0:2]
        return jax.freeze(ref)

    with jax.enable_x64(True):
        x = np.arange(6.0).reshape(2, 3)
        changed = jax.jit(f)(x, np.int32(1))
    assert changed.tolist() == [[0, 1, 2], [3, 3, 4]]
