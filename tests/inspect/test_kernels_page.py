"""The tab of a page with the kernels of a TPU's or GPU's program, tried in a real browser."""

import io

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.cli.main import main
from hlofront.inspect import page, tpu_kernels
from hlofront.inspect.comparison.columns import Column, here
from hlofront.inspect.comparison.compare import Comparison
from hlotools.html import kernels_tab
from tests.inspect.test_tpu_kernels import HLO, PIPELINED, write_dumps

SOURCE = """\
def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x + jnp.exp(x)


def step(x):
    return call(kernel)(jnp.exp(x) * 2)
"""


@pytest.fixture
def folder(tmp_path):
    """Dumps whose second kernel, a copy, is hand-written in a file that can be read."""
    model = tmp_path / "model.py"
    model.write_text(SOURCE)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    write_dumps(dumps)
    hlo = HLO.replace("/home/me/model.py", str(model)).replace("line=12 end_line=12", "line=7")
    # A fusion of two lines: the second is that of the kernel.
    hlo = hlo.replace(
        'exponential(%p.1), metadata={op_name="jit(step)/exp" stack_frame_id=1}',
        f'exponential(%p.1), metadata={{source_file="{model}" source_line=3}}',
    )
    (dumps / "2000-TLP-hlo.txt").write_text(hlo)
    place = f'loc("{model}":{{}}:4 to :9)'
    (dumps / "2002-copy.3-72-final_bundles.txt").write_text(
        f"     0   :  {{ %v1 = vld [vmem:%s1] /* {place.format(2)} */ }}\n"
        f"   0x1   :  {{ %2 = vpow2.f32 %v1 /* {place.format(3)} */"
        f"  ;;  %v3 = vld [vmem:%s2] /* {place.format(2)} */ }}\n"
        "   0x2   :  {}\n"
    )
    return dumps


def program_page(folder):
    report = tpu_kernels(folder, "tpu:v5e:1x1")
    return page(report.program, "tpu:v5e:1x1", kernels=report)


TEXTS = "[...document.querySelectorAll({!r})].map((each) => each.textContent)"


def texts(shown, selector):
    return shown.run(TEXTS.format(selector))


def lit_bundles(shown, kind):
    return shown.run(
        f"[...document.querySelectorAll('.bundle.{kind}')].map((each) => +each.dataset.bundle)"
    )


def test_the_table_has_a_row_for_each_kernel(look, folder):
    shown = look(program_page(folder))
    shown.click('[data-key="kernels"]')
    heads = texts(shown, ".kernel-table thead th")
    assert heads[:6] == ["kernel", "part", "bound", "limit", "bundles", "cycles"]
    fusion, copy = (
        dict(zip(heads, texts(shown, f'[data-kernel="{n}"] > *'), strict=True)) for n in range(2)
    )
    assert fusion["kernel"] == "fusion.1 × 2model.py:7"
    assert (fusion["limit"], fusion["bundles"], fusion["cycles"]) == ("HBM", "21", "150")
    assert (fusion["VALU"], fusion["fills"], fusion["spills"]) == ("90 %", "5", "4")
    assert fusion["VMEM"] == "2.02 MiB"
    # libtpu's profile lacks the other one.
    assert (copy["bundles"], copy["VALU"], copy["fills"]) == ("3", "?", "?")
    assert "libtpu's estimate of 1 of them" in " ".join(texts(shown, ".kernel-table p"))


def test_slots_are_bars_over_the_bundles(look, folder):
    shown = look(program_page(folder))
    shown.click('[data-key="kernels"]')
    lanes = texts(shown, ".lane-names span")
    assert lanes == ["loops", "MXU", "VALU", "EUP", "VPOP", "load", "store", "scalar"]
    assert texts(shown, ".loops span") == ["× 4"]
    # The bars of bundle 9: a third of its loads is fills.
    note = "(hlofront.kernels.tell({}), document.querySelector('.kernel-note').textContent)"
    assert shown.run(note.format(9)) == "bundle 0x9 × 4: MXU 52 %, load 100 %, fills 36 %"
    # A click on the chart shows and pins the bundle there; arrows go to the next one.
    shown.run("hlofront.kernels.open(9)")
    assert shown.run("hlofront.light.pinned.bundle") == 9
    assert "bundle 0x9 of fusion.1" in shown.run("document.querySelector('.details').textContent")
    shown.run("hlofront.kernels.svg.focus()")
    shown.press("ArrowRight")
    assert shown.run("hlofront.light.pinned.bundle") == 10


def test_lines_and_bundles_of_a_hand_written_kernel_light_each_other(look, folder):
    shown = look(program_page(folder))
    shown.click('[data-key="kernels"]')
    assert texts(shown, '.line[data-line="0:2"] .count') == ["▤2"]
    # The line of a bundle of another kernel shows that kernel.
    shown.click('.line[data-line="0:2"]')
    assert texts(shown, ".kernel-title b") == ["copy.3"]
    assert lit_bundles(shown, "strong") == [0, 1]
    shown.click('.bundle[data-bundle="1"] .address')
    lines = "[...document.querySelectorAll('.line.strong')].map((each) => each.dataset.line)"
    assert shown.run(lines) == ["0:2", "0:3"]
    assert lit_bundles(shown, "strong") == [1]
    details = shown.run("document.querySelector('.details').innerText")
    assert "%2 = vpow2.f32 %v1" in details and "from one of" not in details
    shown.press("Escape")
    assert lit_bundles(shown, "strong") == []


def test_all_bundles_of_a_fusion_are_of_each_of_its_lines(look, folder):
    shown = look(program_page(folder))
    shown.click('[data-key="kernels"]')
    # It has one line, so that its bundles are of that one; and of either, once it has two.
    shown.run("hlofront.light.pin({line: lineKey(0, 3)})")
    assert texts(shown, ".kernel-title b") == ["copy.3"]
    shown.run("hlofront.kernels.choose(0)")
    assert len(lit_bundles(shown, "strong")) > 10
    shown.run("hlofront.kernels.kernels[0].keys.set(lineKey(0, 7), {columns: []})")
    shown.run("hlofront.kernels.choose(0)")
    assert lit_bundles(shown, "strong") == [] and len(lit_bundles(shown, "weak")) > 10
    note = shown.run("document.querySelector('.kernel-note').textContent")
    assert note == ("libtpu does not say which bundle of a fusion is for which of its 2 lines.")


def test_of_a_large_kernel_the_bundles_that_run_most_often_are_listed(look, folder, monkeypatch):
    monkeypatch.setattr(kernels_tab, "_MOST_BUNDLES", 18)
    monkeypatch.setattr(kernels_tab, "_COLUMNS", 7)
    shown = look(program_page(folder))
    shown.click('[data-key="kernels"]')
    assert shown.run("hlofront.kernels.list.count") == 18
    assert texts(shown, ".bundle .address")[0] == "0x2"
    note = shown.run("document.querySelector('.kernel-note').textContent")
    assert note == (
        "Bundles 0x2 to 0x13 are listed, those of 21 that run most often: "
        "show … --bundles fusion.1 prints all."
    )
    assert texts(shown, ".listed span") == ["listed below"]
    # The chart is of all bundles, three in each column.
    assert shown.run("hlofront.kernels.kernels[0].width") == 7


def test_a_page_lists_the_bundles_of_as_many_kernels_as_it_has_room_for(look, folder, monkeypatch):
    monkeypatch.setattr(kernels_tab, "_MOST_CHARACTERS", 200)
    shown = look(program_page(folder))
    shown.click('[data-key="kernels"]')
    note = shown.run("document.querySelector('.kernel-note').textContent")
    assert note.startswith("Its 21 bundles are not listed, as those of kernels that take longer")
    shown.run("hlofront.kernels.choose(1)")
    assert shown.run("hlofront.kernels.list.count") == 3


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1500, 900])
def test_nothing_is_wider_than_the_window(look, folder, width, dark):
    shown = look(program_page(folder), width=width, dark=dark)
    shown.click('[data-key="kernels"]')
    shown.run("hlofront.kernels.open(9)")
    assert shown.run("""['.page', '.kernels', '.kernel-chart', '.kernel-title'].every((each) => {
      const {scrollWidth, clientWidth} = document.querySelector(each);
      return scrollWidth <= clientWidth;
    })""")
    # Each part can be seen.
    heights = "['.kernel-table', '.lane-bars svg', '.bundles'].map((each) => " \
              "document.querySelector(each).clientHeight)"  # fmt: skip
    table, chart, bundles = shown.run(heights)
    assert table > 60 and chart > 100 and bundles > 150


def test_programs_without_kernels_have_no_tab(look, folder):
    shown = look(page(tpu_kernels(folder).program))
    assert shown.run("document.querySelectorAll('[data-key=kernels]').length") == 0


def test_a_comparison_has_the_kernels_of_each_program(look, folder):
    report = tpu_kernels(folder, "tpu:v5e:1x1")
    text = (folder / "2000-TLP-hlo.txt").read_text()
    tab = kernels_tab.kernel_tab(report)
    unknown = [None] * 8
    columns = [Column("tpu", text, *unknown, kernels=tab), Column("cpu", text, *unknown)]
    comparison = Comparison("step", columns)
    shown = look(comparison.html())
    shown.click('[aria-label=which] [data-key="1"]')
    shown.click('[data-key="kernels"]')
    assert texts(shown, ".kernel-title b") == ["fusion.1"]
    assert len(texts(shown, ".bundle")) > 10
    shown.click('[aria-label=which] [data-key="2"]')
    assert texts(shown, '[data-key="kernels"]') == []
    assert "bundles" not in comparison.json()


def test_kernels_without_the_use_of_slots_have_no_chart(look, folder):
    (folder / "2001-fusion.1-70-final_hlo-static-per-bundle-utilization.txt").unlink()
    (folder / "2001-fusion.1-72-final_bundles.txt").write_text(PIPELINED)
    shown = look(program_page(folder))
    shown.click('[data-key="kernels"]')
    assert "do not say which slots" in shown.run(
        "document.querySelector('.kernel-chart').textContent"
    )
    shown.click(".bundle .address")


def test_the_command_line_writes_the_page_of_a_folder(look, folder, tmp_path, capsys):
    path = tmp_path / "step.html"
    command = ["show", str(folder), "--kernels", "--target", "tpu:v5e:1x1", "--html", str(path)]
    assert main(command, io.StringIO()) == 0
    shown = look(path.read_text())
    assert shown.run("hlofront.kernels.kernels.length") == 2
    assert main([*command, "--bundles", "fusion.1"], io.StringIO()) == 2
    assert "--html goes with --passes and --kernels" in capsys.readouterr().err


@pytest.mark.slow
def test_pages_of_functions_for_absent_tpus_have_their_kernels(look, tmp_path):
    try:
        assert jax.target("tpu:v5e:1x1").devices
    except RuntimeError as error:
        pytest.skip(str(error))
    from hlofront.cli.program_files import write_page

    def step(x):
        return jnp.exp(x @ x.T).sum(0)

    path = tmp_path / "step.html"
    args = (jax.ShapeDtypeStruct((256, 128), "float32"),)
    write_page(str(path), step, args, "hlo", "tpu:v5e:1x1")
    shown = look(path.read_text())
    shown.click('[data-key="kernels"]')
    column = here("tpu", step, args, "tpu:v5e:1x1", kernels=True)
    assert column.kernels is not None and column.kernels.kernels
    assert shown.run("hlofront.kernels.kernels.every(({op, width}) => op !== null && width > 0)")
    assert "vmatmul" in path.read_text()
