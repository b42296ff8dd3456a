"""Array: jaxlib's arrays with our methods."""

import numpy as np

from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import register_value_type


def _member(function):
    setattr(ArrayImpl, function.__name__, function)
    return function


def _value(self):
    if self._npy_value is None:
        self._npy_value, _ = self._single_device_array_to_np_array_did_copy()
    return self._npy_value


ArrayImpl._value = property(_value)
ArrayImpl.shape = property(lambda self: self.aval.shape)
ArrayImpl.dtype = property(lambda self: self.aval.dtype)
ArrayImpl.ndim = property(lambda self: self.aval.ndim)
ArrayImpl.size = property(lambda self: self.aval.size)
ArrayImpl.weak_type = property(lambda self: self.aval.weak_type)
ArrayImpl.sharding = property(lambda self: self._sharding)


@_member
def devices(self):
    return self._sharding.device_set


@_member
def __array__(self, dtype=None, copy=None):
    return np.asarray(self._value, dtype=dtype)


@_member
def __repr__(self):
    weak = ", weak_type=True" if self.aval.weak_type else ""
    return f"Array({np.array2string(self._value, separator=', ')}, dtype={self.dtype.name}{weak})"


register_value_type(ArrayImpl, lambda array: array.aval)
