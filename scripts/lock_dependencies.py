"""Write what CI installs: exact versions with hashes, and a bill of materials.

    python scripts/lock_dependencies.py lock > .ci/locked-3.11.txt
    python scripts/lock_dependencies.py sbom > sbom.json

`lock` asks pip what it would install for `.[dev]` with the oldest supported jaxlib under this
Python and on this kind of machine, and prints each version with the SHA-256 of its file, for
`pip install --require-hashes`. `sbom` prints the installed distributions that hlofront needs as
CycloneDX 1.6, with the hashes of the locked ones.
"""

import json
import pathlib
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from importlib import metadata

ROOT = pathlib.Path(__file__).parents[1]
OWN = "hlofront"
# `setuptools` builds hlofront itself, in the same environment.
WANTED = (f"{ROOT}[dev]", "jaxlib==0.10.2", "setuptools>=77")
LOCKED = ROOT / ".ci" / f"locked-{sys.version_info[0]}.{sys.version_info[1]}.txt"


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def lock() -> str:
    """Return the requirements that pip chooses, with hashes."""
    options = ("install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-")
    command = [sys.executable, "-m", "pip", *options, *WANTED]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lines = []
    for item in report["install"]:
        name, version = normalized(item["metadata"]["name"]), item["metadata"]["version"]
        if name != OWN:
            digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={version} --hash=sha256:{digest}\n")
    head = "# Written by scripts/lock_dependencies.py, for Linux on x86-64.\n"
    return head + "".join(sorted(lines))


def locked(text: str) -> dict[str, tuple[str, str]]:
    """Return the versions and SHA-256s of a file that `lock` wrote, by name."""
    rows = re.findall(r"^(\S+)==(\S+) --hash=sha256:(\w{64})$", text, re.MULTILINE)
    return {name: (version, digest) for name, version, digest in rows}


def needed() -> Iterator[metadata.Distribution]:
    """Yield the installed distributions that hlofront needs, and those that they need."""
    seen: set[str] = set()
    waiting = [OWN]
    while waiting:
        name = normalized(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if name != OWN:
            yield distribution
        for requirement in distribution.requires or ():
            if "extra ==" not in requirement:
                waiting.append(re.match(r"[\w.-]+", requirement)[0])


def sbom(digests: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    """Return the bill of materials as a CycloneDX document."""
    components = []
    for distribution in sorted(needed(), key=lambda each: normalized(each.metadata["Name"])):
        name, version = normalized(distribution.metadata["Name"]), distribution.version
        component: dict[str, object] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
        }
        license = distribution.metadata.get("License-Expression")
        if license:
            component["licenses"] = [{"expression": license}]
        known, digest = digests.get(name, ("", ""))
        if known == version:
            component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        components.append(component)
    version = metadata.version(OWN)
    top = {"type": "library", "name": OWN, "version": version, "purl": f"pkg:pypi/{OWN}@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"component": top},
        "components": components,
    }


def main() -> None:
    if sys.argv[1:] == ["lock"]:
        print(lock(), end="")
    elif sys.argv[1:] == ["sbom"]:
        text = LOCKED.read_text() if LOCKED.exists() else ""
        print(json.dumps(sbom(locked(text)), indent=1))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
