"""Functions of lax, numpy and nn are functions whose code libraries read and replace."""

import contextlib
import importlib
import inspect
import types
from typing import Any

import pytest

import hlofront.numpy
from hlofront.jax_names import public
from hlofront.jax_names.import_hook import as_jax

# Packages whose functions are plain ones in jax, too.
PACKAGES = ("jax.lax", "jax.numpy", "jax.nn", "jax.random", "jax.scipy", "jax.image", "jax.ops")
MODULES = [name for name in sorted(public.MODULES) if name.startswith(PACKAGES)]


@pytest.fixture
def jax():
    with as_jax() as module:
        yield module


def functions_of(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:  # hlofront does not have it
        return {}
    found = {key: getattr(module, key) for key in dir(module) if not key.startswith("_")}
    return {key: value for key, value in found.items() if inspect.isfunction(value)}


@pytest.mark.parametrize("name", MODULES)
def test_functions_have_no_free_variables(jax, name):
    closures = {
        key: function.__code__.co_freevars
        for key, function in functions_of(name).items()
        if function.__closure__ is not None
    }
    assert not closures


@pytest.mark.parametrize("name", ["jax.lax", "jax.numpy", "jax.nn", "jax.random"])
def test_functions_have_a_signature_and_a_source(jax, name):
    functions = functions_of(name)
    assert len(functions) > 10
    for key, function in functions.items():
        assert inspect.signature(function).parameters is not None, key
        assert inspect.getsource(function).lstrip().startswith(("def ", "@")), key


@contextlib.contextmanager
def recorded_calls(function):
    """Count the calls of a function by assigning to its code, as qwix does."""
    # The copy has no closure, so that the code must work without one.
    copy = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    for name in ("__defaults__", "__kwdefaults__", "__doc__", "__dict__"):
        setattr(copy, name, getattr(function, name))
    calls = []

    def interceptor(*args, **kwargs):
        from tests.as_jax import test_function_code

        test_function_code.current[0].append(args)
        return test_function_code.current[1](*args, **kwargs)

    from tests.as_jax import test_function_code

    test_function_code.current = calls, copy
    function.__code__ = interceptor.__code__
    try:
        yield calls
    finally:
        function.__code__ = copy.__code__


current = ([], lambda: None)

CALLERS = {
    "lax.dot_general": {
        "lax.dot": lambda jax, x: jax.lax.dot(x, x),
        "dot": lambda jax, x: jax.numpy.dot(x, x),
        "@": lambda jax, x: x @ x,
        "einsum": lambda jax, x: jax.numpy.einsum("ij,jk->ik", x, x),
        "tensordot": lambda jax, x: jax.numpy.tensordot(x, x, 1),
        "vecdot": lambda jax, x: jax.numpy.vecdot(x, x),
        "matrix_power": lambda jax, x: jax.numpy.linalg.matrix_power(x, 2),
        "attention": lambda jax, x: jax.nn.dot_product_attention(*[x[None, :, None]] * 3),
    },
    "lax.conv_general_dilated": {
        "lax.conv": lambda jax, x: jax.lax.conv(x[None, None], x[None, None], (1, 1), "SAME"),
        "convolve": lambda jax, x: jax.numpy.convolve(x[0], x[0]),
        "convolve2d": lambda jax, x: jax.scipy.signal.convolve2d(x, x),
    },
    "lax.add": {"add": lambda jax, x: jax.numpy.add(x, x)},
    "lax.exp": {"softmax": lambda jax, x: jax.nn.softmax(x)},
    "lax.reduce_sum": {"sum": lambda jax, x: x.sum(), "mean": lambda jax, x: x.mean()},
    "lax.reduce_max": {"max": lambda jax, x: jax.numpy.max(x, axis=[0])},
    "lax.cumsum": {"cumsum": lambda jax, x: jax.numpy.cumsum(x, 0)},
    "numpy.einsum": {
        "einsum": lambda jax, x: jax.numpy.einsum("ij->i", x),
        "attention": lambda jax, x: jax.nn.dot_product_attention(*[x[None, :, None]] * 3),
    },
}


@pytest.mark.parametrize(
    ("name", "caller"), [(name, caller) for name, callers in CALLERS.items() for caller in callers]
)
def test_replaced_code_is_what_other_functions_call(jax, name, caller):
    call = CALLERS[name][caller]
    module, _, key = name.rpartition(".")
    x = jax.numpy.ones((2, 2))
    expected = call(jax, x).tolist()
    with recorded_calls(getattr(getattr(jax, module), key)) as calls:
        result = jax.jit(lambda x: call(jax, x))(x)
    assert calls and result.tolist() == expected
    assert call(jax, x).tolist() == expected


def test_eager_attention_calls_einsum_where_it_is_replaced_and_only_there(jax, monkeypatch):
    query, key = jax.numpy.ones((1, 3, 4, 8)), jax.numpy.ones((1, 5, 2, 8))
    attention = jax.nn.dot_product_attention
    expected = attention(query, key, key).tolist()
    for _ in range(2):
        with recorded_calls(jax.numpy.einsum) as calls:
            assert attention(query, key, key).tolist() == expected
        assert [call[0] for call in calls] == ["BTNH,BSNH->BNTS", "BNTS,BSNH->BTNH"]
        assert [x.shape for x in calls[0][1:]] == [(1, 3, 2, 8), (1, 5, 2, 8)]
    with monkeypatch.context() as patch:
        patch.setattr(hlofront.numpy, "einsum", lambda *args, **_: 2 * jax.numpy.einsum(*args))
        assert attention(query, key, key).tolist() == [[[[2.0] * 8] * 4] * 3]
    assert attention(query, key, key).tolist() == expected


def test_constants_take_the_place_of_their_names():
    from hlofront.base.code_constants import with_constants

    def template(x: int, *, twice: bool = False) -> object:
        """Add a value."""
        value: Any = "$value"
        return (x + value, "$", "value") if not twice else x + 2 * value

    three = with_constants(template, value=3)
    assert three(1) == (4, "$", "value") and three(1, twice=True) == 7
    assert three.__closure__ is None and three.__doc__ == "Add a value."
    assert inspect.signature(three) == inspect.signature(template)
    with pytest.raises(KeyError):
        with_constants(template, other=3)
