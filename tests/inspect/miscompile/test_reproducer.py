"""Wrong parts as scripts of jax: each equation binds its primitive, loops and branches too."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.extend.core import primitives
from hlofront.inspect.miscompile.parts import inlined
from hlofront.inspect.miscompile.reproducer import Unwritable, functions_of


def loops_and_branches(x):
    def body(total, row):
        total = lax.cond(row[0] > 0, lambda t: t + row, lambda t: t * 0.5, total)
        return total, total.max()

    total, largest = lax.scan(body, x[0], x)
    rounds, total = lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, total)
    )
    total = lax.switch(rounds - 2, [jnp.cos, jnp.negative, jnp.abs], total)
    return total.at[rounds - 3].add(1.0), largest


def windows(x):
    image = x.reshape(1, 3, 4, 1)
    kernel = jnp.array(np.arange(4.0, dtype=np.float32).reshape(2, 2, 1, 1))
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=numbers)


@pytest.mark.parametrize("function", [loops_and_branches, windows])
def test_a_script_computes_what_the_program_does(function):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    lines = functions_of("part", inlined(jax.make_jaxpr(function)(x)))
    names = {"jax": jax, "lax": lax, "np": np, "p": primitives}
    exec("\n".join(lines), names)
    results = jax.tree.leaves(names["part"](jnp.array(x)))
    for found, expected in zip(results, jax.tree.leaves(function(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_programs_with_random_keys_have_no_script():
    program = inlined(jax.make_jaxpr(lambda: jax.random.normal(jax.random.key(0), (2,)))())
    with pytest.raises(Unwritable):
        functions_of("part", program)


def test_loops_that_read_variables_of_any_name():
    def loops(*values):
        def all_of(carry, row=0.0):
            for value in values:
                carry = carry * 0.5 + value * row
            return carry, None

        scanned = lax.scan(all_of, values[0], jnp.arange(3.0))[0]
        ended = lax.while_loop(
            lambda t: t < values[2], lambda t: all_of(t)[0] + values[-1] + 1, scanned
        )
        return lax.cond(ended > 0, lambda: ended * values[1], lambda: values[2])

    values = [jnp.float32(i) for i in range(60)]
    program = inlined(jax.make_jaxpr(loops)(*values))
    names = {"jax": jax, "lax": lax, "np": np, "p": primitives}
    exec("\n".join(functions_of("part", program)), names)
    np.testing.assert_allclose(names["part"](*values), loops(*values), rtol=1e-6)
