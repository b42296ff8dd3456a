"""Random numbers from a key and a counter, which is a mutable reference: `experimental.random`."""

import secrets
from collections.abc import Sequence

import hlofront.numpy as jnp
from hlofront.base.tree_nodes import register_pytree_node
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.primitives.references.references import RefLike, new_ref
from hlofront.random import continuous, discrete, keys
from hlofront.random.keys import GeneratorLike

# The number of bits of a seed from the operating system.
_SEED_BITS = 32

Size = int | Sequence[int] | None


class StatefulPRNG:
    """A generator of random numbers that changes with each draw, with methods like NumPy's.

    `stateful_rng(seed)` makes one. It is a pytree whose counter is a mutable reference: functions
    that are jitted or differentiated may draw from it, as an argument or by closure.
    """

    def __init__(self, _base_key: Array, _counter: RefLike):
        self._base_key = _base_key
        self._counter = _counter

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Return a new random key, or an array of new keys of a shape."""
        key = keys.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        return keys.split(key, shape) if shape != () else key

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Return random numbers, uniform in [0, 1).

        Args:
          size: the shape of the result; None for a scalar.
          dtype: a floating dtype.
        """
        return self.uniform(0, 1, size, dtype=dtype)

    def uniform(
        self,
        low: ArrayLike = 0,
        high: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Return random numbers, uniform in [low, high).

        Args:
          low: the lower bounds.
          high: the upper bounds.
          size: the shape of the result; None for that of the bounds.
          dtype: a floating dtype.
        """
        shape = _shape(size, low, high)
        return continuous.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(
        self,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Return normally distributed random numbers.

        Args:
          loc: the means.
          scale: the standard deviations.
          size: the shape of the result; None for that of the means and deviations.
          dtype: a floating dtype.
        """
        standard = continuous.normal(self.key(), _shape(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * standard).astype(standard.dtype)

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
    ) -> Array:
        """Return random integers, uniform in [low, high).

        Args:
          low: the lower bounds; if `high` is None, the upper bounds, and the lower bounds are 0.
          high: the upper bounds.
          size: the shape of the result; None for that of the bounds.
          dtype: an integer dtype.
        """
        least, bound = (0, low) if high is None else (low, high)
        return discrete.randint(self.key(), _shape(size, least, bound), least, bound, dtype)

    def split(self, num: int | Sequence[int]) -> "StatefulPRNG":
        """Return a generator whose leaves have a first axis of this size, for vmap to map."""
        base_keys = self.key(num)
        return StatefulPRNG(base_keys, new_ref(jnp.zeros(base_keys.shape, jnp.int32)))

    def spawn(self, n_children: int) -> "list[StatefulPRNG]":
        """Return independent new generators.

        Args:
          n_children: the number of generators.
        """
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: ArrayLike | None = None, *, impl: GeneratorLike = None) -> StatefulPRNG:
    """Return a generator of random numbers that changes with each draw.

    Args:
      seed: an integer; None for one from the operating system.
      impl: the generator, like the argument of `jax.random.key`.

    Example:
      rng = stateful_rng(0)
      rng.normal(size=3), rng.normal(size=3)  # These differ.
    """
    if seed is None:
        seed = jnp.uint32(secrets.randbits(_SEED_BITS))
    return StatefulPRNG(keys.key(seed, impl=impl), new_ref(0))


def _shape(size: Size, *parameters: ArrayLike) -> tuple[int, ...]:
    if size is None:
        return jnp.broadcast_shapes(*map(jnp.shape, parameters))
    return (size,) if isinstance(size, int) else tuple(size)


register_pytree_node(
    StatefulPRNG,
    lambda rng: ((rng._base_key, rng._counter), ()),  # pyright: ignore[reportPrivateUsage]
    lambda _, children: StatefulPRNG(*children),
)
