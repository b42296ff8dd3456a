"""hlofront.image: functions that resize images."""

from hlofront.image.resizing import ResizeMethod as ResizeMethod
from hlofront.image.resizing import resize as resize
from hlofront.image.resizing import scale_and_translate as scale_and_translate
