"""jax's answers to drawn programs, kept in a folder: a second hunt asks jax nothing."""

import gzip
import json
import pathlib
from typing import Any

from tests.against_jax.answers import digest, digest_of_texts, from_plain, to_plain
from tests.against_jax.fuzz import running


class AnswersOnDisk:
    """A folder with one file per program, in a folder for each state of the generator's sources.

    A file is named by the program's seed and a digest of the program, so that the programs which
    shrinking tries have answers of their own. The sources are those of the generator and of all
    that it imports; the comparer is none of them, and may change.

    Args:
      folder: where the answers are.
    """

    def __init__(self, folder: pathlib.Path):
        self.folder = folder / digest_of_texts(running.__name__)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, program: dict[str, Any]) -> pathlib.Path:
        """Return the file for a program's answer."""
        text = json.dumps(program, sort_keys=True)
        return self.folder / f"{program['seed']}_{digest(text)}.json.gz"

    def split(self, programs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the answers that are kept, by name, and the programs without an answer."""
        kept: dict[str, Any] = {}
        unknown: dict[str, Any] = {}
        for name, program in programs.items():
            path = self.path(program)
            if path.exists():
                kept[name] = from_plain(json.loads(gzip.decompress(path.read_bytes())))
            else:
                unknown[name] = program
        return kept, unknown

    def keep(self, program: dict[str, Any], answer: Any) -> None:
        """Write an answer; the file appears whole or not at all."""
        path = self.path(program)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_bytes(gzip.compress(json.dumps(to_plain(answer)).encode()))
        unfinished.rename(path)
