"""Reports and pages as notebooks show them: small HTML fragments, and texts."""

import html
import json
import pickle

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import inspect


def step(x, w):
    return jnp.tanh(x @ w).sum() / (x - x).sum()


ARGUMENTS = (np.ones((8, 16), np.float32), np.ones((16, 4), np.float32))


@pytest.fixture(scope="module")
def reports():
    compiled = jax.jit(step).lower(*ARGUMENTS).compile()
    return {
        "costs": inspect.costs(compiled),
        "memory": inspect.memory_use(compiled),
        "profile": inspect.profile(step, runs=1, warm_ups=1)(*ARGUMENTS),
        "error": inspect.find_error(step)(*ARGUMENTS),
        "nan": inspect.find_nan(step)(*ARGUMENTS),
    }


@pytest.mark.parametrize("kind", ["costs", "memory", "profile", "error", "nan"])
def test_reports_are_small_fragments_with_all_that_their_text_says(reports, kind):
    shown = reports[kind]._repr_html_()
    assert len(shown) < 8_000 and "<script" not in shown and "<style" not in shown
    assert shown.startswith("<b>") and shown.count("<table>") == (kind in ("costs", "profile"))
    for word in repr(reports[kind]).split():
        assert html.escape(word) in shown


def test_names_in_reports_are_text():
    hlo = jax.jit(lambda x: x * 2).lower(1.0).compile().as_text()
    hostile = hlo.replace("test_notebook_reports.py", "<img src=x>.py")
    for report in (inspect.costs(hostile), inspect.memory_use(hostile)):
        assert "<img" in repr(report) and "<img" not in report._repr_html_()


def test_a_page_is_text_and_a_notebook_shows_it_in_a_frame(reports, tmp_path):
    lowered = jax.jit(step).lower(*ARGUMENTS)
    page = inspect.page(lowered)
    assert isinstance(page, str) and page.startswith("<!doctype html>") and len(page) > 100_000
    assert json.loads(json.dumps(page)) == page == pickle.loads(pickle.dumps(page))
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    for shown in (page, reports["profile"].page(), inspect.diff(lowered, lowered).html()):
        frame = shown._repr_html_()
        assert frame.startswith("<iframe") and len(frame) < len(shown) / 2
        assert len(repr(shown)) < 100


def test_an_output_of_a_notebook_is_less_than_half_of_its_page():
    lowered = jax.jit(step).lower(*ARGUMENTS)
    for stage in (lowered, lowered.compile(), jax.make_jaxpr(step)(*ARGUMENTS)):
        assert len(stage._repr_html_()) < len(inspect.page(stage)) / 2
