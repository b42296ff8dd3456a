"""jax.extend.source_info_util: where operations come from, for interpreters of programs."""

from hlofront.base.source import register_exclusion as register_exclusion
from hlofront.core.names import PrintedNameStack as NameStack
from hlofront.core.names import SourceInfo as SourceInfo
from hlofront.core.source_info import current as current
from hlofront.core.source_info import current_name_stack as current_name_stack
from hlofront.core.source_info import extend_name_stack as extend_name_stack
from hlofront.core.source_info import new_name_stack as new_name_stack
from hlofront.core.source_info import new_source_info as new_source_info
from hlofront.core.source_info import reset_name_stack as reset_name_stack
from hlofront.core.source_info import set_name_stack as set_name_stack
from hlofront.core.source_info import summarize as summarize
from hlofront.core.source_info import transform_name_stack as transform_name_stack
from hlofront.core.source_info import user_context as user_context

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]
