"""The pages of the gallery, which hlofront draws: python -m generate.gallery FOLDER, in docs/."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
# What the pages are made by and of.
_SOURCES = ("hlofront", "hlotools", "examples", "docs/generate", "docs/gallery")


class Drawn(NamedTuple):
    """A page of the gallery.

    Attributes:
      name: of its file.
      arguments: what follows `python -m hlofront`, and `{out}` for the file; it is what the page
        of the gallery tells the reader to type.
      devices: how many CPU devices the program is for.
      before: a program that runs first, which writes a log.
    """

    name: str
    arguments: str
    devices: int = 1
    before: str = ""


PAGES = (
    Drawn("step", "show examples/model.py:step --html {out}"),
    Drawn("diff", "diff examples/model.py:step examples/model.py:faster_step --html {out}"),
    Drawn("sharded", "show docs/gallery/eight_devices.py:step --html {out}", devices=8),
    Drawn("memory", "show examples/gpt.py:step --html {out}"),
    Drawn("profile", "profile examples/model.py:step --html {out}"),
    Drawn("log", "log run --html {out} --pages 0", before="docs/gallery/run.py"),
)


def digest_of_sources() -> str:
    """Return a digest of the files that the pages depend on."""
    found = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".js", ".css"):
                found.update(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}".encode())
    return found.hexdigest()


def plain_environment() -> dict[str, str]:
    """Return the environment without settings of hlofront and JAX, such as those of the tests."""
    settings = ("HLOFRONT_", "JAX_", "XLA_", "TEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(settings)}


def draw(folder: pathlib.Path, digest: str) -> None:
    """Draw the pages into a folder, unless they are there and nothing that made them changed."""
    stamp = folder / "digest.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        _draw(page, folder / f"{page.name}.html")
    stamp.write_text(digest, encoding="utf-8")


def _draw(page: Drawn, out: pathlib.Path) -> None:
    environment = {
        **plain_environment(),
        "PYTHONPATH": str(ROOT),
        "JAX_NUM_CPU_DEVICES": str(page.devices),
        "JAX_PLATFORMS": "cpu",
        "HLOFRONT_CACHE": "off",
    }
    with tempfile.TemporaryDirectory() as temporary:
        run = pathlib.Path(temporary) / "run"
        arguments = page.arguments.replace("run ", f"{run} ") if page.before else page.arguments
        if page.before:
            log = {**environment, "HLOFRONT_LOG": str(run)}
            subprocess.run([sys.executable, page.before], cwd=ROOT, env=log, check=True)
        command = [part.replace("{out}", str(out)) for part in arguments.split()]
        done = subprocess.run(
            [sys.executable, "-m", "hlofront", *command],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    # 1: the programs differ, as they should.
    if done.returncode > 1:
        raise RuntimeError(f"python -m hlofront {' '.join(command)}: {done.stderr}")
    # The pages are the same wherever the site is built.
    text = out.read_text(encoding="utf-8")
    for path in (str(run), str(ROOT)):
        text = text.replace(f"{path}/", "").replace(path, "run" if path == str(run) else ".")
    # The log links to the texts of its programs, which are not published.
    text = re.sub(r'<a href="[^"]*programs/[^"]*">(.*?)</a>', r"\1", text)
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    draw(pathlib.Path(sys.argv[1]).resolve(), digest_of_sources())
