"""brainstate: states under its transformations, networks, neurons and training."""

import brainstate as bst
import jax
import jax.numpy as jnp

bst.environ.set(precision=32)
bst.random.seed(3)
counter = bst.State(jnp.zeros(2))


@bst.transform.jit
def count(x):
    counter.value = counter.value + x
    return counter.value.sum()


print("jit", count(1.0), count(2.0), counter.value)


@bst.transform.jit
def total(xs):
    def step(x):
        counter.value = counter.value * 0.5 + x
        return counter.value[0]

    return bst.transform.for_loop(step, xs)


print("for loop", total(jnp.arange(4.0)), counter.value)


def choose(flag):
    def true(x):
        counter.value = counter.value + 1.0
        return x

    return bst.transform.cond(flag, true, lambda x: -x, 3.0)


print("cond", choose(True), choose(False), counter.value)
weights = bst.ParamState(jnp.arange(3.0))
loss = lambda: (jnp.sin(weights.value) ** 2).sum()
print("grad", bst.transform.grad(loss, weights)())
print("grad with value", bst.transform.grad(loss, {"w": weights}, return_value=True)())
print("vmap", bst.transform.vmap(lambda x: x * weights.value.sum())(jnp.arange(3.0)))
print("vector grad", bst.transform.vector_grad(lambda x: x**2)(jnp.arange(3.0)))
print("hessian", bst.transform.hessian(loss, weights)())


class Network(bst.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = bst.nn.Linear(4, 8)
        self.second = bst.nn.Linear(8, 2)

    def __call__(self, x):
        return self.second(jax.nn.tanh(self.first(x)))


network = Network()
x = jax.random.normal(jax.random.key(0), (5, 4))
print("network", network(x).shape, sorted(map(str, network.states(bst.ParamState).keys())))
parameters = network.states(bst.ParamState)
parameters = {key: parameters[key] for key in parameters.keys()}
for index, state in enumerate(parameters.values()):
    state.value = jax.tree.map(
        lambda v: jnp.cos(jnp.arange(v.size) + index).reshape(v.shape), state.value
    )


@bst.transform.jit
def train():
    objective = lambda: (network(x) ** 2).mean()
    gradients, value = bst.transform.grad(objective, parameters, return_value=True)()
    for key, gradient in gradients.items():
        parameters[key].value = jax.tree.map(
            lambda v, g: v - 0.1 * g, parameters[key].value, gradient
        )
    return value


print("training", [float(train()) for _ in range(4)])
print("random", bst.random.normal(size=(3,)), bst.random.uniform(size=(2,)))
jaxpr, states = bst.transform.make_jaxpr(lambda x: x * weights.value)(jnp.ones(3))
print("jaxpr", len(jaxpr.jaxpr.eqns), jaxpr.jaxpr.eqns[0].primitive)
print("scan", bst.transform.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0)))
print("while", bst.transform.while_loop(lambda i: i < 5, lambda i: i + 2, 0))
print("checkpoint", bst.transform.grad(lambda: bst.transform.checkpoint(loss)(), weights)())
