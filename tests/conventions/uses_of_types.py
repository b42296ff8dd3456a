# pyright: strict, reportArgumentType=true, reportAttributeAccessIssue=true, reportCallIssue=true
# pyright: reportIndexIssue=true, reportReturnType=true, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportOptionalMemberAccess=true
"""What type checkers make of a user's program; never run, read by pyright in `./check rest`."""

from functools import partial
from typing import Any, NamedTuple, assert_type

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax, nn, random
from hlofront.scipy import special, stats


class State(NamedTuple):
    weights: jax.Array
    steps: int | jax.Array


@partial(jax.jit, static_argnames=("n",))
def step(state: State, n: int) -> State:
    return State(state.weights * n, state.steps + 1)


class Model:
    def __init__(self, key: jax.Array):
        first, second = random.split(key)
        self.weights = random.normal(first, (3, 4), dtype=jnp.bfloat16)
        self.bias = random.uniform(second, (4,), jnp.float32)

    @partial(jax.jit, static_argnums=0)
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.relu(x @ self.weights + self.bias)


@jax.checkpoint
def block(x: jax.Array) -> jax.Array:
    return x * 2


@partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
def saved(x: jax.Array, *, scale: float = 1.0) -> jax.Array:
    return x * scale


def arrays(y: jax.Array) -> None:
    assert_type(y + 1, jax.Array)
    assert_type(2**y, jax.Array)
    assert_type(y > 0, jax.Array)
    assert_type(~(y == y), jax.Array)
    assert_type(y[0, ..., None, 1:2], jax.Array)
    assert_type(y.at[0].add(1, mode="drop"), jax.Array)
    assert_type(y.at[0].get(mode="fill", fill_value=0), jax.Array)
    assert_type(y.sum(axis=(0, 1), keepdims=True).astype(jnp.int32), jax.Array)
    assert_type(y.reshape(-1).reshape((2, 4)).reshape(2, 4).T, jax.Array)
    assert_type(y.shape, tuple[int, ...])
    assert_type(list(y), list[jax.Array])
    assert_type(float(y[0, 0]), float)
    np.asarray(y)
    y.nothing  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnusedExpression]


def functions(y: jnp.ndarray) -> None:
    assert_type(jnp.sum(y, axis=(0, 1), where=y > 0), jax.Array)
    assert_type(jnp.linspace(0, 1, 5), jax.Array)
    assert_type(jnp.linspace(0, 1, 5, retstep=True), tuple[jax.Array, jax.Array])
    print(jnp.linalg.svd(y).U, jnp.linalg.eigh(y).eigenvalues)
    assert_type(jnp.linalg.svd(y, compute_uv=False), jax.Array)
    assert_type(jnp.atleast_2d(1.0), jax.Array)
    assert_type(jnp.split(y, 2), list[jax.Array])
    assert_type(jnp.add(y, 1), jax.Array)
    assert_type(jnp.add.reduce(y), jax.Array)
    assert_type(jnp.where(y > 0, y, 0.0), jax.Array)
    assert_type(jnp.stack([y, y]), jax.Array)
    assert_type(jnp.einsum("ij,jk->ik", y, y.T, precision="highest"), jax.Array)
    assert_type(jnp.zeros(3, float), jax.Array)
    assert_type(jnp.full((2,), jnp.inf, dtype="bfloat16"), jax.Array)
    assert_type(lax.top_k(y, 2), tuple[jax.Array, jax.Array])
    assert_type(lax.fori_loop(0, 10, lambda i, value: value + i, y), jax.Array)
    assert_type(lax.scan(lambda carry, x: (carry * 2, x), y, y)[0], jax.Array)
    assert_type(stats.norm.logpdf(0.3, loc=1) + special.gammaln(2.0), jax.Array)
    assert_type(nn.softmax(y, axis=-1), jax.Array)
    assert_type(nn.swish(y), jax.Array)
    assert_type(nn.initializers.he_normal()(random.key(0), (3, 4), jnp.float32), Any)
    assert_type(random.choice(random.key(0), y, (3,), replace=False), jax.Array)
    jnp.sum(y, axes=0)  # pyright: ignore[reportCallIssue]
    jnp.zeros("three")  # pyright: ignore[reportArgumentType]


def transformations(y: jax.Array) -> None:
    assert_type(step(State(y, 0), n=3), State)
    assert_type(jax.vmap(block)(y), jax.Array)
    assert_type(saved(y, scale=2.0), jax.Array)
    assert_type(Model(random.key(0))(y), jax.Array)
    step(State(y, 0), m=3)  # pyright: ignore[reportCallIssue]
    loss, gradient = jax.value_and_grad(lambda weights: (weights**2).sum())(y)
    print(loss, gradient, jax.grad(block)(y), jax.hessian(block)(y))
    value, back = jax.vjp(jnp.sin, 1.0)
    print(value, back(1.0), jax.jvp(jnp.sin, (1.0,), (1.0,)))
    compiled = jax.jit(block).lower(jax.ShapeDtypeStruct((2,), jnp.float32)).compile()
    print(compiled.cost_analysis(), compiled.as_text(), jax.tree.map(lambda x: x, {"y": y}))
    with jax.default_matmul_precision("float32"), jax.debug_nans(True):
        jax.device_put(y, jax.devices()[0])
    with jax.no_recompile(), jax.max_compiles(1):
        jax.no_recompile()(block)(y)
