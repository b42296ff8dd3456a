"""Computations that call the one before twice: each tool visits each of them a few times at most.

Each level doubles the number of paths through the program; of 60 levels no machine follows them.
"""

import sys

import pytest

import hlotools
from hlofront.pjrt.targets import target
from hlotools.dumps.dump_files import dumped_modules, main_module
from hlotools.profiles.profile import operations_inside

RATES = target("cuda:h100").describe()
_STEPS = 'backend_config={{"known_trip_count":{{"n":"2"}}}}'
# What a computation does with another one, twice: lines that give `a`, and then `b`, of `p`.
HLO_CALLS = {
    "call": "{out} = f32[8]{{0}} call({of}), to_apply={callee}",
    "fusion": "{out} = f32[8]{{0}} fusion({of}), kind=kLoop, calls={callee}",
    "conditional": "{out} = f32[8]{{0}} conditional(q, {of}, {of}), true_computation={callee}, "
    "false_computation={callee}",
    "while": "{out} = f32[8]{{0}} while({of}), condition=goes_on, body={callee}, " + _STEPS,
    "async": "{out}s = ((f32[8]{{0}}), f32[8]{{0}}, u32[]) async-start({of}), calls={callee}\n"
    "  {out} = f32[8]{{0}} async-done({out}s)",
    "custom-call": '{out} = f32[8]{{0}} custom-call({of}), custom_call_target="Kernel", '
    "called_computations={{{callee}}}",
}


def hlo(kind, depth, opcode="sine"):
    """Return HLO of `depth` computations, each of which uses the one before twice."""
    place = 'metadata={op_name="jit(f)/sin" source_file="/model.py" source_line=3}'
    lines = [
        "HloModule nested, is_scheduled=true\n",
        f"f0 (p: f32[8]) -> f32[8] {{\n  p = f32[8]{{0}} parameter(0)\n"
        f"  ROOT r = f32[8]{{0}} {opcode}(p), {place}\n}}\n",
        "goes_on (p: f32[8]) -> pred[] {\n  p = f32[8]{0} parameter(0)\n"
        "  ROOT c = pred[] constant(true)\n}\n",
    ]
    for level in range(1, depth + 1):
        called = HLO_CALLS[kind]
        first = called.format(out="a", of="p", callee=f"f{level - 1}")
        second = called.format(out="b", of="a", callee=f"f{level - 1}")
        head, _, last = second.rpartition("\n")
        lines.append(
            f"{'ENTRY main' if level == depth else f'f{level}'} (p: f32[8]) -> f32[8] {{\n"
            "  p = f32[8]{0} parameter(0)\n  q = pred[] constant(true)\n"
            f"  {first}\n{head}\n  ROOT {last.strip()}\n}}\n"
        )
    return "\n".join(lines)


_T = "tensor<8xf32>"
MLIR_CALLS = {
    "call": f"{{out}} = call @{{callee}}({{of}}) : ({_T}) -> {_T}",
    "while": f"""{{out}} = stablehlo.while(%iterArg = {{of}}) : {_T}
     cond {{{{
      stablehlo.return %c : tensor<i1>
    }}}} do {{{{
      %9 = func.call @{{callee}}(%iterArg) : ({_T}) -> {_T}
      stablehlo.return %9 : {_T}
    }}}}""",
    "if": f"""{{out}} = "stablehlo.if"(%c) ({{{{
      %9 = func.call @{{callee}}({{of}}) : ({_T}) -> {_T}
      stablehlo.return %9 : {_T}
    }}}}, {{{{
      %9 = func.call @{{callee}}({{of}}) : ({_T}) -> {_T}
      stablehlo.return %9 : {_T}
    }}}}) : (tensor<i1>) -> {_T}""",
}


def mlir(kind, depth, opcode="sine"):
    lines = ["module @jit_f {"]
    for level in range(depth, -1, -1):
        name = "public @main" if level == depth else f"private @f{level}"
        lines.append(f"  func.func {name}(%arg0: {_T}) -> {_T} {{")
        lines.append("    %c = stablehlo.constant dense<true> : tensor<i1>")
        called = MLIR_CALLS[kind]
        if level:
            lines.append("    " + called.format(out="%0", of="%arg0", callee=f"f{level - 1}"))
            lines.append("    " + called.format(out="%1", of="%0", callee=f"f{level - 1}"))
        else:
            lines.append(f"    %1 = stablehlo.{opcode} %arg0 : {_T}")
        lines.append(f"    return %1 : {_T}\n  }}")
    return "\n".join([*lines, "}\n"])


def jaxpr(kind, depth, opcode="sine"):
    text = f"let f0 = {{ lambda ; a:f32[8]. let b:f32[8] = {opcode[:3]} a in (b,) }} in\n"
    for level in range(1, depth + 1):
        call = f"{kind}[name=f jaxpr=f{level - 1}]"
        body = f"{{ lambda ; a:f32[8]. let b:f32[8] = {call} a; c:f32[8] = {call} b in (c,) }}"
        text += body + "\n" if level == depth else f"let f{level} = {body} in\n"
    return text


PROGRAMS = {
    **{f"HLO, {kind}": (hlo, kind) for kind in HLO_CALLS},
    **{f"StableHLO, {kind}": (mlir, kind) for kind in MLIR_CALLS},
    "jaxpr": (jaxpr, "jit"),
}


def every_text_of(difference):
    return [difference.text(), difference.json(), difference.markdown(), difference.html()]


# Programs to use: one, the same with another operation at the bottom, and one a level deeper.
OF_ALL = {
    "canonical": lambda one, other, deeper: hlotools.canonical(one),
    "styled": lambda one, other, deeper: [
        hlotools.styled(one, style) for style in ("source", "short", "canonical")
    ],
    "page": lambda one, other, deeper: hlotools.page(one, RATES),
    "diff of equal programs": lambda one, other, deeper: hlotools.diff(one, one + "\n").html(),
    "diff": lambda one, other, deeper: every_text_of(hlotools.diff(one, other)),
    "diff of depths": lambda one, other, deeper: hlotools.diff(one, deeper).text(),
}
OF_HLO = {
    "parse, write": lambda one, other, deeper: hlotools.write(hlotools.parse(one)),
    "costs": lambda one, other, deeper: hlotools.costs(one, RATES).text(by="instruction"),
    "memory_use": lambda one, other, deeper: hlotools.memory_use(one).text(),
    "collectives": lambda one, other, deeper: hlotools.collectives(one).text(),
    "diff with schedule": lambda one, other, deeper: hlotools.diff(one, other, schedule=True),
    "profile": lambda one, other, deeper: operations_inside(hlotools.parse(one)),
}


class TooManyError(Exception):
    """The error that a function makes more calls than are expected."""


def calls_of(use, *programs, most):
    """Return how many Python functions are called, up to a number."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"
        if count > most:
            raise TooManyError(f"more than {most:,} calls")

    sys.setprofile(note)
    try:
        use(*programs)
    finally:
        sys.setprofile(None)
    return count


def grows_as_programs_do(use, write, kind):
    """Assert that work grows as a program does, of which each level is as long as the others."""
    short, long = (
        calls_of(
            use,
            write(kind, depth),
            write(kind, depth, "cosine"),
            write(kind, depth + 1),
            most=1_000_000,
        )
        for depth in (15, 60)
    )
    # Four times as long; what lists the operations inside of each fusion takes more than that.
    assert long < 10 * short, (short, long)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("use", OF_ALL)
def test_each_tool_visits_a_computation_once(use, name):
    grows_as_programs_do(OF_ALL[use], *PROGRAMS[name])


@pytest.mark.parametrize("kind", HLO_CALLS)
@pytest.mark.parametrize("use", OF_HLO)
def test_each_tool_for_hlo_visits_a_computation_once(use, kind):
    grows_as_programs_do(OF_HLO[use], hlo, kind)


@pytest.mark.parametrize("kind", HLO_CALLS)
def test_dumps_of_passes_are_read_once(kind, tmp_path):
    def use(one, other, deeper):
        name = tmp_path / f"module_0001.jit_f.{len(list(tmp_path.iterdir()))}"
        name.mkdir()
        for stage, text in (
            ("before_optimizations", one),
            ("0000.all.after_pipeline-start.before_fusion", one),
            ("0001.all.after_fusion.before_pipeline-end", other),
            ("after_optimizations", deeper),
        ):
            (name / f"module_0001.jit_f.{stage}.txt").write_text(text, encoding="utf-8")
        changes = hlotools.timeline(main_module(dumped_modules(name)))
        changes.text()
        changes.histories()

    grows_as_programs_do(use, hlo, kind)


def test_an_instruction_has_the_runs_of_all_callers():
    report = hlotools.costs(hlo("while", 4, "negate"))
    assert [(row.name, row.runs, row.flops) for row in report.instructions] == [("r", 4**4, 2048)]
    calls = hlotools.costs(hlo("call", 60, "negate"))
    assert [(row.name, row.runs, row.flops) for row in calls.instructions] == [("r", 2**60, 2**63)]
    assert calls.total["flops"] == 2**63


def test_operations_inside_fusions_count_for_each_fusion():
    assert hlotools.costs(hlo("fusion", 5, "negate")).total["flops"] == 2**5 * 8
    timed = hlotools.costs(hlo("fusion", 5, "multiply"), RATES)
    assert timed.total["flops"] == 2**5 * 8


# Values of 4,000 bytes. `inner` is called where 4,000 and where 8,000 bytes are live outside of it.
CALLED_TWICE = """HloModule twice, is_scheduled=true

inner {
  p = f32[1000]{0} parameter(0)
  wide = f32[3000]{0} broadcast(p), dimensions={0}
  ROOT r = f32[1000]{0} slice(wide), slice={[0:1000]}
}

ENTRY e {
  x = f32[1000]{0} parameter(0)
  first = f32[1000]{0} call(x), to_apply=inner
  second = f32[1000]{0} call(first), to_apply=inner
  ROOT sum = f32[1000]{0} add(first, second)
}
"""


def test_memory_is_looked_into_where_the_most_is_live():
    use = hlotools.memory_use(CALLED_TWICE)
    assert [(m.name, m.bytes) for m in use.moments] == [
        ("first", 4000 + 4000 + 12000),
        ("wide", 4000 + 4000 + 4000 + 12000),
        ("r", 4000 + 4000 + 4000 + 12000),
        ("sum", 4000 + 4000 + 4000),
    ]
    assert use.peak_bytes == 24000
    assert [live.buffer.name for live in use.live()] == ["wide", "x", "first", "second"]
