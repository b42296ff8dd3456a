"""SingleValue: the base of types whose values are single arrays and not made of low values."""

from typing import Any


class SingleValue:
    """A type whose values are their own low values; high_types.py has the other types."""

    __slots__ = ()

    # Whether values consist of several arrays, or have a state.
    is_high = False
    has_qdd = False

    def lo_ty(self) -> list[Any]:
        """Return the types of the values that a value of this type consists of."""
        return [self]

    def lower_val(self, hi_val: Any) -> list[Any]:
        """Return the values that a value of this type consists of."""
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value that consists of these values."""
        (value,) = lo_vals
        return value
