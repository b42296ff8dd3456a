"""Private names of JAX behave as the libraries that import them expect."""

import importlib
from functools import partial

import numpy as np
import pytest

from hlofront.jax_names.import_hook import as_jax


@pytest.fixture
def jax():
    with as_jax() as module:
        yield module


def private(name):
    return importlib.import_module(f"jax._src.{name}")


def test_jit_takes_unspecified_shardings_as_none(jax):
    unspecified = private("sharding_impls").UNSPECIFIED
    assert repr(unspecified) == "UnspecifiedValue"
    f = jax.jit(lambda x, y: x + y, in_shardings=unspecified, out_shardings=unspecified)
    assert f(1.0, 2.0) == 3
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert jax.jit(lambda x, y: x + y, in_shardings=(unspecified, one))(1.0, 2.0) == 3
    with pytest.warns(DeprecationWarning):
        assert importlib.import_module("jax.interpreters.pxla")._UNSPECIFIED is unspecified


def test_inputs_can_be_added_while_a_function_is_traced(jax):
    """brainstate makes arguments of the states that a function reads."""
    core = private("core")

    def f(x):
        aval = jax.core.ShapedArray((2,), np.dtype("float32"))
        info = private("source_info_util").current()
        return x * core.trace_ctx.trace.new_arg(aval, source_info=info)

    jaxpr = jax.make_jaxpr(f)(np.float32(1))
    assert [str(aval) for aval in jaxpr.in_avals] == ["float32[]", "float32[2]"]
    (result,) = jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, 3.0, jax.numpy.ones(2))
    assert result.tolist() == [3, 3]


def test_batch_tracers_have_jaxs_attributes(jax):
    seen = []
    jax.vmap(lambda x: seen.append((type(x), x.val.shape, x.batch_dim)) or x, 1)(np.ones((2, 3)))
    assert seen == [(private("interpreters.batching").BatchTracer, (2, 3), 1)]


def test_elements_of_batched_values(jax):
    batching = private("interpreters.batching")
    assert batching.make_iota(3).tolist() == [0, 1, 2]
    seen = []

    def f(x):
        trace = private("core").trace_ctx.trace
        element = batching.to_elt(trace, lambda: 0, np.arange(6.0).reshape(2, 3), 1)
        seen.append(element.shape)
        return x + element

    assert jax.vmap(f)(np.zeros(3)).shape == (3, 2) and seen == [(2,)]


def test_functions_of_one_primitive_run_it_eagerly(jax):
    """brainevent: `primitive.def_impl(partial(apply_primitive, primitive))`."""
    primitive = importlib.import_module("jax.extend.core").Primitive("doubled")
    primitive.def_abstract_eval(lambda aval: aval)
    primitive.def_impl(partial(private("dispatch").apply_primitive, primitive))
    mlir = importlib.import_module("jax.interpreters.mlir")
    rule = mlir.lower_fun(lambda x: x * 2, multiple_results=False)
    mlir.register_lowering(primitive, rule)
    assert primitive.bind(jax.numpy.ones(2)).tolist() == [2, 2]


def test_the_classes_of_joiners_can_be_derived(jax):
    tricks = private("numpy.index_tricks")

    class Doubled(tricks.RClass):
        def __getitem__(self, key):
            return 2 * super().__getitem__(key)

    assert Doubled()[1:3, 5].tolist() == [2, 4, 10]
    assert tricks.CClass()[[1, 2], [3, 4]].tolist() == [[1, 3], [2, 4]]
    assert type(jax.numpy.r_) is tricks.RClass and type(jax.numpy.c_) is tricks.CClass


def test_the_class_behind_at_can_be_derived(jax):
    class Own(private("numpy.array_methods")._IndexUpdateHelper):
        def __getitem__(self, index):
            return self.array, index

    x = jax.numpy.ones(2)
    assert Own(x)[1] == (x, 1) and isinstance(
        x.at, private("numpy.array_methods")._IndexUpdateHelper
    )


def test_options_are_attributes_with_a_value(jax):
    config = private("config")
    assert config.numpy_rank_promotion.value == "allow"
    with config.debug_nans(True):
        assert config.debug_nans.value is True
    assert config.config is jax.config and not hasattr(config, "no_such_option")


def test_meshes_in_context_are_found(jax):
    mesh = private("mesh")
    assert mesh.get_concrete_mesh().empty
    with jax.set_mesh(jax.make_mesh((1,), ("x",))) as entered:
        assert mesh.get_concrete_mesh() == jax.sharding.get_mesh()
        assert private("sharding_impls").canonicalize_sharding(jax.P("x"), "f").spec == jax.P("x")
    del entered
    assert private("sharding_impls").canonicalize_sharding(None, "f") is None


def test_jax_lib_is_an_empty_module(jax):
    lib = importlib.import_module("jax.lib")
    assert jax.lib is lib and not [key for key in dir(lib) if key[0] != "_"]
    with pytest.raises(ImportError):
        exec("from jax.lib.xla_bridge import get_backend")


def test_other_names_are_those_of_public_modules(jax):
    assert private("lax.control_flow").scan is jax.lax.scan
    assert private("array").ArrayImpl is type(jax.numpy.ones(1))
    assert private("typing").Array is jax.Array
    assert private("partition_spec").PartitionSpec is jax.P
    assert private("xla_bridge").get_backend().platform == jax.default_backend()
    assert private("lib._jax").PjitFunction is type(jax.jit(lambda x: x))
    assert private("pjit").auto_axes is jax.sharding.auto_axes
    assert private("core").is_constant_dim(3)
    assert private("core").JaxprEqnContext().xla_metadata is None
    assert private("api")._dtype(1.5) == np.float32


def test_the_function_of_a_jitted_function(jax):
    def f(x):
        return x

    assert jax.jit(f)._fun is f and jax.numpy.dot._fun.__name__ == "dot"


def test_functions_on_sequences(jax):
    util = private("util")
    assert util.safe_map(lambda x, y: x + y, [1, 2], (3, 4)) == [4, 6]
    assert util.safe_zip([1, 2], "ab") == [(1, "a"), (2, "b")]
    with pytest.raises(ValueError):
        util.safe_zip([1], [1, 2])
    assert util.unzip2([(1, "a"), (2, "b")]) == ((1, 2), ("a", "b")) and util.unzip2([]) == ((), ())
    assert util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,))
    assert util.split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]]
    parts = util.partition_list([True, False, True], [1, 2, 3])
    assert parts == ([2], [1, 3]) and util.merge_lists([True, False, True], *parts) == [1, 2, 3]
    with pytest.raises(ValueError):
        util.merge_lists([True], [1], [])
    assert util.subvals((1, 2, 3), [(1, 7)]) == (1, 7, 3)
    assert util.concatenate([[1], (2, 3)]) == [1, 2, 3]
    assert util.tuple_insert((1, 2), 1, 7) == (1, 7, 2) and util.tuple_delete((1, 2), 0) == (2,)
    assert util.tuple_update((1, 2), 1, 7) == (1, 7)
    assert util.canonicalize_axis(-1, 3) == 2 and util.ceil_of_ratio(7, 2) == 4
    with pytest.raises(ValueError):
        util.canonicalize_axis(3, 3)
    assert util.curry(lambda x, y: x - y)(5)(3) == 2
    assert util.fun_name(partial(len)) == "len"

    @util.wraps(len, namestr="my_{fun}", docstr="Of {fun}.")
    def g():
        pass

    assert (g.__name__, g.__doc__) == ("my_len", "Of len.")
    first, second = (util.as_hashable_function(closure=(1,))(lambda x: x) for _ in range(2))
    assert first == second and hash(first) == hash(second) and first(3) == 3
    assert first != util.as_hashable_function(closure=(2,))(lambda x: x)
    assert util.HashablePartial(max, 1)(2) == 2
    assert util.set_module("jax.own")(g).__module__ == "jax.own"


def test_the_parts_of_vectorize(jax):
    parts = private("numpy.vectorize")
    cores = parts._parse_gufunc_signature("(n,m),()->(m)")
    assert cores == ([("n", "m"), ()], [("m",)])
    with pytest.raises(ValueError, match="not a valid gufunc signature"):
        parts._parse_gufunc_signature("n->m")
    arguments = (np.ones((5, 2, 3)), np.ones(4)[:1])
    assert parts._parse_input_dimensions(arguments, cores[0]) == ((5,), {"n": 2, "m": 3})
    with pytest.raises(ValueError, match="does not have enough dimensions"):
        parts._parse_input_dimensions((np.ones(2),), [("n", "m")])
    checked = parts._check_output_dims(lambda x: x, {"n": 2}, [("n",)])
    assert checked(np.ones(2)).shape == (2,)
    with pytest.raises(ValueError, match="inconsistent size"):
        checked(np.ones(3))
    with pytest.raises(ValueError, match="does not match core dimensions"):
        checked(np.ones((2, 2)))
    with pytest.raises(TypeError, match="expected 1, got 2"):
        parts._check_output_dims(lambda: (1, 2), {}, [()])()
    f, args, kwargs = parts._apply_excluded(
        lambda *args, **kwargs: (args, kwargs), {1, "q"}, (1, 2, 3), {"q": 4, "r": 5}
    )
    assert (list(args), kwargs) == ([1, 3], {"r": 5})
    assert f(*args, **kwargs) == ((1, 2, 3), {"q": 4, "r": 5})
