"""Names that JAX 0.10.2 has with a warning, or that it has removed with a message."""

import importlib
import re
import warnings

import numpy as np
import pytest

import hlofront.numpy as jnp
from hlofront.jax_names import deprecated
from hlofront.jax_names.import_hook import as_jax

DEPRECATED = [(module, name) for module, names in deprecated.DEPRECATED.items() for name in names]
REMOVED = [(module, name) for module, names in deprecated.REMOVED.items() for name in names]


@pytest.fixture
def jax():
    with as_jax() as module:
        yield module


@pytest.fixture
def core(jax):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield importlib.import_module("jax.core")


@pytest.fixture
def pxla(jax):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield importlib.import_module("jax.interpreters.pxla")


@pytest.mark.parametrize(("module", "name"), DEPRECATED)
def test_deprecated_names_are_there_with_a_warning(jax, module, name):
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is deprecated") as caught:
        getattr(importlib.import_module(module), name)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("module", "name"), REMOVED)
def test_removed_names_say_what_became_of_them(jax, module, name):
    with pytest.raises(AttributeError, match=re.escape(f"{module}.{name} ")) as error:
        getattr(importlib.import_module(module), name)
    assert "removed" in str(error.value) or "deprecated" in str(error.value)


def test_questions_about_values_and_sizes(jax, core):
    assert core.is_concrete(1) and core.is_concrete(jnp.ones(2))
    assert core.is_constant_dim(3) and not core.is_constant_dim(jnp.arange(3))
    assert core.is_constant_shape((1, 2))
    seen = []
    jax.jit(lambda x: seen.append(core.is_concrete(x)) or x)(1.0)
    assert seen == [False]


def test_the_error_of_a_function_that_needs_a_known_value(jax, core):
    raise_it = core.concretization_function_error(float, suggest_astype=True)
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"float.*x\.astype"):
        raise_it(None, "an argument")
    with pytest.raises(jax.errors.TracerBoolConversionError):
        core.concretization_function_error(bool)(None, "an argument")


def test_a_call_of_a_function(jax, core):
    linear_util = importlib.import_module("jax.extend.linear_util")
    info = jax.make_jaxpr(lambda x: x)(1.0).jaxpr.debug_info
    double = linear_util.wrap_init(lambda x: [x * 2], debug_info=info)
    assert core.call(jnp.ones(2), subfuns=(double,))[0].tolist() == [2, 2]


def test_checks_of_equations_that_a_package_adds(jax, core):
    primitive = importlib.import_module("jax.extend.core").Primitive("checked by a table")
    primitive.def_abstract_eval(lambda aval, *, size: aval)
    seen = []
    core.custom_typechecks[primitive] = lambda _, x, *, size: seen.append((x.aval, size))
    jaxpr = jax.make_jaxpr(lambda x: primitive.bind(x, size=3))(1.0)
    core.check_jaxpr(jaxpr.jaxpr)
    assert seen == [(jaxpr.in_avals[0], 3)]


def test_batches_of_types_that_a_package_adds(jax, core):
    class Own(core.AbstractValue):
        pass

    core.aval_mapping_handlers[Own] = (
        lambda size, axis, aval: ("one", size, axis),
        lambda size, axis, mesh_axis, aval: ("batch", size, axis),
    )
    extend = importlib.import_module("jax.extend.core")
    assert extend.mapped_aval(3, 0, Own()) == ("one", 3, 0)
    assert extend.unmapped_aval(3, 1, Own()) == ("batch", 3, 1)


def test_classes_whose_scalars_are_literals(jax, core):
    class Own(np.float32):
        pass

    core.literalable_types.add(Own)
    assert len(jax.make_jaxpr(lambda x: x + Own(2))(np.float32(1)).consts) == 0


def test_parts_of_arrays_by_the_sharding_of_xla(jax, pxla):
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    whole = sharding._to_xla_hlo_sharding(2)
    assert pxla.is_hlo_sharding_replicated(whole)
    assert pxla.are_hlo_shardings_equal(whole, whole)
    assert pxla.op_sharding_to_indices(whole, (2, 3), 1) == ((slice(None), slice(None)),)
    split = type(whole).iota_tile((2, 1, 2), subgroup_types=[])
    rows = [index[0] for index in pxla.op_sharding_to_indices(split, (4, 3, 8), 4)]
    assert rows == [slice(0, 2), slice(0, 2), slice(2, 4), slice(2, 4)]


def test_specs_of_mappings_of_mesh_axes(jax, pxla):
    spec = pxla.array_mapping_to_axis_resources
    assert spec(pxla.ArrayMapping(x=0, y=2)) == jax.P("x", None, "y")
    assert spec(pxla.ArrayMapping(x=0, y=0)) == jax.P(("x", "y"))
    assert spec({}) == jax.P()


def test_results_from_their_parts(jax, pxla):
    aval = jax.core.ShapedArray((3,), np.dtype(np.float32))
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    handler = pxla.global_avals_to_results_handler([aval], [sharding], True)
    (result,) = handler([[jnp.arange(3.0)]])
    assert result.tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="No pxla_result_handler"):
        pxla.global_aval_to_result_handler(jax.core.AbstractValue(), sharding, True)


def test_the_mesh_of_a_with_block(jax, pxla):
    assert pxla.thread_resources.env.physical_mesh.empty
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    with mesh:
        assert pxla.thread_resources.env.physical_mesh == mesh


def test_stages_are_instances_of_the_former_classes(jax, pxla):
    lowered = jax.jit(jnp.sin).lower(1.0)
    assert isinstance(lowered, pxla.MeshComputation)


def test_associated_legendre_functions(jax):
    special = importlib.import_module("jax.scipy.special")
    z = np.array([0.5, -0.25, 1.0], np.float32)
    with pytest.warns(DeprecationWarning):
        lpmn, lpmn_values = special.lpmn, special.lpmn_values
    values, derivatives = lpmn(2, 3, z)
    np.testing.assert_allclose(values[1, 3], -1.5 * (5 * z**2 - 1) * np.sqrt(1 - z**2), 1e-5)
    np.testing.assert_allclose(derivatives[0, 3], (15 * z**2 - 3) / 2, 1e-5)
    np.testing.assert_allclose(derivatives[2, 3], 15 - 45 * z**2, 1e-5)
    assert derivatives[1, 1, 2] == np.inf
    np.testing.assert_allclose(
        lpmn_values(1, 1, z, True)[1, 1], -np.sqrt(3 / (8 * np.pi) * (1 - z**2)), 1e-5
    )
    with pytest.raises(ValueError, match="1D"):
        lpmn(1, 1, z[None])
    with pytest.raises(TypeError, match="float16"):
        lpmn(1, 1, z.astype(np.float16))


def test_numbers_with_a_dtype(jax):
    literals = importlib.import_module("jax._src.literals")
    for kind, value in (("Int", 3), ("Float", 1.5), ("Complex", 1j)):
        number = getattr(literals, f"Typed{kind}")(value, np.dtype("float32"))
        assert number == value and number.dtype == np.float32
        assert isinstance(number, type(value))
