"""Random keys: their dtype, their generators of random bits, and the primitives on keys."""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hlofront.base.advice import RANDOM_KEY
from hlofront.base.config import threefry_partitionable
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import ExtendedDType, prng_key, uint32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Params, Shape
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, batch, infer
from hlofront.core.symbolic_zeros import BatchAxes, Batched
from hlofront.core.trace import process
from hlofront.primitives.arrays.shaping import broadcast, broadcast_in_dim
from hlofront.primitives.rules.batching import move_axis, only_axis
from hlofront.primitives.rules.derivatives import no_derivative

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_UNSIGNED = {bits: np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}

# ---- generators and dtypes ---------------------------------------------------------------------


class Generator:
    """A generator of random bits: the functions that seed, split, fold into and use its keys.

    A key is a uint32 array of shape `key_shape`. Each function takes a single key.
    """

    __slots__ = ("fold_in", "key_shape", "name", "random_bits", "seed", "split", "tag")

    key_shape: tuple[int, ...]
    # (seed: an integer scalar) -> key
    seed: Callable[[ArrayLike], Array]
    # (key, shape) -> keys, of shape (*shape, *key_shape)
    split: Callable[[ArrayLike, tuple[int, ...]], Array]
    # (key, bit width, shape) -> unsigned integers of the width
    random_bits: Callable[[ArrayLike, int, tuple[int, ...]], Array]
    # (key, data: a scalar of uint32) -> key
    fold_in: Callable[[ArrayLike, ArrayLike], Array]
    name: str
    # The short name in the name of the dtype, such as "fry" in key<fry>.
    tag: str

    def __init__(
        self,
        key_shape: Sequence[int],
        seed: Callable[..., Array],
        split: Callable[..., Array],
        random_bits: Callable[..., Array],
        fold_in: Callable[..., Array],
        name: str = "<unnamed>",
        tag: str = "?",
    ):
        self.key_shape = tuple(key_shape)
        self.seed = seed
        self.split = split
        self.random_bits = random_bits
        self.fold_in = fold_in
        self.name = name
        self.tag = tag

    def _fields(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in Generator.__slots__])

    def __eq__(self, other: object) -> bool:
        return type(other) is Generator and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"Generator(name={self.name!r}, tag={self.tag!r}, key_shape={self.key_shape})"

    def __reduce__(self) -> tuple[object, ...]:
        # A registered generator is pickled by name, and looked up where keys are unpickled.
        if REGISTERED.get(self.name) is self:
            return generator_named, (self.name,)
        return Generator, (
            self.key_shape,
            self.seed,
            self.split,
            self.random_bits,
            self.fold_in,
            self.name,
            self.tag,
        )


# This module fills it: unpickling a key may need it before the user has imported it.
REGISTERED: dict[str, Generator] = {}
_REGISTERS = "hlofront.random.keys"


def register(generator: Generator) -> Generator:
    """Register a generator under its name, and return it.

    Raises:
      ValueError: if another generator has the name.
    """
    if REGISTERED.setdefault(generator.name, generator) is not generator:
        raise ValueError(f"there is a generator named {generator.name!r} already")
    return generator


def generator_named(name: str) -> Generator:
    """Return the generator registered under a name; raise ValueError if there is none."""
    if name not in REGISTERED:
        importlib.import_module(_REGISTERS)
    generator = REGISTERED.get(name)
    if generator is None:
        raise ValueError(
            f'unrecognized PRNG implementation "{name}". Did you mean one of: '
            f"{', '.join(REGISTERED)}?"
        )
    return generator


class KeyDType(ExtendedDType):
    """The dtype of one generator's random keys, printed as key<fry> for Threefry."""

    __slots__ = ("generator", "name")

    type = prng_key

    def __init__(self, generator: Generator):
        self.generator = generator
        self.name = f"key<{generator.tag}>"

    @property
    def _impl(self) -> Generator:
        """The generator of the keys of this dtype, under JAX's name."""
        return self.generator

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype]:
        return (*shape, *self.generator.key_shape), uint32

    @property
    def canonical(self) -> str | None:
        generator = self.generator
        if REGISTERED.get(generator.name) is not generator:
            return None
        return f"{self.name} {generator.name}"

    def wrap(self, data: ArrayLike) -> Array:
        return random_wrap(data, self.generator)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is KeyDType and self.generator == other.generator)

    def __hash__(self) -> int:
        return hash((KeyDType, self.generator.name, self.generator.tag))

    def __reduce__(self) -> tuple[object, ...]:
        return key_dtype_of, (self.generator,)


_dtypes: dict[int, KeyDType] = {}


def key_dtype_of(generator: Generator) -> KeyDType:
    """Return the dtype of a generator's keys; there is one object per generator."""
    key_dtype = _dtypes.get(id(generator))
    if key_dtype is None:
        # The dtype refers to its generator, so that the id is not reused for another.
        key_dtype = _dtypes[id(generator)] = KeyDType(generator)
    return key_dtype


def is_key(aval: ShapedArray) -> bool:
    """Return whether an aval's dtype is one of random keys."""
    return type(getattr(aval, "dtype", None)) is KeyDType


def _generator_of(name: str, aval: ShapedArray) -> Generator:
    if not is_key(aval):
        raise TypeError(f"{name} takes random keys, got {aval.str_short()}")
    return aval.dtype.generator


# ---- the operations ----------------------------------------------------------------------------

random_seed_p = Primitive("random_seed")
random_split_p = Primitive("random_split")
random_fold_in_p = Primitive("random_fold_in")
random_bits_p = Primitive("random_bits")
random_wrap_p = Primitive("random_wrap")
random_unwrap_p = Primitive("random_unwrap")
random_clone_p = Primitive("random_clone")
no_derivative(
    random_seed_p,
    random_split_p,
    random_fold_in_p,
    random_bits_p,
    random_wrap_p,
    random_unwrap_p,
    random_clone_p,
)


def settings() -> Params:
    """Return the parameters that record the options under which a generator runs.

    A generator runs when its equation is lowered, perhaps long after the block that set an option
    has ended. Options with default values have no parameter.
    """
    return {} if threefry_partitionable.value else {"partitionable": False}


def random_seed(seeds: ArrayLike, generator: Generator) -> Array:
    """Return keys made from integer seeds, one per seed."""
    return process(random_seed_p, (seeds,), {"impl": generator, **settings()})


@infer(random_seed_p)
def _(seeds: ShapedArray, *, impl: Generator, partitionable: bool = True) -> ShapedArray:
    if not (issubdtype(seeds.dtype, np.integer) or seeds.dtype == np.bool_):
        raise TypeError(f"PRNG key seed must be an integer; got {seeds.str_short()}")
    return ShapedArray(seeds.shape, key_dtype_of(impl))


def random_split(keys: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return new keys of shape `keys.shape + shape`, split from each key."""
    return process(random_split_p, (keys,), {"shape": shape, **settings()})


@infer(random_split_p)
def _(keys: ShapedArray, *, shape: Shape, partitionable: bool = True) -> ShapedArray:
    _generator_of("random_split", keys)
    return keys.update(shape=(*keys.shape, *shape))


def random_fold_in(keys: ArrayLike, data: ArrayLike) -> Array:
    """Return keys derived from keys and uint32 data, whose shapes broadcast."""
    return process(random_fold_in_p, (keys, data), settings())


@infer(random_fold_in_p)
def _(keys: ShapedArray, data: ShapedArray, *, partitionable: bool = True) -> ShapedArray:
    _generator_of("random_fold_in", keys)
    if data.dtype != uint32:
        raise TypeError(f"random_fold_in takes data of uint32, got {data.str_short()}")
    return keys.update(shape=broadcast_sizes("random_fold_in", keys.shape, data.shape))


def broadcast_sizes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes of equal rank, or scalars, broadcast to.

    Axes of size 1 are broadcast; `name` is the name of the operation, for errors.

    Raises:
      TypeError: if there is no such shape.
    """
    ranks = {len(shape) for shape in shapes if shape}
    sizes = [set(column) - {1} for column in zip(*[shape for shape in shapes if shape])]
    if len(ranks) > 1 or any(len(column) > 1 for column in sizes):
        raise TypeError(f"{name} got shapes that do not fit each other: {shapes}")
    return tuple([column.pop() if column else 1 for column in sizes])


def random_bits(keys: ArrayLike, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Return random unsigned integers of `bit_width` bits and shape `keys.shape + shape`."""
    params = {"bit_width": bit_width, "shape": shape, **settings()}
    return process(random_bits_p, (keys,), params)


@infer(random_bits_p)
def _(
    keys: ShapedArray, *, bit_width: int, shape: Shape, partitionable: bool = True
) -> ShapedArray:
    _generator_of("random_bits", keys)
    dtype = _UNSIGNED.get(bit_width)
    if dtype is None:
        raise TypeError(f"requires 8-, 16-, 32- or 64-bit field width, got {bit_width}")
    return ShapedArray((*keys.shape, *shape), dtype)


def random_wrap(data: ArrayLike, generator: Generator) -> Array:
    """Return the keys that uint32 key data of shape (..., *key_shape) represents."""
    return process(random_wrap_p, (data,), {"impl": generator})


@infer(random_wrap_p)
def _(data: ShapedArray, *, impl: Generator) -> ShapedArray:
    check_key_data(data, impl)
    return ShapedArray(data.shape[: data.ndim - len(impl.key_shape)], key_dtype_of(impl))


class _LikeArray(Protocol):
    """The protocol of values with the attributes of arrays that `check_key_data` reads."""

    ndim: int
    shape: tuple[int, ...]
    dtype: object


def _is_like_array(x: object) -> "TypeIs[_LikeArray]":
    return hasattr(x, "ndim") and hasattr(x, "shape") and hasattr(x, "dtype")


def check_key_data(data: object, generator: Generator) -> None:
    """Check that an array may be the key data of a generator.

    Raises:
      TypeError: unless `data` is a uint32 array, or its aval, of shape
        (..., *generator.key_shape).
    """
    problem = None
    rank = len(generator.key_shape)
    if not _is_like_array(data):
        problem = f"expected key_data to have ndim, shape, and dtype attributes. Got {data}"
    elif data.ndim < 1:
        problem = f"expected key_data.ndim >= 1; got ndim={data.ndim}"
    elif tuple(data.shape[len(data.shape) - rank :]) != generator.key_shape:
        problem = (
            f"expected key_data.shape to end with {generator.key_shape}; got shape={data.shape} "
            f"for {generator.name}"
        )
    elif data.dtype != uint32:
        problem = f"expected key_data.dtype = uint32; got dtype={data.dtype}"
    if problem is not None:
        raise TypeError(f"JAX encountered invalid PRNG key data: {problem}{RANDOM_KEY}")


def random_unwrap(keys: ArrayLike) -> Array:
    """Return the key data of keys: uint32 of shape `keys.shape + key_shape`."""
    return process(random_unwrap_p, (keys,), {})


@infer(random_unwrap_p)
def _(keys: ShapedArray) -> ShapedArray:
    generator = _generator_of("random_unwrap", keys)
    return ShapedArray((*keys.shape, *generator.key_shape), uint32)


def random_clone(keys: ArrayLike) -> Array:
    """Return copies of keys, which key-reuse checks allow to be used again."""
    return process(random_clone_p, (keys,), {})


@infer(random_clone_p)
def _(keys: ShapedArray) -> ShapedArray:
    _generator_of("random_clone", keys)
    return keys


def _keep_batch_axis(primitive: Primitive) -> None:
    """Register the batch rule of a primitive whose result has the batch axis of its operand."""

    def rule(values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
        return process(primitive, tuple(values), params), axes[0]

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    batch(primitive)(rule)


for _primitive in (
    random_seed_p,
    random_split_p,
    random_bits_p,
    random_unwrap_p,
    random_clone_p,
):
    _keep_batch_axis(_primitive)


@batch(random_wrap_p)
def _(values: ArrayLikes, axes: BatchAxes, *, impl: Generator) -> Batched:
    return random_wrap(move_axis(values[0], only_axis(axes), 0), impl), 0


@batch(random_fold_in_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> Batched:
    shapes = [typeof(x).shape for x in values]
    layouts = {(shape, axis) for shape, axis in zip(shapes, axes, strict=True) if axis is not None}
    alone = all(axis is not None or not shape for shape, axis in zip(shapes, axes, strict=True))
    if len(layouts) == 1 and alone:
        ((_, axis),) = layouts
        return process(random_fold_in_p, tuple(values), params), axis
    # Move batch axes to the front, and insert axes of size one after them until the ranks agree.
    rank = max(len(shape) - (axis is not None) for shape, axis in zip(shapes, axes, strict=True))
    aligned: list[ArrayLike] = []
    for x, axis in zip(values, axes, strict=True):
        if axis is not None:
            x = move_axis(x, axis, 0)
        shape = typeof(x).shape
        first, rest = (shape[:1], shape[1:]) if axis is not None else ((1,), shape)
        full = (*first, *(1,) * (rank - len(rest)), *rest)
        if full != shape:
            dimensions = [*([] if axis is None else [0]), *range(len(full) - len(rest), len(full))]
            x = broadcast_in_dim(x, full, dimensions)
        aligned.append(x)
    return process(random_fold_in_p, tuple(aligned), params), 0


def broadcast_keys(keys: ArrayLike, axis: int | None, size: int) -> ArrayLike:
    """Return keys with the batch axis first: axis `axis` moved, or a new one of `size` if None."""
    if axis is not None:
        return move_axis(keys, axis, 0)
    return broadcast(keys, (size,))
