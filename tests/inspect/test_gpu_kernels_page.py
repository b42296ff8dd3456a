"""The tab of a page with the kernels of a GPU's program, tried in a real browser."""

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.inspect import gpu_kernels, page
from hlofront.inspect.comparison.columns import here
from hlotools.dumps.ptx import CLASSES
from hlotools.html import kernels_tab
from tests.inspect.test_gpu_kernels import HLO, NAME, PTX, folder, ptxas, run
from tests.inspect.test_kernels_page import texts

__all__ = ["folder", "ptxas"]  # Fixtures.

SOURCE = "\n" * 11 + "y = jnp.exp(jnp.exp(x).T)\n"


@pytest.fixture
def dumps(folder, ptxas, tmp_path):
    """The dumps of test_gpu_kernels, and a copy on another line."""
    model = tmp_path / "model.py"
    model.write_text(SOURCE)
    copied = f'copy(%loop_fusion.1), metadata={{source_file="{model}" source_line=3}}'
    hlo = HLO.replace("/home/me/model.py", str(model)).replace("copy(%loop_fusion.1)", copied)
    (folder / f"{NAME}.sm_9.0a_gpu_after_optimizations.txt").write_text(hlo)
    (folder / f"{NAME}.2.ptx").write_text(PTX.replace("loop_fusion_1", "copy_3"))
    return folder


def program_page(dumps):
    report = gpu_kernels(dumps, "cuda:h100")
    return page(report.program, "cuda:h100", kernels=report)


def test_a_row_says_what_limits_a_kernel(look, dumps):
    shown = look(program_page(dumps))
    shown.click('[data-key="kernels"]')
    heads = texts(shown, ".kernel-table thead th")
    row = dict(zip(heads, texts(shown, '[data-kernel="0"] > *'), strict=True))
    assert row["kernel"] == "loop_fusion_1 × 2model.py:12"
    assert (row["limit"], row["grid"], row["threads"], row["registers"]) == (
        "HBM", "2112", "128", "72",
    )  # fmt: skip
    assert (row["spills"], row["occupancy"], row["waves"]) == ("64 B", "44 %", "2.3")
    assert (row["tensor"], row["global"]) == ("1", "3") and list(CLASSES) == heads[11:-1]
    title = "document.querySelector('[data-kernel=\"0\"] td[title^=limited]').title"
    assert shown.run(title) == "limited by registers"
    # No launch of the other kernel was dumped, and ptxas says nothing of it.
    other = dict(zip(heads, texts(shown, '[data-kernel="1"] > *'), strict=True))
    assert (other["grid"], other["registers"], other["occupancy"]) == ("?", "?", "?")


def test_the_chosen_kernel_has_its_instructions_by_class_and_its_ptx(look, dumps):
    shown = look(program_page(dumps))
    shown.click('[data-key="kernels"]')
    assert texts(shown, ".class-chart .dim") == [
        "tensor", "float", "special", "integer", "global", "shared", "sync", "control",
    ]  # fmt: skip
    assert texts(shown, ".class-count") == ["1", "1", "1", "1", "3", "1", "2", "2"]
    lines = texts(shown, ".bundle .instruction")
    assert any("ex2.approx" in line for line in lines)
    assert any("mma.sync" in line for line in texts(shown, ".bundle .matrix"))
    assert texts(shown, ".kernel-note") == ["model.py:12 exponential"]
    shown.click('[data-kernel="1"]')
    assert texts(shown, ".kernel-title b") == ["copy_3"]


def test_a_line_lights_its_kernels_and_shows_the_first(look, dumps):
    shown = look(program_page(dumps))
    shown.click('[data-key="kernels"]')
    shown.click('.line[data-line="0:3"]')
    assert texts(shown, ".kernel-title b") == ["copy_3"]
    strong = "[...document.querySelectorAll('.kernel-table .strong')].map((r) => r.dataset.kernel)"
    assert shown.run(strong) == ["1"]


def test_ptx_is_listed_as_long_as_there_is_room(look, dumps, monkeypatch):
    monkeypatch.setattr(kernels_tab, "_MOST_CHARACTERS", 100)
    shown = look(program_page(dumps))
    shown.click('[data-key="kernels"]')
    assert texts(shown, ".bundle") == []
    assert texts(shown, ".kernel-note")[0].startswith("Its PTX is not listed")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1500, 900])
def test_each_part_fits_into_the_window(look, dumps, width, dark):
    shown = look(program_page(dumps), width=width, dark=dark)
    shown.click('[data-key="kernels"]')
    assert shown.run("""['.page', '.kernels', '.class-chart', '.kernel-title'].every((each) => {
      const {scrollWidth, clientWidth} = document.querySelector(each);
      return scrollWidth <= clientWidth;
    })""")
    heights = "['.kernel-table', '.class-chart', '.bundles'].map((each) => " \
              "document.querySelector(each).clientHeight)"  # fmt: skip
    table, chart, code = shown.run(heights)
    assert table > 60 and chart > 100 and code > 150


def test_the_command_line_writes_the_page(look, dumps, tmp_path):
    path = tmp_path / "step.html"
    assert run("show", dumps, "--kernels", "--target", "cuda:h100", "--html", path)[0] == 0
    assert look(path.read_text()).run("hlofront.kernels.kernels.length") == 2


@pytest.mark.slow
def test_comparisons_and_pages_have_the_kernels_of_absent_gpus(look):
    try:
        assert jax.target("cuda:h100").devices
    except RuntimeError as error:
        pytest.skip(str(error))
    x = jax.ShapeDtypeStruct((256, 128), "float32")
    column = here("gpu", lambda x: jnp.exp(x).sum(0), (x,), "cuda:h100", kernels=True)
    assert column.kernels is not None
    assert all(listing.code and listing.row.registers for listing in column.kernels.kernels)
