"""Options: the table, their values per process and thread, the environment, the C++ jit key."""

import json
import os
import pydoc
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hlofront.base import config as module
from hlofront.base import option as option_module
from hlofront.base import options_without_effect
from hlofront.base.config import config, options
from hlofront.base.guards import transfer_guard
from hlofront.bridge import state
from tests.conventions.source import ROOT

LIST = ROOT / "tests" / "as_jax" / "jax_0.10.2.json"


@pytest.fixture(autouse=True)
def options_as_they_were():
    before = {name: option.cell.get_global() for name, option in options.items()}
    yield
    for name, value in before.items():
        if options[name].cell.get_global() != value:
            config.update(name, value)
    assert state.thread_options.value == ()


def in_new_process(code, **environment):
    """Run code with environment variables; what it prints, or the last line of its error."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return done.stdout.strip()


# ---- the table ---------------------------------------------------------------------------------


def test_every_option_of_jax_can_be_read_and_set():
    wanted = {name for name in json.loads(LIST.read_text())["config"] if name.startswith("jax")}
    assert len(wanted) > 100
    for name in sorted(wanted):
        value = getattr(config, name)
        assert config.read(name) == value == config.values[name]
        config.update(name, value)


def test_context_managers_carry_the_names_of_their_options():
    context_managers = {
        name: option
        for name, option in vars(module).items()
        if isinstance(option, option_module.Option) and not name.startswith("_")
    }
    assert len(context_managers) > 20
    for name, option in context_managers.items():
        assert option.name.removeprefix("jax_") == name


def test_each_option_has_a_sentence_and_a_default_that_it_takes():
    for option in options.values():
        assert option.doc and not option.doc.endswith(".")
        assert option.check(option.default) == option.default
        assert option.environment == option.name.upper()


def test_help_shows_what_the_option_does_rather_than_what_options_are():
    text = pydoc.plain(pydoc.render_doc(options["jax_debug_nans"]))
    assert "The option jax_debug_nans: it raises an error if a result is NaN." in text
    assert "new_val: True or False. The default of the option is False." in text
    assert "An option, with a value for the process" in (module.Option.__doc__ or "")


@pytest.mark.parametrize("read", [config.read, lambda name: getattr(config, name)])
def test_an_unknown_option_is_an_attribute_error_that_names_the_nearest(read):
    with pytest.raises(AttributeError, match=r"jax_enable_x65.*did you mean jax_enable_x64\?"):
        read("jax_enable_x65")
    with pytest.raises(AttributeError, match=r"did you mean jax_debug_nans\?"):
        read("debug_nans")
    with pytest.raises(AttributeError, match=r"Unrecognized config option: frobnicate;"):
        read("frobnicate")
    with pytest.raises(AttributeError):
        config.update("frobnicate", 1)
    with pytest.raises(AttributeError):
        config.update(3, 1)


def test_options_are_set_by_update_alone():
    with pytest.raises(AttributeError, match=r"config.update\('jax_debug_nans', True\)"):
        config.jax_debug_nans = True
    assert config.jax_debug_nans is False


def test_repr_tells_what_was_changed():
    assert "jax_debug_infs" not in repr(config)
    config.update("jax_debug_infs", True)
    assert "jax_debug_infs=True" in repr(config)
    assert repr(module.debug_infs) == "<option jax_debug_infs = True>"
    assert "jax_debug_infs" in dir(config)


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("jax_debug_nans", [True, 1, 0], ["False", 2, 1.5, object()]),
        ("jax_random_seed_offset", [3, -1], ["3", 1.5]),
        ("jax_exec_time_optimization_effort", [0.5, 1], ["0.5"]),
        ("jax_platform_name", ["cpu"], [3]),
        ("jax_compilation_cache_dir", ["/tmp/x", None], [3]),
        ("jax_numpy_rank_promotion", ["warn"], ["bogus", True, None, []]),
        ("jax_default_matmul_precision", ["float32", "BF16_BF16_F32_X3", None], ["FLOAT32", 3]),
        ("jax_default_device", ["cpu", None], [3, 1.5]),
        ("jax_transfer_guard_host_to_device", ["log", None], ["loud"]),
        ("jax_pjrt_client_create_options", ["a:1", {"a": 1}, None], [3]),
    ],
)
def test_values_are_checked(name, good, bad):
    for value in good:
        config.update(name, value)
        assert config.read(name) == value
    for value in bad:
        with pytest.raises(ValueError, match=f"option {name} takes .* got"):
            config.update(name, value)
        assert config.read(name) == good[-1]


def test_a_refused_choice_lists_the_choices():
    with pytest.raises(ValueError, match=r"'allow', 'warn', 'raise'.*got 'bogus' of type str"):
        module.numpy_rank_promotion("bogus")


def test_none_brings_the_default_back():
    config.update("jax_random_seed_offset", 7)
    config.update("jax_random_seed_offset", None)
    assert config.jax_random_seed_offset == 0


def test_values_of_the_process_and_of_a_block():
    option = module.numpy_rank_promotion
    assert (option.get_global(), option.get_local()) == ("allow", state.unset)
    with option("raise"), module.enable_x64(True):
        assert (option.get_global(), option.get_local()) == ("allow", "raise")
        assert config.x64_enabled is True
    assert config.x64_enabled is False


def test_an_option_is_not_its_value():
    with pytest.raises(TypeError, match=r"read .value"):
        bool(module.enable_x64)


# ---- blocks of code ----------------------------------------------------------------------------


@pytest.mark.parametrize("option", [module.enable_x64, module.debug_nans, module.log_compiles])
def test_a_block_sets_an_option_and_restores_it(option):
    assert option.value is False
    with option(True) as nothing:
        assert nothing is None
        assert option.value is True is config.read(option.name)
        with option(False):
            assert option.value is False
        assert option.value is True
    assert option.value is False
    with pytest.raises(ZeroDivisionError), option():
        assert option.value is True
        1 / 0
    assert option.value is False


def test_a_block_of_an_option_that_is_not_a_switch_needs_a_value():
    with pytest.raises(TypeError, match=r"jax_default_matmul_precision .* needs its new value"):
        module.default_matmul_precision()
    with module.default_device(None):
        assert config.jax_default_device is None
    with module.numpy_rank_promotion(new_val="raise"):
        assert config.jax_numpy_rank_promotion == "raise"


def test_a_block_of_code_belongs_to_one_thread():
    seen = []

    def look():
        seen.append((config.jax_enable_x64, config.jax_debug_nans, state.thread_options.value))

    with module.enable_x64(True), module.debug_nans(True):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [(False, False, ())]


def test_update_reaches_other_threads_but_not_into_a_block():
    seen = []
    with module.debug_infs(False):
        config.update("jax_debug_infs", True)
        assert config.jax_debug_infs is False
        thread = threading.Thread(target=lambda: seen.append(config.jax_debug_infs))
        thread.start()
        thread.join()
    assert seen == [True]
    assert config.jax_debug_infs is True


def test_an_override_decorates_functions_and_can_be_entered_twice():
    override = module.enable_x64(True)

    @override
    def look(depth):
        """Look."""
        return look(depth - 1) if depth else config.jax_enable_x64

    assert look(3) is True
    assert look.__name__ == "look" and look.__doc__ == "Look."
    with override, override:
        assert config.jax_enable_x64 is True
    assert config.jax_enable_x64 is False


def test_the_two_context_managers_with_names_of_their_own():
    with module.checking_leaks():
        assert config.jax_check_tracer_leaks is True
    with module.disable_jit():
        assert config.jax_disable_jit is True
        with module.disable_jit(disable=False):
            assert config.jax_disable_jit is False
    assert config.jax_disable_jit is False


# ---- the C++ jit key ---------------------------------------------------------------------------


def test_x64_and_disable_jit_are_cells_of_the_jit_key():
    for option, cell in (
        (module.enable_x64, state.enable_x64),
        (options["jax_disable_jit"], state.disable_jit),
    ):
        before = state.trace_context()
        with option(True):
            assert cell.value is True
            assert state.trace_context() != before
            assert state.thread_options.value == ()
        config.update(option.name, True)
        assert cell.get_global() is True
        assert state.process_options.value == ()
        config.update(option.name, False)
        assert state.trace_context() == before


def test_other_options_of_programs_are_folded_into_two_cells():
    before = state.trace_context()
    config.update("jax_numpy_rank_promotion", "warn")
    config.update("jax_debug_nans", True)
    assert state.process_options.value == (
        ("jax_debug_nans", True),
        ("jax_numpy_rank_promotion", "warn"),
    )
    with module.default_matmul_precision("high"), module.debug_infs(True):
        assert state.thread_options.value == (
            ("jax_debug_infs", True),
            ("jax_default_matmul_precision", "high"),
        )
        inside = state.trace_context()
        with module.debug_infs(False):
            assert dict(state.thread_options.value)["jax_debug_infs"] is False
        assert state.trace_context() == inside
    config.update("jax_debug_nans", False)
    config.update("jax_numpy_rank_promotion", "allow")
    assert state.trace_context() == before


def test_a_block_back_at_the_default_differs_from_the_process():
    config.update("jax_debug_nans", True)
    outside = state.trace_context()
    with module.debug_nans(False):
        assert state.trace_context() != outside


def test_blocks_that_end_out_of_order_leave_nothing_behind():
    first, second = module.debug_nans(True), module.debug_infs(True)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert state.thread_options.value == (("jax_debug_infs", True),)
    second.__exit__(None, None, None)
    assert state.thread_options.value == ()


def test_options_of_the_host_leave_the_jit_key_alone():
    before = state.trace_context()
    with module.log_compiles(True), module.no_tracing(True):
        config.update("jax_explain_cache_misses", True)
        assert state.trace_context() == before


def test_values_of_options_that_are_in_the_jit_key_are_hashable():
    in_the_key = [option for option in options.values() if option.affects_trace]
    assert in_the_key
    for option in in_the_key:
        hash(option.value)


# ---- guards ------------------------------------------------------------------------------------


def test_transfer_guards_reach_c_plus_plus():
    levels = state.guards.TransferGuardLevel
    here, process = state.guards.thread_local_state(), state.guards.global_state()
    with transfer_guard("disallow"), module.transfer_guard_device_to_host("log"):
        assert here.host_to_device == here.device_to_device == levels.DISALLOW
        assert here.device_to_host == levels.LOG
        assert config.jax_transfer_guard == "disallow"
        assert config.jax_transfer_guard_device_to_device == "disallow"
    assert here.host_to_device is here.device_to_host is None
    config.update("jax_transfer_guard", "log_explicit")
    assert process.device_to_host == levels.LOG_EXPLICIT
    assert config.jax_transfer_guard_host_to_device == "log_explicit"
    config.update("jax_transfer_guard", None)
    assert process.device_to_host is None
    with pytest.raises(ValueError, match="takes one of 'allow'"), transfer_guard("loud"):
        pass


def test_the_garbage_collection_guard_reaches_c_plus_plus():
    with module.array_garbage_collection_guard("log"):
        level = state.guards.thread_local_state().garbage_collect_array
        assert level == state.guards.GarbageCollectionGuardLevel.LOG
    assert state.guards.thread_local_state().garbage_collect_array is None


# ---- options of other floors -------------------------------------------------------------------


@pytest.fixture
def own_option(monkeypatch):
    monkeypatch.setenv("HLOFRONT_TEST_LEVEL", "4")
    name = "hlofront_test_level"
    option = module.add_option(name, 2, module.INT, "is a test's level", affects_trace=True)
    yield option
    option.set(2)
    del options[name]
    delattr(option_module.Config, name)


def test_other_floors_can_add_options(own_option):
    assert config.hlofront_test_level == own_option.value == 4
    assert ("hlofront_test_level", 4) in state.process_options.value
    with own_option(7):
        assert config.read("hlofront_test_level") == 7
    with pytest.raises(ValueError, match="already an option hlofront_test_level"):
        module.add_option("hlofront_test_level", 1, module.INT, "is a second one")


def test_a_watcher_sees_each_change_and_may_refuse_it(own_option):
    seen = []

    def watcher(value, local):
        seen.append((value, local))
        if value == 13:
            raise RuntimeError("not 13")

    own_option.watch(watcher)
    own_option.set(5)
    with own_option(6):
        pass
    assert seen == [(4, False), (5, False), (6, True), (state.unset, True)]
    with pytest.raises(RuntimeError, match="not 13"):
        own_option.set(13)
    assert own_option.value == 5
    with pytest.raises(RuntimeError, match="not 13"), own_option(13):
        pass
    assert own_option.value == 5 and state.thread_options.value == ()


def test_the_config_lists_each_name_once():
    assert len(dir(config)) == len({*dir(config)})


# ---- the environment ---------------------------------------------------------------------------


def test_environment_variables_set_options():
    printed = in_new_process(
        "from hlofront.base.config import config as c; from hlofront.bridge import state as s\n"
        "print(c.jax_enable_x64, c.jax_numpy_rank_promotion, c.jax_debug_nans, c.jax_platforms,"
        " c.jax_persistent_cache_min_compile_time_secs, s.enable_x64.value,"
        " s.process_options.value, s.guards.global_state().host_to_device)",
        JAX_ENABLE_X64="yes",
        JAX_NUMPY_RANK_PROMOTION="warn",
        JAX_DEBUG_NANS="0",
        JAX_PLATFORMS="cpu",
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="2.5",
        JAX_TRANSFER_GUARD_HOST_TO_DEVICE="log",
    )
    assert printed == (
        "True warn False cpu 2.5 True (('jax_numpy_rank_promotion', 'warn'),) "
        "TransferGuardLevel.LOG"
    )


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("JAX_ENABLE_X64", "maybe", "True or False"),
        ("JAX_RANDOM_SEED_OFFSET", "many", "an integer"),
        ("JAX_NUMPY_DTYPE_PROMOTION", "STRICT", "one of 'standard', 'strict'"),
    ],
)
def test_a_bad_environment_variable_is_an_error_that_names_it(variable, value, wanted, monkeypatch):
    # As at import: add_option reads the variable, here for an option with this one's kind.
    option = options[variable.lower()]
    monkeypatch.setenv(variable, value)
    monkeypatch.delitem(options, option.name)
    with pytest.raises(ValueError, match=f"{variable} takes {wanted}.*, but is '{value}'"):
        module.add_option(option.name, option.default, option.kind, option.doc)


def test_an_unknown_environment_variable_is_told_with_the_nearest(
    monkeypatch,
):
    monkeypatch.setenv("HLOFRONT_WARN_RECOMPILE", "1")
    monkeypatch.setenv("HLOFRONT_NOTHING_LIKE_IT", "1")
    monkeypatch.setenv("HLOFRONT_AS_JAX", "1")
    with pytest.warns(UserWarning) as caught:
        option_module.warn_of_unknown_variables()
    said = sorted(str(warning.message) for warning in caught)
    assert len(said) == 2
    assert said[0].startswith("the environment variable HLOFRONT_NOTHING_LIKE_IT has no effect")
    assert said[1].endswith("did you mean HLOFRONT_WARN_RECOMPILES?")


def test_unknown_environment_variables_are_told_at_the_line_that_imports_hlofront(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nimport hlofront.base.config\n")
    done = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HLOFRONT_FENCE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.startswith(f"{program}:2: UserWarning: ")
    assert "did you mean HLOFRONT_FENCES?" in done.stderr


def test_the_variables_of_the_tests_are_known():
    """Who works on hlofront has some of them in the shell."""
    text = "".join(
        path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
    )
    read = {*re.findall(r"\.get\(\"(HLOFRONT_\w+)\"", text), "HLOFRONT_ALL_MESHES"}
    known = {option.environment for option in options.values()}
    assert read - known <= {*option_module._OTHER_VARIABLES}


# ---- options without effect ----------------------------------------------------------------------


@pytest.fixture
def never_warned(monkeypatch):
    monkeypatch.setattr(options_without_effect, "_warned", set())


def set_by_update(name, value):
    config.update(name, value)


def set_by_a_block(name, value):
    with options[name](value):
        pass


@pytest.mark.parametrize("change", [set_by_update, set_by_a_block])
def test_an_option_without_effect_says_so_once(change, never_warned):
    change("jax_enable_pgle", False)
    with pytest.warns(UserWarning) as caught:
        change("jax_enable_pgle", True)
        change("jax_enable_pgle", False)
        change("jax_enable_pgle", True)
        change("jax_serialization_version", 3)
    first, second = (str(warning.message) for warning in caught)
    assert first.startswith("the option jax_enable_pgle is set to True and has no effect in hlofro")
    assert "the option jax_serialization_version is set to 3 and has no effect" in second
    assert {warning.filename for warning in caught} == {__file__}


def test_an_option_without_effect_in_the_environment_says_so():
    code = "import warnings; warnings.simplefilter('error'); import hlofront"
    said = in_new_process(code, JAX_ENABLE_PGLE="1")
    assert said.startswith("UserWarning: the option jax_enable_pgle is set to True and has no eff")
    assert in_new_process(code, JAX_ENABLE_PGLE="0") == ""


def test_an_option_without_effect_does_not_compile_anew(never_warned):
    before = state.process_options.value
    with pytest.warns(UserWarning, match="no effect"):
        config.update("jax_auto_pcast", False)
    assert state.process_options.value == before
