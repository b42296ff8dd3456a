"""The pages of programs and differences, tried in a real browser without a window."""

import fnmatch
import importlib.util
import io
import json
import os
import pathlib
import re
import tomllib

import pytest

import hlofront as jax
from hlofront.cli.main import main
from hlofront.inspect import costs, diff, memory_use, page, parse, profiles_in
from hlofront.inspect.comparison.columns import Column
from hlofront.inspect.comparison.compare import Comparison
from hlofront.inspect.program_page import jaxpr_data
from hlofront.pjrt.targets import Description
from hlotools.html import frame, notebook
from hlotools.html.hlo_page import hlo_data
from hlotools.html.page_file import SCRIPTS, STYLES
from hlotools.html.page_model import Files
from hlotools.ir.stablehlo_parser import read_stablehlo
from hlotools.profiles.compile_times import PassTime
from tests.inspect.page_speed import program_of
from tests.inspect.test_collectives import OVERLAPPING

TEXTS = pathlib.Path(__file__).with_name("texts")
TARGET = Description("x", "a device", "cpu", 1, None, 1e12, {"float32": 1e13}, "", ())

PROGRAM = '''
"""A loop over layers."""
import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax


def layer(x, w):
    return jnp.tanh(x @ w)


def step(x, w):
    x = lax.fori_loop(0, 5, lambda _, x: layer(x, w), x)
    return jnp.sum(x * 2.0 + 1.0)


def example_args():
    return jax.ShapeDtypeStruct((16, 32), "float32"), jax.ShapeDtypeStruct((32, 32), "float32")
'''
TANH = next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if "tanh" in line)

# A call and a fusion whose names, paths and files want to be markup.
EVIL = "</script><img src=http://x.invalid/ onerror=window.struck=1><!--"
HOSTILE = f"""HloModule evil

%fused {{
  %p = f32[4]{{0}} parameter(0)
  ROOT %t = f32[4]{{0}} tanh(%p), metadata={{op_name="{EVIL}" source_file="FILE" source_line=1}}
}}

ENTRY %main {{
  %a = f32[4]{{0}} parameter(0), metadata={{op_name="{EVIL}"}}
  %f = f32[4]{{0}} fusion(%a), kind=kLoop, calls=%fused, backend_config="{EVIL}"
  ROOT %c = f32[4]{{0}} custom-call(%f), custom_call_target="{EVIL}", metadata={{SOURCE}}
}}
""".replace("SOURCE", f'source_file="{EVIL}.py" source_line=3')


def text_of(name):
    return (TEXTS / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """A program with a loop and fusions, at its three stages, from a file that can be read."""
    path = tmp_path_factory.mktemp("user") / "layers.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("layers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    traced = jax.jit(module.step).trace(*module.example_args())
    lowered = traced.lower()
    return {"jaxpr": traced, "stablehlo": lowered, "hlo": lowered.compile(), "file": str(path)}


@pytest.fixture(scope="module")
def program(stages):
    return page(stages["hlo"], TARGET)


COUNT = "document.querySelectorAll('{}').length"


def count(shown, selector):
    return shown.run(COUNT.format(selector))


def line(number):
    return f'.line[data-line="0:{number}"]'


# ---- the page of a program ----------------------------------------------------------------------


def test_source_and_operations_light_each_other(look, program):
    shown = look(program)
    assert count(shown, ".row.strong, .line.strong") == 0
    # From the source to the operations: in the loop's body, inside of what is folded, too.
    shown.move(line(TANH))
    shown.until(COUNT.format(".row.strong, .row.holding") + " > 0")
    lit = shown.run("[...hlofront.light.lit.strong].map((op) => hlofront.program.opcode(op))")
    assert "tanh" in lit and "dot" in lit and "reduce" not in lit
    # And back.
    shown.move('[data-op] .operand, .row.head[aria-level="1"] .computation')
    shown.run("""hlofront.list.show(hlofront.program.opcodes.findIndex(
      (_, op) => hlofront.program.opcode(op) === 'tanh'))""")
    tanh = shown.run("""[...document.querySelectorAll('.row')].find((row) =>
      row.querySelector('.opcode')?.textContent === 'tanh').dataset.op""")
    shown.move(f'.row[data-op="{tanh}"] .opcode')
    shown.until(COUNT.format(line(TANH).replace('"', '\\"') + ".strong") + " === 1")
    # The line that called it, faintly.
    assert count(shown, ".line.weak") >= 1
    assert count(shown, ".row.strong") == 1


def test_a_click_keeps_the_light_on(look, program):
    shown = look(program)
    shown.click(line(TANH))
    assert shown.run("document.querySelector('.details').hidden") is False
    assert "jnp.tanh(x @ w)" in shown.run("document.querySelector('.details').textContent")
    lit = shown.run("hlofront.light.lit.strong.size")
    shown.move(".row.head")
    assert shown.run("hlofront.light.lit.strong.size") == lit > 0
    shown.press("Escape")
    assert shown.run("document.querySelector('.details').hidden") is True
    # What is pinned can be linked to.
    shown.run("hlofront.light.pin({op: hlofront.program.roots[0]})")
    name = shown.run("hlofront.program.names[hlofront.program.roots[0]]")
    assert shown.run("decodeURIComponent(location.hash)") == f"#{name}"
    assert shown.run("document.querySelector('.details h3').textContent").count(name)


def test_what_is_called_folds_under_its_caller(look, program):
    shown = look(program)
    rows = shown.run("hlofront.list.rows.length")
    folded = '.row[aria-expanded="false"][data-op]'
    level = shown.run(f"+document.querySelector('{folded}').ariaLevel")
    index = shown.run(f"document.querySelector('{folded}').dataset.row")
    shown.click(f'.row[data-row="{index}"] .fold')
    assert shown.run("hlofront.list.rows.length") > rows
    unfolded = f'.row[data-row="{index}"]'
    assert shown.run(f"document.querySelector('{unfolded}').ariaExpanded") == "true"
    below = f'.row[data-row="{int(index) + 1}"]'
    assert shown.run(f"+document.querySelector('{below}').ariaLevel") == level + 1
    # By the keyboard.
    shown.press("ArrowLeft")
    assert shown.run("hlofront.list.rows.length") == rows
    shown.press("ArrowRight")
    shown.press("ArrowDown")
    active = shown.run("document.activeElement.getAttribute('aria-activedescendant')")
    assert active == f"row-{int(index) + 1}"
    assert shown.run("document.activeElement.getAttribute('role')") == "tree"
    # Loops are open from the start: the body is there to be read.
    assert shown.run("hlofront.list.rows.some(({label}) => label === 'body')")


def test_searching_filters_and_steps(look, program):
    shown = look(program)
    shown.click("input[type=search]")
    shown.type("tanh")
    shown.press("Enter")
    shown.until("hlofront.search.hits !== null")
    hits = shown.run("hlofront.search.hits.length")
    assert hits > 0 and f"1 of {hits}" in shown.run(
        "document.querySelector('.search .count').textContent"
    )
    assert (
        shown.run("hlofront.list.rows.filter(({op}) => hlofront.list.hits.has(op)).length") == hits
    )
    names = shown.run("hlofront.search.hits.map((op) => hlofront.program.haystack(op))")
    # By what their rows show, which the code of a source line is not.
    assert all("tanh" in name for name in names)
    assert not any("dot" in name for name in names)
    first = shown.run("hlofront.light.pinned.op")
    shown.press("Enter")
    assert shown.run("hlofront.light.pinned.op") != first
    for query, opcode in (
        ("op:tanh", "tanh"),
        (f"op:dot line:layers.py:{TANH}", "dot"),
        (f"op:dot line:{TANH} shape:f32[16,32]", "dot"),
        ("op:dot code:jnp.tanh", "dot"),
        ("op:dot flops>1e3 bytes<=1e6", "dot"),
    ):
        shown.run(f"hlofront.search.input.value = {json.dumps(query)}; hlofront.search.run()")
        found = shown.run("hlofront.search.hits.map((op) => hlofront.program.opcode(op))")
        assert set(found) == {opcode}
    # A number of a line is that line alone, and a figure has a limit.
    for query in ("line:1", "op:dot bytes>1e9", "type:f32[16,32] nothing"):
        shown.run(f"hlofront.search.input.value = {json.dumps(query)}; hlofront.search.run()")
        assert shown.run("hlofront.list.rows.length") == 0, query
    shown.press("Escape")
    assert shown.run("hlofront.list.rows.length") > 5


def test_measured_time_is_the_first_color(look):
    (measured,) = profiles_in(TEXTS / "jax.xplane.pb")
    shown = look(measured.page())
    assert shown.run("document.querySelector('[aria-label=heat] button').dataset.key") == "measured"
    share = "Math.max(...[...document.querySelectorAll('{}')].map((e) => +e.dataset.share))"
    slow = measured.lines[0].share
    assert shown.run(share.format(".line.used")) == pytest.approx(slow, abs=1e-3)
    # The loop has the time of its body.
    loop = shown.run("hlofront.program.opcodes.findIndex((_, op) => "
                     "hlofront.program.opcode(op) === 'while')")  # fmt: skip
    assert shown.run(f"hlofront.program.share({loop}, 'measured')") > slow * 0.99
    assert "measured time" in shown.run("document.querySelector('header').textContent")


def test_heat_is_the_share_of_one_figure(look, program):
    shown = look(program)
    keys = shown.run(
        "[...document.querySelectorAll('[aria-label=heat] button')].map((b) => b.dataset.key)"
    )
    assert keys == ["seconds", "flops", "bytes", ""]

    def shares(key):
        shown.click(f'[aria-label=heat] [data-key="{key}"]')
        of = "[...document.querySelectorAll('{}')].map((e) => +e.dataset.share)"
        return shown.run(of.format(".row[data-op]")), shown.run(of.format(".line.used"))

    for key in ("seconds", "flops", "bytes"):
        operations, lines = shares(key)
        # The loop has nearly all of it; what XLA puts in has no line.
        assert 0.5 < max(operations) <= 1.001 and 0.9 < sum(lines) <= 1.01
    hot = shown.run("getComputedStyle(document.querySelector('.row[data-op]')).backgroundImage")
    assert "gradient" in hot
    assert not any(shares("")[0])
    # The product is five times 2 * 16 * 32 * 32.
    work = shown.run(
        "hlofront.program.metric('flops').values[hlofront.program.opcodes.findIndex("
        "(_, op) => hlofront.program.opcode(op) === 'while')]"
    )
    assert work > 5 * 2 * 16 * 32 * 32


def test_the_graph_draws_and_unfolds(look, program):
    shown = look(program)
    shown.click('[data-key="graph"]')
    first = count(shown, ".node")
    assert first > 2 and count(shown, ".edge") >= first - 2
    # No two nodes lie on each other, and every edge leads down.
    assert shown.run("""(() => {
      const {places, nodes, paths} = hlofront.graph.drawn;
      const beside = (a, b) => places[a].x + nodes[a].width <= places[b].x;
      const above = (a, b) => places[a].y + nodes[a].height <= places[b].y;
      const apart = (a, b) => beside(a, b) || beside(b, a) || above(a, b) || above(b, a);
      return nodes.every((_, a) => nodes.every((_, b) => a === b || apart(a, b)))
        && paths.every((path) => path[0][1] < path[path.length - 1][1]);
    })()""")
    loop = shown.run(
        "hlofront.program.opcodes.findIndex((_, op) => hlofront.program.opcode(op) === 'while')"
    )
    shown.click(f'.node[data-op="{loop}"] .node-fold')
    assert count(shown, ".node") > first
    assert count(shown, f'.node[data-op="{loop}"] .inner .node') == count(shown, ".node") - first
    labels = shown.run("[...document.querySelectorAll('.inner-label')].map((e) => e.textContent)")
    assert {"body", "condition"} <= set(labels)
    inner = f'.node[data-op="{loop}"] .inner .node:not(.plain)'
    shown.run(
        f"document.querySelector('{inner}').dispatchEvent("
        "new MouseEvent('mouseover', {bubbles: true}))"
    )
    assert count(shown, ".line.strong") >= 1 and count(shown, ".node.strong") == 1
    shown.click(f'.node[data-op="{loop}"] .node-fold')
    assert count(shown, ".node") == first
    # A search dims the others.
    shown.run("hlofront.search.input.value = 'op:while'; hlofront.search.run()")
    assert count(shown, ".node.faint") == first - count(shown, ".node.hit") > 0


def test_a_large_graph_is_blocks_which_open(look):
    shown = look(page(program_of(1500)))
    shown.click('[data-key="graph"]')
    # One block for each scope: the layers' names are in the stacks.
    titles = "[...document.querySelectorAll('.node.block .first')].map((e) => e.textContent)"
    assert {"layer_0", "layer_1", "layer_27"} <= set(shown.run(titles))
    assert "operations in" in shown.run("document.querySelector('.note').textContent")
    # Every edge leads down; the overview frames what is in sight.
    assert shown.run("""hlofront.graph.drawn.paths.every(
      (path) => path[0][1] < path[path.length - 1][1])""")
    assert shown.run("document.querySelector('.overview').hasAttribute('hidden')") is False
    assert count(shown, ".overview-node") == count(shown, ".node")
    before = shown.run("hlofront.graph.view.y")
    shown.click(".overview")
    assert shown.run("hlofront.graph.view.y") != before
    block = shown.run("""[...hlofront.graph.nodes.values()].find(
      ({box}) => box.block?.label === 'layer_3').box.block.ops.length""")
    shown.run("""[...document.querySelectorAll('.node.block')].find((node) =>
      node.querySelector('.first').textContent === 'layer_3').querySelector('.node-fold')
      .dispatchEvent(new MouseEvent('click', {bubbles: true}))""")
    assert count(shown, ".node") == block and count(shown, ".node.block") == 0
    assert "layer_3: " in shown.run("document.querySelector('.note').textContent")
    shown.click(".graph-bar > button:not([aria-label])")
    assert count(shown, ".node.block") > 20


def test_the_paths_between_two_operations(look):
    text = """HloModule paths

ENTRY %main {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} tanh(%a)
  %c = f32[4]{0} sine(%b)
  %d = f32[4]{0} cosine(%b)
  %e = f32[4]{0} exponential(%a)
  %f = f32[4]{0} add(%c, %d)
  ROOT %g = f32[4]{0} multiply(%f, %e)
}
"""
    shown = look(page(text))
    shown.click('[data-key="graph"]')
    numbers = {name: shown.run(f"hlofront.program.names.indexOf('{name}')") for name in "abcdefg"}
    event = "new MouseEvent('click', {bubbles: true, shiftKey: %s})"

    def click(name, shift="false"):
        node = f"document.querySelector('.node[data-op=\"{numbers[name]}\"]')"
        shown.run(f"{node}.dispatchEvent({event % shift})")

    # Against the edges, too.
    for first, second in (("b", "f"), ("f", "b")):
        click(first)
        click(second, "true")
        drawn = set(shown.run("[...hlofront.graph.nodes.keys()]"))
        assert drawn == {numbers[name] for name in "bcdf"}
        shown.run("hlofront.graph.open(hlofront.graph.computation)")
    click("c")
    click("e", "true")
    assert "no path between" in shown.run("document.querySelector('.note').textContent")
    assert count(shown, ".node") == 7


def test_an_address_names_a_view(browser, tmp_path, program):
    path = tmp_path / "page.html"
    path.write_text(program, encoding="utf-8")
    shown = browser.page(f"{path.as_uri()}#memory")
    shown.until("document.documentElement.dataset.drawn !== undefined")
    assert shown.run("document.querySelector('.views').dataset.view") == "memory"
    assert shown.run("document.querySelector('[data-key=memory]').ariaChecked") == "true"
    shown.close()


def test_the_memory_over_time_has_its_peak_and_buffers(look, program, stages):
    use = memory_use(stages["hlo"])
    shown = look(program)
    shown.click('[data-key="memory"]')
    assert shown.run("hlofront.memory.at") == use.peak
    assert "the peak:" in shown.run("document.querySelector('.memory-title').textContent")
    rows = count(shown, ".buffers li[data-op]")
    assert rows == len([each for each in use.live() if each.buffer.bytes >= use.peak_bytes / 1e4])
    # The first buffer is the largest; a click on it lights its line.
    size = shown.run("document.querySelector('.buffers .size').textContent")
    assert size == shown.run(f"figureText('bytes', {use.live()[0].buffer.bytes})")
    # A click near the left end pins the first operation; arrows go to the next one.
    shown.click(".memory-chart")
    assert shown.run("hlofront.memory.pinned") == 0
    pinned = "hlofront.program.names[hlofront.light.pinned.op]"
    assert shown.run(pinned) == use.moments[0].name
    shown.press("ArrowRight")
    assert shown.run(pinned) == use.moments[1].name


def test_collectives_are_a_table_of_axes_bytes_and_what_is_beside_them(look):
    shown = look(page(OVERLAPPING))
    shown.click('[data-key="links"]')
    rows = shown.run(
        "[...document.querySelectorAll('.links tbody tr')].map((row) =>"
        " [...row.children].map((cell) => cell.textContent))"
    )
    assert rows == [
        ["all-gather", "groups of 4", "48 KiB", "nothing", "step.py:4"],
        ["all-reduce", "groups of 2", "16 KiB", "product", "step.py:4"],
    ]
    shown.click(".links td button")
    assert shown.run("hlofront.program.names[hlofront.light.pinned.op]") == "product"


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo", "hlo", "diff", "closed jaxpr"])
def test_notebooks_show_the_page_in_a_frame(look, browser, tmp_path, stages, stage):
    if stage == "diff":
        shown = diff(stages["stablehlo"], stages["stablehlo"].as_text().replace("tanh", "sine"))
    else:
        shown = stages["jaxpr"].jaxpr if stage == "closed jaxpr" else stages[stage]
    cell = shown._repr_html_()
    file = tmp_path / "cell.html"
    file.write_text(f"<!doctype html><meta charset='utf-8'><body>{cell}", encoding="utf-8")
    notebook = browser.page(file.as_uri())
    assert (
        notebook.run("document.querySelector('iframe').getAttribute('sandbox')") == "allow-scripts"
    )
    # The frame has no access to the notebook, nor the notebook to it: it is read by itself.
    page_text = notebook.run("document.querySelector('iframe').srcdoc")
    assert count(look(page_text), ".change-list li" if stage == "diff" else ".row") > 0
    notebook.click("details summary")
    assert "tanh" in notebook.run("document.querySelector('details').innerText")
    assert notebook.problems == []
    notebook.close()


def test_a_page_that_is_too_large_for_a_notebook_says_so(monkeypatch):
    monkeypatch.setattr(frame, "_LARGEST", 1000)
    cell = notebook.program_html("large", text_of("layer.hlo"))
    assert "<iframe" not in cell and "The page has 0 MiB: write it to a file" in cell


def test_programs_before_optimization_have_no_memory_over_time(look, stages):
    assert count(look(page(stages["stablehlo"])), '[data-key="memory"]') == 0


def test_wide_lines_wrap_and_narrow_windows_have_the_source_above(look, tmp_path):
    file = tmp_path / "wide.py"
    file.write_text("def f(x):\n    return x + " + " + ".join(["1.0"] * 80) + "\n")
    program = page(OVERLAPPING.replace("step.py", str(file)).replace("line=4", "line=2"))
    for width in (1500, 900, 600):
        shown = look(program, width=width)
        scrolls = "(({scrollWidth, clientWidth}) => scrollWidth > clientWidth)"
        assert not shown.run(f"{scrolls}(document.querySelector('.sources'))")
        assert shown.run("document.querySelector('.line.used').clientHeight") > 40
        sides = shown.run(
            "['.sources', '.right'].map((each) => document.querySelector(each))"
            ".map((element) => element.getBoundingClientRect()).map(({x, y}) => [x, y])"
        )
        beside = width > 1000
        assert (sides[0][0] < sides[1][0]) == beside and (sides[0][1] < sides[1][1]) != beside
        heights = "['.sources', '.panes'].map((each) => document.querySelector(each).clientHeight)"
        source, both = shown.run(heights)
        assert beside or source == pytest.approx(0.36 * both, abs=2)


def test_a_wrapped_line_goes_on_to_the_right_of_its_beginning(look, tmp_path):
    path = tmp_path / "narrow.py"
    path.write_text(" " * 24 + "a_long_name_that_fits_in_no_row" * 8 + "(x)\n")
    shown = look(
        page(f"""HloModule m

ENTRY %main {{
  %x = f32[4]{{0}} parameter(0)
  ROOT %t = f32[4]{{0}} tanh(%x), metadata={{op_name="tanh" source_file="{path}" source_line=1}}
}}
"""),
        width=1100,
    )
    boxes, height, text = shown.run("""(() => {
        const code = document.querySelector('.line.used code');
        const words = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
        const range = document.createRange();
        const boxes = [];
        for (let node; (node = words.nextNode());) {
            if (!node.data.trim()) continue;
            range.selectNodeContents(node);
            range.setStart(node, node.data.search(/\\S/));
            boxes.push(...[...range.getClientRects()].map((box) => [box.top, box.left]));
        }
        return [boxes, code.offsetHeight, code.textContent];
    })()""")
    rows = {round(top): left for top, left in reversed(boxes)}
    first, *others = [rows[top] for top in sorted(rows)]
    assert len(others) > 2 and all(left > first for left in others)
    assert height == 20 * len(rows)
    # What is copied has its indentation.
    assert text == path.read_text().rstrip()


def test_arguments_have_the_names_of_the_user():
    text = text_of("layer.hlo").replace('op_name="w"', "op_name=\"params['layers'][0]['w']\"")
    module = parse(text)
    names = hlo_data(module, Files()).as_dict()["names"]
    assert "params['layers'][0]['w']" in names and "w.1" not in names
    hidden = hlo_data(module, Files()).as_dict()["hidden"]
    assert any("name=w.1" in each for each in hidden.values())


def test_a_graph_opens_at_its_beginning_in_letters_that_can_be_read(look):
    chain = "".join(
        f'  %n{n} = f32[{n}]{{0}} custom-call(%n{n - 1}), custom_call_target="f"\n'
        for n in range(1, 60)
    )
    shown = look(
        page(f"HloModule m\n\nENTRY %main {{\n  %n0 = f32[]{{}} parameter(0)\n{chain}}}\n")
    )
    shown.click('[data-key="graph"]')
    top, size = shown.run("""(() => {
        const frame = document.querySelector('.drawing').getBoundingClientRect();
        const first = document.querySelector('.node[data-op="0"]').getBoundingClientRect();
        const letter = document.querySelector('.node .first');
        const scale = letter.getScreenCTM().a * parseFloat(getComputedStyle(letter).fontSize);
        return [first.top - frame.top, scale];
    })()""")
    assert 0 <= top < 60 and size > 9


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo"])
def test_the_other_stages_have_pages(look, stages, stage):
    shown = look(page(stages[stage]), dark=True)
    assert shown.run("hlofront.program.kind") == stage
    opcodes = shown.run("hlofront.program.names.map((_, op) => hlofront.program.opcode(op))")
    assert {"while", "scan"} & set(opcodes) and "tanh" in opcodes
    shown.run(f"hlofront.light.hover({{line: lineKey(0, {TANH})}})")
    lit = shown.run("[...hlofront.light.lit.strong].map((op) => hlofront.program.opcode(op))")
    assert "tanh" in lit and "dot_general" in lit
    shown.click('[data-key="graph"]')
    assert count(shown, ".node") > 2
    background = shown.run("getComputedStyle(document.documentElement).backgroundColor")
    assert max(map(int, re.findall(r"\d+", background))) < 60


def test_names_that_want_to_be_markup_stay_text(look, tmp_path):
    file = tmp_path / "evil.py"
    file.write_text(f"'{EVIL}' # </script><script>window.struck = 2</script>\n")
    text = HOSTILE.replace("FILE", str(file))
    shown = look(page(text, title=EVIL))
    assert shown.run("document.title") == EVIL
    assert EVIL in shown.run("document.querySelector('.line.used code').textContent")
    shown.run("hlofront.light.pin({op: 4})")
    assert EVIL in shown.run("document.querySelector('.details').textContent")
    shown.click('[data-key="graph"]')
    other = text.replace("tanh(", "cosine(").replace(
        "custom_call_target", "api_version=3, custom_call_target"
    )
    both = look(diff(text, other).html())
    both.run("hlofront.view.toRow(0)")
    for each in (shown, both):
        assert each.run("window.struck") is None and count(each, "img") == 0
        assert count(each, "script") == 2
    # A program may name any file: only Python is read.
    secret = tmp_path / "secret.txt"
    secret.write_text("the key is 1234\n")
    assert "1234" not in page(text.replace(str(file), str(secret)))


@pytest.mark.long
def test_fifty_thousand_operations(look):
    lines = ["  %v0 = f32[8,128]{1,0} parameter(0)"]
    place = 'metadata={op_name="jit(f)/layer" source_file="/nowhere/model.py" source_line='
    lines += [
        f"  %v{n} = f32[8,128]{{1,0}} {'add' if n % 3 else 'subtract'}(%v{n - 1}, %v{n // 2}), "
        f"{place}{n % 400 + 1}}}"
        for n in range(1, 50_000)
    ]
    text = "HloModule long\n\nENTRY %main {\n" + "\n".join(lines) + "\n}\n"
    shown = look(page(text))
    assert shown.run("hlofront.program.count") == 50_000
    assert shown.seconds < 10
    assert count(shown, "*") < 6000
    shown.run("hlofront.list.element.scrollTop = 600000; hlofront.list.list.refresh()")
    assert count(shown, ".row") < 120
    spent = shown.run("""(() => { const start = performance.now(); const {search} = hlofront;
      search.input.value = "subtract line:model.py:7"; search.run(); search.step(1);
      hlofront.light.pin({line: lineKey(0, 9)}); return performance.now() - start; })()""")
    assert spent < 5000
    # What is near one operation is drawn, and one can go on from there.
    shown.click('[data-key="graph"]')
    assert 50 < count(shown, ".node") <= 260
    assert "of 50,000 operations" in shown.run("document.querySelector('.note').textContent")
    start = shown.run("hlofront.graph.focus")
    far = shown.run("+document.querySelector('.more').closest('.node').dataset.op")
    shown.run(f"hlofront.graph.around({far})")
    assert shown.run("hlofront.graph.focus") == far != start


# ---- differences --------------------------------------------------------------------------------


def test_both_sides_stand_beside_each_other(look):
    text = text_of("gpt_block.hlo")
    other = text.replace(" exponential(", " tanh(", 1).replace("HloModule", "HloModule ", 1)
    found = diff(text, other)
    shown = look(found.html())
    assert [c["text"] for c in shown.run("page.diffs[0].changes")] == [
        change.sentence for change in found.changes
    ]
    changed = shown.run("""[...document.querySelectorAll('.pair-row.changed')].map((row) =>
      [...row.querySelectorAll('.cell')].map((cell) => [cell.querySelector('.name').textContent,
        [...cell.querySelectorAll('mark')].map((mark) => mark.textContent)]))""")
    # It is inside of a fusion, which is open from the start.
    assert [[marks for _, marks in row] for row in changed] == [[["exponential"], ["tanh"]]]
    assert count(shown, ".pair-row.added, .pair-row.removed") == 0
    # Every row has the two that stand for each other.
    rows = shown.run("""page.diffs[0].sections.flatMap(({a, b}) => a.map((n, row) =>
      [page.diffs[0].a.names[n], page.diffs[0].b.names[b[row]]]))""")
    assert all(first == second for first, second in rows) and len(rows) > 200
    # What is unchanged is folded, and unfolds.
    folds = count(shown, ".fold-row")
    total = shown.run("hlofront.view.rows.length")
    assert folds >= 2 and total < 40
    shown.click(".fold-row")
    assert count(shown, ".fold-row") == folds - 1
    assert shown.run("hlofront.view.rows.length") > total
    # The list of changes leads to the rows; the details have both texts.
    shown.click(".change-list li")
    assert count(shown, ".pair-row.pinned.told") == 1
    details = shown.run("document.querySelector('.details').textContent")
    assert "exponential(" in details and "tanh(" in details and "model.py:6" in details
    shown.press("Escape")
    shown.press("n")
    assert count(shown, ".pair-row.pinned.changed") == 1


def test_a_diff_is_searched_by_figures_and_says_which_it_lacks(look, stages):
    before = parse(text_of("split_before.hlo"))
    largest = max(costs(before).instructions, key=lambda row: row.bytes)

    def hits(shown, query):
        shown.run(f"hlofront.view.input.value = '{query}'; hlofront.view.search()")
        return shown.run("document.querySelector('.search .count').textContent")

    shown = look(diff(before, text_of("split_after.hlo")).html())
    assert hits(shown, f"bytes>={largest.bytes}").split()[0] != "0"
    assert hits(shown, "bytes>1e15") == "0 hits"
    assert hits(shown, "seconds>0") == "this page has no seconds"
    text = stages["stablehlo"].as_text()
    shown = look(diff(text, text.replace("tanh", "sine")).html())
    assert hits(shown, "flops>1") == "this page has no flops"
    assert hits(shown, "op:sine").split()[0] != "0"


def test_a_change_of_any_kind_is_shown_whole(look):
    """The kind of a change is not the class of another part of the page, such as `operations`."""
    before, after = text_of("layer.hlo"), text_of("layer.hlo").replace("tanh(", "cosine(")
    changed = diff(before, after)
    kinds = ("operations", "argument", "result", "module", "rows", "memory", "search", "top")
    changed.changes = [changed.changes[0]._replace(kind=kind) for kind in kinds]
    shown = look(changed.html())
    assert count(shown, ".change-list li") == len(kinds)
    heights = "[...document.querySelectorAll('.change-list li')].map((item) => item.offsetHeight)"
    assert min(shown.run(heights)) > 20


def test_what_is_folded_into_a_change_unfolds(look):
    found = diff(text_of("layer.v0.6.2.hlo"), text_of("layer.hlo"))
    shown = look(found.html())
    parts = sum(len(change.parts) for change in found.changes)
    seen = ".change-list li:not([hidden])"
    assert parts > 1 and count(shown, seen) == len(found.changes)
    number = next(n for n, change in enumerate(found.changes) if change.parts)
    heading = f".change-list li:nth-child({number + 1})"
    shown.click(heading)
    assert count(shown, seen) == len(found.changes) + parts
    assert count(shown, ".pair-row.pinned") == 1
    shown.click(heading)
    assert count(shown, seen) == len(found.changes)


def test_a_fusion_that_was_split_stands_beside_its_parts(look):
    shown = look(diff(text_of("split_before.hlo"), text_of("split_after.hlo")).html(), dark=True)
    rows = shown.run("""[...document.querySelectorAll('.pair-row.regrouped')].map((row) =>
      [...row.querySelectorAll('.cell')].map((cell) =>
        cell.querySelector('.name')?.textContent ?? ''))""")
    assert rows == [["fusion.3", "fusion.5"], ["", "fusion.6"]]
    totals = shown.run("document.querySelector('.totals').textContent")
    assert "fusions" in totals and "bytes" in totals


def test_stablehlo_side_by_side(look):
    text = text_of("gpt_block.mlir")
    other = text.replace("stablehlo.exponential", "stablehlo.tanh", 1)
    shown = look(diff(text, other).html())
    rows = shown.run("""[...document.querySelectorAll('.pair-row.changed')].map((row) =>
      [...row.querySelectorAll('mark')].map((mark) => mark.textContent))""")
    assert rows == [["exponential", "tanh"]]
    assert shown.run("document.querySelector('.kind').textContent") == "StableHLO"


def test_texts_that_are_no_programs_stand_line_by_line(look):
    # What it returns is defined nowhere.
    text = text_of("gpt_block.mlir").replace("    return %", "    return %no", 1)
    other = text.replace("stablehlo.exponential", "stablehlo.tanh", 1)
    other = other.replace("stablehlo.rsqrt", "stablehlo.negate", 1)
    shown = look(diff(text, other).html())
    rows = shown.run("""[...document.querySelectorAll('.pair-row.changed')].map((row) =>
      [...row.querySelectorAll('mark')].map((mark) => mark.textContent))""")
    assert rows == [
        ["stablehlo.rsqrt", "stablehlo.negate"],
        ["stablehlo.exponential", "stablehlo.tanh"],
    ]
    assert count(shown, ".fold-row") == 3
    same = look(diff(text, text).html())
    assert "Nothing differs" in same.run("document.body.textContent")
    assert count(same, ".pair-row.same") > 20 and count(same, ".text") > 40


def test_jaxprs_beside_each_other(look):
    text = text_of("scan_grad.jaxpr")
    shown = look(diff(text, text.replace("= tanh", "= sin", 1)).html())
    assert count(shown, ".pair-row.changed, .pair-row.removed") == 1


def test_a_comparison_is_a_table_and_diffs_to_choose_from(look):
    def column(label, hlo):
        return Column(label, hlo, 100.0, 200.0, *[8] * 4, 0.5, None)

    text = text_of("layer.hlo")
    other = text.replace(" exponential(", " tanh(", 1)
    columns = [column("one", text), column("two", other), column("three", text)]
    shown = look(Comparison("f", columns).html())
    heads = shown.run(
        "[...document.querySelectorAll('.figures thead th')].map((e) => e.textContent)"
    )
    assert heads == ["", "one", "two", "three"]
    assert count(shown, ".pair-row.changed") == 1
    shown.click('[aria-label=which] [data-key="1"]')
    assert count(shown, ".pair-row.changed") == 0
    assert "Nothing differs" in shown.run("document.body.textContent")


def test_a_comparison_names_the_passes_that_take_longer(look):
    def column(label, hlo, seconds):
        passes = (PassTime("fusion", "HLO", 1, seconds), PassTime("cse", "HLO", 1, 1.0))
        return Column(label, hlo, *[None] * 8, passes=passes)

    text = text_of("layer.hlo")
    columns = [column("one", text, 0.1), column("two", text, 0.9), column("three", text, 0.1)]
    shown = look(Comparison("f", columns).html())
    assert shown.run("document.querySelector('.figures').innerText").endswith(
        "two: passes of XLA that take longer than in one\nfusion (HLO): 100.00 ms -> 900.00 ms"
    )


# ---- without a browser --------------------------------------------------------------------------


def test_a_comparison_has_the_page_of_each_program(look, stages):
    def column(label, hlo):
        return Column(label, hlo, *[None] * 8)

    texts = text_of("layer.hlo"), text_of("linalg.hlo")
    comparison = Comparison("f", [column(*each) for each in zip("ab", texts, strict=True)])
    shown = look(comparison.html())
    names = shown.run(
        "[...document.querySelectorAll('.choice[aria-label=which] button')]"
        ".map((button) => button.textContent)"
    )
    assert names == ["a → b", "a", "b"]
    for number, text in enumerate(texts, 1):
        shown.click(f'.choice[aria-label="which"] [data-key="{number}"]')
        assert count(shown, ".one-program") == 1 and count(shown, ".diff") == 0
        assert count(shown, ".one-program .row") > 3
        shown.click('.one-program [data-key="graph"]')
        assert count(shown, ".one-program .node") > 2
        assert shown.run("document.querySelector('.one-program .row .name').textContent") in text
    # Keys are those of the program that is shown.
    shown.press("/")
    shown.type("dot")
    shown.click('.choice[aria-label="which"] [data-key="0"]')
    assert count(shown, ".diff") == 1
    assert shown.run("document.querySelector('.diff input[type=search]').value") == ""


def test_regions_are_computations_of_their_operation():
    data = hlo_data(read_stablehlo(text_of("scan_grad.mlir")), Files(), "stablehlo")
    assert [c["name"] for c in data.computations] == [
        "main",
        "%3.condition",
        "%3.body",
        "%10.condition",
        "%10.body",
    ]
    loop = data.names.index("%3")
    assert data.called[loop] == [("condition", 1), ("body", 2)]
    body = data.computations[2]
    assert data.names[body["first"]] == "%iterArg"
    dot = next(n for n in range(body["first"], body["end"]) if data.names[n] == "%13")
    used = [data.names[n] for n in data.operands[dot]]
    assert used == ["%iterArg_2", "%arg1"]
    assert data.extra[dot].startswith("contracting_dims=[0] x [0]")
    branches = hlo_data(read_stablehlo(text_of("conditional.mlir")), Files(), "stablehlo")
    assert [len(calls) for calls in branches.called.values()] == [3]


def test_jaxprs_keep_their_literals_in_place(stages):
    data = jaxpr_data(stages["jaxpr"].jaxpr, Files())
    mixed = [parts for parts in data.mixed.values() if any(isinstance(p, int) for p in parts)]
    assert mixed and all(any(isinstance(p, str) for p in parts) for parts in mixed)


@pytest.mark.parametrize("suffix", [".hlo", ".mlir", ".jaxpr"])
def test_every_text_has_a_page(suffix):
    paths = sorted(TEXTS.glob(f"*{suffix}"))
    assert paths
    for path in paths:
        shown = json.loads(re.search(r'id="data">(.*)</script>', page(path))[1])["program"]
        count = len(shown["names"])
        assert count == shown["computations"][-1]["end"] > 1
        assert all(0 <= n < count for operands in shown["operands"] for n in operands)


def test_what_can_be_shown(tmp_path):
    file = tmp_path / "layer.hlo"
    file.write_text(text_of("layer.hlo"))
    of_file = page(file)
    assert (
        of_file
        == page(text_of("layer.hlo"))
        == page(str(file))
        == page(parse(text_of("layer.hlo")))
    )
    with pytest.raises(TypeError, match="got int"):
        page(3)
    with pytest.raises(ValueError, match="begins with HloModule"):
        page("nothing\nat all")


def test_pages_at_the_shell(stages, tmp_path, capsys, monkeypatch):
    function = f"{stages['file']}:step"
    for command, extra, kind in (
        ("show", ["--stage", "jaxpr"], "jaxpr"),
        ("show", ["--stage", "stablehlo"], "stablehlo"),
        ("show", [], "hlo"),
        ("cost", [], "hlo"),
    ):
        path = tmp_path / f"{command}-{kind}.html"
        assert main([command, function, *extra, "--html", str(path)], io.StringIO()) == 0
        assert f'"kind":"{kind}"' in path.read_text() and "layers.py" in path.read_text()
        assert str(path) in capsys.readouterr().err
    out = str(tmp_path / "no.html")
    assert main(["show", function, "--stage", "cost", "--html", out], io.StringIO()) == 2
    assert main(["show", function, "--target", "cpu", "--target", "cpu", "--html", out]) == 2
    assert "one program" in capsys.readouterr().err and not os.path.exists(out)


@pytest.mark.long
def test_the_wheel_holds_scripts_and_styles():
    root = pathlib.Path(__file__).parents[2]
    globs = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-data"
    ]
    for name in (*STYLES, *SCRIPTS):
        path = root / "hlotools" / "html" / "assets" / name
        assert any(fnmatch.fnmatch(f"html/assets/{name}", glob) for glob in globs["hlotools"])
        text = path.read_text()
        assert text.count("\n") < 600 and "</script" not in text
