"""rlax: returns, value and policy losses, their gradients, and exploration."""

import jax
import jax.numpy as jnp
import numpy as np
import rlax

generator = np.random.default_rng(0)
steps, actions, states = 6, 4, 3
rewards = jnp.array(generator.normal(size=steps), jnp.float32)
discounts = jnp.full((steps,), 0.9)
values = jnp.array(generator.normal(size=steps + 1), jnp.float32)
q_values = jnp.array(generator.normal(size=(steps, actions)), jnp.float32)
taken = jnp.array(generator.integers(0, actions, steps))

print("returns", rlax.discounted_returns(rewards, discounts, values[1:]))
print("lambda", jax.jit(rlax.lambda_returns)(rewards, discounts, values[1:], 0.8))
print("n steps", rlax.n_step_bootstrapped_returns(rewards, discounts, values[1:], n=3))
print("td", jax.vmap(rlax.td_learning)(values[:-1], rewards, discounts, values[1:]))
q_learning = jax.vmap(rlax.q_learning)
print("q", q_learning(q_values, taken, rewards, discounts, jnp.roll(q_values, 1, 0)))
double = jax.vmap(rlax.double_q_learning)
print("double q", double(q_values, taken, rewards, discounts, q_values[::-1], q_values))
rho = jnp.exp(values[:-1] - 0.1)
vtrace = rlax.vtrace_td_error_and_advantage(values[:-1], values[1:], rewards, discounts, rho)
print("vtrace", vtrace.errors, vtrace.pg_advantage)
advantages = jnp.array(generator.normal(size=steps), jnp.float32)


def policy_loss(logits):
    loss = rlax.policy_gradient_loss(logits, taken, advantages, jnp.ones(steps))
    return loss + 0.1 * rlax.entropy_loss(logits, jnp.ones(steps))


print("policy", jax.value_and_grad(policy_loss)(q_values))
print("ppo", jax.grad(lambda r: rlax.clipped_surrogate_pg_loss(r, advantages, 0.2))(rho))
print("gae", rlax.truncated_generalized_advantage_estimation(rewards, discounts, 0.95, values))
key = jax.random.key(0)
print("greedy", rlax.epsilon_greedy(0.3).sample(key, q_values))
print("softmax", rlax.softmax(0.5).probs(q_values)[0])
pair = rlax.SIGNED_HYPERBOLIC_PAIR
print("transform", pair.apply(values), pair.apply_inv(values))
support = jnp.linspace(-2.0, 2.0, 5)
print("projection", rlax.categorical_l2_project(support + 0.3, jnp.full(5, 0.2), support))
print("huber", jax.vmap(jax.grad(rlax.huber_loss))(values))
