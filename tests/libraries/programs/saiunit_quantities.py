"""saiunit: quantities with units, their arithmetic, and transformations of functions of them."""

import jax
import jax.numpy as jnp
import saiunit as u

length = jnp.array([1.0, 2.5, 4.0]) * u.meter
time = 2.0 * u.second
print("speed", length / time, (length / time).unit)
print("converted", length.to_decimal(u.cmeter), (3.0 * u.kmeter + length)[0])
print("power", length**2, u.math.sqrt(length**2))
print("reductions", length.sum(), u.math.mean(length), u.math.max(length), length.std())
print("product", u.math.dot(length, length), u.math.einsum("i,j->ij", length, length)[1])
try:
    length + time
except Exception as error:
    print("mismatch", type(error).__name__)
print("jit", jax.jit(lambda x: x * x / time)(length))
print("vmap", jax.vmap(lambda x: x * 3.0 + 1.0 * u.meter)(length))
print("grad", u.autograd.grad(lambda x: (x**2).sum())(length))
print("vector grad", u.autograd.vector_grad(lambda x: x**3)(length))
print("jacobian", u.autograd.jacrev(lambda x: x**2)(length))
print("hessian", u.autograd.hessian(lambda x: (x**3).sum())(length))
print("jax grad", jax.grad(lambda x: (x * length).sum().mantissa)(2.0))
print(
    "leaves", jax.tree.leaves(length), jax.tree.structure(length) == jax.tree.structure(length * 2)
)
print("set", length.at[0].set(9.0 * u.meter), length.at[1].add(1.0 * u.meter))
print("where", u.math.where(length > 2.0 * u.meter, length, 0.0 * u.meter))
print("joined", u.math.concatenate([length, length[:1]]), u.math.stack([length, length]).shape)
print("exp", u.math.exp(length / (1.0 * u.meter)), u.math.cos(jnp.pi * u.radian))
print("scan", jax.lax.scan(lambda c, x: (c + x, c * 2.0), 0.0 * u.meter, length))
print("cond", jax.lax.cond(True, lambda x: x, lambda x: 2 * x, length))
print("interp", u.math.interp(1.5 * u.second, jnp.arange(3.0) * u.second, length))
print("linalg", u.linalg.norm(length), u.math.cumsum(length))
print("constants", u.constants.gravity if hasattr(u.constants, "gravity") else u.mvolt)
print("einops", u.math.einrearrange(length, "(a b) -> a b", b=1).shape)
print("random", (jax.random.normal(jax.random.key(0), (2,)) * u.mvolt))
