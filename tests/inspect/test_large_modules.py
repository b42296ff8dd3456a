"""What reading, comparing and showing a large module may not do twice."""

import gc
import pathlib

import pytest

from hlotools import HloSyntaxError, costs, diff, page, parse
from hlotools.cost import estimates
from hlotools.cost.estimates import Estimates
from hlotools.ir.digests import Hashes
from hlotools.ir.source_frames import Frames

TEXT = (pathlib.Path(__file__).with_name("texts") / "gpt_block.hlo").read_text()
CHANGED = TEXT.replace(" add(", " subtract(", 1)


@pytest.fixture
def calls(monkeypatch):
    """A function that counts the calls of a method, in the list that it returns."""

    def counted(owner, name):
        made = []
        method = getattr(owner, name)

        def counting(self, *arguments):
            made.append(arguments)
            return method(self, *arguments)

        monkeypatch.setattr(owner, name, counting)
        return made

    return counted


def test_each_module_is_estimated_once_for_a_comparison_and_its_page(calls):
    made = calls(Estimates, "__init__")
    diff(TEXT, CHANGED).html()
    assert len(made) == 2
    page(TEXT)
    assert len(made) == 3


def test_values_inside_of_a_fusion_move_nothing():
    module = parse(TEXT)
    estimates = Estimates(module)
    fusion = next(i for i in module.entry if i.fused is not None)
    inside = estimates.computation(fusion.fused)
    assert inside.bytes == 0 and estimates.of(fusion).bytes > 0
    assert estimates.of(fusion).flops == inside.flops


def test_operations_inside_of_a_fusion_are_asked_for_their_arithmetic_alone(calls):
    module = parse(TEXT)
    made = calls(Estimates, "of")
    report = costs(module)
    fused = {i.fused for i in module.instructions() if i.fused is not None}
    assert report.lines and made and not any(i.computation in fused for (i,) in made)


def test_the_effects_of_changes_need_no_costs_of_lines(monkeypatch):
    monkeypatch.setattr("hlotools.cost.costs._by_line", None)
    assert diff(TEXT, CHANGED).changes


def test_equal_windows_are_counted_once():
    summed = "f32[64]{0} reduce-window(%x, %zero), window={size=7 pad=3_3}, to_apply=%sum"
    rows = "\n".join(f"  %w.{n} = {summed}" for n in range(5))
    module = parse(f"""HloModule windows

%sum {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}}

ENTRY %main {{
  %x = f32[64]{{0}} parameter(0)
  %zero = f32[] constant(0)
{rows}
  ROOT %t = (f32[64]{{0}}) tuple(%w.0)
}}
""")
    estimates._seen.cache_clear()
    assert Estimates(module).total().flops == 5 * 64
    assert estimates._seen.cache_info().misses == 1


def test_fusions_that_both_programs_have_are_digested_once(calls):
    a, b = parse(TEXT), parse(TEXT)
    first = Hashes(a)
    made = calls(Hashes, "body")
    second = Hashes(b, None, first)
    assert len(made) == len(b.computations), "each body by itself, none in its fusion again"
    assert [first[i] for i in a.instructions()] == [second[i] for i in b.instructions()]


def test_equal_frames_are_looked_up_once(calls):
    module = parse(TEXT)
    made = calls(Frames, "_listed")
    stacks = [i.stack() for i in module.instructions()]
    assert 0 < len(made) < sum(map(bool, stacks))


def test_values_with_brackets_are_read_as_they_are():
    nested = 'backend_config={"a":[[1,{"b":"}"}],(2)],"c":{"d":{"e":{"f":{}}}}}'
    text = f"HloModule m\nENTRY e {{\n  ROOT x = f32[] constant(1), {nested}, metadata={{}}\n}}\n"
    root = parse(text).entry.root
    assert f"backend_config={root.attributes['backend_config']}" == nested
    assert root.attributes["metadata"] == "{}"
    with pytest.raises(HloSyntaxError, match=r"closes nothing: '.' is open"):
        parse(text.replace("(2)]", "2"))


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_it_was_after_reading(enabled):
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        parse(TEXT)
        with pytest.raises(HloSyntaxError):
            parse("HloModule m\nENTRY e {")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
