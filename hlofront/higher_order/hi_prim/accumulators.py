"""Accumulators of cotangents, which backward rules of operations add to."""

from collections.abc import Sequence
from typing import Any

from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.high_types import low_types, lowered, raised
from hlofront.core.symbolic_zeros import Cotangent, Zero
from hlofront.higher_order.selecting import nonzero_flags
from hlofront.primitives.references.references import addupdate, freeze, new_ref
from hlofront.primitives.rules.derivatives import add_tangents, instantiate


def _is_nothing(x: object) -> bool:
    return x is None or type(x) is Zero


class GradAccum:
    """The base class of accumulators of an operand's cotangent, to which backward rules add.

    Attributes:
      aval: the type of the cotangent.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and symbolic zeros add nothing."""
        raise TypeError(f"{type(self).__name__} must override accum")

    def freeze(self) -> Any:
        """Return the sum, or a symbolic zero if nothing was added."""
        raise TypeError(f"{type(self).__name__} must override freeze")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def _check(self, x: Any) -> None:
        """Raise ValueError if the shapes of a cotangent and the operand differ."""
        aval = typeof(x)
        if isinstance(self.aval, ShapedArray) and getattr(aval, "shape", None) != self.aval.shape:
            raise ValueError(
                f"Expected cotangent type {self.aval.str_short()} but got {aval.str_short()}"
            )


class ValAccum(GradAccum):
    """An accumulator that holds the sum as a value.

    Args:
      aval: the type of the cotangent.
      val: the cotangent to start from; a symbolic zero if it is None.

    Example:
      >>> from hlofront.experimental.hijax import ValAccum
      >>> total = ValAccum(jax.typeof(1.0))
      >>> total.accum(2.0)
      >>> total.accum(3.0)
      >>> total.freeze()
      Array(5., dtype=float32, weak_type=True)
    """

    __slots__ = ("_low",)

    def __init__(self, aval: Any, val: Any = None):
        super().__init__(aval)
        self._low: Sequence[Cotangent] | None = None
        self.accum(val)

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and symbolic zeros add nothing.

        Raises:
          ValueError: if it has another shape than the operand.
        """
        if not _is_nothing(x):
            self._check(x)
            self.add_low(lowered([self.aval], [x]))

    def add_low(self, low: Sequence[Cotangent]) -> None:
        """Add a cotangent that consists of these low values."""
        if any(nonzero_flags(low)):
            before = self.low
            self._low = [add_tangents(a, b) for a, b in zip(before, low, strict=True)]

    def freeze(self) -> Any:
        if self._low is None:
            return Zero(self.aval)
        (value,) = raised([self.aval], map(instantiate, self._low))
        return value

    @property
    def val(self) -> Any:
        """The sum so far, or a symbolic zero."""
        return self.freeze()

    @property
    def low(self) -> list[Cotangent]:
        """The low values of the sum."""
        return [Zero(t) for t in low_types([self.aval])] if self._low is None else [*self._low]


class RefAccum(GradAccum):
    """An accumulator that adds to a mutable reference, which is created on first use.

    Attributes:
      aval: the type of the cotangent.
      ref: the reference, or None while nothing has been added.
    """

    __slots__ = ("ref",)

    def __init__(self, aval: Any, ref: Any = None):
        super().__init__(aval)
        self.ref = ref

    def accum(self, x: Any) -> None:
        """Add a cotangent to the reference; None and symbolic zeros add nothing.

        Raises:
          ValueError: if it has another shape than the operand.
        """
        if _is_nothing(x):
            return
        self._check(x)
        if self.ref is None:
            self.ref = new_ref(x)
        else:
            addupdate(self.ref, ..., x)

    def freeze(self) -> Any:
        return Zero(self.aval) if self.ref is None else freeze(self.ref)

    def inst(self) -> "RefAccum":
        """Create the reference if there is none, and return the accumulator."""
        if self.ref is None:
            self.ref = new_ref(instantiate(Zero(self.aval)))
        return self


class NullAccum(GradAccum):
    """The accumulator of a cotangent that nothing depends on: it drops what is added."""

    __slots__ = ()

    def accum(self, x: Any) -> None:
        """Drop the cotangent."""

    def freeze(self) -> Any:
        raise TypeError("a NullAccum has no sum: nothing depends on this cotangent")
