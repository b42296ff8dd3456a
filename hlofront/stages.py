"""Re-exports: types of a jitted function's stages, from runtime/dispatch/stages.py."""

from hlofront.runtime.dispatch.stages import ArgInfo as ArgInfo
from hlofront.runtime.dispatch.stages import Compiled as Compiled
from hlofront.runtime.dispatch.stages import CompilerOptions as CompilerOptions
from hlofront.runtime.dispatch.stages import Lowered as Lowered
from hlofront.runtime.dispatch.stages import Traced as Traced
from hlofront.runtime.dispatch.stages import Wrapped as Wrapped
