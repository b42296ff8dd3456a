"""jax.experimental.random: a generator of random numbers that changes with each draw."""

from hlofront.random.stateful import StatefulPRNG as StatefulPRNG
from hlofront.random.stateful import stateful_rng as stateful_rng
