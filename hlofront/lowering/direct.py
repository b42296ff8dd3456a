"""The primitives that are one StableHLO operation, with no attributes."""

from hlofront.core.primitive import Primitive
from hlofront.primitives import elementwise as e

# Operands of other shapes than the result's are broadcast first.
DIRECT: dict[Primitive, str] = {
    e.add_p: "stablehlo.add",
    e.mul_p: "stablehlo.multiply",
}
