"""penzai: named axes; a network changed by selectors, and the gradients of its parameters."""

import jax
import jax.numpy as jnp
from penzai import pz

wrapped = pz.nx.wrap(jnp.arange(12.0).reshape(3, 4), "row", "column")
print("named", wrapped.named_shape)
total = pz.nx.nmap(jnp.sum)(wrapped.untag("column"))
print("sums", total.unwrap("row"))
print("product", (wrapped * pz.nx.arange("row", 3)).unwrap("row", "column"))


def linear(name, seed, inputs, outputs):
    key = jax.random.key(seed)
    return pz.nn.Linear.from_config(
        name=name, init_base_rng=key, input_axes=inputs, output_axes=outputs
    )


mlp = pz.nn.Sequential(
    [
        linear("in", 0, {"features": 4}, {"hidden": 8}),
        pz.nn.Elementwise(jnp.tanh),
        linear("out", 1, {"hidden": 8}, {"features": 4}),
        pz.nn.RMSStandardize(across=("features",)),
    ]
)
x = pz.nx.wrap(jnp.linspace(-1.0, 1.0, 8).reshape(2, 4), "batch", "features")
print("mlp", mlp(x).unwrap("batch", "features"))
frozen, parameters = pz.unbind_params(mlp, freeze=True)
print("parameters", sorted(p.label for p in parameters))


@jax.jit
def loss(parameters, x):
    outputs = pz.bind_variables(frozen, parameters)(x).unwrap("batch", "features")
    return jnp.sum(jnp.square(outputs - 1))


print("loss", loss(parameters, x))
gradients = jax.grad(loss)(parameters, x)
print("gradients", [jnp.abs(leaf).sum() for leaf in jax.tree.leaves(gradients)])
doubled = (
    mlp.select()
    .at_instances_of(pz.nn.Elementwise)
    .apply(lambda layer: pz.nn.Sequential([layer, pz.nn.Elementwise(lambda x: 2 * x)]))
)
print("changed", doubled(x).unwrap("batch", "features"))
print("selected", mlp.select().at_instances_of(pz.nn.Linear).count())
