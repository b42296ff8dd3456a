"""haiku: transformed networks with state, randomness, recurrence and lifted transformations."""
# tolerance: 1e-4 1e-5

import haiku as hk
import jax
import jax.numpy as jnp

key = jax.random.key(0)
x = jnp.linspace(-1.0, 1.0, 24).reshape(2, 12)


def network(x, is_training):
    images = x.reshape(2, 2, 2, 3)
    y = hk.Conv2D(4, 3)(images)
    y = hk.BatchNorm(True, True, 0.9)(y, is_training)
    y = hk.Flatten()(jax.nn.relu(y))
    y = hk.nets.MLP([8, 3])(y)
    y = hk.LayerNorm(-1, True, True)(y)
    return hk.dropout(hk.next_rng_key(), 0.3, y) if is_training else y


model = hk.transform_with_state(network)
parameters, state = model.init(key, x, True)
print(sorted((f"{m}/{n}", v.shape) for m, n, v in hk.data_structures.traverse(parameters)))
apply = jax.jit(model.apply, static_argnums=4)
y, new_state = apply(parameters, state, key, x, True)
print("training", y)
print("state", [leaf.ravel() for leaf in jax.tree.leaves(new_state)])
print("testing", apply(parameters, new_state, None, x, False)[0])


@jax.jit
def step(parameters, state, key):
    def loss(parameters):
        y, new_state = model.apply(parameters, state, key, x, True)
        return jnp.mean((y - 1) ** 2), new_state

    (value, state), gradients = jax.value_and_grad(loss, has_aux=True)(parameters)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), state, value


for i in range(3):
    parameters, state, value = step(parameters, state, jax.random.fold_in(key, i))
    print("loss", value)


def recurrent(sequence):
    core = hk.DeepRNN([hk.LSTM(5), jax.nn.tanh, hk.GRU(4)])
    outputs, _ = hk.dynamic_unroll(core, sequence, core.initial_state(2))
    return outputs.sum(), hk.scan(lambda c, y: (c + y.sum(), c), jnp.zeros(()), outputs)


recurrence = hk.without_apply_rng(hk.transform(recurrent))
weights = recurrence.init(key, jnp.ones((6, 2, 3)))
print("recurrent", jax.jit(recurrence.apply)(weights, jnp.ones((6, 2, 3))))
attention = hk.transform(lambda q: hk.MultiHeadAttention(2, 4, w_init_scale=1.0)(q, q, q))
queries = jax.random.normal(key, (2, 5, 8))
print("attention", attention.apply(attention.init(key, queries), None, queries)[0, :, 0])
lifted = hk.transform(
    lambda x: hk.vmap(hk.Linear(2), split_rng=False)(x) + hk.remat(hk.Linear(2))(x)
)
print("lifted", lifted.apply(lifted.init(key, x), None, x))
branches = hk.transform(lambda x: hk.cond(x.sum() > 1, jnp.sin, jnp.cos, hk.Linear(1)(x)))
print("cond", branches.apply(branches.init(key, x), None, x))
print(hk.experimental.tabulate(attention)(queries).count("\n") > 3)
