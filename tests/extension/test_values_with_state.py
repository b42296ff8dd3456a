"""Values with a state: which uses are refused, and what becomes of jitted functions.

tests/against_jax/corpus_values_with_state.py compares the others with jax.
"""

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import cur_qdd, hijax


@dataclasses.dataclass(frozen=True)
class State:
    types: tuple


class Cell:
    """A value that holds arrays."""

    def __init__(self, *arrays):
        self.arrays = arrays

    def cur_qdd(self):
        return State(tuple(map(jax.typeof, self.arrays)))


class CellType(hijax.MutableHiType):
    def __eq__(self, other):
        return isinstance(other, CellType)

    def __hash__(self):
        return 1

    def str_short(self, short_dtypes=False, **_):
        return "Cell"

    def new_from_loval(self, state, *low):
        return Cell(*low)

    def read_loval(self, state, cell):
        return list(cell.arrays)

    def update_from_loval(self, state, cell, *low):
        cell.arrays = low


class Put(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, cell, *arrays):
        cell.arrays = arrays
        return []


class Get(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, cell):
        return list(cell.arrays)


hijax.register_hitype(Cell, lambda cell: CellType())
put, get = Put("put_cell").bind, Get("get_cell").bind
x = np.arange(3, dtype=np.float32)


def double(cell):
    put(cell, *[2 * a for a in get(cell)])


def test_no_program_returns_or_carries_one_or_is_lowered_for_one():
    cell = Cell(x)
    with pytest.raises(TypeError, match="returned a value of type Cell, which has a state"):
        jax.jit(lambda cell: cell)(cell)
    with pytest.raises(TypeError, match="is neither carried by loops"):
        jax.lax.scan(lambda cell, _: (cell, None), cell, None, length=2)
    with pytest.raises(TypeError, match="nor an argument of a function that is lowered"):
        jax.jit(double).lower(cell)
    with pytest.raises(TypeError, match="is jitted with shardings"):
        jax.jit(double, out_shardings=jax.devices()[0])(cell)
    assert cell.arrays[0] is x


def test_one_value_is_passed_once():
    cell = Cell(x)
    with pytest.raises(ValueError, match="Cell is passed twice to one function"):
        jax.jit(lambda a, b: double(a))(cell, cell)


def test_derivatives_and_batches_do_not_stay_in_one():
    cell = Cell(x)
    with pytest.raises(ValueError, match="Return the value from the function"):
        jax.grad(lambda y: (put(cell, y), jnp.sum(y))[1])(x)
    with pytest.raises(ValueError, match="Return the value from the function"):
        jax.vmap(lambda y: put(cell, y))(x)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.vmap(double)(cell)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.grad(lambda cell: 1.0)(cell)
    assert cell.arrays[0] is x


def test_the_types_of_what_a_function_closes_over_stay_the_same():
    cell = Cell(x)
    with pytest.raises(TypeError, match="Pass the value as an argument of a jitted function"):
        jax.jit(lambda: put(cell, x, x))()
    jax.jit(lambda cell: put(cell, x, x))(cell)
    assert len(cell.arrays) == 2


def test_a_function_is_traced_again_when_the_state_of_what_it_closes_over_changed():
    cell, traces = Cell(x), []

    @jax.jit
    def f():
        traces.append(cur_qdd(cell))
        double(cell)

    f()
    put(cell, 10 * x)
    f()
    assert len(traces) == 1
    put(cell, x[:1], x[1:])
    f()
    f()
    assert len(traces) == 2
    np.testing.assert_array_equal(get(cell)[1], 4 * x[1:])


def test_a_jitted_function_is_traced_once_per_state_of_its_arguments():
    traces = []

    @jax.jit
    def f(cell):
        traces.append(1)
        double(cell)

    for cell in (Cell(x), Cell(2 * x), Cell(x, x), Cell(x)):
        f(cell)
    assert len(traces) == 2
    np.testing.assert_array_equal(get(cell)[0], 2 * x)


def test_a_closed_over_value_is_not_kept():
    def alive_after_a_loop():
        cell = Cell(x)
        jax.lax.scan(lambda c, _: (double(cell), (c, None))[1], 0.0, None, length=3)
        np.testing.assert_array_equal(get(cell)[0], 8 * x)
        return weakref.ref(cell)

    alive = alive_after_a_loop()
    jax.clear_caches()
    gc.collect()
    assert alive() is None


def test_functions_of_numpy_take_values_that_convert_themselves():
    class Array(Cell):
        def __jax_array__(self):
            return jnp.asarray(get(self)[0])

    np.testing.assert_array_equal(x @ jnp.asarray(x), jnp.asarray(x) @ Array(x))
    np.testing.assert_array_equal(jnp.sin(Array(x)), jnp.sin(x))
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        jnp.sin(Cell(x))
