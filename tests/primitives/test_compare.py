"""What comparisons and selection refuse."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
from hlofront import ShapeDtypeStruct, lax
from hlofront.base.elements import ExtendedDType, prng_key
from hlofront.core.aval import ShapedArray
from hlofront.core.lowering_request import LoweringRequest
from hlofront.lowering.module import lower_program
from hlofront.transforms.stage import stage


def array(dtype, *shape):
    return ShapeDtypeStruct(shape, dtype)


@pytest.mark.parametrize(
    ("function", "operands", "message"),
    [
        (
            lax.lt,
            (array("complex64", 2), array("complex64", 2)),
            "lt does not accept dtype complex",
        ),
        (lax.eq, (array("float32", 2), array("int32", 2)), "jnp.equal is a similar function"),
        (
            lax.select,
            (array("bool", 3), array("float32", 3), 1.0),
            "select cases must have the same shapes, got [(), (3,)]",
        ),
        (
            lax.select,
            (array("bool", 1), array("float32", 3), array("float32", 3)),
            "got `which` shape (1,) but case shape (3,)",
        ),
        (lax.select, (True, 1, 2.0), "(Tip: jnp.where is a similar function"),
        (
            lax.select_n,
            (array("float32", 3), array("float32", 3)),
            "select `which` must be boolean or integer type, got float32",
        ),
        (lax.select_n, (array("bool"), 1.0, 2.0, 3.0), "cannot have > 2 cases, got 3"),
    ],
)
def test_refuses(function, operands, message):
    with pytest.raises(TypeError) as caught:
        hlofront.eval_shape(function, *operands)
    assert message in str(caught.value)


def test_some_case():
    with pytest.raises(ValueError, match="at least one case"):
        lax.select_n(True)


def test_more_cases_than_the_dtype_counts():
    cases = [np.float32(i) for i in range(9)]
    for which in (-2, -1, 0, 1):
        assert int(lax.select_n(np.asarray(which, ml_dtypes.int2), *cases)) == max(which, 0)


class PairDType(ExtendedDType):
    """Elements that are two integers on a device."""

    __slots__ = ()
    name = "pair"
    type = prng_key

    def physical(self, shape):
        return (*shape, 2), np.dtype(np.uint32)


def test_elements_that_are_arrays():
    """They are equal if all parts are, and chosen whole."""
    pairs = ShapedArray((3,), PairDType())
    flags = ShapedArray((3,), np.dtype(bool))
    program = stage(
        lambda x, y, flags: [lax.eq(x, y), lax.ne(x, y), lax.select(flags, x, y)],
        [pairs, pairs, flags],
    )
    assert [aval.shape for aval in program.out_avals] == [(3,)] * 3
    text = lower_program(program, LoweringRequest("f", "cpu")).text()
    assert "applies stablehlo.and across dimensions = [1]" in text
    assert "applies stablehlo.or across dimensions = [1]" in text
    assert "dims = [0] : (tensor<3xi1>) -> tensor<3x2xi1>" in text
    with pytest.raises(TypeError, match="lt does not accept dtype pair"):
        stage(lambda x, y: [lax.lt(x, y)], [pairs, pairs])


@pytest.mark.parametrize("count", range(1, 10))
def test_each_of_several_cases_is_selected(count):
    cases = [np.full(count, 10.0 * number, np.float32) for number in range(count)]
    which = np.arange(count, dtype=np.int32)
    np.testing.assert_array_equal(lax.select_n(which, *cases), 10 * np.arange(count))
