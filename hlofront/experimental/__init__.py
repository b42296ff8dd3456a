"""jax.experimental: features whose interfaces may change."""

from hlofront.primitives.elementwise.converting import primal_tangent_dtype as primal_tangent_dtype
from hlofront.primitives.references.mutable_values import cur_qdd as cur_qdd
from hlofront.runtime.array.extended_array import EArray as EArray
from hlofront.runtime.dispatch.callbacks import io_callback as io_callback
