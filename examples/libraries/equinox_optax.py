"""A small network of equinox, trained by optax. It is a program for jax, which hlofront runs:

python -m hlofront as-jax examples/libraries/equinox_optax.py
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

started = time.perf_counter()
key_model, key_data = jax.random.split(jax.random.key(0))
model = eqx.nn.MLP(in_size=2, out_size=1, width_size=32, depth=2, key=key_model)
inputs = jax.random.uniform(key_data, (256, 2), minval=-1.0, maxval=1.0)
targets = jnp.sin(3 * inputs[:, :1]) * inputs[:, 1:]
optimizer = optax.adamw(3e-3)
state = optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_value_and_grad
def loss_of(model):
    return jnp.mean((jax.vmap(model)(inputs) - targets) ** 2)


@eqx.filter_jit
def step(model, state):
    loss, gradients = loss_of(model)
    updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


model, state, loss = step(model, state)
print(f"first loss {loss:.4f}")
first = time.perf_counter()
for _ in range(300):
    model, state, loss = step(model, state)
print(f"last loss {loss:.4f}")
last = time.perf_counter()
print(f"time to first result {first - started:.2f} s, per step {(last - first) / 300 * 1e6:.0f} us")
