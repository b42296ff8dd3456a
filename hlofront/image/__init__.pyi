# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront.image.resizing import ResizeMethod as ResizeMethod
from hlofront.image.resizing import resize as resize
from hlofront.image.resizing import scale_and_translate as scale_and_translate
