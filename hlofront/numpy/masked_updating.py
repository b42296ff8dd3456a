"""Updating where a mask is true, as a select: the shape does not depend on how often it is."""

from typing import Any

import numpy as np

from hlofront.base import errors
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer, is_eager, process
from hlofront.numpy.index_entries import ALL, resolve
