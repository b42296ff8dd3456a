"""Argument specs as people write them at the shell."""

import numpy as np
import pytest

from hlofront.inspect.argument_specs import parse_specs


def test_arrays_scalars_and_python_values():
    a, b, c, d, e = parse_specs("f32[32, 64], i32[], bf16[0,3], 2.5, 'sum, of'")
    assert (a.shape, a.dtype) == ((32, 64), np.float32)
    assert (b.shape, b.dtype) == ((), np.int32)
    assert (c.shape, c.dtype.name) == ((0, 3), "bfloat16")
    assert (d, e) == (2.5, "sum, of")
    assert parse_specs("") == []


def test_a_bare_dtype_is_a_scalar():
    (a,) = parse_specs("float32")
    assert (a.shape, a.dtype) == ((), np.float32)


@pytest.mark.parametrize("text", ["f33[2]", "f32[x]", "f32[2", "f32[-1]", "f32[2],,f32[3]"])
def test_what_cannot_be_read_is_named(text):
    with pytest.raises(ValueError, match="expected a dtype with a shape"):
        parse_specs(text)
