"""Elementwise primitives whose operation takes an attribute."""

from hlofront.core.rules import lower
from hlofront.primitives import elementwise as e


@lower(e.sin_p)
def _(build, x, *, accuracy):
    return build.op("stablehlo.sine", (x,))
