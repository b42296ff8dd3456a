"""hlofront.image: functions that resize images."""

from hlofront.base.lazy import lazy as _lazy
from hlofront.image.resizing import ResizeMethod as ResizeMethod
from hlofront.image.resizing import resize as resize
from hlofront.image.resizing import scale_and_translate as scale_and_translate

__getattr__, __dir__ = _lazy(__name__, ())
