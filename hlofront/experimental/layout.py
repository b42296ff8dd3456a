"""jax.experimental.layout: the order of arrays' elements in memory."""

from hlofront.pjrt.layouts import Format as Format
from hlofront.pjrt.layouts import Layout as Layout
from hlofront.runtime.array.layout_constraint import (
    with_layout_constraint as with_layout_constraint,
)
