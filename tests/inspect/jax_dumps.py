"""Reads dumps of jax's programs by every reader of texts, and prints those that one cannot read.

    HLOFRONT_ORACLE_PYTHON=PYTHON python -m tests.inspect.jax_dumps FOLDER [FILES]

The programs are those of jax_models.py, which jax lowers in its own process: XLA's and libtpu's
dumps for CPU, v5e and H100, each pass included. They are written to FOLDER if it is empty. All of
them, or FILES of them that are evenly chosen, are read, and each folder of dumps as such. The exit
status is 1 if a reader fails.
"""

import io
import os
import pathlib
import subprocess
import sys
import time
from collections import Counter
from functools import partial

from hlofront.cli.main import main as command
from hlofront.inspect import canonical, collectives, costs, diff, memory_use, page, parse, styled
from hlofront.inspect.dumps import dump_text
from hlofront.pjrt.targets import target as find_target

MODELS = pathlib.Path(__file__).with_name("jax_models.py")
TARGETS = {"tpu": "tpu:v5e:1x1", "cuda": "cuda:h100"}


def make(folder, count=None, platforms=("tpu", "cuda")):
    """Fill FOLDER/cpu, and for each platform FOLDER/PLATFORM/MODEL, with dumps of jax's models."""
    programs = folder / "programs"
    programs.mkdir()
    flags = f"--xla_dump_to={folder / 'cpu'} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    python = [os.environ["HLOFRONT_ORACLE_PYTHON"], str(MODELS), str(programs)]
    limit = [] if count is None else [str(count)]
    subprocess.run([*python, *limit], env=environment, check=True)
    for platform in platforms:
        for path in sorted((programs / platform).iterdir()):
            dumps = folder / platform / path.stem
            dump_text(path.read_text(), find_target(TARGETS[platform]), dumps)


READERS = {
    "parse": lambda text, path, device: parse(text),
    "styles": lambda text, path, device: [styled(text, style) for style in ("source", "short")],
    "canonical": lambda text, path, device: canonical(text),
    "cost": lambda text, path, device: costs(text, device).text(),
    "memory": lambda text, path, device: memory_use(text).text(),
    "collectives": lambda text, path, device: collectives(text),
    "diff": lambda text, path, device: differs(diff(text, text)),
    "page": lambda text, path, device: page(text, device),
    "show": lambda text, path, device: said(["show", str(path)]),
}
# What reads a text, by its kind; texts without a program have what `show` says of them.
READERS_OF = {
    "hlo": READERS,
    "stablehlo": {name: READERS[name] for name in ("styles", "diff", "page", "show")},
    None: {"show": READERS["show"]},
}


def differs(found):
    if not found.equal:
        raise AssertionError(f"a text differs from itself: {found.changes[:1]}")


def said(arguments):
    """Run a command, which must show the file or refuse it with a reason."""
    status = command(arguments, io.StringIO())
    if status not in (0, 2):
        raise AssertionError(f"status {status}")


def kind(text):
    """Return "hlo" or "stablehlo", None for a text without a program."""
    start = text.lstrip()
    return "hlo" if start.startswith("HloModule ") else "stablehlo" if "module @" in start else None


def read(path, device):
    """Return the failures of all readers of a file, as (reader, error), and its kind."""
    text = path.read_text(encoding="utf-8", errors="replace")
    of_kind = kind(text)
    readers = {
        name: partial(reader, text, path, device) for name, reader in READERS_OF[of_kind].items()
    }
    return failures_of(readers), of_kind


def read_folder(folder, device, page):
    """Return the failures of what reads a folder of dumps, and writes a page to a path."""
    with_target = ["--kernels", *(["--target", device] if device else [])]
    asked = {"contents": [], "passes": ["--passes"], "kernels": with_target}
    if device:
        asked |= {"lines": [*with_target, "--by-line"], "page": [*with_target, "--html", str(page)]}
    return failures_of(
        {name: partial(said, ["show", str(folder), *options]) for name, options in asked.items()}
    )


def failures_of(readers):
    failures = []
    for name, reader in readers.items():
        try:
            reader()
        except Exception as error:
            failures.append((name, f"{type(error).__name__}: {str(error)[:200]}"))
    return failures


def device_of(path, folder):
    return TARGETS.get(path.relative_to(folder).parts[0])


def chosen(folder, most=None):
    """Return this many files of the dumps, evenly chosen by their names; all for None."""
    files = sorted(path for path in folder.glob("[cpt]*/**/*") if path.is_file())
    if most is None or most >= len(files):
        return files
    return [files[n * len(files) // most] for n in range(most)]


def main(folder, most=None):
    folder.mkdir(exist_ok=True)
    if not any(folder.iterdir()):
        make(folder)
    started = time.monotonic()
    failed = []
    folders = [folder / "cpu", *(folder / "tpu").iterdir(), *(folder / "cuda").iterdir()]
    for each in folders:
        found = read_folder(each, device_of(each, folder), folder / "page.html")
        failed += [(each, *failure) for failure in found]
    kinds = Counter()
    for path in chosen(folder, most):
        found, of_kind = read(path, device_of(path, folder))
        kinds[path.relative_to(folder).parts[0], of_kind or "other text"] += 1
        failed += [(path, *failure) for failure in found]
    for path, reader, error in failed:
        print(f"{path.relative_to(folder)}: {reader}: {error}")
    for (where, of_kind), count in sorted(kinds.items()):
        print(f"{where}: {count} files of {of_kind}")
    print(f"{len(folders)} folders, {sum(kinds.values())} files, {len(failed)} failures")
    print(f"{time.monotonic() - started:.0f} s")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
