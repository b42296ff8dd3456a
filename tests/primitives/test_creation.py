"""What making arrays refuses, and what scalars become."""

import numpy as np
import pytest

import hlofront
from hlofront import lax


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.iota(bool, 3), TypeError, "does not accept dtype bool"),
        (lambda: lax.iota(np.int32, -3), TypeError, "nonnegative"),
        (lambda: lax.iota(np.int32, 3.0), TypeError, "Shapes must be"),
        (lambda: lax.iota(None, 3), ValueError, "dtype must be specified"),
        (lambda: lax.iota(str, 3), TypeError, "only supports number"),
        (lambda: lax.broadcasted_iota(np.int32, (2, 3), 2), ValueError, "dimension=2 for shape"),
        (lambda: lax.broadcasted_iota(np.int32, (2, 3), -1), ValueError, "dimension=-1 for shape"),
        (lambda: lax.full((2,), np.ones(3)), TypeError, r"fill_value.shape \(3,\)"),
        (lambda: lax.full((-2,), 1.0), TypeError, "nonnegative"),
        (lambda: lax.full((2,), "a"), TypeError, "str"),
        (lambda: lax.full((2,), 1.0, "nosuch"), TypeError, "nosuch"),
        (lambda: lax.full((2,), 1j, np.float32), TypeError, "complex number 1j"),
        (lambda: lax.full((2,), 1.0, sharding=3), TypeError, "a Device or a Sharding: got 3"),
        (lambda: lax.full_like("a", 1.0), TypeError, "str"),
        (lambda: lax.empty((-1,), np.int32), TypeError, "nonnegative"),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()
    with pytest.raises(class_, match=says):
        hlofront.make_jaxpr(call)()


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (300, np.int8, 44),
        (-1, np.uint8, 255),
        (3.7, np.int32, 3),
        (-0.0, np.float32, -0.0),
        (2**40 + 7, np.int32, 7),
        (2**70, np.float32, 2.0**70),
        (-(2**70), np.complex64, -(2.0**70)),
        (np.complex64(2 + 1j), np.float32, 2),
        (float("inf"), np.float16, np.inf),
    ],
)
def test_scalars_are_converted_as_arrays_are(value, dtype, wanted):
    result = np.asarray(lax.full((2,), value, dtype))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.array([wanted, wanted], dtype))
    assert np.signbit(result[0].real) == np.signbit(np.array(wanted, dtype).real)


def test_integers_of_more_than_64_bits_do_not_wrap():
    for make in (
        lambda: lax.full((2,), 2**70, "int8"),
        lambda: lax.convert_element_type(2**70, int),
    ):
        with pytest.raises(OverflowError, match="only integers of up to 64 bits wrap"):
            make()


def test_weak_types():
    weak = lambda *args, **options: hlofront.eval_shape(*args, **options).weak_type
    assert weak(lambda: lax.full((2,), 1.0))
    assert weak(lambda: lax.full((), 1.0))
    assert not weak(lambda: lax.full((2,), 1.0, float))
    assert not weak(lambda: lax.full((2,), np.float32(1)))
    x = hlofront.ShapeDtypeStruct((2,), np.float32, weak_type=True)
    assert weak(lambda x: lax.full_like(x, 1), x)
    assert weak(lambda x: lax.full_like(x, 1, shape=(3,)), x)
    assert not weak(lambda x: lax.full_like(x, 1, dtype=np.float32), x)


def test_full_of_a_traced_value():
    assert [
        str(e.primitive) for e in hlofront.make_jaxpr(lambda x: lax.full((), x))(1.0).eqns
    ] == []
    program = hlofront.make_jaxpr(lambda x: lax.full((2,), x, np.int32))(1.0)
    assert [str(e.primitive) for e in program.eqns] == ["convert_element_type", "broadcast_in_dim"]


def test_full_like_takes_what_looks_like_an_array():
    result = lax.full_like(hlofront.ShapeDtypeStruct((2,), np.int8), 3)
    assert result.shape == (2,) and result.dtype == np.int8
