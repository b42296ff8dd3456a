"""The construction, splitting and reading of random keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hlofront.base import source
from hlofront.base.advice import RANDOM_KEY
from hlofront.base.boundary import boundary
from hlofront.base.config import default_prng_impl, enable_custom_prng, legacy_prng_key, options
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.bridge import state
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.core.trace import Tracer
from hlofront.numpy.arrays import creation
from hlofront.numpy.elementwise.universal import add
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.random import keys as primitives
from hlofront.primitives.random.keys import Generator, KeyDType, check_key_data, key_dtype_of
from hlofront.random import counter_based, rbg, threefry
from hlofront.runtime.array.key_array import KeyArray
from hlofront.runtime.dispatch.operation import operation

_x64 = state.enable_x64
_seed_offset = options["jax_random_seed_offset"]

for _generator in (
    threefry.threefry,
    counter_based.threefry4x32,
    rbg.rbg,
    rbg.unsafe_rbg,
    counter_based.philox2x32,
    counter_based.philox4x32,
):
    primitives.register(_generator)


class PRNGSpec:
    """The name of a user-defined generator of random keys, as `key_impl` returns it."""

    __slots__ = ("_impl",)

    def __init__(self, impl: Generator) -> None:
        self._impl = impl

    def __repr__(self) -> str:
        return f"PRNGSpec({self._impl.name!r})"

    def __str__(self) -> str:
        return str(self._impl)

    def __hash__(self) -> int:
        return hash(self._impl)

    def __eq__(self, other: object) -> bool:
        return type(other) is PRNGSpec and self._impl == other._impl


# The argument `impl`: a generator, its name, the dtype of its keys, or None for the default one.
GeneratorLike: TypeAlias = "str | PRNGSpec | KeyDType | Generator | None"


def default_generator() -> Generator:
    """Return the generator that the option jax_default_prng_impl selects."""
    return primitives.generator_named(default_prng_impl.value)


def generator_of(impl: GeneratorLike) -> Generator:
    """Return the generator that an argument `impl` names; None is the default one.

    Raises:
      ValueError: if no generator has the name.
      TypeError: if `impl` is not a name, dtype of keys, PRNGSpec, generator or None.
    """
    if impl is None:
        return default_generator()
    if isinstance(impl, str):
        return primitives.generator_named(impl)
    if isinstance(impl, PRNGSpec):
        return impl._impl
    if isinstance(impl, KeyDType):
        return impl.generator
    if isinstance(impl, Generator):
        return impl
    raise TypeError(
        f"unrecognized type {type(impl)} for specifying PRNG implementation. Wanted a name such as "
        "'threefry2x32', what key_impl gives, or the dtype of keys."
    )


# ---- typed and legacy keys -----------------------------------------------------------------------

_LEGACY = (
    "Legacy uint32 key array passed as key to jax.random function. Please create keys using "
    "jax.random.key(). If use of a raw key array was intended, set jax_legacy_prng_key='allow'."
)


def is_typed(x: object) -> bool:
    """Return whether a value is an array of typed keys, rather than legacy keys of integers."""
    return type(x) is KeyArray or type(getattr(x, "dtype", None)) is KeyDType


def typed_key(x: ArrayLike) -> tuple[Array, bool]:
    """Return keys as a typed array, and whether they were legacy keys: integers, from PRNGKey.

    Raises:
      TypeError: if x is not an array of keys.
      ValueError: if x is an array of integers, and jax_legacy_prng_key="error".
    """
    if is_typed(x):
        return x, False
    if not hasattr(x, "dtype") and not isinstance(x, int | float | complex | str):
        raise TypeError(f"unexpected PRNG key type {type(x)}{RANDOM_KEY}")
    mode = legacy_prng_key.value
    if mode == "error":
        # Arrays that cannot be keys raise TypeError, whether legacy keys are allowed or not.
        check_key_data(x, default_generator())
        raise ValueError(_LEGACY)
    if mode == "warn":
        source.warn(_LEGACY)
    if enable_custom_prng.value:
        source.warn(
            "Raw arrays as random keys to jax.random functions are deprecated. Assuming valid "
            f"{default_prng_impl.value} key for now.",
            FutureWarning,
        )
    return wrap(x, default_generator()), True


def wrap(data: ArrayLike, generator: Generator) -> Array:
    """Return the typed keys of an array of uint32; raise TypeError for other arrays."""
    check_key_data(data, generator)
    if type(data) is ArrayImpl:
        rank = data.ndim - len(generator.key_shape)
        return KeyArray(ShapedArray(data.shape[:rank], key_dtype_of(generator)), data)
    return primitives.random_wrap(data, generator)


def unwrap(keys: Array) -> Array:
    """Return the array of uint32 that stores typed keys."""
    return keys._base_array if type(keys) is KeyArray else primitives.random_unwrap(keys)


def single_key(name: str, key: ArrayLike) -> tuple[Array, bool]:
    """Return a function's single key as a typed scalar, and whether it was a legacy key.

    Raises:
      ValueError: if `key` is an array of several keys.
    """
    if type(key) is KeyArray and not key.aval.shape:
        return key, False
    typed, wrapped = typed_key(key)
    if typed.shape:
        shape = key.shape
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {shape} != (). Use "
            "jax.vmap for batching."
        )
    return typed, wrapped


def of_both_kinds(typed: Array, wrapped: bool) -> Array:
    """Return typed keys, converted to legacy keys of uint32 if the user's key was one."""
    return unwrap(typed) if wrapped and not enable_custom_prng.value else typed


# ---- construction --------------------------------------------------------------------------------


def _seeded(name: str, seed: ArrayLike, generator: Generator) -> Array:
    if is_typed(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    seed = seed_array(seed)
    shape = typeof(seed).shape
    if shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {shape} != (). Use "
            "jax.vmap for batching"
        )
    return random_seed(seed, generator)


def seed_array(seed: ArrayLike) -> Array | np.integer | np.bool_:
    """Return a seed as an array or scalar of integers; a Python int may have up to 64 bits."""
    if isinstance(seed, int):
        # The seed wraps around to 32 bits without x64; beyond 64 bits it raises OverflowError.
        return _python_seed(seed)
    if isinstance(seed, ArrayImpl | Tracer | np.bool_):
        return seed
    return creation.asarray(seed)


def _python_seed(seed: int) -> np.integer:
    wide = np.int64(seed)
    return wide if _x64.value else wide.astype(np.int32)


def random_seed(seeds: ArrayLike, generator: Generator) -> Array:
    """Return typed keys, of the seeds' shape, from integers plus jax_random_seed_offset.

    Raises:
      TypeError: if the seeds are not integers.
      OverflowError: if the option is an integer that the default integer dtype cannot hold.
    """
    if type(seeds) is bool:
        seeds = int(seeds)  # True is an integer in Python, but not in an array.
    aval = typeof(seeds)
    if not issubdtype(aval.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {aval.str_short()}")
    offset = _seed_offset.value
    if offset:
        seeds = add(seeds, offset)
    if isinstance(seeds, Tracer):
        return primitives.random_seed(seeds, generator)
    return _random_seed(seeds, generator)


@operation(static_argnames=("generator",))
def _random_seed(seeds: ArrayLike, generator: Generator) -> Array:
    return primitives.random_seed(seeds, generator)


def _impl_or_dtype(name: str, impl: GeneratorLike, dtype: KeyDType | str | None) -> Generator:
    if dtype is None:
        return generator_of(impl)
    if impl is not None:
        raise ValueError(f"Cannot specify both `impl` and `dtype` arguments to {name}")
    if isinstance(dtype, str):
        return primitives.generator_named(dtype)
    if not isinstance(dtype, KeyDType):
        raise TypeError(
            f"unrecognized type {type(dtype)} for specifying PRNG implementation: dtype is that of "
            "keys, or the name of their generator"
        )
    return dtype.generator


@boundary
def key(
    seed: ArrayLike, *, impl: GeneratorLike = None, dtype: KeyDType | str | None = None
) -> Array:
    """Return a random key from a seed, as a scalar array of keys.

    Args:
      seed: an integer, or a scalar array of integers.
      impl: the generator: its name, a result of `key_impl`, or the dtype of its keys. By default
        the option jax_default_prng_impl, which is "threefry2x32".
      dtype: the dtype of the key, instead of `impl`.

    Returns:
      An array of shape () and dtype key<fry>, or that of another generator.

    Raises:
      TypeError: if the seed is not an integer scalar.
      OverflowError: if the seed does not fit in 64 bits.
      ValueError: if the generator does not exist, or both `impl` and `dtype` are passed.

    Example:
      >>> key = jax.random.key(0)
      >>> jax.random.normal(key, (2,))
      Array([1.6226422, 2.0252647], dtype=float32)
    """
    return _seeded("key", seed, _impl_or_dtype("jax.random.key", impl, dtype))


@boundary
def PRNGKey(seed: ArrayLike, *, impl: GeneratorLike = None) -> Array:
    """Return a random key from a seed, as a legacy key: an array of uint32.

    Args:
      seed: an integer, or a scalar array of integers.
      impl: the generator, like the argument of `jax.random.key`.

    Returns:
      An array of uint32, of shape (2,) for threefry2x32 and (4,) for rbg; with the option
      jax_enable_custom_prng, a typed scalar key.

    Raises:
      TypeError: if the seed is not an integer scalar.
      OverflowError: if the seed does not fit in 64 bits.
      ValueError: if the generator does not exist.

    Example:
      >>> jax.random.PRNGKey(7)
      Array([0, 7], dtype=uint32)
    """
    return of_both_kinds(_seeded("PRNGKey", seed, generator_of(impl)), True)


@boundary
def key_dtype(impl_spec: GeneratorLike = None) -> KeyDType:
    """Return the dtype of a generator's keys, by default of the default generator's.

    Args:
      impl_spec: the generator, like the argument `impl` of `jax.random.key`.

    Raises:
      TypeError: if `impl_spec` is not a generator or its name.
      ValueError: if the generator does not exist.

    Example:
      >>> jax.random.key_dtype()
      key<fry>
    """
    return key_dtype_of(generator_of(impl_spec))


@boundary
def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: GeneratorLike = None, dtype: KeyDType | str | None = None
) -> Array:
    """Return typed keys from the array of uint32 that stores them: the inverse of `key_data`.

    Args:
      key_bits_array: an array of uint32, whose last axes have the shape of one key.
      impl: the generator, like the argument of `jax.random.key`.
      dtype: the dtype of the keys, instead of `impl`.

    Returns:
      An array of typed keys, without the last axes.

    Raises:
      TypeError: if the array is not of uint32, or lacks the axes of a key.
      ValueError: if the generator does not exist, or both `impl` and `dtype` are passed.

    Example:
      >>> key = jax.random.key(7)
      >>> jax.random.wrap_key_data(jax.random.key_data(key)) == key
      Array(True, dtype=bool)
    """
    generator = _impl_or_dtype("jax.random.wrap_key_data", impl, dtype)
    return wrap(key_bits_array, generator)


# ---- reading -------------------------------------------------------------------------------------


@boundary
def key_data(keys: ArrayLike) -> Array:
    """Return the array of uint32 that stores keys.

    Args:
      keys: an array of typed or legacy keys.

    Returns:
      An array of uint32, with the axes of `keys` and then those of one key.

    Raises:
      TypeError: if `keys` is not an array of keys.

    Example:
      >>> jax.random.key_data(jax.random.key(7))
      Array([0, 7], dtype=uint32)
    """
    return unwrap(typed_key(keys)[0])


@boundary
def key_impl(keys: ArrayLike) -> str | PRNGSpec:
    """Return the generator of keys: its name, or a PRNGSpec if define_prng_impl defined it.

    Args:
      keys: an array of typed or legacy keys.

    Raises:
      TypeError: if `keys` is not an array of keys.

    Example:
      >>> jax.random.key_impl(jax.random.key(0))
      'threefry2x32'
    """
    generator = typed_key(keys)[0].dtype.generator
    if primitives.REGISTERED.get(generator.name) is generator:
        return generator.name
    return PRNGSpec(generator)


@boundary
def clone(key: ArrayLike) -> Array:
    """Return a copy of a key, which jax_debug_key_reuse allows to be used again.

    Args:
      key: an array of typed or legacy keys. Any other value is returned unchanged.

    Returns:
      An array like `key`.

    Example:
      >>> key = jax.random.key(0)
      >>> jax.random.clone(key) == key
      Array(True, dtype=bool)
    """
    if is_typed(key):
        return primitives.random_clone(key)
    return creation.asarray(key)


# ---- new keys from a key -------------------------------------------------------------------------


@boundary
def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Return new keys from a key, which must not be used again.

    Args:
      key: a typed or legacy key.
      num: the number of keys, or the shape of the array of keys.

    Returns:
      An array of typed keys of shape (num,) or `num`; or of legacy keys, with the axes of a key
      last, if `key` is a legacy key.

    Raises:
      ValueError: if `key` is an array of several keys.
      TypeError: if `key` is not a key, or `num` is neither a number nor a shape.

    Example:
      >>> key, part = jax.random.split(jax.random.key(0))
      >>> keys = jax.random.split(key, 3)
      >>> keys.shape
      (3,)
    """
    typed, wrapped = single_key("split", key)
    shape = canonical_shape(num if isinstance(num, tuple) else (num,))
    if any(size < 0 for size in shape):
        raise ValueError(f"split: the number of keys must not be negative, got {num}")
    if isinstance(typed, Tracer):
        return of_both_kinds(primitives.random_split(typed, shape), wrapped)
    return of_both_kinds(_split(typed, shape), wrapped)


@operation(static_argnames=("shape",))
def _split(key: Array, shape: Shape) -> Array:
    return primitives.random_split(key, shape)


@boundary
def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Return a new key from a key and an integer.

    Args:
      key: a typed or legacy key.
      data: an integer from 0 to 2**32 - 1, or a scalar array, whose lowest 32 bits are used.

    Returns:
      A typed or legacy key, like `key`.

    Raises:
      ValueError: if `key` is an array of several keys.
      TypeError: if `key` is not a key, or `data` is not a scalar.
      OverflowError: if `data` is an integer that does not fit in 32 bits.

    Example:
      >>> key = jax.random.key(0)
      >>> [int(jax.random.randint(jax.random.fold_in(key, step), (), 0, 100)) for step in range(3)]
      [91, 22, 59]
    """
    typed, wrapped = single_key("fold_in", key)
    data = data if is_value(data) else creation.asarray(data, np.uint32)
    shape = typeof(data).shape
    if shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {shape} != (). Use "
            "jax.vmap for batching."
        )
    data = _folded(data)
    if isinstance(typed, Tracer) or isinstance(data, Tracer):
        return of_both_kinds(primitives.random_fold_in(typed, data), wrapped)
    return of_both_kinds(_fold_in(typed, data), wrapped)


def _folded(data: ArrayLike) -> ArrayLike:
    if type(data) is int:
        if not 0 <= data <= 0xFFFF_FFFF:
            raise OverflowError(
                f"Python integer {data} out of bounds for uint32: fold_in takes 0 to 2**32 - 1"
            )
        return np.uint32(data)
    if isinstance(data, bool | float):
        return np.uint32(data)
    if isinstance(data, np.generic | np.ndarray):
        return data.astype(np.uint32)
    if typeof(data).dtype == np.uint32:
        return data
    return convert_element_type(data, np.uint32)


@operation
def _fold_in(key: Array, data: ArrayLike) -> Array:
    return primitives.random_fold_in(key, data)
