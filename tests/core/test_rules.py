"""Tables of lowering rules, whose modules are imported when a primitive first needs them."""

import types

import pytest

from hlofront.base.errors import NoRuleError
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import ALL, Primitive
from hlofront.core.rules import LoweringTable


def common(build, x):
    return x


def for_cpus(build, x):
    return x


def of_others(build, x):
    return x


common.__module__ = for_cpus.__module__ = "hlofront.lowering.doubling"


@pytest.fixture
def twice():
    yield Primitive("twice_for_test")
    del ALL["twice_for_test"]


@pytest.fixture
def table(twice, monkeypatch):
    """A table with rules of one primitive in a module, which is imported at most once."""
    table = LoweringTable("lower", "a file", "a question")
    table.modules[twice.name] = ["hlofront.lowering.doubling"]

    def imported(module):
        assert module == "hlofront.lowering.doubling"
        table(twice)(common)
        table(twice, platform="cpu")(for_cpus)

    monkeypatch.setattr(rules, "importlib", types.SimpleNamespace(import_module=imported))
    return table


def test_a_lookup_imports_the_rules(table, twice):
    assert twice not in table
    assert table[twice] is common
    assert table.for_platform(twice, "cpu", None) is for_cpus
    assert table.for_platform(twice, "tpu", None) is common


def test_a_lookup_for_a_platform_imports_the_rules(table, twice):
    assert table.for_platform(twice, "cpu", None) is for_cpus


def test_a_lookup_for_platforms_imports_the_rules(table, twice):
    groups = table.for_platforms(twice, ("cpu", "tpu"), None)
    assert groups == [(for_cpus, ("cpu",)), (common, ("tpu",))]


def test_a_rule_of_another_package_replaces_those_that_are_imported_before_it(table, twice):
    table[twice] = of_others
    table(twice, platform="cpu")(of_others)
    assert table[twice] is table.for_platform(twice, "cpu", None) is of_others
    assert twice in table.foreign


def test_a_second_rule_is_refused_also_where_the_first_is_not_imported(table, twice):
    with pytest.raises(ValueError, match="the lower rule of twice_for_test is given twice"):
        table(twice)(of_others)
    assert table[twice] is common


def test_a_primitive_without_modules_has_no_rule(table):
    other = Primitive("other_for_test")
    try:
        with pytest.raises(NoRuleError, match="other_for_test"):
            table[other]
    finally:
        del ALL["other_for_test"]


@pytest.fixture
def table_of_three(twice, monkeypatch):
    """A table with rules in three modules, and the list of those that were imported."""
    table = LoweringTable("lower", "a file", "a question")
    table.modules[twice.name] = ["doubling", "wide_doubling_cpu", "doubling_tpu"]
    table.dtypes["wide_doubling_cpu"] = frozenset(["float64"])
    imported = []

    def import_module(module):
        imported.append(module)
        if module == "doubling":
            table(twice)(common)
        else:
            table(twice, platform=module[-3:])(for_cpus)

    monkeypatch.setattr(rules, "importlib", types.SimpleNamespace(import_module=import_module))
    return table, imported


def builder_of(dtype):
    return types.SimpleNamespace(avals_out=[ShapedArray((3,), dtype)])


def test_an_equation_imports_the_modules_of_its_platform_and_dtype(table_of_three, twice):
    table, imported = table_of_three
    for _ in range(2):
        assert table.for_platform(twice, "cpu", builder_of("float32")) is common
        assert imported == ["doubling"]
    assert table.for_platform(twice, "cpu", builder_of("float64")) is for_cpus
    assert imported == ["doubling", "wide_doubling_cpu"]
    table.for_platforms(twice, ("cuda", "tpu"), builder_of("float32"))
    assert imported == ["doubling", "wide_doubling_cpu", "doubling_tpu"]
    assert twice.name not in table.modules


def test_an_equation_of_unknown_results_imports_the_modules_of_its_platform(table_of_three, twice):
    table, imported = table_of_three
    table.for_platform(twice, "cpu", types.SimpleNamespace(avals_out=[]))
    assert imported == ["doubling", "wide_doubling_cpu"]


def test_another_packages_rule_comes_after_all_modules(table_of_three, twice):
    table, imported = table_of_three
    table.for_platform(twice, "cpu", builder_of("float32"))
    table(twice, platform="tpu")(of_others)
    assert imported == ["doubling", "wide_doubling_cpu", "doubling_tpu"]
    assert table.for_platform(twice, "tpu", builder_of("float32")) is of_others
