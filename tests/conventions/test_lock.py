"""CI's lock names what pyproject.toml asks for; the bill of materials has what is installed."""

import json
import re
import subprocess
import sys

from tests.conventions.source import ROOT

SCRIPT = ROOT / "scripts" / "lock_dependencies.py"
LOCK = ROOT / ".ci" / "locked-3.11.txt"


def test_the_lock_has_versions_with_hashes():
    lines = LOCK.read_text().splitlines()[1:]
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert {"numpy", "jaxlib", "pytest", "ruff", "setuptools"} <= {
        line.partition("==")[0] for line in lines
    }
    for name, version in (("ruff", "0.17.5"), ("pyright", "1.1.414"), ("jaxlib", "0.10.2")):
        assert any(line.startswith(f"{name}=={version} ") for line in lines), name


def test_the_bill_of_materials_has_what_hlofront_needs():
    command = [sys.executable, str(SCRIPT), "sbom"]
    made = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert made["bomFormat"] == "CycloneDX" and made["metadata"]["component"]["name"] == "hlofront"
    names = {each["name"] for each in made["components"]}
    assert {"numpy", "jaxlib", "ml-dtypes", "opt-einsum"} <= names and "pytest" not in names
    assert all(each["purl"].startswith("pkg:pypi/") for each in made["components"])
