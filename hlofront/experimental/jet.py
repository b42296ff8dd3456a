"""jax.experimental.jet: Taylor mode, derivatives of higher order without nesting."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.core.rules": "taylor=jet_rules",
        "hlofront.core.symbolic_zeros": "ZeroSeries zero_series",
        "hlofront.higher_order.jet": (
            "def_comp def_deriv deflinear defzero deriv_prop jet jet2 linear_prop zero_prop"
        ),
        "hlofront.transforms.taylor": "JetTrace JetTracer",
    },
)
