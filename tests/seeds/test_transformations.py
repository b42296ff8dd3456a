"""What the documents show of derivatives, batching, loops and branches."""

import itertools

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax

rng = np.random.default_rng(2)


def test_gradients_with_respect_to_either_argument():
    def sum_squared_error(x: jax.Array, y: jax.Array):
        return jnp.sum(x * y)

    x, y = jnp.array([0.0, 1.0, 2.0, 3.0]), jnp.zeros(4)
    assert str(jax.grad(sum_squared_error)(x, y)) == "[0. 0. 0. 0.]"
    assert str(jax.grad(sum_squared_error, argnums=1)(x, y)) == "[0. 1. 2. 3.]"


def test_derivatives_of_derivatives():
    assert f"{jax.grad(jax.grad(lambda x: x**2 + 1))(0.0)}" == "2.0"

    def fn(x):
        return 2 * x**3

    first = jax.grad(fn)
    second = jax.grad(first)
    assert f"d0x: {fn(1.0)}, d1x: {first(1.0)}, d2x: {second(1.0)}" == (
        "d0x: 2.0, d1x: 6.0, d2x: 12.0"
    )


def test_value_and_grad_of_a_line():
    def fn(x):
        return 2 * x

    assert str(jax.grad(fn)(5.0)) == "2.0"
    assert str(jax.value_and_grad(fn)(5.0)) == (
        "(Array(10., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))"
    )


def test_vmap_of_a_convolution():
    def convolve(x: jax.Array, weights: jax.Array) -> jax.Array:
        output = []
        for i in range(1, len(x) - 1):
            output.append(jnp.dot(x[i - 1 : i + 2], weights))
        return jnp.array(output)

    x = jnp.array([-1.0, 0.0, 1.0, 0, -1.0])
    weights = jnp.array([1.0, 1.0, 1.0]) / 3
    batch = jnp.stack([jnp.zeros_like(x), x, jnp.ones_like(x)]).T
    by_column = jax.vmap(convolve, in_axes=(1, None), out_axes=1)
    wanted = [[0, 0, 1], [0, 1 / 3, 1], [0, 0, 1]]
    np.testing.assert_allclose(by_column(batch, weights), wanted, atol=1e-6)


def test_a_line_is_fitted():
    x = jnp.linspace(-1, 1, 50)
    data = {"x": x, "y": 2 * x + 10 + 0.3 * rng.normal(size=50).astype(np.float32)}

    def linear_model(params: dict, x: jax.Array) -> jax.Array:
        return params["slope"] * x + params["offset"]

    def mse_loss(params: dict, data: dict) -> jax.Array:
        prediction = linear_model(params, data["x"])
        return jnp.mean((data["y"] - prediction) ** 2)

    def gradient_descent_step(params: dict, data: dict, lr: float = 0.1) -> dict:
        grads = jax.grad(mse_loss, argnums=0)(params, data)
        return {key: params[key] - lr * grads[key] for key in params}

    params = {"slope": jnp.array([1.0]), "offset": jnp.array([0.0])}
    for _ in range(50):
        params = gradient_descent_step(params, data)
    slope, offset = np.polyfit(data["x"], data["y"], 1)
    assert abs(float(params["slope"][0]) - slope) < 0.1
    assert abs(float(params["offset"][0]) - offset) < 0.1
    assert f"{params['slope'][0]:<.2f}"


DIMS = [784, 64, 10]


def parameters():
    return [
        {"W": jnp.asarray(rng.normal(size=(m, n)).astype(np.float32)), "b": jnp.zeros((m,))}
        for n, m in itertools.pairwise(DIMS)
    ]


@jax.jit
def feed_forward(params, x):
    for p in params:
        x = jnp.tanh(p["W"] @ x + p["b"])
    return x


def test_gradients_are_like_the_parameters():
    params = parameters()
    grads = jax.grad(lambda params, x: feed_forward(params, x).sum())(params, jnp.zeros(DIMS[0]))
    assert str(jax.tree_util.tree_structure(grads)) == (
        "PyTreeDef([{'W': *, 'b': *}, {'W': *, 'b': *}])"
    )


def test_auxiliary_data():
    def loss(params, x):
        y = feed_forward(params, x)
        return y.sum(), y

    values, grads = jax.value_and_grad(loss, has_aux=True)(parameters(), jnp.zeros(DIMS[0]))
    assert str(values) == (
        "(Array(0., dtype=float32), Array([0., 0., 0., 0., 0., 0., 0., 0., 0., 0.], dtype=float32))"
    )
    assert jax.tree_util.tree_structure(grads).num_leaves == 4


def looped(x):
    y = jnp.copy(x)
    x = lax.fori_loop(lower=0, upper=1000, body_fun=lambda i, x: x * x, init_val=x)
    return y


def test_a_loop_is_a_scan_in_the_jaxpr_and_a_copy_in_the_hlo():
    x = jnp.array([1.1, -1.1])
    text = str(jax.make_jaxpr(looped)(x))
    for part in ("= scan[", "length=1000", "mul", "reverse=False", "unroll=1"):
        assert part in text
    hlo = jax.jit(looped).lower(x).compile().as_text()
    assert "while" not in hlo and "copy(" in hlo


def test_a_while_loop():
    def function(x):
        y = jnp.copy(x)
        x = lax.while_loop(
            cond_fun=lambda ix: ix[0] < 1000,
            body_fun=lambda ix: (ix[0] + 1, ix[1] * ix[1]),
            init_val=(0, x),
        )
        return y

    text = str(jax.make_jaxpr(function)(jnp.array([1.1, -1.1])))
    for part in ("= while[", "body_nconsts=0", "cond_nconsts=0", "lt"):
        assert part in text


@jax.jit
def halved_if_wide(x):
    pred = jnp.abs(x.max() - x.min()) <= 1.0
    return lax.cond(pred, lambda x: x, lambda x: x / 2, x)


def test_branches():
    assert str(halved_if_wide(jnp.array([0.1, 0.2]))) == "[0.1 0.2]"
    assert str(halved_if_wide(jnp.array([-0.5, 0.5]))) == "[-0.5  0.5]"
    assert str(halved_if_wide(jnp.array([1.0, -1.0]))) == "[ 0.5 -0.5]"
    text = str(jax.make_jaxpr(halved_if_wide)(jnp.array([1.0, -1.0])))
    for part in ("branches=(", "div", "cond["):
        assert part in text


def test_switch_with_clamped_index():
    is_even = jax.jit(lambda x: lax.switch(x, [lambda: True, lambda: False, lambda: True]))
    assert repr(is_even(123512)) == "Array(True, dtype=bool)"


def test_prints_inside_of_jit(capfd):
    @jax.jit
    def f(x):
        print("Compiling function, this will print once.")
        jax.debug.print("Printing value of {arr} during execution", arr=x)

    f(jnp.array([1, 2, 3]))
    f(jnp.array([4, 5, 6]))
    jax.effects_barrier()
    assert capfd.readouterr().out.splitlines() == [
        "Compiling function, this will print once.",
        "Printing value of [1 2 3] during execution",
        "Printing value of [4 5 6] during execution",
    ]
