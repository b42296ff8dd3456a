"""EArray: an array of an extended dtype, which wraps the array that represents it."""

from hlofront.base.typing import Array
from hlofront.bridge import fast_parts
from hlofront.core.aval import ShapedArray
from hlofront.runtime.array import transfer
from hlofront.runtime.array.key_array import KeyArray, of_base, put_keys


class EArray(KeyArray):
    """An array of an extended dtype, such as random keys, which wraps the array that represents it.

    Args:
      aval: the shape and the dtype.
      data: the array of plain elements, with the axes of an element last.

    Example:
      >>> key = jax.random.key(0)
      >>> EArray(jax.typeof(key), jax.random.key_data(key))
      EArray([0, 0], dtype=uint32)
    """

    __slots__ = ()

    def __init__(self, aval: ShapedArray, data: Array):
        super().__init__(aval, data)

    def __repr__(self) -> str:
        return f"E{self._live_base()!r}"

    __str__ = __repr__


fast_parts.call_registry.register_node(
    EArray, lambda array: ((array._base,), array.aval.dtype), of_base
)
transfer.register_putter(EArray, put_keys)
