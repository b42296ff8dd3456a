"""jax.extend.source_info_util: where operations come from, for interpreters of programs."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.base.source": "register_exclusion",
        "hlofront.core.names": "PrintedNameStack=NameStack SourceInfo",
        "hlofront.core.source_info": (
            "current current_name_stack extend_name_stack new_name_stack new_source_info "
            "reset_name_stack set_name_stack summarize transform_name_stack user_context"
        ),
    },
)
