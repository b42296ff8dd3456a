"""Argument specs as people write them at the shell."""

import numpy as np
import pytest

from hlofront.inspect.target import parse_specs


def test_arrays_scalars_and_python_values():
    a, b, c, d, e = parse_specs("f32[32, 64], i32[], bf16[0,3], 2.5, 'sum, of'")
    assert (a.shape, a.dtype) == ((32, 64), np.float32)
    assert (b.shape, b.dtype) == ((), np.int32)
    assert (c.shape, c.dtype.name) == ((0, 3), "bfloat16")
    assert (d, e) == (2.5, "sum, of")
    assert parse_specs("") == []


def test_trees():
    params, pair, single, keyed = parse_specs(
        "{w1: f32[2,3], 'b:1': [f32[3], i32[]]}, (f32[2], {}), (i32[], ), {0: (f32[1]), 1: [],}"
    )
    assert params["w1"].shape == (2, 3) and [x.shape for x in params["b:1"]] == [(3,), ()]
    assert pair[0].shape == (2,) and pair[1] == {} and type(pair) is tuple
    assert type(single) is tuple and single[0].dtype == np.int32
    assert keyed[0].shape == (1,) and keyed[1] == []


def test_python_values_in_trees():
    assert parse_specs("[1, (2.5, 'a, b'), {x: None, y: True}], ()") == [
        [1, (2.5, "a, b"), {"x": None, "y": True}],
        (),
    ]


def test_a_bare_dtype_is_a_scalar():
    (a,) = parse_specs("float32")
    assert (a.shape, a.dtype) == ((), np.float32)


@pytest.mark.parametrize(
    "text",
    ["f33[2]", "f32[x]", "f32[2", "f32[-1]", "f32[2],,f32[3]", "[f32[2]", "{w: f32[2]]", "{w: w}"],
)
def test_what_cannot_be_read_is_named_with_what_can_be(text):
    with pytest.raises(ValueError, match=r"expected a dtype with a shape.*example_args"):
        parse_specs(text)


@pytest.mark.parametrize("text", ["{f32[2]}", "{w: f32[2]: f32[3]}"])
def test_items_of_dicts_have_keys(text):
    with pytest.raises(ValueError, match="expected a key, a colon and a value"):
        parse_specs(text)
