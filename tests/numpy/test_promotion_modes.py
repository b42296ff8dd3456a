"""The options about promotion: ranks that differ, dtypes that differ, how wide defaults are."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from tests.numpy import catalogue, catalogue_part, strict_promotion
from tests.support.cases import Spec
from tests.systematic import trials

catalogue.load()

F, I = np.ones(3, np.float32), np.arange(3, dtype=np.int32)
MATRIX = np.ones((2, 3), np.float32)
ARITHMETIC = (
    "add subtract multiply divide maximum minimum arctan2 power hypot logaddexp floor_divide "
    "remainder equal less logical_and copysign"
).split()


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


# ---- what the user need not promote, the library does not promote either -------------------------


def leaves_of(tree):
    if isinstance(tree, tuple | list):
        return [leaf for branch in tree for leaf in leaves_of(branch)]
    if isinstance(tree, dict):
        return leaves_of(list(tree.values()))
    return [tree]


def agree(one, option):
    """Whether the operands of a call have one dtype, or one rank."""
    leaves = leaves_of([one.operands, one.keywords])
    arrays = [x for x in leaves if isinstance(x, Spec | np.ndarray | np.generic)]
    if option == "ranks":
        return len({len(x.shape) for x in arrays if x.shape}) < 2
    dtypes = {x.dtype for x in arrays}
    numbers = {type(x) for x in leaves if isinstance(x, bool | int | float | complex)}
    if len(dtypes) > 1 or one.function in ("promote_types", "result_type"):
        return False
    (kind,) = {dtype.kind for dtype in dtypes} or {"f"}
    if one.function == "select" and kind == "b":
        return False  # The default is the number 0.
    if bool in numbers and one.function in ("array", "asarray", *ELEMENTWISE):
        return False
    weaker = {"b": (bool,), "c": (int, float, complex)}.get(kind, (int, float))
    if kind in "iu":
        weaker = (int,)
    return one.function not in ELEMENTWISE or numbers <= set(weaker)


# Those where numbers beside arrays are operands, which meet.
ELEMENTWISE = frozenset(
    (
        "add subtract multiply divide true_divide maximum minimum fmax fmin logaddexp logaddexp2 "
        "arctan2 atan2 hypot power pow float_power clip copysign heaviside equal not_equal less "
        "less_equal greater greater_equal logical_and logical_or logical_xor array asarray select"
    ).split()
)


@pytest.mark.each_part
@pytest.mark.parametrize("option", strict_promotion.OPTIONS)
@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_the_library_promotes_nothing_by_itself(chapter, option):
    """Calls whose own operands agree give what they give without the option, in every form."""
    report = []
    for one in catalogue_part.of_part(chapter):
        if one.concrete or not agree(one, option):
            continue
        with jax.enable_x64(one.needs_x64()), trials.quiet():
            said = strict_promotion.differences(one.on(jnp), one.values(), option)
        report += [f"{one.name}: {text}" for text in said]
    assert not report, "\n".join(report)
