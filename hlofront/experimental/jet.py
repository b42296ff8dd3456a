"""jax.experimental.jet: Taylor mode, derivatives of higher order without nesting."""

from hlofront.core.rules import taylor as jet_rules
from hlofront.core.symbolic_zeros import ZeroSeries as ZeroSeries
from hlofront.core.symbolic_zeros import zero_series as zero_series
from hlofront.higher_order.jet import def_comp as def_comp
from hlofront.higher_order.jet import def_deriv as def_deriv
from hlofront.higher_order.jet import deflinear as deflinear
from hlofront.higher_order.jet import defzero as defzero
from hlofront.higher_order.jet import deriv_prop as deriv_prop
from hlofront.higher_order.jet import jet as jet
from hlofront.higher_order.jet import jet2 as jet2
from hlofront.higher_order.jet import linear_prop as linear_prop
from hlofront.higher_order.jet import zero_prop as zero_prop
from hlofront.transforms.taylor import JetTrace as JetTrace
from hlofront.transforms.taylor import JetTracer as JetTracer

__all__ = [
    "JetTrace",
    "JetTracer",
    "ZeroSeries",
    "def_comp",
    "def_deriv",
    "deflinear",
    "defzero",
    "deriv_prop",
    "jet",
    "jet2",
    "jet_rules",
    "linear_prop",
    "zero_prop",
    "zero_series",
]
