"""autoray: dispatch of functions on arrays, tracers and keys, compiled programs, lazy arrays."""

import autoray as ar
import jax
import jax.numpy as jnp
from autoray import do

x = jnp.arange(6.0).reshape(2, 3) + 1
seen = []


def f(x):
    seen.append(ar.infer_backend(x))
    y = do("tanh", x)
    return do("sum", do("einsum", "ij,ij->i", y, do("exp", -x)))


print("backend", ar.infer_backend(x), ar.infer_backend(jax.random.key(0)))
print("value", f(x))
print("jit", jax.jit(f)(x))
print("grad", jax.grad(f)(x))
print("vmap", jax.vmap(lambda row: f(row[None]))(x))
print("hessian", jax.hessian(lambda t: f(t * x))(1.0))
print("jvp", jax.jvp(f, (x,), (x,)))
print("linearize", jax.linearize(f, x)[1](x))
print("scan", jax.lax.scan(lambda c, row: (c + f(row[None]), c), 0.0, x))
print("backends", sorted(set(seen)))
print("linalg", do("linalg.svd", x)[1], do("linalg.qr", x)[1].shape, do("linalg.norm", x))
print("creation", do("ones", (2,), like=x).dtype, do("eye", 2, like="jax"))
print("names", ar.get_dtype_name(x), ar.astype(x, "float16").dtype, ar.shape(x), ar.ndim(x))
print("numpy", type(ar.to_numpy(x)).__name__)
compiled = ar.autojit(f)
print("autojit", compiled(x), jax.grad(compiled)(x)[0])
lazy = ar.lazy.array(x)
print("lazy", ar.do("sum", lazy @ lazy.T).compute())
