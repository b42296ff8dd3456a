"""Re-exports: the exceptions that hlofront raises, from base/errors.py and core/."""

from hlofront.base.errors import AbsentDeviceError as AbsentDeviceError
from hlofront.base.errors import ConcretizationTypeError as ConcretizationTypeError
from hlofront.base.errors import DuplicateSpecError as DuplicateSpecError
from hlofront.base.errors import HlofrontError as HlofrontError
from hlofront.base.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from hlofront.base.errors import IndivisibleError as IndivisibleError
from hlofront.base.errors import JAXIndexError as JAXIndexError
from hlofront.base.errors import JaxprTypeError as JaxprTypeError
from hlofront.base.errors import JaxRuntimeError as JaxRuntimeError
from hlofront.base.errors import JAXTypeError as JAXTypeError
from hlofront.base.errors import KeyReuseError as KeyReuseError
from hlofront.base.errors import NoEngineError as NoEngineError
from hlofront.base.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from hlofront.base.errors import NoRuleError as NoRuleError
from hlofront.base.errors import PaddingError as PaddingError
from hlofront.base.errors import PluginError as PluginError
from hlofront.base.errors import RecompilationError as RecompilationError
from hlofront.base.errors import ShardingTypeError as ShardingTypeError
from hlofront.base.errors import TargetError as TargetError
from hlofront.base.errors import TracerArrayConversionError as TracerArrayConversionError
from hlofront.base.errors import TracerBoolConversionError as TracerBoolConversionError
from hlofront.base.errors import TracerIntegerConversionError as TracerIntegerConversionError
from hlofront.base.errors import TracerLeakError as TracerLeakError
from hlofront.base.errors import TypePromotionError as TypePromotionError
from hlofront.base.errors import UnexpectedTracerError as UnexpectedTracerError
from hlofront.base.errors import VerificationError as VerificationError
from hlofront.core.sharding.forbidden_collectives import (
    ForbiddenCollectiveError as ForbiddenCollectiveError,
)
