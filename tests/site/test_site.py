"""The documentation's site is built without warnings, and each of its pages works in a browser.

`./check docs` runs these tests; they need the extra `docs`.
"""

import html.parser
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

import pytest

from tests.inspect import chromium

ROOT = pathlib.Path(__file__).parents[2]
NEEDED = ("sphinx", "furo", "myst_nb", "sphinx_copybutton", "sphinx_design")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
PHONE, DESKTOP = (390, 844), (1280, 900)

pytestmark = pytest.mark.skipif(bool(MISSING), reason="the site needs pip install -e '.[docs]'")


class Built:
    """The site in a folder, with what Sphinx said."""

    def __init__(self, folder):
        self.folder = folder
        began = time.monotonic()
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
        command += ["-j", "auto", str(ROOT / "docs"), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        self.seconds = time.monotonic() - began
        self.status, self.warnings = done.returncode, done.stderr.strip()
        # The page that a server shows for unknown addresses takes styles from the site's address.
        missing = folder / "404.html"
        text = missing.read_text(encoding="utf-8") if missing.exists() else ""
        here = folder / "not_found.html"
        here.write_text(re.sub("<base [^>]*>", "", text), encoding="utf-8")
        # Pages of the tool are shown in frames of the site's pages, and tested by tests/inspect.
        self.pages = sorted(
            path
            for path in folder.rglob("*.html")
            if path != missing and path.relative_to(folder).parts[:2] != ("gallery", "pages")
        )


@pytest.fixture(scope="module")
def site():
    return Built(ROOT / "docs" / "_build" / "html")


class References(html.parser.HTMLParser):
    """The addresses that a page refers to, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.addresses += [values[name] for name in ("href", "src") if values.get(name)]
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}


def test_it_is_built_without_warnings(site):
    print(f"{len(site.pages)} pages in {site.seconds:.0f} s")
    assert site.status == 0 and not site.warnings, site.warnings
    assert len(site.pages) > 100


def test_internal_links_lead_somewhere(site):
    read = {
        path: References(path.read_text(encoding="utf-8")) for path in site.folder.rglob("*.html")
    }
    broken = []
    for path, references in read.items():
        for address in references.addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve()
            target = target if parts.path else path
            if not target.exists():
                broken.append(f"{path.relative_to(site.folder)}: {address}")
            elif parts.fragment and target in read and target.parent.name != "pages":
                anchor = urllib.parse.unquote(parts.fragment)
                if anchor not in read[target].anchors:
                    broken.append(f"{path.relative_to(site.folder)}: {address}")
    assert not broken, "\n".join(broken)


# ---- in a browser ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    path = chromium.find()
    if path is None:
        pytest.skip("there is no Chromium here: apt-get install chromium-headless-shell")
    with chromium.Chromium(path, tmp_path_factory.mktemp("profile")) as running:
        yield running


def shown_as(page, size, dark):
    """Give the window another size and color scheme."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.call("Emulation.setEmulatedMedia", features=[scheme])
    options = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    page.call("Emulation.setDeviceMetricsOverride", **options)


# The words of the page's own part, how much wider it is than its window, and by which elements.
LOOK = """(() => {
    const top = document.documentElement, most = top.clientWidth;
    const wide = top.scrollWidth <= most ? [] : [...document.querySelectorAll('article *')]
        .filter((each) => each.getBoundingClientRect().right > most + 1)
        .map((each) => each.tagName + '.' + each.className + ' ' + each.textContent.slice(0, 40));
    const part = document.querySelector('article, [role=main]');
    return {words: part ? part.innerText.split(/\\s+/).length : 0,
            over: top.scrollWidth - most, wide: wide.slice(0, 3)};
})()"""


def errors_of(page):
    """What scripts threw or logged, and requests to elsewhere."""
    return [
        problem
        for problem in page.problems
        if not problem.startswith("request: file:") and not problem.startswith("request: data:")
    ]


def test_no_page_is_empty_too_wide_or_broken(site, browser):
    wrong = []
    for path in site.pages:
        shown = path.relative_to(site.folder)
        page = browser.page(path.as_uri(), *PHONE, dark=True)
        for size, dark in ((PHONE, True), (DESKTOP, False)):
            shown_as(page, size, dark)
            seen = page.run(LOOK)
            # Search has results after a query only, and an index may have few entries.
            if seen["words"] < 10 and path.name not in ("search.html", "genindex.html"):
                wrong.append(f"{shown}: only {seen['words']} words")
            if seen["over"] > 0:
                wrong.append(f"{shown}, {size[0]} px: {seen['over']} too wide: {seen['wide']}")
        wrong += [f"{shown}: {problem}" for problem in errors_of(page)]
        page.close()
        browser.events.clear()
    assert not wrong, "\n".join(wrong)


def test_an_empty_wide_or_broken_page_is_seen(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<article><pre style='width:2000px'>x</pre><script>absent()</script></article>")
    page = browser.page(path.as_uri(), *PHONE)
    seen = page.run(LOOK)
    assert seen["words"] < 10 and seen["over"] > 1000 and seen["wide"]
    assert len(errors_of(page)) == 1
    page.close()


def results_of(browser, site, query):
    """Return the titles that the site's own search finds, best first."""
    address = (site.folder / "search.html").as_uri() + "?q=" + urllib.parse.quote(query)
    page = browser.page(address, *DESKTOP)
    page.until("document.querySelector('#search-results .search-summary')?.innerText"
               ".match(/finished|found|did not/i)", wait=30)  # fmt: skip
    page.until("document.querySelectorAll('#search-results li').length > 0 || "
               "document.querySelector('#search-results').innerText.match(/did not/)")  # fmt: skip
    found = page.run("[...document.querySelectorAll('#search-results li > a')]"
                     ".map((each) => each.innerText)")  # fmt: skip
    page.close()
    return found


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("NamedSharding", "NamedSharding"),
        ("files outlive process", "outlive"),
        ("HLOFRONT_LOG", "log of a run"),
        # Ten of the forty questions, by their words.
        ("why does it recompile", "Find out why it recompiles"),
        ("print a value inside jit", "Print and debug inside jit"),
        ("NaN gradients with where", "Cure NaN gradients"),
        ("several hosts Slurm", "Run on several hosts"),
        ("save and load parameters", "Save and load parameters"),
        ("GPU memory preallocation", "Share and save GPU memory"),
        ("stop gradients freeze parameters", "Stop gradients and freeze parameters"),
        ("random keys split", "Draw random numbers: keys"),
        ("jit a method self", "Jit a method"),
        ("data loading prefetch", "Feed data to the device"),
    ],
)
def test_the_search_finds(browser, site, query, title):
    found = results_of(browser, site, query)
    assert any(title in each for each in found[:10]), json.dumps(found[:10])


@pytest.mark.parametrize(
    "question",
    [
        "Why does it recompile at every call",
        "How do I assign x[0] = 1",
        "Where does the first NaN come from",
        "Which device does my code run on, and how do I place data",
        "How do I debug step by step",
    ],
)
def test_a_question_in_whole_finds_its_answer_before_the_changelog(browser, site, question):
    found = results_of(browser, site, question)
    assert "Forty questions" in found[:4] and "Changes" not in found[:1], json.dumps(found[:10])
