"""The reference of the command line and of the options, from the parsers and tables of hlofront."""

import argparse
import importlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from generate import gallery
from generate.docstrings import inline

ROOT = pathlib.Path(__file__).parents[2]
# A call of each command, whose output the page shows: in a folder with model.py, which has two git
# revisions, with the log of a run, and with a bundle. `tune` needs libtpu, which may be missing.
CALLS = {
    "show": "show model.py:step --stage memory",
    "diff": "diff model.py:step model.py:faster_step",
    "compare": "compare model.py:step --at HEAD~1 --at HEAD --no-run",
    "bisect": "bisect model.py:step --at HEAD~1..HEAD",
    "cost": "cost model.py:step",
    "profile": "profile model.py:step",
    "log": "log run --pages 0",
    "cache": "cache ls",
    "bundle": "bundle ls step.hlob",
    "doctor": "doctor",
    "as-jax": "as-jax train.py",
    "replacements": "replacements",
    "run": "run --processes 2 train.py",
    "completion": "completion bash",
}
_MAX_LINES = 40
_TRAIN = """import hlofront.as_jax
import jax

print(jax.__name__, jax.process_count(), jax.jit(lambda x: x * 2)(1.0))
"""


def commands() -> tuple[dict[str, argparse.ArgumentParser], dict[str, str]]:
    """Return the parsers of the commands, and what each is for."""
    top = importlib.import_module("hlofront.cli.main").parser()
    (found,) = [a for a in top._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found.choices), {each.dest: each.help or "" for each in found._choices_actions}


def outputs() -> dict[str, str]:
    """Run the call of each command; return what they print."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary).resolve()
        environment = {
            **gallery.plain_environment(),
            "PYTHONPATH": str(ROOT),
            "HLOFRONT_CACHE_DIR": str(folder / "cache"),
            "JAX_PLATFORMS": "cpu",
            "COLUMNS": "100",
        }
        text = (ROOT / "examples" / "model.py").read_text(encoding="utf-8")
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
        (folder / "train.py").write_text(_TRAIN, encoding="utf-8")
        for name, source in (
            ("The first version", text.replace("jnp.tanh(image", "jnp.sin(image")),
            ("tanh instead of sin", text),
        ):
            (folder / "model.py").write_text(source, encoding="utf-8")
            for command in (["init", "-q"], ["add", "model.py"], ["commit", "-qm", name]):
                subprocess.run([*git, *command], cwd=folder, check=True)

        def run(arguments: str, **more: str) -> str:
            done = subprocess.run(
                [sys.executable, *shlex.split(arguments)],
                cwd=folder,
                env={**environment, **more},
                capture_output=True,
                text=True,
            )
            if done.returncode > 1 or "Traceback" in done.stderr:
                raise RuntimeError(f"python {arguments}: {done.stderr}")
            shown = done.stdout.replace(f"{folder}/", "").replace(str(folder), ".")
            return shown.replace(str(ROOT), ".").replace(os.path.expanduser("~"), "~")

        run(str(ROOT / "docs" / "gallery" / "run.py"), HLOFRONT_LOG=str(folder / "run"))
        run("-m hlofront bundle model.py:step -o step.hlob")
        with ThreadPoolExecutor(2) as threads:
            found = threads.map(lambda call: run(f"-m hlofront {call}"), CALLS.values())
        return dict(zip(CALLS, found, strict=True))


def _block(language: str, text: str) -> list[str]:
    lines = text.rstrip().split("\n")
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"... and {len(lines) - _MAX_LINES:,} more lines"]
    return ["", f".. code-block:: {language}", "", *(f"   {line}".rstrip() for line in lines), ""]


def commands_page(printed: dict[str, str]) -> str:
    """Return the page of the command line."""
    parsers, summaries = commands()
    lines = ["The command line", "================", "", _COMMANDS]
    lines += _block("text", "\n".join(f"{name:13} {text}" for name, text in summaries.items()))
    os.environ["COLUMNS"] = "100"
    for name, parser in parsers.items():
        lines += ["", f".. _command-{name}:", "", name, "-" * max(len(name), 3), ""]
        lines += [inline(summaries[name][:1].upper() + summaries[name][1:] + "."), ""]
        lines += _block("text", parser.format_help())
        nested = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        for below in nested[0].choices.values() if nested else ():
            lines += _block("text", below.format_help())
        if name in CALLS:
            lines += ["", "For example, this prints:", ""]
            lines += _block("console", f"$ python -m hlofront {CALLS[name]}")
            lines += _block("text", printed[name] or "(nothing)")
    return "\n".join(lines) + "\n"


_COMMANDS = """
``python -m hlofront`` and the script ``hlofront`` are the same. ``FILE:FUNCTION`` is a Python file
and a function in it, whose arguments are what ``example_args`` in that file is or returns, or what
``--args`` describes. The exit status is 0, or 1 where programs differ or a limit is exceeded, or 2
for an error. The outputs below are those of this version, for ``examples/model.py``.
"""


def options_page() -> str:
    """Return the page of the options and their environment variables."""
    table = importlib.import_module("hlofront.base.option").options
    importlib.import_module("hlofront.base.config")
    lines = ["Options and environment variables", "=================================", "", _OPTIONS]
    groups: dict[str, list[tuple[str, Any]]] = {"hlofront": [], "jax": []}
    without_effect = []
    for name in sorted(table):
        option = table[name]
        doc = " ".join((getattr(option, "doc", "") or "").split())
        if not doc or "no effect" in doc:
            without_effect.append(name)
        else:
            groups["hlofront" if name.startswith("hlofront") else "jax"].append((name, option))
    for title, key in (("hlofront's own", "hlofront"), ("JAX's", "jax")):
        lines += ["", title, "-" * len(title), ""]
        for name, option in groups[key]:
            lines += ["", f".. py:data:: {name}", f"   :value: {option.default!r}", ""]
            doc = " ".join(option.doc.split())
            variable = name.upper()
            lines += [f"   It {inline(doc)}. Environment variable: ``{variable}``.", ""]
    if without_effect:
        title = "Without effect"
        names = ", ".join(f"``{name}``" for name in without_effect)
        text = "These of JAX are accepted, so that programs that set them run:"
        lines += ["", title, "-" * len(title), "", f"{text} {names}.", ""]
    return "\n".join(lines) + "\n"


_OPTIONS = """
An option is set by its environment variable when the process starts, by
``jax.config.update(name, value)``, or for a block by its context manager where it has one, as in
``with jax.enable_x64(True):``. ``jax.config.values`` has all of them, with their values. An unknown
variable that begins with ``HLOFRONT_`` is told, with the nearest name that exists.
"""


def printed(
    cache: pathlib.Path, digest: str, write: Callable[[pathlib.Path, str], None]
) -> dict[str, str]:
    """Return what commands print; they run again only if what they depend on has changed."""
    kept = json.loads(cache.read_text(encoding="utf-8")) if cache.exists() else {}
    if kept.get("digest") != digest:
        kept = {"digest": digest, "outputs": outputs()}
        write(cache, json.dumps(kept))
    return kept["outputs"]


def write_all(
    folder: pathlib.Path, printed: dict[str, str], write: Callable[[pathlib.Path, str], None]
) -> None:
    """Write the pages of the command line and of the options."""
    write(folder / "command_line.rst", commands_page(printed))
    write(folder / "options.rst", options_page())
