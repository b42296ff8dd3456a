"""Symbolic sizes: what is known of them, and what errors say.

A corpus of tests/against_jax compares what they print, and which questions they answer.
"""

import copy
import itertools
import operator

import numpy as np
import pytest

from hlofront.core.sizes.equations import check_sizes, solve
from hlofront.core.sizes.scopes import SymbolicScope, symbolic_dim_bounds, symbolic_shape
from hlofront.core.sizes.symbolic import is_symbolic_dim, max_dim, value_of
from hlofront.errors import InconclusiveDimensionOperation


def test_equal_expressions_are_equal_and_hash_alike():
    b, d = symbolic_shape("b, d")
    assert (b + d) * (b - d) == b * b - d * d
    assert hash(b + d - b) == hash(d)
    assert b - b == 0 and type(b - b) is int
    assert {b * d: 1}[d * b] == 1
    assert copy.deepcopy(b) is b


def test_variables_of_two_scopes_differ_and_do_not_mix():
    (b,), (other,) = symbolic_shape("b"), symbolic_shape("b")
    assert b != other
    for mixed in (lambda: b + other, lambda: b * other, lambda: b >= other, lambda: b // other):
        with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
            mixed()


@pytest.mark.parametrize(
    "use", [range, operator.index, lambda size: [1, 2][size], lambda size: np.ones(3)[:size]]
)
def test_sizes_are_no_integers_of_python(use):
    (size,) = symbolic_shape("b")
    with pytest.raises(TypeError, match="'b' cannot be interpreted as an integer") as raised:
        use(size)
    assert isinstance(raised.value, InconclusiveDimensionOperation)


@pytest.mark.parametrize(
    ("constraints", "text", "bounds"),
    [
        ((), "b", (1, float("inf"))),
        ((), "b - d", (float("-inf"), float("inf"))),
        (("b <= 64",), "2*b - 1", (1, 127)),
        (("b <= 64",), "floordiv(b, 7)", (0, 9)),
        (("b <= 64",), "mod(b, 7)", (0, 6)),
        (("b <= 3", "d <= 5"), "b*d", (1, 15)),
        (("b >= 4", "d <= b - 2"), "b - d", (2, float("inf"))),
        (("mod(b, 4) == 0", "b >= 8"), "b - 4*floordiv(b, 4)", (0, 0)),
        ((), "max(b, 4) - min(d, 3)", (1, float("inf"))),
        ((), "-3", (-3, -3)),
    ],
)
def test_bounds(constraints, text, bounds):
    (size,) = symbolic_shape(text, constraints=constraints)
    assert symbolic_dim_bounds(size) == bounds


def test_bounds_hold_for_all_values():
    """A size is within its bounds for whichever values of its variables."""
    texts = "floordiv(b + 3, d)|mod(b - 7, d)|b*d - b|max(b, d)*2 - d|mod(b, 3)*d - floordiv(d, 2)"
    sizes = symbolic_shape(texts.replace("|", ","), constraints=["b <= 9", "d <= 5"])
    for size in sizes:
        least, most = symbolic_dim_bounds(size)
        values = [
            value_of(size, {"b": b, "d": d})
            for b, d in itertools.product(range(1, 10), range(1, 6))
        ]
        assert least <= min(values) and max(values) <= most


@pytest.mark.parametrize(
    ("compare", "settled_by"),
    [
        (lambda b, d: b > 3, ("b <= 3", "b >= 4")),
        (lambda b, d: b >= 2 * d, ("b >= 2*d", "b <= 2*d - 1")),
        (lambda b, d: 4 - b >= 0, ("b <= 4", "b >= 5")),
        (lambda b, d: b * d < d + 7, ("b*d >= d + 7", "b*d <= d + 6")),
    ],
)
def test_error_names_constraints_that_settle_it(compare, settled_by):
    with pytest.raises(InconclusiveDimensionOperation) as raised:
        compare(*symbolic_shape("b, d"))
    answers = []
    for constraint in settled_by:
        assert repr(constraint) in str(raised.value)
        answers.append(compare(*symbolic_shape("b, d", constraints=[constraint])))
    assert answers[0] != answers[1]


@pytest.mark.parametrize(
    "constraints",
    [("a >= 2", "a <= 1"), ("a <= 0",), ("a >= b", "b >= a + 1"), ("2*a == 3",), ("0 >= a*b",)],
)
def test_unsatisfiable_constraints(constraints):
    with pytest.raises(ValueError, match="Unsatisfiable"):
        SymbolicScope(constraints)


def test_error_of_a_text_says_what_is_left():
    with pytest.raises(ValueError, match=r"Parsed 'b, 2\*', remaining '\)'"):
        symbolic_shape("b, 2*)")


def test_division_by_a_size_that_may_be_zero():
    b, d = symbolic_shape("b, d")
    with pytest.raises(InconclusiveDimensionOperation, match="Possible division by 0"):
        _ = b // (b - d) >= 0
    with pytest.raises(ZeroDivisionError):
        _ = b // 0


def test_a_size_is_no_integer():
    (b,) = symbolic_shape("b")
    assert is_symbolic_dim(b) and not is_symbolic_dim(3)
    with pytest.raises(InconclusiveDimensionOperation, match="requires a constant"):
        int(b)
    with pytest.raises(NotImplementedError, match="no value outside of a program"):
        _ = b * 1.5


# ---- equations -----------------------------------------------------------------------------------


def test_variables_are_found_in_order_of_need():
    shapes = [symbolic_shape("a + 2*b, b", scope=(scope := SymbolicScope()))]
    shapes.append(symbolic_shape("max(a, b)", scope=scope))
    solution = solve(shapes, lambda position: f"args[{position}]")
    sizes = {"args[0].shape[0]": 11, "args[0].shape[1]": 4, "args[1].shape[0]": 4}
    assert {name: value_of(x, sizes) for name, x in solution.values.items()} == {"a": 3, "b": 4}
    check_sizes(solution.checks, sizes)
    with pytest.raises(ValueError, match=r"args\[1\]\.shape\[0\] is 5, and .*'max\(a, b\)'.* 4"):
        check_sizes(solution.checks, {**sizes, "args[1].shape[0]": 5})
    with pytest.raises(ValueError, match=r"args\[0\]\.shape\[0\] is 8.*'a' the value 0 < 1"):
        check_sizes(solution.checks, {**sizes, "args[0].shape[0]": 8})


def test_unsolvable_sizes_are_named():
    with pytest.raises(ValueError, match=r"'a\*b' of args\[0\]\.shape\[0\]"):
        solve([symbolic_shape("a*b")], lambda position: f"args[{position}]")


def test_maximum_of_equal_sizes_is_the_size():
    b, d = symbolic_shape("b, d", constraints=["b >= d"])
    assert max_dim(b, d) is b and max_dim(d, b) is b
