"""hlofront.image: functions that resize images."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.image.resizing": "ResizeMethod resize scale_and_translate",
    },
)
