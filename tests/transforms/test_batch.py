"""Batching: each operation of a program becomes one that works on a whole batch at once.

The tests show the program that `vmap` makes of a function, as `make_jaxpr` writes it down.
"""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from tests.support.jaxprs import MATRIX, SCALAR, VECTOR, assert_prints, equations_of


def batched(function, *args, in_axes=0, out_axes=0, **options):
    """Return the jaxpr of vmap of a function."""
    return jax.make_jaxpr(jax.vmap(function, in_axes, out_axes, **options))(*args)


def test_an_elementwise_operation_works_on_the_larger_array():
    assert_prints(
        batched(lax.sin, MATRIX), "{ lambda ; a:f32[2,3]. let b:f32[2,3] = sin a in (b,) }"
    )


def test_an_operand_that_is_not_mapped_stays_as_it_is():
    assert_prints(
        batched(lax.mul, VECTOR, SCALAR, in_axes=(0, None)),
        "{ lambda ; a:f32[3] b:f32[]. let c:f32[3] = mul a b in (c,) }",
    )


def test_axes_at_other_positions_are_moved_together():
    assert_prints(
        batched(lax.mul, MATRIX, MATRIX.T, in_axes=(0, 1)),
        """
        { lambda ; a:f32[2,3] b:f32[3,2]. let
            c:f32[2,3] = transpose[permutation=(1, 0)] b
            d:f32[2,3] = mul a c
          in (d,) }
        """,
    )


def test_the_axes_of_a_reduction_move_up():
    assert_prints(
        batched(lambda row: lax.reduce_sum(row, (0,)), MATRIX),
        """
        { lambda ; a:f32[2,3]. let
            b:f32[2] = reduce_sum[axes=(1,) out_sharding=None] a
          in (b,) }
        """,
    )


def test_a_batch_along_the_last_axis_reduces_the_first():
    program = batched(lambda column: lax.reduce_sum(column, (0,)), MATRIX, in_axes=1)
    assert program.eqns[0].params["axes"] == (0,)


def test_a_permutation_leaves_the_batch_axis_in_front():
    program = batched(lambda x: lax.transpose(x, (1, 0)), np.ones((4, 2, 3), np.float32))
    assert program.eqns[0].params["permutation"] == (0, 2, 1)


def test_the_result_has_the_axis_that_out_axes_names():
    assert_prints(
        batched(lax.sin, MATRIX, out_axes=1),
        """
        { lambda ; a:f32[2,3]. let
            b:f32[2,3] = sin a
            c:f32[3,2] = transpose[permutation=(1, 0)] b
          in (c,) }
        """,
    )


def test_an_axis_stays_where_it_is_until_the_result_is_returned():
    assert_prints(
        batched(lambda x: lax.sin(lax.neg(x)), MATRIX, in_axes=1),
        """
        { lambda ; a:f32[2,3]. let
            b:f32[2,3] = neg a
            c:f32[2,3] = sin b
            d:f32[3,2] = transpose[permutation=(1, 0)] c
          in (d,) }
        """,
    )


def test_a_result_that_is_not_mapped_is_broadcast():
    assert_prints(
        batched(lambda x: np.float32(1), VECTOR),
        "{ lambda ; a:f32[3]. let b:f32[3] = broadcast_in_dim 1.0:f32[] in (b,) }",
    )


def test_operations_on_values_that_are_not_mapped_run_once():
    program = jax.make_jaxpr(lambda a, b: jax.vmap(lambda row: lax.mul(row, lax.cos(b)))(a))(
        VECTOR, SCALAR
    )
    assert_prints(
        program,
        "{ lambda ; a:f32[3] b:f32[]. let c:f32[] = cos b; d:f32[3] = mul a c in (d,) }",
    )


def test_products_of_vectors_with_one_vector_are_a_matrix_product():
    (product,) = batched(lax.dot, MATRIX, VECTOR, in_axes=(0, None)).eqns
    assert product.params["dimension_numbers"] == (((1,), (0,)), ((), ()))


def test_products_of_pairs_of_vectors_have_a_batch_dimension():
    (product,) = batched(lax.dot, MATRIX, MATRIX).eqns
    assert product.params["dimension_numbers"] == (((1,), (1,)), ((0,), (0,)))


def test_a_branch_for_each_element_computes_both():
    program = batched(
        lambda chosen, x: lax.cond(chosen, lax.sin, lax.cos, x), np.array([True, False]), VECTOR[:2]
    )
    assert not equations_of(program, "cond")
    for primitive_name in ("sin", "cos", "select_n"):
        assert equations_of(program, primitive_name)


def test_a_branch_for_the_whole_batch_stays_a_branch():
    program = batched(
        lambda chosen, x: lax.cond(chosen, lax.sin, lax.cos, x), True, VECTOR, in_axes=(None, 0)
    )
    assert equations_of(program, "cond")


def test_a_collective_along_the_named_axis_reduces_the_batch():
    assert_prints(
        batched(lambda x: x / lax.psum(x, "i"), VECTOR, axis_name="i"),
        """
        { lambda ; a:f32[3]. let
            b:f32[] = psum[axes=(0,) axis_index_groups=None] a
            c:f32[3] = div a b
          in (c,) }
        """,
    )


def test_the_index_along_the_named_axis_counts_the_batch():
    results = jax.vmap(lambda x: lax.axis_index("i"), axis_name="i")(VECTOR)
    np.testing.assert_array_equal(results, [0, 1, 2])


def test_vmap_of_vmap_has_an_axis_of_each():
    outer_sum = jax.vmap(jax.vmap(lax.add, (None, 0)), (0, None))
    np.testing.assert_array_equal(
        outer_sum(VECTOR, np.float32([10, 20])), VECTOR[:, None] + np.float32([10, 20])
    )


def test_batches_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="size"):
        jax.vmap(lax.add)(VECTOR, VECTOR[:2])
