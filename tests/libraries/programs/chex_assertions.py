"""chex: dataclasses, assertions on trees and traces, variants of tests, checks in compiled code."""

import sys

import chex
import jax
import jax.numpy as jnp


@chex.dataclass(frozen=True)
class State:
    position: chex.Array
    steps: chex.Array


state = State(position=jnp.arange(3.0), steps=jnp.zeros((), jnp.int32))


@jax.jit
@chex.assert_max_traces(n=1)
def step(state):
    return state.replace(position=state.position * 1.5 + 1, steps=state.steps + 1)


for _ in range(3):
    state = step(state)
print("state", state.position, state.steps, len(jax.tree.leaves(state)))
print(
    "paths", [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state)]
)
chex.assert_tree_all_finite(state)
chex.assert_shape([state.position, jnp.ones(3)], (3,))
chex.assert_trees_all_close(state, jax.tree.map(lambda x: x, state))


def refused(assertion, *arguments, **keywords):
    try:
        assertion(*arguments, **keywords)
        print(assertion.__name__, "accepted")
    except (AssertionError, ValueError) as error:
        print(assertion.__name__, "refused", type(error).__name__)


refused(chex.assert_shape, state.position, (4,))
refused(chex.assert_rank, state.position, 2)
refused(chex.assert_type, state.steps, float)
refused(chex.assert_trees_all_close, state, jax.tree.map(lambda x: x + 1, state))
refused(chex.assert_trees_all_equal_structs, state, [1, 2])
refused(chex.assert_scalar_positive, -1.0)
refused(chex.assert_numerical_grads, lambda x: jnp.sin(x).sum(), (jnp.ones(2),), order=1)


@chex.chexify
@jax.jit
def checked_root(x):
    chex.assert_trees_all_equal(jnp.sign(x), jnp.ones_like(x))
    return jnp.sqrt(x)


print("root", checked_root(jnp.array([1.0, 4.0])))
try:
    checked_root(jnp.array([1.0, -4.0]))
    checked_root.wait_checks()
    print("accepted")
except AssertionError as error:
    print("refused", "chexify" in str(error).lower())


class Variants(chex.TestCase):
    @chex.variants(with_jit=True, without_jit=True, with_device=True)
    def test_sum(self):
        print("variant", self.variant(lambda x: x.sum())(jnp.arange(4)))


for name in sorted(name for name in dir(Variants) if name.startswith("test_sum")):
    test = Variants(name)
    test.debug()
with chex.fake_jit():
    print("eager", jax.jit(lambda x: type(x).__name__)(jnp.ones(1)) == type(jnp.ones(1)).__name__)

sys.argv += ["--jax_numpy_rank_promotion=warn", "--", "--jax_debug_nans"]
jax.config.parse_flags_with_absl()
print("flags", jax.config.jax_numpy_rank_promotion, jax.config.jax_debug_nans)
