"""jaxtyping: annotated functions, checked for shapes and dtypes at run time, traced and not."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, PyTree, Shaped, TypeCheckError, jaxtyped


def checker(function):
    """Check annotated arguments by isinstance, as a run time type checker does."""

    def checked(*arguments, **keywords):
        for value, (name, kind) in zip(arguments, function.__annotations__.items()):
            if not isinstance(value, kind):
                raise TypeCheckError(f"{name} is no {kind.__name__}")
        return function(*arguments, **keywords)

    checked.__annotations__ = function.__annotations__
    return checked


@jaxtyped(typechecker=checker)
def attend(queries: Float[Array, "n d"], keys: Float[Array, "m d"], values: Float[Array, "m e"]):
    return jax.nn.softmax(queries @ keys.T) @ values


x, y, z = jnp.ones((2, 3)), jnp.arange(12.0).reshape(4, 3), jnp.arange(4.0)[:, None]
print("eager", attend(x, y, z))
print("jitted", jax.jit(attend)(x, y, z))
print("gradient", jax.grad(lambda x: attend(x, y, z).sum())(x))
print("vmapped", jax.vmap(attend, (None, None, 0))(x, y, jnp.stack([z, z + 1])).shape)
for wrong in [(x, y, z[:3]), (x, y.astype(int), z), (x[0], y, z)]:
    try:
        attend(*wrong)
        print("accepted")
    except TypeCheckError as error:
        print("refused", str(error).splitlines()[0])
print(isinstance(jax.random.key(0), Key[Array, ""]), isinstance(jax.random.key(0), PRNGKeyArray))
print(isinstance({"a": x, "b": [y]}, PyTree[Float[Array, "_ 3"]]), isinstance(3, Shaped[Array, ""]))
print(isinstance(jnp.arange(3), Int[Array, "3"]), isinstance(jnp.arange(3), Float[Array, "3"]))
print(Float[Array, "batch 3"].__name__, isinstance(jnp.ones(2, jnp.bfloat16), Float[Array, "2"]))
