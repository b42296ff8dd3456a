"""Frontend attributes of operations in modules: set_xla_metadata, compute_on, groups of calls."""

import re

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental.compute_on import compute_on, compute_on2
from hlofront.experimental.control_deps import schedule
from hlofront.experimental.scheduling_groups import scheduling_group, xla_metadata_call
from hlofront.experimental.xla_metadata import set_xla_metadata

x = jnp.ones(3)


def attributes_in(f, *args):
    """Return the frontend attributes of a module's operations, with the operations' names."""
    text = jax.jit(f).lower(*args).as_text()
    pattern = r"(?:stablehlo\.|func\.)?(\w+)[^\n]*mhlo\.frontend_attributes = \{([^}]*)\}"
    return re.findall(r"= " + pattern, text)


def test_operations_of_a_block_have_its_attributes_and_inner_blocks_override():
    def f(x):
        with set_xla_metadata(a="outer", b=2):
            y = lax.sin(x)
            with set_xla_metadata(a=True, b=None):
                y = lax.cos(y)
        return lax.tanh(y)

    assert attributes_in(f, x) == [("sine", 'a = "outer", b = "2"'), ("cosine", 'a = "true"')]


def test_derivatives_have_the_attributes_of_their_operations():
    def f(x):
        with set_xla_metadata(a=1):
            return jnp.sum(lax.sin(x))

    assert ("cosine", 'a = "1"') in attributes_in(jax.grad(f), x)


def test_jitted_functions_are_traced_anew_in_a_block():
    sine = jax.jit(lax.sin)
    assert attributes_in(sine, x) == []
    with set_xla_metadata(a=1):
        assert attributes_in(sine, x)[-1] == ("sine", 'a = "1"')
        assert sine(x).shape == (3,)
    assert attributes_in(sine, x) == []


def test_loops_and_branches_have_the_attributes_of_their_block():
    def f(x):
        with set_xla_metadata(a=1):
            total, _ = lax.scan(lambda c, y: (c + lax.sin(y), None), 0.0, x)
            return lax.cond(total > 0, lax.cos, lax.tan, total)

    names = {name for name, _ in attributes_in(f, x)}
    assert {"sine", "add", "cosine"} <= names


def test_the_operation_of_a_value_is_marked():
    def f(x):
        return set_xla_metadata(set_xla_metadata(lax.sin(x), a=1), a=2, b="c"), x

    assert attributes_in(f, x) == [("sine", 'a = "1", b = "c"')]
    assert attributes_in(lambda x: set_xla_metadata(x, a=1), x) == []


@pytest.mark.parametrize(
    ("place", "attributes"),
    [
        ("device_host", '_xla_compute_type = "host"'),
        ("device", '_xla_compute_type = "dense"'),
        ("tpu_sparsecore", '_xla_compute_type = "sparseoffload"'),
        ("gpu_stream:1", '_xla_stream_annotation = "1", inlineable = "false"'),
    ],
)
def test_places_where_operations_are_computed(place, attributes):
    f = compute_on(place)(jax.jit(lambda x: lax.sin(x)))
    assert attributes_in(lambda x: f(x), x) == [("call", attributes), ("sine", attributes)]


def test_calls_in_a_place_with_options_of_its_compiler():
    space = jax.memory.Space.Device
    f = compute_on2(
        lambda x, y: {"a": x * y},
        compute_type="device_host",
        out_memory_spaces=space,
        compiler_options={"b": 1},
    )
    names = [name for name, _ in attributes_in(lambda x: f(x, y=x), x)]
    assert names == ["call", "multiply"]
    assert r'backend_config = "{\22b\22: 1}"' in jax.jit(f).lower(x, y=x).as_text()
    assert f(x, y=2 * x)["a"][0] == 2
    with pytest.raises(ValueError, match="moon"):
        compute_on2(lax.sin, compute_type="moon", out_memory_spaces=space)(x)
    with pytest.raises(ValueError, match="prefix"):
        compute_on2(lax.sin, compute_type="device", out_memory_spaces=(space,))(x)


def test_a_scheduling_group_is_a_call():
    f = scheduling_group("one")(lambda x: lax.sin(x) * 2)
    assert attributes_in(lambda x: f(x), x) == [("call", 'scheduling_group = "one"')]
    assert attributes_in(jax.grad(lambda x: jnp.sum(f(x))), x)[0][0] == "call"
    with pytest.raises(TypeError, match="inlineable=True"):
        xla_metadata_call(lax.sin, inlineable=True)


def test_arrays_computed_in_an_order():
    def f(x):
        first, second = lax.sin(x), lax.cos(x)
        schedule([second, first])
        return first + second

    assert jax.jit(f).lower(x).as_text().count("@control_dep") == 1
    assert jnp.allclose(jax.jit(f)(x), lax.sin(x) + lax.cos(x))


def test_programs_of_calls_know_the_names_of_their_arguments_and_results():
    call = xla_metadata_call(lambda weights: {"total": jnp.sum(weights)}, key="value")
    (equation,) = jax.make_jaxpr(call)(x).eqns
    info = equation.params["jaxpr"].jaxpr.debug_info
    assert info.arg_names == ("weights",)
    assert info.result_paths == ("result['total']",)
