"""Batch rules of primitives: their tables, and functions that add rules."""

from hlofront.core.rules import batch as primitive_batchers
from hlofront.core.rules import batch_with_axis as fancy_primitive_batchers
from hlofront.core.rules import batch_with_axis_name as axis_primitive_batchers
from hlofront.primitives.rules.extension import bdim_at_front as bdim_at_front
from hlofront.primitives.rules.extension import broadcast as broadcast
from hlofront.primitives.rules.extension import defbroadcasting as defbroadcasting
from hlofront.primitives.rules.extension import defreducer as defreducer
from hlofront.primitives.rules.extension import defvectorized as defvectorized
from hlofront.transforms.extension import batch_jaxpr_axes as batch_jaxpr_axes
from hlofront.transforms.extension import batch_subtrace as batch_subtrace
from hlofront.transforms.extension import zero_if_mapped as zero_if_mapped
from hlofront.transforms.vmappable import register_vmappable as register_vmappable
from hlofront.transforms.vmappable import unregister_vmappable as unregister_vmappable

__all__ = [
    "axis_primitive_batchers",
    "batch_jaxpr_axes",
    "batch_subtrace",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
    "zero_if_mapped",
]
