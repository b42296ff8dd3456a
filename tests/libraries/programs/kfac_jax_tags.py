"""kfac-jax: tags of layers and losses in jaxprs, and values and gradients of tagged functions."""

import jax
import jax.numpy as jnp
import kfac_jax

x = jax.random.normal(jax.random.key(0), (32, 5))
targets = jnp.sin(x.sum(1, keepdims=True))


def model(params, x):
    h = jnp.tanh(x @ params["w0"] + params["b0"])
    return h @ params["w1"] + params["b1"]


def loss(params, batch):
    x, targets = batch
    prediction = model(params, x)
    kfac_jax.register_squared_error_loss(prediction, targets)
    return jnp.mean((prediction - targets) ** 2)


params = {
    "w0": jax.random.normal(jax.random.key(1), (5, 8)) * 0.4,
    "b0": jnp.zeros(8),
    "w1": jax.random.normal(jax.random.key(2), (8, 1)) * 0.4,
    "b1": jnp.zeros(1),
}
tagged = kfac_jax.tag_graph_matcher.auto_register_tags(loss, (params, (x, targets)))
jaxpr = jax.make_jaxpr(tagged)(params, (x, targets))
print(
    "tags", sorted({str(eqn.primitive) for eqn in jaxpr.jaxpr.eqns if "tag" in str(eqn.primitive)})
)
print("tagged", loss(params, (x, targets)), jax.jit(tagged)(params, (x, targets))[0].sum())
print("gradient", jax.grad(lambda p: tagged(p, (x, targets))[0].sum())(params)["b1"])
hessian = jax.hessian(lambda b: tagged({**params, "b1": b}, (x, targets))[0].sum())(params["b1"])
print("hessian", hessian)
print("vmap", jax.vmap(lambda x, y: tagged(params, (x[None], y[None]))[0].sum())(x, targets)[:4])
