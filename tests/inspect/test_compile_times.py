"""The time of each of XLA's passes: without those inside of it, by kind, of a real compilation."""

import json
import pkgutil

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import inspect
from hlofront.inspect import compile_times
from hlotools.profiles.compile_times import PassTime, slower_passes
from hlotools.profiles.compile_times import compile_times as times_of
from hlotools.profiles.xplane import Event, EventLine, Plane, ProfileError, XSpace

SECOND = 10**12


def recording(*lines):
    """A recording with these threads, each of which has a name and events in seconds."""
    threads = [
        EventLine(name, [Event(n, a * SECOND, b * SECOND, stats) for n, a, b, stats in events])
        for name, events in lines
    ]
    return XSpace("", [Plane("/host:CPU", threads)], {})


PIPELINE = {"module": "jit_f"}
COMPILING = (
    "compiler",
    [
        ("Compile", 0, 20, {}),
        ("simplification (jit_f)", 1, 9, PIPELINE),
        ("algsimp", 2, 5, {}),
        ("dce", 5, 6, {}),
        ("algsimp", 6, 8, {}),
        ("FusionCompiler::Compile", 10, 14, {"module": "add_kernel"}),
        ("CSEPass", 11, 14, {}),
        ("began", 15, 15, {}),
    ],
)
CODE = ("codegen", [("TaskDispatcher::dispatch", 12, 19, {})])


def test_passes_have_the_time_without_those_that_they_ran():
    found = times_of(recording(COMPILING, CODE), "f", 20.0)
    assert [tuple(each) for each in found.passes] == [
        ("Compile", "other", 1, 8.0),
        ("TaskDispatcher::dispatch", "LLVM", 1, 7.0),
        ("algsimp", "HLO", 2, 5.0),
        ("CSEPass", "MLIR", 1, 3.0),
        ("simplification", "HLO", 1, 2.0),
        ("dce", "HLO", 1, 1.0),
        ("FusionCompiler::Compile", "MLIR", 1, 1.0),
    ]
    text = found.text(most=2)
    assert text.startswith(
        "f: compiled in 20.00 s; by pass, on all threads: other 30%, HLO 30%, LLVM 26%, MLIR 15%\n"
    )
    assert "\n5 others take 12.00 s\n" in text
    assert json.loads(found.json())["passes"][0]["name"] == "Compile"


def test_a_compiler_that_tells_no_passes_is_an_error():
    with pytest.raises(ProfileError, match="does not tell its passes"):
        times_of(recording(CODE), "f", 1.0)


def test_a_compilation():
    found = compile_times(jax.grad(lambda x: jnp.tanh(x @ x).sum()))(jnp.ones((8, 8)))
    kinds = {each.name: each.kind for each in found.passes}
    assert kinds["fusion"] == kinds["layout-assignment"] == "HLO"
    assert 0 < sum(each.seconds for each in found.passes if each.kind == "HLO") < found.seconds


def test_passes_that_make_a_compilation_longer_are_told():
    before = [PassTime("fusion", "HLO", 1, 1.0), PassTime("dce", "HLO", 9, 0.01)]
    after = [
        PassTime("Compile", "other", 1, 9.0),
        PassTime("dce", "HLO", 9, 0.05),
        PassTime("fusion", "HLO", 1, 1.6),
        PassTime("offloading", "HLO", 1, 2.0),
    ]
    assert slower_passes(before, after) == [
        "offloading (HLO): new -> 2.00 s",
        "fusion (HLO): 1.00 s -> 1.60 s",
    ]
    assert slower_passes(after, before) == []


def test_no_submodule_hides_a_function():
    """Importing a submodule makes it an attribute of its package, whatever that held before."""
    submodules = {module.name for module in pkgutil.iter_modules(inspect.__path__)}
    assert not submodules & set(inspect.__all__)
