"""The public names against JAX's lists: none is missing, and finished modules stay whole."""

import functools
import pathlib

import pytest

from tests.support.api_names import (
    ADDED,
    LIST,
    absent_names,
    find,
    main,
    read_lists,
    signature_differences,
)

FINISHED = pathlib.Path(__file__).with_name("finished_modules.txt")


@functools.cache
def reference():
    """The names of jax 0.10.2 and of 0.12.0.1, with the signatures of the latter."""
    return read_lists([LIST, ADDED])


def finished_modules():
    lines = (line.partition("#")[0].strip() for line in FINISHED.read_text().splitlines())
    return [line for line in lines if line]


@pytest.mark.parametrize("module_name", finished_modules())
def test_finished_modules_stay_whole(module_name):
    names = read_lists([LIST])[module_name]
    missing = [f"{name} is missing" for name in absent_names(module_name, names)]
    missing += signature_differences(module_name, names)
    assert not missing, "\n".join(missing)


# Functions that take what JAX's take, although their signatures do not show it.
TAKES_EITHER_FORM = "takes (used_outputs, eqn) of 0.10.2 and (used_outputs, live_ins, eqn) of 0.12"
EXCUSED = {
    "jax.interpreters.partial_eval.dce_jaxpr_call_rule": TAKES_EITHER_FORM,
    "jax.interpreters.partial_eval.dce_jaxpr_closed_call_rule": TAKES_EITHER_FORM,
}


def test_functions_take_the_parameters_of_jax_0_12():
    lines = [line for module, names in reference().items() for line in differing(module, names)]
    assert not [line for line in lines if line.partition(":")[0] not in EXCUSED]
    assert {line.partition(":")[0] for line in lines} == EXCUSED.keys()


def differing(module_name, names):
    return [] if find(module_name) is None else signature_differences(module_name, names)


def test_no_name_is_missing_without_a_reason(capsys, record_property):
    status = main([])
    output = capsys.readouterr().out
    record_property("public_names", output.splitlines()[-3])
    assert status == 0, output
    assert set(finished_modules()) <= set(reference()), "finished_modules.txt names other modules"


def test_a_missing_name_is_printed(capsys, tmp_path):
    names = tmp_path / "names.json"
    names.write_text('{"modules": {"jax.lax": {"add": "(x, z)", "no_such_name": null}}}')
    assert main([str(names), "--signatures"]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["jax.lax", "1/2"] in lines and ["absent:", "no_such_name"] in lines
    assert ["jax.lax.add:", "no", "parameter", "z"] in lines


def test_our_modules_export_what_they_list():
    """`__all__` names only what is there, lazily made names included."""
    for module_name in reference():
        module = find(module_name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.__all__ lists {name}"
