"""Jaxprs as text, for tests that a person reads."""

import textwrap

import numpy as np

# What the programs of those tests are called with.
SCALAR = np.float32(2.0)
VECTOR = np.array([1.0, 2.0, 3.0], np.float32)
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def assert_prints(program, expected):
    """Assert that a jaxpr prints as `expected`, whose indentation as a block does not matter."""
    assert str(program) == textwrap.dedent(expected).strip()


def equations_of(program, primitive_name):
    """Return the equations of one primitive at the top of a jaxpr."""
    return [e for e in program.eqns if e.primitive.name == primitive_name]
