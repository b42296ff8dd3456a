"""Inside of `with as_jax()`, `import jax` gives hlofront under JAX's names."""

import base64
import importlib
import importlib.metadata
import importlib.util
import inspect
import pickle
import sys
import traceback

import numpy as np
import pytest

import hlofront
from hlofront.jax_names import private, public
from hlofront.jax_names.import_hook import as_jax


@pytest.fixture
def jax():
    with as_jax() as module:
        yield module


def test_functions_and_classes_are_hlofronts(jax):
    jnp = importlib.import_module("jax.numpy")
    assert jnp is jax.numpy and jnp is not hlofront.numpy
    assert jnp.sin is hlofront.numpy.sin
    assert jax.Array is hlofront.Array
    assert isinstance(jnp.ones(2), jax.Array)
    assert jax.core.Tracer is hlofront.core.Tracer
    assert jax.grad is hlofront.grad


def test_every_import_statement_works(jax):
    names = {}
    exec(
        "import jax.numpy as jnp, jax.scipy.stats, jax.nn.initializers as init\n"
        "from jax import lax, random, tree_util\n"
        "from jax.experimental import checkify\n"
        "from jax.numpy import *\n",
        names,
    )
    assert names["lax"] is jax.lax and names["jnp"] is jax.numpy
    assert names["jax"].scipy.stats.norm.cdf is hlofront.scipy.stats.norm.cdf
    assert names["einsum"] is hlofront.numpy.einsum


def test_the_version_is_that_of_the_api(jax):
    assert jax.__version__ == jax.version.__version__ == "0.10.2"
    assert jax.__version_info__ == jax.version.__version_info__ == (0, 10, 2)
    assert importlib.metadata.version("jax") == "0.10.2"
    assert importlib.metadata.distribution("jax").metadata["Name"] == "jax"


@pytest.mark.parametrize(
    "name",
    ["jax.core.Primitive", "jax.no_such_name", "jax.nn.activations", "jax.bridge", "jax.target"],
)
def test_what_jax_lacks_is_absent(jax, name):
    module, _, key = name.rpartition(".")
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '{key}'"):
        getattr(importlib.import_module(module), key)
    assert key not in dir(importlib.import_module(module))
    with pytest.raises(ImportError, match=f"cannot import name '{key}' from '{module}'"):
        exec(f"from {module} import {key}")


@pytest.mark.parametrize(
    "name",
    ["jax.no_such_module", "jax.bridge", "jax.core.trace", "jax._src.lax.lax", "jax._src.core.x"],
)
def test_modules_that_are_not_listed_do_not_exist(jax, name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


@pytest.mark.parametrize("name", sorted(private.MODULES))
def test_each_private_name_is_there(jax, name):
    module = importlib.import_module(name)
    for key in private.MODULES[name]:
        assert getattr(module, key) is not None
        assert key in dir(module)


@pytest.mark.parametrize(
    "name",
    ["DropVar", "Effects", "check_jaxpr", "concrete_or_error", "gensym", "get_opaque_trace_state"]
    + ["find_top_trace", "new_jaxpr_eqn", "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype"],
)
def test_names_that_jax_has_moved_are_there_with_a_warning(jax, name):
    moved = getattr(importlib.import_module("jax.extend.core"), name)
    text = f"jax.core.{name} is deprecated: it is jax.extend.core.{name} now"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        assert getattr(jax.core, name) is moved
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=text):
        exec(f"from jax.core import {name}")
    assert name not in dir(jax.core)


def test_each_public_module_of_hlofront_is_found(jax):
    known = {"jax"}
    for name in sorted(public.MODULES - known):
        if name.rpartition(".")[0] in known and importlib.util.find_spec(name):
            known.add(name)
    some = "jax.scipy.stats.norm", "jax.extend.core.primitives", "jax.experimental.pallas.triton"
    assert {"jax", "jax.numpy", *some} <= known
    for name in known:
        assert importlib.import_module(name).__name__ == name


def test_a_module_of_jaxlib_is_a_public_name(jax):
    programs = importlib.import_module("jax.extend.ifrt_programs").ifrt_programs
    assert programs.__name__.startswith("jaxlib.")


@pytest.mark.parametrize(
    "statement",
    [
        "from jax.experimental import pallas as pl",
        "import jax.experimental.pallas as pl",
        "import jax.experimental.pallas.tpu; from jax.experimental import pallas as pl",
    ],
)
def test_pallas_is_imported_and_says_what_it_lacks(jax, statement):
    names = {}
    exec(statement, names)
    assert names["pl"].pallas_call is hlofront.experimental.pallas.pallas_call
    with pytest.raises(
        AttributeError, match=r"'jax\.experimental\.pallas' has no attribute 'absent'"
    ):
        names["pl"].absent


def test_replacing_a_private_function_replaces_hlofronts(jax, monkeypatch):
    from hlofront.bridge import client

    def refuse(client, *args):
        raise RuntimeError(f"no compilation for {client.platform}")

    monkeypatch.setattr(jax._src.compiler, "backend_compile_and_load", refuse)
    assert client.compile_and_load is refuse
    with pytest.raises(RuntimeError, match="no compilation for cpu"):
        jax.jit(lambda x: x * 1.2345)(1.0)
    monkeypatch.undo()
    assert jax.jit(lambda x: x * 2)(1.0) == 2


def test_replacing_a_public_function_leaves_hlofront_alone(jax, monkeypatch):
    monkeypatch.setattr(jax, "jit", None)
    assert hlofront.jit is not None


def test_pickles_of_jax_are_read(jax):
    # What jax 0.10.2 wrote: pickle.dumps([jnp.arange(3), jax.tree.structure({"a": 1})]).
    pickled = (
        b"gASVSgEAAAAAAABdlCiMDmpheC5fc3JjLmFycmF5lIwSX3JlY29uc3RydWN0X2FycmF5lJOUKIwWbnVtcHkuX2Nv"
        b"cmUubXVsdGlhcnJheZSMDF9yZWNvbnN0cnVjdJSTlIwFbnVtcHmUjAduZGFycmF5lJOUSwCFlEMBYpSHlChLAUsD"
        b"hZRoB4wFZHR5cGWUk5SMAmk0lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGKJQwwAAAAAAQAAAAIAAACU"
        b"dJR9lIwJd2Vha190eXBllIlzdJRSlIwSamF4bGliLl9qYXgucHl0cmVllIwJUHlUcmVlRGVmlJOUKYGUjBJqYXgu"
        b"X3NyYy50cmVlX3V0aWyUjBBkZWZhdWx0X3JlZ2lzdHJ5lJOUXZQoKEsASwBOTksBSwF0lChLBUsBXZSMAWGUYU5L"
        b"AUsCdJRlhpRiZS4="
    )
    array, structure = pickle.loads(base64.b64decode(pickled))
    assert isinstance(array, jax.Array) and array.tolist() == [0, 1, 2]
    assert structure == jax.tree.structure({"a": 1})


def test_values_survive_a_pickle(jax):
    values = [jax.numpy.arange(3), jax.tree.structure({"a": 1}), jax.ShapeDtypeStruct((2,), "int8")]
    array, *others = pickle.loads(pickle.dumps(values))
    assert array.tolist() == [0, 1, 2] and others == values[1:]


def test_modules_can_be_inspected_and_reloaded(jax):
    assert "def sinc" in inspect.getsource(jax.numpy.sinc)
    assert inspect.getsource(jax) == inspect.getsource(hlofront)
    assert importlib.util.find_spec("jax") is jax.__spec__ is sys.modules["jax"].__spec__
    assert importlib.reload(jax) is jax and jax.jit is hlofront.jit
    assert importlib.reload(jax.numpy).sin is hlofront.numpy.sin


def test_arrays_that_cpp_makes_while_the_names_are_open_are_the_same(jax):
    array = jax.device_put(np.ones((4, 2), np.float32))
    assert [type(shard.data) for shard in array.addressable_shards] == [type(array)]
    assert array.addressable_shards[0].data.aval == array.aval


def test_the_names_are_gone_after_the_block():
    with as_jax():
        assert "jax" in sys.modules
    assert not [name for name in sys.modules if name.partition(".")[0] == "jax"]
    with pytest.raises(ImportError):
        importlib.import_module("jax")


def test_a_module_jax_that_is_there_already_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", importlib)
    with pytest.raises(ImportError, match=r"Put `import hlofront\.as_jax` before"), as_jax():
        pass


def test_positions_and_names_of_arguments_follow_from_each_other(jax):
    infer = importlib.import_module("jax._src.api_util").infer_argnums_and_argnames
    signature = inspect.signature(lambda a, b, *, c: None)
    assert infer(signature, None, None) == ((), ())
    assert infer(signature, 1, None) == ((1,), ("b",))
    assert infer(signature, None, ("a", "c")) == ((0,), ("a", "c"))
    assert infer(signature, (0,), "c") == ((0,), ("c",))


def test_errors_of_prefixes_take_the_name_of_the_prefix(jax):
    prefix_errors = importlib.import_module("jax._src.tree_util").prefix_errors
    first, second = prefix_errors({"a": [1], "b": (2, 3)}, {"a": 4, "b": (5,)})
    assert "at key path in_axes['a']: in_axes has" in str(first("in_axes"))
    assert "at key path specs['b']: specs has" in str(second("specs"))
    assert isinstance(first("in_axes"), ValueError)
    assert prefix_errors(1, [2, 3]) == []


def test_the_cause_of_an_error_under_remove_frames_has_the_class_of_jax(jax):
    def fail(x):
        raise ValueError("the user's")

    whole = importlib.import_module("jax._src.traceback_util").UnfilteredStackTrace
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "remove_frames")
    try:
        with pytest.raises(ValueError, match="the user's") as caught:
            jax.jit(fail)(1.0)
    finally:
        jax.config.update("jax_traceback_filtering", before)
    assert type(caught.value.__cause__) is whole
    assert len(caught.traceback) < len(
        list(traceback.walk_tb(caught.value.__cause__.__traceback__))
    )


def test_pjit_is_a_former_name_of_jit(jax):
    pjit = importlib.import_module("jax.experimental.pjit").pjit
    assert pjit is jax.jit
    assert float(pjit(lambda x: x + 1, in_shardings=None, out_shardings=None)(1.0)) == 2


def test_check_close_takes_tolerances_by_dtype(jax):
    check_close = importlib.import_module("jax._src.public_test_util").check_close
    x = jax.numpy.ones(2)
    check_close({"a": x}, {"a": x + 1e-6})
    check_close(x, x + 1e-3, atol={jax.numpy.dtype("float32"): 1e-2}, rtol=0.0)
    with pytest.raises(AssertionError):
        check_close(x, x + 1e-3)


@pytest.mark.parametrize(
    ("value", "is_array_like"),
    [(np.ones(2), True), (np.float32(1), True), (1.5, True), ("1", False), ([1.0], False)],
)
def test_libraries_ask_whether_a_value_is_array_like(jax, value, is_array_like):
    assert isinstance(jax.numpy.ones(2), jax.typing.ArrayLike)
    assert isinstance(value, jax.typing.ArrayLike) == is_array_like


def test_an_interpreter_of_another_package_uses_the_private_names_of_traces(jax):
    core = importlib.import_module("jax._src.core")
    seen = []

    class Recorded(core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, jax.typeof(value))
            self.value = value

        def full_lower(self):
            return core.full_lower(self.value)

    class Recorder(core.Trace):
        def __init__(self, parent):
            super().__init__()
            self.parent_trace = parent

        def process_primitive(self, primitive, tracers, params):
            seen.append(primitive)
            values = [core.full_lower(self.full_raise(tracer)) for tracer in tracers]
            with core.set_current_trace(self.parent_trace):
                results = primitive.bind(*values, **params)
            if primitive.multiple_results:
                return [Recorded(self, result) for result in results]
            return Recorded(self, results)

    def recorded(f, x):
        with core.take_current_trace() as parent:
            trace = Recorder(parent)
            with core.set_current_trace(trace):
                assert core.trace_ctx.trace is trace
                return core.full_lower(f(Recorded(trace, x)))

    jit_p = jax._src.pjit.jit_p
    assert float(recorded(lambda x: jax.jit(jax.numpy.sin)(x) * 2, 0.5)) == 2 * jax.numpy.sin(0.5)
    assert seen[0] is jit_p and str(seen[-1]) == "mul"
    assert float(jax.jit(lambda x: recorded(jax.lax.neg, x))(3.0)) == -3
    assert isinstance(jax.typeof(1.0), core.AbstractValue)
    assert isinstance(jit_p, core.Primitive) and core.TraceTag() == core.TraceTag()


def test_the_generator_of_keys_works_on_their_words(jax):
    threefry = importlib.import_module("jax._src.random.threefry2x32")
    random = jax.random
    words = threefry.threefry_seed(jax.numpy.asarray(7))
    assert words.tolist() == random.key_data(random.key(7)).tolist()
    halves = threefry.threefry_split(words, (3,))
    assert halves.tolist() == random.key_data(random.split(random.key(7), 3)).tolist()
    bits = threefry.threefry_random_bits(words, 16, (2, 2))
    assert bits.tolist() == random.bits(random.key(7), (2, 2), "uint16").tolist()


@pytest.mark.parametrize(
    ("name", "value", "dtype"),
    [("TypedInt", -3, "int32"), ("TypedFloat", 2.5, "float32"), ("TypedComplex", 1j, "complex64")],
)
def test_libraries_make_python_scalars_with_dtypes(jax, name, value, dtype):
    typed = getattr(importlib.import_module("jax._src.literals"), name)
    number = typed(value, jax.numpy.dtype(dtype))
    assert number == value and isinstance(number, type(value)) and number.dtype == dtype
    array = jax.numpy.asarray(number, dtype=number.dtype)
    assert array.dtype == dtype and array == value
    assert jax.numpy.add(number, jax.numpy.ones(2, dtype)).dtype == dtype
    seen = []
    jax.jit(seen.append)(value)
    assert not isinstance(seen[0], typed)
