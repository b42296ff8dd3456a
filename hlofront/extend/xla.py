"""jax.extend.xla: functions that XLA calls with HLO modules while it compiles."""

from hlofront.pjrt.hlo_transformations import PipelineStage as PipelineStage
from hlofront.pjrt.hlo_transformations import (
    clear_hlo_module_transformation as clear_hlo_module_transformation,
)
from hlofront.pjrt.hlo_transformations import (
    register_hlo_module_transformation as register_hlo_module_transformation,
)
