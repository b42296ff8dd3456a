"""The options about promotion: ranks that differ, dtypes that differ, how wide defaults are."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

F, I = np.ones(3, np.float32), np.arange(3, dtype=np.int32)
MATRIX = np.ones((2, 3), np.float32)
ARITHMETIC = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "arctan2", "power", "hypot"),
    *("logaddexp", "floor_divide", "remainder", "equal", "less", "logical_and", "copysign"),
)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_ranks_must_agree_where_it_is_asked_for(name):
    f = getattr(jnp, name)
    with jax.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match=f"{name} was given operands of shapes.*'raise'"):
            jax.jit(lambda x, y: f(x, y))(MATRIX, F)
        f(MATRIX, 2.0)
        f(MATRIX, F[None])


def test_a_warning_instead():
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="different ranks"):
        jnp.add(np.ones((2, 5), np.float32), np.ones(5, np.float32))


def test_what_broadcasts_by_its_nature_is_not_asked():
    with jax.numpy_rank_promotion("raise"):
        assert jnp.where(F > 0, MATRIX, 1.0).shape == (2, 3)
        assert jnp.broadcast_arrays(F, MATRIX)[0].shape == (2, 3)
        assert jnp.sum(MATRIX, where=F > 0) == 6
        assert jnp.heaviside(MATRIX, F).shape == (2, 3)
        assert jnp.multiply.outer(F, MATRIX).shape == (3, 2, 3)
        assert bool(jnp.array_equiv(F, MATRIX))
        for refused in (lambda: jnp.vecdot(MATRIX, F), lambda: jnp.linspace(F, MATRIX)):
            with pytest.raises(ValueError, match="different ranks"):
                refused()


@pytest.mark.parametrize("name", ARITHMETIC)
def test_strict_dtypes(name):
    f = getattr(jnp, name)
    with jax.numpy_dtype_promotion("strict"):
        with pytest.raises(ValueError, match="strict"):
            f(jnp.asarray(I), jnp.asarray(F))
        # Python's numbers are weak, and take the dtype of what they meet.
        f(jnp.asarray(F), 2.0)
        f(jnp.asarray(F), jnp.asarray(F))


def test_how_wide_defaults_are():
    made = {
        "int": lambda: jnp.arange(2),
        "float": lambda: jnp.zeros(2),
        "complex": lambda: jnp.array([1j]),
    }
    for wide, dtypes in {
        False: ("int32", "float32", "complex64"),
        True: ("int64", "float64", "complex128"),
    }.items():
        with jax.enable_x64(wide):
            assert tuple(str(f().dtype) for f in made.values()) == dtypes
            assert str(jnp.divide(jnp.arange(2), 2).dtype) == dtypes[1]
            assert str(jnp.sum(I > 0).dtype) == dtypes[0]
