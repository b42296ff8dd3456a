"""equinox: filtered transformations of modules, layers, state, errors, files."""
# tolerance: 1e-4 1e-5

import io

import equinox as eqx
import jax
import jax.numpy as jnp

key = jax.random.key(0)


class Network(eqx.Module):
    layers: list
    scale: jax.Array
    name: str = eqx.field(static=True)

    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.layers = [
            eqx.nn.Linear(4, 8, key=keys[0]),
            jax.nn.gelu,
            eqx.nn.Linear(8, 2, key=keys[1]),
        ]
        self.scale = jnp.ones(())
        self.name = "network"

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scale


@eqx.filter_value_and_grad
def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_jit
def step(model, x, y):
    value, gradients = loss(model, x, y)
    return value, eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients))


model = Network(key)
x, y = jax.random.normal(key, (16, 4)), jnp.ones((16, 2))
for _ in range(5):
    value, model = step(model, x, y)
    print("loss", value)
print(model.layers[0], model.name)
changed = eqx.tree_at(lambda m: m.scale, model, jnp.array(2.0))
print("changed", eqx.tree_equal(changed, model), changed(x[0]) / model(x[0]))
buffer = io.BytesIO()
eqx.tree_serialise_leaves(buffer, model)
buffer.seek(0)
print(
    "restored",
    eqx.tree_equal(eqx.tree_deserialise_leaves(buffer, Network(jax.random.key(9))), model),
)
ensemble = eqx.filter_vmap(Network)(jax.random.split(key, 3))
print(
    "ensemble", eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(ensemble, x[0])
)

norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, axis_name="batch", mode="batch")
out, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
print("batch norm", out[0], out.mean(0), out.std(0))
attention = eqx.nn.MultiheadAttention(2, 4, key=key)
print("attention", attention(x[:3], x[:3], x[:3]))
print("conv", eqx.nn.Conv2d(1, 2, 3, key=key)(jnp.ones((1, 4, 4))).sum((1, 2)))
cell = eqx.nn.GRUCell(4, 3, key=key)
print("gru", jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(3), x)[0])
print("dropout", eqx.nn.Dropout(0.5)(jnp.ones(4), key=key))
print("jacobian", eqx.filter_jacrev(model)(x[0])[0])


@eqx.filter_jit
def root(x):
    return jnp.sqrt(eqx.error_if(x, x < 0, "negative"))


print("root", root(jnp.array(4.0)))
try:
    root(jnp.array(-4.0))
except RuntimeError as error:
    print("refused", "negative" in str(error))
power = eqx.internal.while_loop(
    lambda c: c[0] < 4,
    lambda c: (c[0] + 1, c[1] * x[0, 0]),
    (0, jnp.array(1.0)),
    kind="bounded",
    max_steps=8,
)
print("while", power[1], eqx.filter_make_jaxpr(model)(x[0])[1].shape)
