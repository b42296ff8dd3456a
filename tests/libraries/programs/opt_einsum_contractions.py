"""opt_einsum: contractions, paths, shared intermediates and expressions under transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum as oe

keys = jax.random.split(jax.random.key(0), 4)
a, b, c, d = (
    jax.random.normal(key, shape)
    for key, shape in zip(keys, [(3, 4), (4, 5), (5, 2), (2, 3)], strict=True)
)


def trace(a, b, c, d):
    return oe.contract("ij,jk,kl,li->", a, b, c, d)


def product(a, b, c):
    return oe.contract("ij,jk,kl->il", a, b, c)


print("value", trace(a, b, c, d), product(a, b, c).sum())
print("jit", jax.jit(product)(a, b, c)[0])
print("grad", jax.grad(trace)(a, b, c, d)[0])
print("jitted grad", jax.jit(jax.grad(trace, argnums=2))(a, b, c, d)[0])
print("jvp", jax.jvp(trace, (a, b, c, d), (a, b, c, d)))
print("vmap", jax.vmap(product, (0, None, None))(jnp.stack([a, 2 * a]), b, c)[:, 0])
print("hessian", jax.hessian(lambda x: trace(x, b, c, x.T[:2]))(a).sum())
print("linearize", jax.linearize(product, a, b, c)[1](a, b, c)[0])
print("jacrev", jax.jacrev(product)(a, b, c).sum(), jax.jacfwd(product)(a, b, c).sum())
print("checkpoint", jax.grad(jax.checkpoint(trace), 1)(a, b, c, d)[0])
print("scan", jax.lax.scan(lambda x, _: (oe.contract("ij,jk->ik", x, x), 0), b[:, :4], length=2)[0])
print("path", oe.contract_path("ij,jk,kl,li->", a, b, c, d)[0])
print("batched matmul", oe.contract("bij,bjk->bik", jnp.ones((2, 3, 4)), jnp.ones((2, 4, 2))).sum())
print("outer", oe.contract("i,j->ij", a[0], b[0])[0])
expression = oe.contract_expression("ij,jk,kl->il", (3, 4), b, (5, 2), constants=[1])
print("expression", expression(a, c)[0], jax.grad(lambda a: expression(a, c).sum())(a)[0])
numpy_expression = oe.contract_expression("ij,jk->ik", (3, 4), (4, 5))
print("by numpy", numpy_expression(np.asarray(a), np.asarray(b), backend="jax")[0])
with oe.shared_intermediates():
    print("shared", trace(a, b, c, d), oe.contract("ij,jk,kl->li", a, b, c)[0])
