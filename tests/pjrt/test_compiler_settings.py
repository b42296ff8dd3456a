"""Options that XLA compiles by: they reach its CompileOptions, and no cache mixes their values."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.pjrt import compile as compiling
from hlofront.pjrt.compile import compile_options

x = np.ones((3, 3), np.float32)


def double(x):
    return x * 2


@pytest.fixture
def compiled_with(monkeypatch):
    """The CompileOptions of each program that is compiled during the test."""
    seen = []
    compile_and_load = compiling.bridge.compile_and_load

    def spy(client, module, devices, compile_options, callbacks):
        seen.append(compile_options)
        return compile_and_load(client, module, devices, compile_options, callbacks)

    monkeypatch.setattr(compiling.bridge, "compile_and_load", spy)
    return seen


def build_option(name):
    return lambda options: getattr(options.executable_build_options, name)


# Since 0.11, jaxlib has only levels.
HAS_EFFORTS = "memory_fitting_effort" in dir(
    compile_options(jax.devices()[:1]).executable_build_options
)


def debug_option(name):
    return lambda options: getattr(options.executable_build_options.debug_options, name)


# Option, another value, where XLA reads it, what it reads there by default and then.
CASES = [
    ("jax_optimization_level", "O0", build_option("optimization_level"), 0, 9),
    ("jax_optimization_level", "O3", build_option("optimization_level"), 0, 39),
    ("jax_memory_fitting_level", "O1", build_option("memory_fitting_level"), 29, 19),
    (
        "jax_disable_most_optimizations",
        True,
        debug_option("xla_backend_optimization_level"),
        3,
        0,
    ),
    (
        "jax_disable_most_optimizations",
        True,
        debug_option("xla_llvm_disable_expensive_passes"),
        False,
        True,
    ),
    (
        "jax_compiler_enable_remat_pass",
        False,
        debug_option("xla_disable_hlo_passes"),
        "",
        "rematerialization",
    ),
    ("jax_xla_profile_version", 7, lambda options: options.profile_version, 0, 7),
]
_run_time_effort = build_option("exec_time_optimization_effort")
if HAS_EFFORTS:
    CASES += [
        ("jax_exec_time_optimization_effort", 0.5, _run_time_effort, 0, 0.5),
        ("jax_memory_fitting_effort", -0.5, build_option("memory_fitting_effort"), 0, -0.5),
    ]


@pytest.mark.parametrize(("name", "value", "read", "default", "wanted"), CASES)
def test_it_reaches_xla(name, value, read, default, wanted):
    device = jax.devices()[:1]
    assert read(compile_options(device)) == default
    with options[name](value):
        assert read(compile_options(device)) == wanted
    assert read(compile_options(device)) == default


def test_an_effort_that_this_jaxlib_does_not_have_is_told(monkeypatch):
    monkeypatch.setattr(compiling.bridge, "set_effort", lambda *_: False)
    with options["jax_memory_fitting_effort"](0.5):
        with pytest.warns(UserWarning, match="has no effect under this jaxlib"):
            compile_options(jax.devices()[:1])
    with options["jax_optimization_level"]("O3"):
        compile_options(jax.devices()[:1])


@pytest.mark.skipif(not HAS_EFFORTS, reason="this jaxlib has no efforts")
def test_the_options_of_one_jit_come_first():
    with options["jax_exec_time_optimization_effort"](0.5):
        given = compile_options(jax.devices()[:1], {"exec_time_optimization_effort": 0.25})
    assert given.executable_build_options.exec_time_optimization_effort == 0.25


def test_passes_disabled_for_fences_and_by_the_option_are_both_disabled():
    with options["jax_compiler_enable_remat_pass"](False):
        given = compile_options(jax.devices()[:1], keep_barriers=True)
    disabled = dict(given.env_option_overrides)["xla_disable_hlo_passes"].split(",")
    assert disabled[0] == "rematerialization"
    assert "cse_barrier_expander" in disabled


@pytest.mark.parametrize("name", sorted({case[0] for case in CASES}))
def test_each_value_is_compiled_for_itself(name, compiled_with):
    value, read, wanted = next((c[1], c[2], c[4]) for c in CASES if c[0] == name)
    with options["hlofront_cache"](False):
        f = jax.jit(lambda x: x * 2)
        f(x)
        with options[name](value):
            f(x)
            assert len(compiled_with) == 2, "jit"
            assert read(compiled_with[-1]) == wanted
        f(x)
        assert len(compiled_with) == 2, "the first is still there"

        lowered = jax.jit(lambda x: x * 3).lower(x)
        lowered.compile()
        with options[name](value):
            lowered.compile()
        assert len(compiled_with) == 4, "a stage"
        assert read(compiled_with[-1]) == wanted


def test_entries_on_disk_are_told_apart(tmp_path, caplog):
    def again(**changed):
        jax.clear_caches()
        with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(tmp_path)):
            f = jax.jit(double)
            for name, value in changed.items():
                jax.config.update(name, value)
            try:
                f(x)
            finally:
                for name in changed:
                    jax.config.update(name, options[name].default)
        return f.timings().load > 0

    assert not again()
    assert again()
    caplog.clear()
    with jax.explain_cache_misses(True), caplog.at_level("WARNING", "hlofront"):
        assert not again(jax_optimization_level="O3")
    assert "config: nothing -> jax_optimization_level=O3" in caplog.text
    assert again(jax_optimization_level="O3")
    assert again()
    jax.clear_caches()


def test_only_programs_of_some_size_are_logged_in_detail(compiled_with):
    logged = debug_option("xla_detailed_logging")

    def long(x):
        for _ in range(20):
            x = jnp.sin(x)
        return x

    before = options["jax_compiler_detailed_logging_min_ops"].value
    with options["hlofront_cache"](False):
        jax.jit(double).lower(x).compile()
        jax.jit(long).lower(x).compile()
        assert [logged(o) for o in compiled_with] == [False, True]
        jax.config.update("jax_compiler_detailed_logging_min_ops", 100)
        try:
            jax.jit(lambda x: long(x)).lower(x).compile()
        finally:
            jax.config.update("jax_compiler_detailed_logging_min_ops", before)
        assert not logged(compiled_with[-1])
