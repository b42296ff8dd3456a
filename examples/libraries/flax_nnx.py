"""A convolutional network of flax.nnx. It is a program for jax, which hlofront runs:

python -m hlofront as-jax examples/libraries/flax_nnx.py
"""

import time

import jax
import jax.numpy as jnp
import optax
from flax import nnx

started = time.perf_counter()


class Network(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 8, kernel_size=(3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dense = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        return self.dense(x.mean((1, 2)))


images = jax.random.normal(jax.random.key(0), (64, 8, 8, 1))
labels = (images[:, :4].mean((1, 2, 3)) > images[:, 4:].mean((1, 2, 3))).astype(jnp.int32)
model = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)


@nnx.jit
def step(model, optimizer):
    def loss_of(model):
        logits = model(images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


print(f"first loss {step(model, optimizer):.3f}")
first = time.perf_counter()
for _ in range(50):
    loss = step(model, optimizer)
print(f"last loss {loss:.3f}")
last = time.perf_counter()
print(f"time to first result {first - started:.2f} s, per step {(last - first) / 50 * 1e3:.1f} ms")
