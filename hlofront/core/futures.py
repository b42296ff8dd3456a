"""AbstractFuture: the type of the result of an operation that was started and is not awaited."""

from typing import Any

from hlofront.core.aval import AbstractHolder, ShapedArray


class AbstractFuture(AbstractHolder):
    """The type of a result that is awaited later; it holds the aval of the array."""

    __slots__ = ()

    def update(self, inner_aval: ShapedArray | None = None, **changes: Any) -> "AbstractFuture":
        """Return the type with another aval, or with fields of its aval replaced."""
        inner = self.inner_aval if inner_aval is None else inner_aval
        return AbstractFuture(inner.update(**changes))

    def to_tangent_aval(self) -> "AbstractFuture":
        """Return the type of the future of the array's tangent."""
        return AbstractFuture(self.inner_aval.to_tangent_aval())

    def to_cotangent_aval(self) -> ShapedArray:
        """Return the aval of the array's cotangent, which is not a future."""
        return self.inner_aval.to_cotangent_aval()

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        return f"AbstractFuture{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractFuture) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractFuture, self.inner_aval))
