"""flax.nnx: stateful modules, optimizers, metrics, splitting and merging, transformations."""
# tolerance: 1e-3 1e-5

import jax
import jax.numpy as jnp
import optax
from flax import nnx

x = jax.random.normal(jax.random.key(0), (8, 6))
y = jnp.sin(x[:, :2])


class Network(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(6, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, momentum=0.9, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x):
        return self.out(self.dropout(nnx.relu(self.norm(self.hidden(x)))))


model = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(0.01), wrt=nnx.Param)
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))


@nnx.jit
def step(model, optimizer, metrics):
    loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimizer.update(model, gradients)
    metrics.update(loss=loss)
    return loss


for _ in range(5):
    print("loss", step(model, optimizer, metrics))
print("metrics", metrics.compute()["loss"], optimizer.step.get_value())
model.eval()
print("testing", model(x)[0], model.norm.mean.get_value()[:3])
graph, parameters, rest = nnx.split(model, nnx.Param, ...)
print("parameters", jax.tree.map(jnp.shape, nnx.to_pure_dict(parameters)))
merged = nnx.merge(graph, parameters, rest)
print("merged", jnp.array_equal(merged(x), model(x)))
nnx.update(merged, jax.tree.map(lambda leaf: leaf * 0.5, parameters))
print("halved", merged(x)[0], model(x)[0])


@nnx.vmap(in_axes=0, out_axes=0)
def ensemble(key):
    return nnx.Linear(6, 2, rngs=nnx.Rngs(key))


def through(x, layer):
    return jnp.tanh(layer(x))


keys = jax.random.split(jax.random.key(1), 3)
members = ensemble(keys)
print("ensemble", nnx.vmap(lambda m, x: m(x), in_axes=(0, None))(members, x[0]))
layers = nnx.vmap(lambda key: nnx.Linear(6, 6, rngs=nnx.Rngs(key)))(keys)
print("layers", nnx.scan(through, in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(x[0], layers))


class Counter(nnx.Module):
    def __init__(self):
        self.count = nnx.Variable(jnp.zeros((), jnp.int32))


@nnx.jit
def increment(counter, steps):
    nnx.fori_loop(
        0, steps, lambda i, c: (c.count.set_value(c.count.get_value() + 2), c)[1], counter
    )


counter = Counter()
increment(counter, 3)
print("counter", counter.count.get_value())
cell = nnx.RNN(nnx.LSTMCell(6, 4, rngs=nnx.Rngs(2)))
print("recurrent", cell(x[None])[0, -1])
attention = nnx.MultiHeadAttention(2, 6, 4, decode=False, rngs=nnx.Rngs(3))
print("attention", attention(x[None])[0, :, 0])
print("remat", nnx.grad(nnx.remat(lambda m: m(x).sum()))(model)["out"]["bias"].get_value())
print(nnx.display is not None, len(nnx.state(model).flat_state()))
