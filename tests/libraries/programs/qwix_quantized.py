"""qwix: networks of flax.nnx and flax.linen, quantized for inference and for training."""
# tolerance: 1e-4 1e-5

import jax
import jax.numpy as jnp
import qwix
from flax import linen, nnx

x = jax.random.normal(jax.random.key(0), (4, 16))
rules = [
    qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8, act_qtype=jnp.int8),
]
weight_rules = [qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8)]


class LinenNetwork(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.relu(linen.Dense(32)(x))
        x = linen.LayerNorm()(x)
        return linen.Dense(3)(x)


def types_of(tree):
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path), leaf.dtype.name, leaf.shape) for path, leaf in leaves]


model = LinenNetwork()
variables = model.init(jax.random.key(1), x)
print("linen", model.apply(variables, x)[0])
for name, provider_rules in (("both", rules), ("weights", weight_rules)):
    quantized = qwix.quantize_model(model, qwix.PtqProvider(provider_rules))
    shapes = jax.eval_shape(quantized.init, jax.random.key(1), x)["params"]
    parameters = qwix.quantize_params(variables["params"], shapes)
    print("linen", name, quantized.apply({"params": parameters}, x)[0])
    print("linen", name, "jit", jax.jit(quantized.apply)({"params": parameters}, x)[0])
    print("linen", name, types_of(parameters)[:4])
trained = qwix.quantize_model(model, qwix.QtProvider(rules))


def loss(variables):
    return (trained.apply(variables, x) ** 2).mean()


print("linen training", loss(variables), jax.grad(loss)(variables)["params"]["Dense_1"]["bias"])


class NNXNetwork(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(16, 32, rngs=rngs)
        self.second = nnx.Linear(32, 3, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.relu(self.first(x)))


network = NNXNetwork(nnx.Rngs(0))
print("nnx", network(x)[0])
for name, provider_rules in (("both", rules), ("weights", weight_rules)):
    quantized = qwix.quantize_model(network, qwix.PtqProvider(provider_rules), x)
    print("nnx", name, quantized(x)[0], type(quantized.first.kernel).__name__)
    print("nnx", name, types_of(nnx.to_pure_dict(nnx.state(quantized)))[:4])
    print("nnx", name, "jit", nnx.jit(lambda model, x: model(x))(quantized, x)[0])
trained = qwix.quantize_model(network, qwix.QtProvider(rules), x)
gradients = nnx.grad(lambda model: (model(x) ** 2).mean())(trained)
print("nnx training", trained(x)[0], gradients["second"]["bias"][...])
print("text", str(jax.make_jaxpr(lambda x: quantized(x))(x)).count("dot_general"))


class Convolution(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Conv(3, 4, (3, 3), rngs=rngs)

    def __call__(self, x):
        return self.layer(x)


images = jax.random.normal(jax.random.key(2), (1, 6, 6, 3))
convolution = Convolution(nnx.Rngs(1))
print("convolution", convolution(images)[0, 0, 0])
quantized = qwix.quantize_model(convolution, qwix.PtqProvider(rules), images)
print("quantized convolution", quantized(images)[0, 0, 0])
rows = jax.random.normal(jax.random.key(3), (2, 5, 16))
attention = nnx.MultiHeadAttention(
    num_heads=4, in_features=16, qkv_features=16, decode=False, rngs=nnx.Rngs(2)
)
print("attention", attention(rows)[0, 0, :4])
quantized = qwix.quantize_model(attention, qwix.PtqProvider(rules), rows)
print("quantized attention", quantized(rows)[0, 0, :4], attention(rows)[0, 0, :4])
print("quantized attention jit", nnx.jit(lambda model, x: model(x))(quantized, rows)[0, 0, :4])
