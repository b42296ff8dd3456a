"""The operator wire: what `x + y` and `x.sum()` mean is filled in once, from numpy/operators.py."""

from typing import Any

from hlofront.base import errors


class ArrayOperators:
    """The base of tracers: operators and array methods, unplugged until hlofront is imported."""

    __slots__ = ()

    # NumPy's own operators must defer to ours: `np.ones(3) + tracer` is traced.
    __array_priority__ = 100

    def __getattr__(self, name: str) -> Any:
        if _plugged or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        raise errors.NoEngineError(
            f"array method {name!r} is not there yet: import hlofront, which plugs in operators"
        )


_plugged: list[type] = []


def plug_in_operators(
    members: dict[str, Any], array_type: type | None = None, array_members: Any = None
) -> None:
    """Called once, by numpy/operators.py: give tracers and arrays their operators and methods.

    Args:
      members: what tracers get, by name.
      array_type: the class of arrays.
      array_members: what it gets; by default the same.
    """
    for name, member in members.items():
        setattr(ArrayOperators, name, member)
    _plugged.append(ArrayOperators)
    if array_type is not None:
        for name, member in (array_members or members).items():
            setattr(array_type, name, member)
        _plugged.append(array_type)
