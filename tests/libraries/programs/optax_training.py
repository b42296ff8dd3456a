"""optax: a small network trained by many optimizers, schedules, clipping, masks and losses."""

import jax
import jax.numpy as jnp
import optax

keys = jax.random.split(jax.random.key(0), 4)
inputs = jax.random.normal(keys[0], (32, 4))
targets = jnp.sin(inputs.sum(1)) > 0
start = {
    "hidden": {"w": jax.random.normal(keys[1], (4, 8)) * 0.5, "b": jnp.zeros(8)},
    "out": {"w": jax.random.normal(keys[2], (8,)) * 0.5, "b": jnp.zeros(())},
}


def loss(parameters):
    hidden = jnp.tanh(inputs @ parameters["hidden"]["w"] + parameters["hidden"]["b"])
    logits = hidden @ parameters["out"]["w"] + parameters["out"]["b"]
    return optax.sigmoid_binary_cross_entropy(logits, targets.astype(jnp.float32)).mean()


def trained(optimizer, steps=20):
    @jax.jit
    def step(parameters, state):
        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(
            gradients, state, parameters, value=value, grad=gradients, value_fn=loss
        )
        return optax.apply_updates(parameters, updates), state

    parameters, state = start, optimizer.init(start)
    for _ in range(steps):
        parameters, state = step(parameters, state)
    return loss(parameters)


schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 5, 20)
optimizers = {
    "sgd": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": optax.adam(schedule),
    "adamw": optax.adamw(0.05, weight_decay=0.01, mask=jax.tree.map(lambda x: x.ndim > 1, start)),
    "lion": optax.lion(0.01),
    "rmsprop": optax.rmsprop(0.01, centered=True),
    "adafactor": optax.adafactor(0.1),
    "lamb": optax.lamb(0.05),
    "clipped": optax.chain(optax.clip_by_global_norm(0.1), optax.adagrad(0.3)),
    "accumulated": optax.MultiSteps(optax.adam(0.1), every_k_schedule=4),
    "multi": optax.multi_transform(
        {"fast": optax.adam(0.1), "fixed": optax.set_to_zero()}, {"hidden": "fixed", "out": "fast"}
    ),
    "apply_if_finite": optax.apply_if_finite(optax.nadam(0.05), 3),
    "noisy": optax.noisy_sgd(0.1, key=1),
    "lbfgs": optax.lbfgs(),
    "schedule_free": optax.contrib.schedule_free_adamw(0.1),
}
print("start", loss(start))
for name, optimizer in optimizers.items():
    print(name, trained(optimizer))
print("schedule", [float(schedule(i)) for i in range(0, 20, 4)])
logits = jax.random.normal(keys[3], (5, 3))
print("softmax", optax.softmax_cross_entropy_with_integer_labels(logits, jnp.arange(5) % 3))
print(
    "huber",
    optax.huber_loss(logits, 0.5).sum(),
    "cosine",
    optax.cosine_distance(logits, logits + 1),
)
print(
    "ctc", optax.ctc_loss(logits[None], jnp.zeros((1, 5)), jnp.array([[1, 2]]), jnp.zeros((1, 2)))
)
print("projected", optax.projections.projection_simplex(jnp.array([0.5, 2.0, -1.0])))
print("norm", optax.tree.norm(start), optax.global_norm(jax.grad(loss)(start)))
