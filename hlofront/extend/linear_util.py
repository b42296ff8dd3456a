"""jax.extend.linear_util: functions that are transformed in steps."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.transforms.linear_util": (
            "StoreException WrappedFun cache merge_linear_aux transformation transformation2 "
            "transformation_with_aux transformation_with_aux2 wrap_init"
        ),
    },
)
