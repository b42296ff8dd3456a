"""What a release has: its section of the changelog, a page for PyPI, and forms for reports."""

import importlib.util
import re
import subprocess

import pytest

from hlofront.base.version import __version__
from tests.conventions.source import ROOT


def test_the_changelog_begins_with_this_version():
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    released = [section for section in sections if section != "Unreleased"]
    assert re.fullmatch(rf"{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)", released[0])
    versions = [tuple(map(int, section.split(" ")[0].split("."))) for section in released]
    assert versions == sorted(versions, reverse=True)


def test_links_of_the_page_on_pypi_lead_to_the_web():
    pytest.importorskip("setuptools")
    spec = importlib.util.spec_from_file_location("setup_of_hlofront", ROOT / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    text = setup.readme()
    links = re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", re.sub(r"(?s)```.*?```", "", text))
    assert len(links) > 5
    assert not [
        link for pair in links for link in pair if link and not re.match(r"https?:|#", link)
    ]
    assert "/blob/main/ARCHITECTURE.md" in text


def test_the_script_is_valid_and_says_what_it_does():
    script = ROOT / "scripts" / "release.sh"
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text(encoding="utf-8")
    # Publishing is the user's command: the only line that has it is printed.
    assert re.findall(r"^.*twine upload.*$", text, re.M) == [
        '  "TWINE_USERNAME=__token__ python -m twine upload $wheel $sdist"'
    ]
    assert "echo" in text.splitlines()[-2]
