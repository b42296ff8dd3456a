"""Sums, extremes, means, variances and running sums, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

X = np.array([[3.0, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]], np.float32)
MASK = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], bool)
NANS = np.array([[np.nan, 1, 4, 1], [5, np.nan, np.nan, np.nan], [5, 3, 5, 8]], np.float32)
AXES = [None, 0, -1, (0, 1), (), (-1,)]


def check(found, wanted, rtol=1e-6):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol)


def text(function, *args):
    """The equations of a program, one per line."""
    body = str(jax.make_jaxpr(function)(*args)).split(" let")[1].rsplit(" in (", 1)[0]
    return [line.strip() for line in body.strip().split("\n")]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
def test_axes(name, axis):
    wanted = getattr(np, name)(X, axis)
    check(getattr(jnp, name)(X, axis), wanted)
    check(getattr(jnp.asarray(X), name)(axis), wanted)


@pytest.mark.parametrize("name", ["sum", "mean", "ptp", "count_nonzero"])
def test_keepdims(name):
    check(getattr(jnp, name)(X, 0, keepdims=True), getattr(np, name)(X, 0, keepdims=True))


def test_where_and_initial():
    check(jnp.sum(X, where=MASK), np.sum(X, where=MASK))
    check(jnp.sum(X, 0, where=MASK[0], initial=2), np.sum(X, 0, where=MASK[0], initial=2))
    check(jnp.prod(X, 1, where=MASK), np.prod(X, 1, where=MASK))
    check(jnp.max(X, 0, where=MASK, initial=-1), np.max(X, 0, where=MASK, initial=-1))
    check(jnp.min(X, initial=0.5), 0.5)
    check(jnp.mean(X, 0, where=MASK), np.mean(X, 0, where=MASK))
    check(jnp.var(X, 1, where=MASK[2]), np.var(X, 1, where=MASK[2]))
    check(jnp.any(X, where=~MASK), True)
    check(jnp.all(MASK, 0, where=MASK), [True] * 4)


def test_masks_are_boolean_and_extremes_need_a_start():
    with pytest.raises(ValueError, match="where must be None or a boolean array"):
        jnp.sum(X, where=X)
    with pytest.raises(ValueError, match="has to specify 'initial'"):
        jnp.max(X, where=MASK)
    with pytest.raises(ValueError, match="must be a scalar"):
        jnp.sum(X, initial=X)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (np.bool_, np.int32),
        (np.int8, np.int32),
        (np.uint8, np.uint32),
        (np.int32, np.int32),
        (np.float16, np.float16),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        (np.complex64, np.complex64),
    ],
)
def test_dtypes_of_sums(given, wanted):
    x = np.ones(3, given)
    assert jnp.sum(x).dtype == jnp.prod(x).dtype == wanted
    assert jnp.max(x).dtype == given
    assert jnp.mean(x).dtype == (np.float32 if np.dtype(given).kind in "biu" else given)
    assert jnp.cumsum(x).dtype == (np.int32 if given is np.bool_ else given)
    assert jnp.cumulative_sum(x).dtype == wanted


def test_dtypes_asked_for():
    assert jnp.sum(np.ones(3, np.int8), promote_integers=False).dtype == np.int8
    assert jnp.sum(X, dtype="bfloat16").dtype == ml_dtypes.bfloat16
    assert jnp.sum(X, dtype=int).dtype == np.int32
    check(jnp.sum(X, dtype=bool), True)
    check(jnp.mean(X, dtype=int), 4)
    assert jnp.var(X, dtype="float16").dtype == np.float16
    with pytest.warns(UserWarning, match="float64"):
        assert jnp.sum(X, dtype="float64").dtype == np.float32
    with pytest.raises(TypeError):
        jnp.sum(X, dtype="nonsense")


def test_half_precision_is_summed_in_float32():
    x = np.full(4096, 1, np.float16)
    check(jnp.sum(x), 4096)
    check(jnp.mean(np.full(300, 300, ml_dtypes.bfloat16)).astype(np.float32), 300)


def test_python_scalars_and_weak_dtypes():
    check(jnp.sum(3.0), 3)
    assert not jnp.sum(3.0).weak_type
    check(jnp.mean(3), 3)
    check(jnp.argmax(3.0), 0)
    check(jnp.cumsum(True), [1])


def test_nothing_to_reduce():
    empty = np.ones((0, 4), np.float32)
    check(jnp.sum(empty, 0), np.zeros(4))
    check(jnp.prod(empty), 1)
    assert np.isnan(jnp.mean(empty))
    assert np.isnan(jnp.var(empty))
    check(jnp.max(empty, 1), np.zeros(0))
    check(jnp.max(empty, 0, initial=2), [2] * 4)
    with pytest.raises(ValueError, match="has no identity"):
        jnp.max(empty, 0)
    with pytest.raises(ValueError, match="empty sequence"):
        jnp.argmin(empty, 0)
    check(jnp.argmin(empty, 1), np.zeros(0))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.sum(X, 2)
    with pytest.raises(ValueError, match="duplicate"):
        jnp.sum(X, (0, -2))
    with pytest.raises(TypeError):
        jnp.sum(X, 1.0)
    with pytest.raises(TypeError, match="got <class 'list'> at position 0"):
        jnp.sum([1, 2])
    with pytest.raises(NotImplementedError, match="'out' argument"):
        jnp.sum(X, out=X)
    with pytest.raises(TypeError):
        jnp.argmax(X, (0, 1))
    with pytest.raises(TypeError):
        jnp.ptp(MASK)


def test_nan_wins():
    for name in ("sum", "max", "min", "mean", "ptp"):
        assert np.isnan(getattr(jnp, name)(NANS))
    check(jnp.argmax(NANS), 0)
    check(jnp.argmin(NANS, 1), [0, 1, 1])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_where_the_extreme_is(name):
    for axis in (None, 0, 1, -1):
        check(getattr(jnp, name)(X, axis), getattr(np, name)(X, axis))
    check(getattr(jnp, name)(X, 1, keepdims=True), getattr(np, name)(X, 1, keepdims=True))
    check(getattr(jnp, name)(X, keepdims=True), getattr(np, name)(X, keepdims=True))


def test_variance():
    check(jnp.var(X, 0, ddof=1), np.var(X, 0, ddof=1))
    check(jnp.var(X, correction=0.5), np.var(X, correction=0.5))
    check(jnp.std(X, 1, mean=X.mean(1, keepdims=True)), np.std(X, 1))
    z = X * (1 + 2j)
    found = jnp.var(z.astype(np.complex64))
    assert found.dtype == np.float32
    check(found, np.var(z), 1e-5)
    assert np.isnan(jnp.var(X, ddof=12))
    check(jax.jit(lambda d: jnp.var(X, ddof=d))(1), np.var(X, ddof=1))
    with pytest.raises(ValueError, match="simultaneously"):
        jnp.var(X, ddof=1, correction=1)
    with pytest.raises(ValueError, match="real dtype"):
        jnp.var(z.astype(np.complex64), dtype="float32")


def test_average():
    weights = np.array([1.0, 2, 3], np.float32)
    check(jnp.average(X), np.average(X))
    check(jnp.average(X, 0, weights), np.average(X, 0, weights))
    check(jnp.average(X, weights=X), np.average(X, weights=X))
    found = jnp.average(X, 0, weights, returned=True, keepdims=True)
    for one, wanted in zip(found, np.average(X, 0, weights, True, keepdims=True)):
        check(one, wanted)
    check(jnp.average(X, (1, 0), X.T), np.average(X, weights=X))
    with pytest.raises(ValueError, match="Axis must be specified"):
        jnp.average(X, weights=weights)
    with pytest.raises(ValueError, match="consistent"):
        jnp.average(X, 1, weights)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar"])
def test_nans_left_out(name):
    for axis in (None, 0, 1):
        check(getattr(jnp, name)(NANS, axis), getattr(np, name)(NANS, axis))
    check(getattr(jnp, name)(X, 0, keepdims=True), getattr(np, name)(X, 0, keepdims=True))


def test_only_nans():
    nans = np.full((2, 2), np.nan, np.float32)
    assert np.isnan(jnp.nanmax(nans))
    assert np.isnan(jnp.nanmean(nans, 0)).all()
    check(jnp.nanargmax(nans, 1), [-1, -1])
    check(jnp.nansum(nans), 0)
    check(jnp.nanargmin(NANS, 1), [1, 0, 1])
    check(jnp.nanargmax(np.array([1, 3, 2])), 1)
    check(jnp.nanmax(NANS, where=MASK, initial=-1), 8)
    check(jnp.nanmean(NANS, where=MASK), np.nanmean(NANS, where=MASK))
    check(jnp.nanstd(NANS, ddof=1), np.nanstd(NANS, ddof=1))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running(name):
    for axis in (None, 0, -1):
        check(getattr(jnp, name)(NANS, axis), getattr(np, name)(NANS, axis))
    with pytest.raises(ValueError, match="out of bounds"):
        getattr(jnp, name)(X, 2)


def test_running_as_the_standard_has_it():
    check(jnp.cumulative_sum(X[0]), np.cumsum(X[0]))
    check(jnp.cumulative_prod(X, axis=1), np.cumprod(X, 1))
    check(jnp.cumulative_sum(X[0], include_initial=True), [0, 3, 4, 8, 9])
    check(jnp.cumulative_prod(X[0], include_initial=True), [1, 3, 3, 12, 12])
    with pytest.raises(ValueError, match="rank 2"):
        jnp.cumulative_sum(X)
    with pytest.raises(ValueError, match="scalar"):
        jnp.cumulative_sum(1.0)


def test_programs():
    # As JAX's programs, but for the nested ones.
    x, half, flags = X, X.astype(ml_dtypes.bfloat16), MASK
    assert text(lambda x: x.sum(0), x) == ["b:f32[4] = reduce_sum[axes=(0,) out_sharding=None] a"]
    assert text(lambda x: x.sum((1, 0), keepdims=True), x) == [
        "b:f32[] = reduce_sum[axes=(1, 0) out_sharding=None] a",
        "c:f32[1,1] = broadcast_in_dim b",
    ]
    assert text(lambda x: x.sum(), half) == [
        "b:f32[3,4] = convert_element_type[new_dtype=float32 weak_type=False] a",
        "c:f32[] = reduce_sum[axes=(0, 1) out_sharding=None] b",
        "d:bf16[] = convert_element_type[new_dtype=bfloat16 weak_type=False] c",
    ]
    assert text(lambda x: x.mean(), x) == [
        "b:f32[] = reduce_sum[axes=(0, 1) out_sharding=None] a",
        "c:f32[] = div b 12.0:f32[]",
    ]
    assert text(lambda x: x.max(1), x) == ["b:f32[3] = reduce_max[axes=(1,)] a"]
    assert text(lambda x: x.all(), flags) == ["b:bool[] = reduce_and[axes=(0, 1)] a"]
    assert text(lambda x: x.argmax(1), x) == ["b:i32[3] = argmax[axes=(1,) index_dtype=int32] a"]
    assert text(lambda x: x.cumsum(-1), x) == ["b:f32[3,4] = cumsum[axis=1 reverse=False] a"]
    masked = text(lambda x, where: jnp.sum(x, initial=1, where=where), x, flags)
    assert masked == [
        "c:f32[3,4] = broadcast_in_dim 0.0:f32[]",
        "d:f32[3,4] = select_n b c a",
        "e:f32[] = reduce_sum[axes=(0, 1) out_sharding=None] d",
        "f:f32[] = add 1.0:f32[] e",
    ]


def test_under_jit():
    def f(x):
        return x.sum(0), jnp.mean(x), x.std(), x.argmax(), jnp.nanmax(x, 1)

    for found, wanted in zip(jax.jit(f)(X), f(jnp.asarray(X))):
        check(found, wanted)


TABLE = np.array([[2, 5, 1, 6], [3, -7, -2, 4], [8, -4, 1, -3]], np.float32)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"axis": 1},
        {"axis": (0, 1), "keepdims": True},
        {"axis": 0, "initial": 3.0},
        {"axis": 1, "initial": 3.0, "where": TABLE > 0},
    ],
)
def test_minmax_is_min_and_max(parameters):
    least, greatest = jax.jit(lambda x: jnp.minmax(x, **parameters))(TABLE)
    np.testing.assert_array_equal(least, TABLE.min(**parameters))
    np.testing.assert_array_equal(greatest, TABLE.max(**parameters))


def test_minmax_of_nan_and_of_other_dtypes():
    assert np.isnan(jnp.minmax(jnp.array([jnp.nan, 2]))).all()
    assert jnp.minmax(jnp.array([True, False])) == (False, True)
    assert jnp.minmax(3) == (3, 3)
    assert jnp.minmax(jnp.array([2, 1j])) == (1j, 2)


def test_minmax_takes_an_initial_value_each():
    assert jnp.minmax(TABLE, initial=(-100, 100)) == (-100, 100)
    with pytest.raises(ValueError, match="one value, or a pair"):
        jnp.minmax(TABLE, initial=(1, 2, 3))


def test_minmax_differentiates_and_maps():
    slope = jax.grad(lambda x: 2 * jnp.minmax(x)[0] + jnp.minmax(x)[1])(TABLE)
    assert slope[1, 1] == 2
    assert slope[2, 0] == 1
    assert slope.sum() == 3
    least, greatest = jax.vmap(jnp.minmax, in_axes=1)(TABLE)
    np.testing.assert_array_equal(least, TABLE.min(0))
    np.testing.assert_array_equal(greatest, TABLE.max(0))


def test_minmax_refuses_what_min_refuses():
    with pytest.raises(ValueError, match="reduction operation minmax which has no identity"):
        jnp.minmax(jnp.ones(0))
    with pytest.raises(ValueError, match="minmax does not have an identity"):
        jnp.minmax(TABLE, where=TABLE > 0)
    with pytest.raises(NotImplementedError, match=r"jnp\.minmax"):
        jnp.minmax(TABLE, out=1)


def test_an_axis_by_position_and_by_name_is_refused():
    with pytest.raises(TypeError, match="multiple values for argument 'axis'"):
        jnp.all(0, jnp.ones(3), axis=0)
