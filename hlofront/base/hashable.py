"""Arrays that can be parameters of equations, which are compared and hashed."""

from hlofront.base.typing import NumPyArray


class HashableArray:
    """A NumPy array that equals those with the same dtype, shape and elements."""

    __slots__ = ("val",)

    def __init__(self, val: NumPyArray):
        self.val = val.copy()
        self.val.setflags(write=False)

    def _key(self) -> tuple[object, ...]:
        return self.val.dtype, self.val.shape, self.val.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableArray) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"HashableArray({self.val!r})"
