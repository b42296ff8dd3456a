"""Batch rules of primitives: their tables, and functions that add rules."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.core.rules": (
            "batch=primitive_batchers batch_with_axis=fancy_primitive_batchers "
            "batch_with_axis_name=axis_primitive_batchers"
        ),
        "hlofront.primitives.rules.extension": (
            "bdim_at_front broadcast defbroadcasting defreducer defvectorized"
        ),
        "hlofront.transforms.extension": "batch_jaxpr_axes batch_subtrace zero_if_mapped",
        "hlofront.transforms.vmappable": "register_vmappable unregister_vmappable",
    },
)
