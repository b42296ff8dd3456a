"""The stages of a jitted function, as types: the door to runtime/stages.py."""

from hlofront.runtime.stages import ArgInfo as ArgInfo
from hlofront.runtime.stages import Compiled as Compiled
from hlofront.runtime.stages import CompilerOptions as CompilerOptions
from hlofront.runtime.stages import Lowered as Lowered
from hlofront.runtime.stages import Traced as Traced
from hlofront.runtime.stages import Wrapped as Wrapped
