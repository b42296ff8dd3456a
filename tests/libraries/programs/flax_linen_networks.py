"""flax.linen: modules with state and randomness, lifted transformations, a training loop."""
# tolerance: 1e-3 1e-5

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax import serialization
from flax.training import train_state

key = jax.random.key(0)
images = jax.random.normal(key, (4, 8, 8, 3))
labels = jnp.array([0, 1, 2, 1])


class Network(nn.Module):
    features: int = 4

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.Conv(self.features, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
        x = nn.GroupNorm(num_groups=2)(x)
        x = nn.Dropout(0.2, deterministic=not train)(x.reshape(x.shape[0], -1))
        self.sow("intermediates", "flat", x.mean())
        return nn.Dense(3)(x)


class TrainState(train_state.TrainState):
    batch_stats: dict


model = Network()
variables = model.init(key, images)
print(jax.tree.map(jnp.shape, variables))
state = TrainState.create(
    apply_fn=model.apply,
    params=variables["params"],
    tx=optax.adam(0.01),
    batch_stats=variables["batch_stats"],
)


@jax.jit
def step(state, key):
    def loss(params):
        logits, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats},
            images,
            train=True,
            rngs={"dropout": key},
            mutable=["batch_stats"],
        )
        cost = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return cost, updates["batch_stats"]

    (cost, batch_stats), gradients = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradients).replace(batch_stats=batch_stats), cost


for i in range(4):
    state, cost = step(state, jax.random.fold_in(key, i))
    print("loss", cost)
trained = {"params": state.params, "batch_stats": state.batch_stats}
logits, captured = model.apply(trained, images, mutable=["intermediates"])
print("logits", logits[0], captured["intermediates"]["flat"])
restored = serialization.from_bytes(trained, serialization.to_bytes(trained))
print("restored", jnp.array_equal(model.apply(restored, images), logits))


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        cell = nn.scan(
            nn.LSTMCell,
            variable_broadcast="params",
            split_rngs={"params": False},
            in_axes=1,
            out_axes=1,
        )(features=3)
        _, ys = cell(cell.initialize_carry(jax.random.key(1), x[:, 0].shape), x)
        return nn.RNN(nn.GRUCell(2))(ys)


sequence = jax.random.normal(key, (2, 5, 4))
print("recurrent", Recurrent().init_with_output(key, sequence)[0][:, -1])
attention = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=4)
mask = nn.make_causal_mask(sequence[..., 0])
print("attention", attention.init_with_output(key, sequence, mask=mask)[0][0, :, 0])
ensemble = nn.vmap(
    nn.Dense, in_axes=None, variable_axes={"params": 0}, split_rngs={"params": True}, axis_size=3
)
print("ensemble", ensemble(2).init_with_output(key, jnp.ones(4))[0])
saving = nn.remat(nn.Dense)(2)
weights = saving.init(key, jnp.ones(4))
print("remat", jax.grad(lambda w: saving.apply(w, jnp.ones(4)).sum())(weights)["params"]["bias"])
tied = nn.Embed(5, 4).bind(nn.Embed(5, 4).init(key, jnp.arange(3)))
print("embed", tied.attend(tied(jnp.arange(3)))[1])
print(model.tabulate(key, images, console_kwargs={"width": 200}).count("\n") > 10)
