"""A browser for the tests of pages, and a fixture that opens a page in it."""

import pytest

from tests.inspect import chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    path = chromium.find()
    if path is None:
        pytest.skip("there is no Chromium here: apt-get install chromium-headless-shell")
    with chromium.Chromium(path, tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def look(browser, tmp_path):
    """Opens a page's text; at the end it must have asked for nothing and complained of nothing."""
    opened = []

    def open_(text, **options):
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(text, encoding="utf-8")
        shown = browser.page(file.as_uri(), **options)
        opened.append(shown)
        shown.until("document.documentElement.dataset.drawn !== undefined")
        return shown

    yield open_
    for shown in opened:
        assert shown.problems == []
        shown.close()
