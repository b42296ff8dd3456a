"""Re-exports: programs that outlive their process, under the names of `jax.export`."""

from hlofront.core.sizes.scopes import SymbolicScope as SymbolicScope
from hlofront.core.sizes.scopes import symbolic_dim_bounds as symbolic_dim_bounds
from hlofront.core.sizes.scopes import symbolic_shape as symbolic_shape
from hlofront.core.sizes.symbolic import is_symbolic_dim as is_symbolic_dim
from hlofront.runtime.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from hlofront.runtime.export.containers import (
    register_namedtuple_serialization as register_namedtuple_serialization,
)
from hlofront.runtime.export.containers import (
    register_pytree_node_serialization as register_pytree_node_serialization,
)
from hlofront.runtime.export.exported import Exported as Exported
from hlofront.runtime.export.exporting import default_export_platform as default_export_platform
from hlofront.runtime.export.exporting import export as export
from hlofront.runtime.export.fields import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from hlofront.runtime.export.fields import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from hlofront.runtime.export.reading import deserialize as deserialize
from hlofront.runtime.export.symbolic_arguments import symbolic_args_specs as symbolic_args_specs
