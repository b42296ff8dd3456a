"""The documentation's site: `./check docs` builds it, and tries its pages in a browser."""

import pathlib
import sys
import tomllib

DOCS = pathlib.Path(__file__).parent
ROOT = DOCS.parent
# The generators of pages, and the package that they describe.
sys.path[:0] = [str(DOCS), str(ROOT)]

from generate import pages  # noqa: E402

pages.EXTRA.mkdir(parents=True, exist_ok=True)

_project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_urls = _project["urls"]

project = "hlofront"
author = copyright = "the hlofront authors"
release = version = pages.version()
language = "en"

extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design"]
root_doc = "index"
exclude_patterns = ["_build", "_generated", "generate", "**.ipynb_checkpoints"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext", ".ipynb": "myst-nb"}

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
# Tests run the notebooks; the site shows the outputs that they keep.
nb_execution_mode = "off"
nb_merge_streams = True

maximum_signature_line_length = 88
# Sphinx copies the whole tree of contents for each page, which takes most of the time with them.
toc_object_entries = False

html_theme = "furo"
html_title = "hlofront"
html_baseurl = _urls["Documentation"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = True
html_search_scorer = str(DOCS / "search_scorer.js")
html_show_sphinx = False
html_extra_path = ["_generated/extra"]
html_theme_options = {
    "source_repository": _urls["Source"] + "/",
    "source_branch": "main",
    "source_directory": "docs/",
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b62a8", "color-brand-content": "#0b62a8"},
    "dark_css_variables": {"color-brand-primary": "#6cb6ff", "color-brand-content": "#6cb6ff"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    pages.connect(app, source_url=_urls["Source"])
