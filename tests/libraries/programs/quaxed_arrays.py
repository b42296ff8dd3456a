"""quaxed: NumPy's functions and transformations on values of quax, here a tracked length."""

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
import quaxed
import quaxed.numpy as qnp
from jaxtyping import Array

x = jnp.linspace(0.1, 2.0, 6).reshape(2, 3)


class Tagged(quax.ArrayValue):
    value: Array = eqx.field(converter=jnp.asarray)
    tag: str = eqx.field(static=True)

    def aval(self):
        return jax.core.ShapedArray(self.value.shape, self.value.dtype)

    def materialise(self):
        return self.value


def register(primitive):
    @quax.register(primitive)
    def _(a: Tagged, **params):
        return Tagged(primitive.bind(a.value, **params), a.tag)


for primitive in (jax.lax.sin_p, jax.lax.exp_p, jax.lax.neg_p, jax.lax.integer_pow_p):
    register(primitive)


@quax.register(jax.lax.add_p)
def _(a: Tagged, b: Tagged):
    return Tagged(a.value + b.value, f"({a.tag} + {b.tag})")


@quax.register(jax.lax.mul_p)
def _(a: Tagged, b: Tagged, **params):
    return Tagged(a.value * b.value, f"({a.tag} * {b.tag})")


a, b = Tagged(x, "a"), Tagged(2 * x, "b")
print("add", qnp.add(a, b))
print("multiply", qnp.multiply(a, b).tag)
print("functions", qnp.sin(a), qnp.exp(a).tag, qnp.negative(a).tag)
print("materialised", qnp.matmul(a, b.value.T) if hasattr(qnp, "matmul") else None)
print("quaxify", quax.quaxify(lambda x, y: x * y + x)(a, b).tag)
print("jit", quax.quaxify(jax.jit(lambda x: jnp.sin(x) ** 2))(a))
print("arrays", qnp.sum(x), qnp.mean(x, axis=0), qnp.sort(x[::-1, ::-1]), qnp.linalg.norm(x))
print("joined", qnp.r_[x[0], x[1]], qnp.c_[x[0], x[1]].T)
print("grad", quaxed.grad(lambda x: qnp.sum(qnp.sin(x)))(x))
print("vmap", quaxed.vmap(lambda row: qnp.cumsum(row))(x))
print("value and grad", quaxed.value_and_grad(lambda x: qnp.sum(x**3))(x))
print("hessian", quaxed.hessian(lambda x: qnp.sum(x**3))(x[0]))
print("jacfwd", quaxed.jacfwd(lambda x: qnp.outer(x, x))(x[0]).sum())
print("vectorize", qnp.vectorize(lambda u, v: u @ v, signature="(n),(n)->()")(x, x[0]))
print("fft", qnp.fft.fft(x[0]), quaxed.lax.cumsum(x, 1))
print("where", qnp.where(x > 1, x, -x), qnp.einsum("ij,kj->ik", x, x))
print("scipy", quaxed.scipy.special.erf(x) if hasattr(quaxed, "scipy") else None)
