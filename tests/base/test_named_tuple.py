"""Named tuples of base/named_tuple.py behave as those of `typing` do."""

import copy
import inspect
import pickle
import typing
from typing import Generic, TypeVar

import pytest

import hlofront
from hlofront.base.named_tuple import NamedTuple

Member = TypeVar("Member")


class Point(NamedTuple):
    """A point with a name."""

    x: float
    y: float
    name: str = "origin"

    @property
    def norm(self) -> float:
        return abs(self.x) + abs(self.y)


class TypingPoint(typing.NamedTuple):
    x: float
    y: float
    name: str = "origin"


class Named(Point):
    """A subclass, which adds no field."""

    __slots__ = ()


class Pair(NamedTuple, Generic[Member]):
    first: Member
    second: Member


class Empty(NamedTuple):
    """A named tuple without fields."""


def test_it_is_a_tuple_with_attributes():
    point = Point(1.0, y=-2.0)
    assert point == (1.0, -2.0, "origin") and isinstance(point, tuple)
    assert (point.x, point.y, point.name, point.norm) == (1.0, -2.0, "origin", 3.0)
    assert hash(point) == hash((1.0, -2.0, "origin"))
    assert repr(point) == "Point(x=1.0, y=-2.0, name='origin')"
    assert not hasattr(point, "__dict__")
    x, *_ = point
    match point:
        case Point(first, second, name="origin"):
            assert (x, first, second) == (1.0, 1.0, -2.0)
    with pytest.raises(AttributeError):
        point.x = 3.0  # pyright: ignore[reportAttributeAccessIssue]
    assert Empty() == ()


def test_it_has_the_members_of_those_of_typing():
    names = set(dir(TypingPoint)) - {"__orig_bases__"}
    assert names <= set(dir(Point))
    for name in ("_fields", "_field_defaults", "__match_args__", "__annotations__"):
        assert getattr(Point, name) == getattr(TypingPoint, name)
    assert inspect.signature(Point).parameters.keys() == {"x", "y", "name"}
    assert Point.__doc__ == "A point with a name."
    point = Point(1.0, 2.0)
    assert point._asdict() == TypingPoint(1.0, 2.0)._asdict()
    assert point._replace(name="a") == Point._make([1.0, 2.0, "a"])


@pytest.mark.parametrize("value", [Point(1.0, 2.0), Named(1.0, 2.0), Pair(1, 2), Empty()])
def test_it_is_copied_and_pickled(value):
    for same in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert same == value and type(same) is type(value)


def test_a_subclass_keeps_its_class():
    assert type(Named(1.0, 2.0)._replace(x=0.0)) is Named
    assert Named._fields == Point._fields
    assert Pair[int](1, 2).second == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: Point(),  # pyright: ignore[reportCallIssue]
        lambda: Point(1.0, 2.0, "a", 3.0),  # pyright: ignore[reportCallIssue]
        lambda: Point(1.0, z=2.0),  # pyright: ignore[reportCallIssue]
        lambda: Point(1.0, 2.0)._replace(z=2.0),
        lambda: Point._make([1.0]),
    ],
)
def test_wrong_fields_are_type_errors(call):
    with pytest.raises(TypeError):
        call()


def test_fields_without_a_default_come_first():
    with pytest.raises(TypeError, match="without a default follows"):

        class Wrong(NamedTuple):  # pyright: ignore[reportUnusedClass]
            x: float = 0.0
            y: float  # pyright: ignore[reportGeneralTypeIssues]


def test_it_is_a_pytree():
    leaves, tree = hlofront.tree.flatten(Point(1.0, 2.0, "a"))
    assert leaves == [1.0, 2.0, "a"]
    assert hlofront.tree.unflatten(tree, leaves) == Point(1.0, 2.0, "a")
    assert type(hlofront.tree.map(str, Point(1.0, 2.0, "a"))) is Point
