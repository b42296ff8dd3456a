"""`./check quick` runs the tests that a change most likely breaks: which ones those are."""

import pytest

from tests.check.affected_tests import affected_tests, mirrored_folders, words_of
from tests.conventions.source import modules


@pytest.mark.long
def test_the_test_named_for_a_module_comes_first():
    tests = affected_tests(["hlofront/transforms/jvp.py"])
    assert tests[0] == "tests/transforms/test_jvp.py"
    assert "tests/transforms/test_linearize.py" in tests


def test_a_changed_test_is_run():
    path = "tests/transforms/test_batch.py"
    assert affected_tests([path])[0] == path


def test_a_changed_helper_is_followed_to_the_tests_that_import_it():
    tests = affected_tests(["tests/support/jaxprs.py"])
    assert "tests/transforms/test_transpose.py" in tests
    assert "tests/higher_order/test_scan_rules.py" in tests
    assert "tests/base/test_tree.py" not in tests


def test_a_module_in_a_room_of_its_floor_has_the_floor_s_tests():
    assert affected_tests(["hlofront/runtime/dispatch/jit.py"])[0] == "tests/runtime/test_jit.py"


def test_what_is_about_several_devices_is_tested_with_eight():
    tests = affected_tests(["hlofront/runtime/sharding/resharding.py"])
    with_eight = tests.index("tests/many_devices/test_eight_devices.py")
    assert with_eight < tests.index("tests/runtime/test_jit.py")


@pytest.mark.long
def test_every_module_of_a_floor_with_tests_has_some():
    for module in modules():
        if mirrored_folders(module.shown):
            assert affected_tests([module.shown]), module.shown


def test_texts_affect_no_test():
    assert affected_tests(["README.md", "check"]) == []


def test_samples_and_corpora_are_chosen_by_names_of_modules_and_primitives():
    assert words_of(["hlofront/core/axes.py", "README.md"]) == ["axes"]
    words = words_of(["hlofront/primitives/arrays/scattering_rules.py"])
    assert {"scattering", "scatter", "scatter_add"} <= set(words) and "add" not in words
    assert "sort" in words_of(["hlofront/lowering/ops/sort.py"])
    # `and` and `or` are words of pytest's expressions.
    assert not {"and", "or"} & set(words_of(["hlofront/primitives/elementwise/elementwise.py"]))
