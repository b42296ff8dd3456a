"""While `import jax` gives hlofront, `__module__` of all that is public begins with jax."""

import copy
import importlib
import inspect
import pickle
import subprocess
import sys
import types
import typing
import warnings

import numpy as np
import pytest

import hlofront
from hlofront.base.module_names import ModuleName, home_of
from hlofront.jax_names import public
from hlofront.jax_names.import_hook import as_jax


@pytest.fixture
def jax():
    with as_jax() as module:
        yield module


def modules_of_jax():
    for name in sorted(public.MODULES):
        try:
            yield importlib.import_module(name)
        except ModuleNotFoundError:  # hlofront does not have it, or what it needs is not installed
            assert importlib.util.find_spec("jax")


def public_values():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules_of_jax():
            for key in dir(module):
                value = None if key.startswith("_") else getattr(module, key, None)
                if not isinstance(value, types.ModuleType):
                    yield f"{module.__name__}.{key}", value


def test_no_public_name_says_that_it_is_hlofronts(jax):
    values = list(public_values())
    assert len(values) > 4000
    names = {name: getattr(value, "__module__", None) for name, value in values}
    names |= {f"type of {name}": type(value).__module__ for name, value in values}
    assert not {key: name for key, name in names.items() if str(name).startswith("hlofront")}


def test_names_are_those_where_the_values_are_found(jax):
    jnp = jax.numpy
    for value, module in (
        (jnp.sin, "jax.numpy"),
        (jnp.float32, "jax.numpy"),
        (jax.lax.add, "jax.lax"),
        (jax.ShapeDtypeStruct, "jax"),
        (jax.tree_util.Partial, "jax.tree_util"),
        (jax.errors.TracerBoolConversionError, "jax.errors"),
    ):
        assert value.__module__ == module
        assert getattr(sys.modules[module], value.__qualname__) is value


@pytest.mark.parametrize(
    "transformation",
    ["jit", "grad", "vmap", "hessian", "linearize", "jvp", "eval_shape", "jet", "checkify"],
)
def test_tracers_are_arrays_of_jax(jax, transformation):
    seen = []

    def f(x):
        seen.append(type(x).__module__)
        return (x * x).sum()

    x = jax.numpy.ones(2)
    checkify = importlib.import_module("jax.experimental.checkify").checkify
    jet = importlib.import_module("jax.experimental.jet").jet
    {
        "linearize": lambda: jax.linearize(f, x),
        "jvp": lambda: jax.jvp(f, (x,), (x,)),
        "eval_shape": lambda: jax.eval_shape(f, x),
        "jet": lambda: jet(f, (x,), ((x, x),)),
        "checkify": lambda: checkify(f)(x),
    }.get(transformation, lambda: getattr(jax, transformation)(f)(x))()
    assert seen and all(name.startswith("jax") for name in seen)


def test_random_keys_are_arrays_of_jax(jax):
    assert type(jax.random.key(0)).__module__.startswith("jax")


def test_the_module_of_a_private_class_is_hlofronts_own(jax):
    seen = []
    jax.jit(lambda x: seen.append(type(x)) or x)(1.0)
    (tracer,) = seen
    assert tracer.__module__ == "jax._src.hlofront.transforms.stage"
    assert importlib.import_module(tracer.__module__) is hlofront.transforms.stage
    assert getattr(hlofront.transforms.stage, tracer.__qualname__) is tracer
    assert f"class {tracer.__name__}" in inspect.getsource(tracer)
    assert typing.get_type_hints(tracer.__init__)


def test_methods_and_what_is_wrapped_have_the_name_too(jax):
    assert inspect.unwrap(jax.numpy.sin).__module__.startswith("jax")
    assert jax.ShapeDtypeStruct.update.__module__.startswith("jax")


def test_a_module_that_is_loaded_later_is_renamed(jax, monkeypatch):
    monkeypatch.delitem(sys.modules, "hlofront.experimental.ode")
    ode = importlib.import_module("hlofront.experimental.ode")
    assert ode.odeint.__module__.startswith("jax")


def test_the_names_are_hlofronts_outside_of_the_block():
    before = hlofront.numpy.sin.__module__, hlofront.ShapeDtypeStruct.update.__module__
    with as_jax() as jax:
        assert jax.numpy.sin.__module__ == "jax.numpy"
    after = hlofront.numpy.sin.__module__, hlofront.ShapeDtypeStruct.update.__module__
    assert after == before and all(type(name) is str for name in after)
    assert hlofront.numpy.float32.__module__ == "hlofront.numpy"


def test_programs_have_one_digest_under_both_names():
    """The disk cache and bundles serve processes that import jax and those that import hlofront."""
    from hlofront.core.programs.digest import program_digest
    from hlofront.runtime.bundle.function_digest import function_digest

    precision = hlofront.lax.Precision.HIGHEST
    x = np.ones((2, 2), np.float32)
    jaxpr = hlofront.make_jaxpr(lambda x: hlofront.lax.dot(x, x, precision=precision))(x)
    program = hlofront.ShapeDtypeStruct((2,), "float32"), hlofront.ShapeDtypeStruct

    def digests():
        return program_digest(jaxpr), function_digest(lambda: program)

    outside = digests()
    with as_jax():
        assert digests() == outside


def values_to_pickle(jax):
    jnp = jax.numpy
    return {
        "array": jnp.arange(3),
        "key": jax.random.key(7),
        "struct": jax.ShapeDtypeStruct((2,), "float32"),
        "spec": jax.P("x", None),
        "tree": jax.tree.structure({"a": (1, 2)}),
        "partial": jax.tree_util.Partial(jax.lax.add, 1),
        "axis type": jax.sharding.AxisType.Explicit,
        "precision": jax.lax.Precision.HIGH,
        "dtype": jnp.dtype(jnp.bfloat16),
        "scalar type": jnp.float32,
        "function of lax": jax.lax.sin,
        "operation": jnp.tanh,
        "activation": jax.nn.gelu,
        "ufunc": jnp.add,
        "mesh": jax.sharding.AbstractMesh((2,), ("x",)),
        "error": jax.errors.JAXTypeError("of a type"),
        "class": jax.ShapeDtypeStruct,
    }


READER = """
import pickle, sys
import {jax} as jax
values = pickle.load(sys.stdin.buffer)
assert values["array"].tolist() == [0, 1, 2]
assert jax.random.key_data(values["key"]).tolist() == [0, 7]
assert values["partial"](2) == 3
assert values["struct"] == jax.ShapeDtypeStruct((2,), "float32")
assert values["class"] is jax.ShapeDtypeStruct and values["scalar type"] is jax.numpy.float32
assert values["function of lax"] is jax.lax.sin and values["operation"] is jax.numpy.tanh
assert type(values["error"]) is jax.errors.JAXTypeError
"""


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["hlofront", "hlofront.as_jax, jax"])
@pytest.mark.parametrize("under_jax", [True, False])
def test_pickles_are_read_under_both_names(under_jax, reader):
    if under_jax:
        with as_jax() as jax:
            pickled = pickle.dumps(values_to_pickle(jax))
    else:
        pickled = pickle.dumps(values_to_pickle(hlofront))
    program = READER.format(jax=reader)
    subprocess.run([sys.executable, "-c", program], input=pickled, check=True)


def test_a_pickle_under_jaxs_names_is_read_without_them():
    with as_jax() as jax:
        pickled = {protocol: pickle.dumps(values_to_pickle(jax), protocol) for protocol in (4, 5)}
        assert pickle.loads(pickle.dumps(jax.numpy.float32, 2)) is jax.numpy.float32
    for text in pickled.values():
        values = pickle.loads(text)
        assert values["function of lax"] is hlofront.lax.sin
        assert values["class"] is hlofront.ShapeDtypeStruct
        assert values["array"].tolist() == [0, 1, 2]


def test_the_name_of_a_module_is_a_string_with_a_home():
    name = ModuleName("jax.numpy", "hlofront.numpy.arrays.creation")
    assert name == "jax.numpy" and copy.deepcopy(name) == "hlofront.numpy.arrays.creation"
    f = types.FunctionType((lambda: None).__code__, {})
    f.__module__ = name
    assert home_of(f) == "hlofront.numpy.arrays.creation" and home_of(object()) == ""
