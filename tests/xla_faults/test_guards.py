"""Guards against XLA's known faults: they reach each compilation, and each report of it."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.bridge import xla_faults
from hlofront.bridge.client import compile_and_load as real_compile
from hlofront.bridge.xla_faults import FAULTS, Fault
from hlofront.cli import doctor, stages
from hlofront.pjrt import compile as compiling
from hlofront.pjrt.backends import get_compile_options

OLDEST = (0, 10, 2)
FLAG = "xla_cpu_some_flag"
FAULT = Fault("some", "is wrong", "some.py", OLDEST, reports=("jax#1",), options={FLAG: "-bad"})
x = np.ones((4, 4), np.float32)


@pytest.fixture
def compiled_with(monkeypatch):
    """The flags of each program that is compiled during the test, with one fault in the table.

    XLA does not know the flag of the guard, and compiles without it.
    """
    seen = []

    def compile_without(client, module, devices, settings, callbacks):
        flags = dict(settings.env_option_overrides)
        seen.append(flags)
        settings.env_option_overrides = [each for each in flags.items() if each[0] != FLAG]
        return real_compile(client, module, devices, settings, callbacks)

    monkeypatch.setattr(xla_faults, "FAULTS", (FAULT,))
    monkeypatch.setattr(compiling.bridge, "compile_and_load", compile_without)
    with options["hlofront_cache"](False):
        yield seen
    # Programs of other tests are compiled with the real table.
    jax.clear_caches()


# ---- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS, ids=[each.name for each in FAULTS])
def test_each_fault_is_in_a_supported_jaxlib_and_has_its_test(fault):
    assert fault.since >= OLDEST
    assert fault.until is None or fault.until > OLDEST
    assert fault.options or fault.lowered_in or fault.refused_in
    text = pathlib.Path(fault.test).read_text()
    assert f'"{fault.name}"' in text


def test_names_of_faults_differ():
    assert len({each.name for each in FAULTS}) == len(FAULTS)


def test_a_fault_is_in_the_jaxlibs_from_the_first_to_the_one_that_has_it_no_longer():
    fault = FAULT._replace(since=(0, 11, 0), until=(0, 11, 2))
    versions = [(0, 10, 2), (0, 11, 0), (0, 11, 1), (0, 11, 2)]
    assert [fault.is_in(each) for each in versions] == [False, True, True, False]
    assert fault._replace(until=None).is_in((0, 13, 0))


# ---- compilations --------------------------------------------------------------------------------

WAYS = {
    "jit": lambda: jax.jit(lambda x: x * 2)(x),
    "stages": lambda: jax.jit(lambda x: x * 2).lower(x).compile(),
    "one operation": lambda: jax.lax.add(jnp.asarray(x), x),
    "export": lambda: jax.jit(jax.export.export(jax.jit(jnp.sin))(x).call)(x),
    "scan": lambda: jax.lax.scan(lambda c, a: (c + a, a), x[0], x),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_program_is_guarded(way, compiled_with):
    jax.clear_caches()
    WAYS[way]()
    assert compiled_with and all(flags[FLAG] == "-bad" for flags in compiled_with)


def test_the_option_turns_guards_off(compiled_with):
    f = jax.jit(lambda x: x * 2)
    f(x)
    with options["hlofront_xla_guards"](False):
        f(x)
    f(x)
    assert [FLAG in flags for flags in compiled_with] == [True, False]


def test_a_value_of_the_user_for_the_same_option_is_kept(compiled_with):
    f = jax.jit(lambda x: x * 2, compiler_options={FLAG: "mine"})
    compiled = f.lower(x).compile()
    assert compiled_with[-1][FLAG] == "mine"
    assert str(*compiled.xla_guards) == f"some (no guard, as {FLAG} is set)"


def test_other_options_of_the_user_are_kept_with_the_guard(compiled_with):
    other = {"xla_cpu_enable_fast_math": False}
    jax.jit(lambda x: x * 2, compiler_options=other).lower(x).compile()
    assert compiled_with[-1] == {**other, FLAG: "-bad"} | {
        name: value for name, value in compiled_with[-1].items() if name not in (*other, FLAG)
    }


def test_options_of_xla_in_the_environment_are_kept(monkeypatch):
    monkeypatch.setattr(xla_faults, "FAULTS", (FAULT,))
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to=x --{FLAG}=mine")
    (guard,) = xla_faults.guards_for("cpu", ())
    assert guard.replaced_by_user == FLAG
    assert not xla_faults.options_of([guard])
    assert not compiling.compile_options(jax.devices()[:1]).env_option_overrides


def test_options_that_others_ask_for_have_the_guards(monkeypatch):
    monkeypatch.setattr(xla_faults, "FAULTS", (FAULT,))
    assert get_compile_options(1, 1).env_option_overrides == [(FLAG, "-bad")]


def test_programs_for_another_jaxlib_have_its_guards(monkeypatch):
    fault = FAULT._replace(since=(0, 11, 0), until=(0, 11, 2))
    monkeypatch.setattr(xla_faults, "FAULTS", (fault,))
    device = jax.devices()[:1]
    for jaxlib in ((0, 10, 2), (0, 11, 0), (0, 11, 2)):
        flags = dict(compiling.compile_options(device, jaxlib=jaxlib).env_option_overrides)
        assert (FLAG in flags) == fault.is_in(jaxlib)


def test_other_platforms_are_left_alone():
    assert all(guard.fault.platform == "tpu" for guard in xla_faults.guards_for("tpu", ()))


def test_executables_on_disk_are_told_apart(tmp_path):
    def is_loaded():
        jax.clear_caches()
        with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(tmp_path)):
            f = jax.jit(lambda x: x * 2)
            f(x)
        return f.timings().load > 0

    assert [is_loaded(), is_loaded()] == [False, True]
    jax.config.update("hlofront_xla_guards", False)
    try:
        assert [is_loaded(), is_loaded()] == [False, True]
    finally:
        jax.config.update("hlofront_xla_guards", True)
    assert is_loaded()
    jax.clear_caches()


# ---- reports -------------------------------------------------------------------------------------


def test_show_says_the_guards(compiled_with):
    (hlo,) = stages.sections(lambda x: x * 2, (x,), ("hlo",))
    assert hlo.title == "Optimized HLO, guarded against faults of XLA: some"
    with options["hlofront_xla_guards"](False):
        (hlo,) = stages.sections(lambda x: x * 2, (x,), ("hlo",))
    assert hlo.title == "Optimized HLO"


@pytest.mark.long
def test_doctor_says_the_guards(monkeypatch):
    def reported():
        return [each for each in doctor.findings() if each.chapter == "Known faults of XLA"]

    monkeypatch.setattr(xla_faults, "FAULTS", (FAULT,))
    (finding,) = reported()
    assert finding.value == "programs are guarded" and finding.why == "is wrong (jax#1)"
    with options["hlofront_xla_guards"](False):
        (finding,) = reported()
    assert (finding.value, finding.state) == ("no guard", doctor.NOTE)
    assert finding.mend == "unset HLOFRONT_XLA_GUARDS"
    monkeypatch.setenv("XLA_FLAGS", f"--{FLAG}=mine")
    assert f"take {FLAG} out of XLA_FLAGS" in reported()[0].mend


def test_the_environment_turns_guards_off():
    code = (
        "import hlofront; from hlofront.pjrt.compile import compile_options;"
        "assert not compile_options(hlofront.devices()[:1]).env_option_overrides"
    )
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
