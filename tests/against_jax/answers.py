"""What jax answered, kept in the folder `kept_answers/`: so that it is asked only what is new.

An answer is kept under a key, a digest of all that it depends on: jax's version, the text of the
file that asks, and that of each file of the tests which that one imports. So an answer to another
question is never found. `Reference` says who is asked what; see `--ask-jax` in conftest.py.
"""

import ast
import base64
import concurrent.futures
import functools
import hashlib
import json
import lzma
import pathlib
import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.against_jax.oracle import PLACE, ROOT, Oracle, find_interpreter
from tests.numpy import catalogue_runner
from tests.support.cases import Spec
from tests.support.closeness import TOLERANCES, assert_close
from tests.support.outcomes import Raised

JAX = "0.10.2"
MODES = ("new", "some", "keep", "all")
FOLDER = pathlib.Path(__file__).parent / "kept_answers"
# Of what is known, the part that is asked again by `some`: other ones for each commit.
SHARE = 0.03
HOW_TO_KEEP = "pytest tests/against_jax --ask-jax=keep"

# ---- keys ----------------------------------------------------------------------------------------


def digest(*parts: Any) -> str:
    """Of texts and bytes, where each begins and ends included."""
    found = hashlib.sha256(JAX.encode())
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:16]


@functools.cache
def texts(module: str) -> tuple[tuple[str, str], ...]:
    """A module of the tests, by its dotted name, and all those of them that it imports."""
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = ROOT / name.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in found or not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        found[name] = text
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names if alias.name.startswith("tests.")]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(sorted(found.items()))


@functools.cache
def digest_of_texts(*modules: str) -> str:
    return digest(*(part for module in modules for pair in texts(module) for part in pair))


def digest_of_call(module: str, one: Any) -> str:
    """Of a call of the catalogue: of what it says alone, unless a function is part of it."""
    described = fingerprint((one.function, one.operands, one.keywords, one.concrete))
    if described is None:
        return digest(digest_of_texts("tests.numpy.catalogue_runner", module), one.name)
    return digest(digest_of_texts("tests.numpy.catalogue_runner"), one.name, described)


def fingerprint(x: Any) -> str | None:
    """A text that says all of a value; None where it holds something that texts cannot say."""
    if isinstance(x, tuple | list | dict):
        branches = list(x) if not isinstance(x, dict) else [y for pair in x.items() for y in pair]
        inside = [fingerprint(branch) for branch in branches]
        if None in inside:
            return None
        return f"{type(x).__name__}({','.join(map(str, inside))})"
    if isinstance(x, np.ndarray) and x.dtype != object:
        return f"array({x.dtype},{x.shape},{x.tobytes().hex()})"
    if isinstance(x, Spec):
        return f"spec({x!r},{x.low},{x.high})"
    if isinstance(x, type):
        return f"type({x.__module__}.{x.__name__})"
    if x is None or x is Ellipsis or x is catalogue_runner.catalogue.AN_OBJECT:
        return repr(x)
    if isinstance(x, bool | int | float | complex | str | bytes | slice | np.generic | np.dtype):
        return f"{type(x).__name__}({x!r})"
    return None


# ---- answers as text -----------------------------------------------------------------------------


def to_plain(x: Any) -> Any:
    """An answer as JSON has it: what JSON lacks becomes {"its kind": ...}."""
    if x is None or isinstance(x, bool | str) or type(x) is int:
        return x
    if isinstance(x, list):
        return [to_plain(branch) for branch in x]
    if isinstance(x, tuple):
        return {"tuple": [to_plain(branch) for branch in x]}
    if isinstance(x, dict):
        return {"dict": {key: to_plain(value) for key, value in x.items()}}
    if isinstance(x, Raised):
        return {"raised": [x.classes, x.message]}
    if isinstance(x, np.ndarray):
        data = base64.b64encode(x.tobytes()).decode() if not x.dtype.names else ""
        return {"array": [_name_of(x.dtype), list(x.shape), data]}
    if type(x) is float:
        return {"float": repr(x)}
    if type(x) is complex:
        return {"complex": [repr(x.real), repr(x.imag)]}
    if isinstance(x, bytes):
        return {"bytes": x.hex()}
    raise TypeError(f"an answer holds {x!r} of type {type(x).__name__}, which is not plain data")


def from_plain(x: Any) -> Any:
    if isinstance(x, list):
        return [from_plain(branch) for branch in x]
    if not isinstance(x, dict):
        return x
    ((kind, inside),) = x.items()
    return _MADE[kind](inside)


def _name_of(dtype: np.dtype) -> str:
    if dtype.names:
        return "float0"
    return dtype.name if dtype.kind not in "SUMm" else dtype.str


def _array(inside: Any) -> np.ndarray:
    name, shape, data = inside
    if name == "float0":
        return np.zeros(shape, [("float0", "V")])
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)


_MADE: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda inside: tuple(from_plain(inside)),
    "dict": lambda inside: {key: from_plain(value) for key, value in inside.items()},
    "raised": lambda inside: Raised(*inside),
    "array": _array,
    "float": float,
    "complex": lambda inside: complex(*map(float, inside)),
    "bytes": bytes.fromhex,
}


# ---- the folder ----------------------------------------------------------------------------------


class Shelf:
    """The answers to the questions of one file: by their names, each with its key."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.lines: dict[str, tuple[str, Any]] = {}
        if path.exists():
            for line in lzma.decompress(path.read_bytes()).decode().splitlines():
                name, key, answer = json.loads(line)
                self.lines[name] = key, answer

    def knows(self, name: str, key: str) -> bool:
        return name in self.lines and self.lines[name][0] == key

    def answer(self, name: str) -> Any:
        return from_plain(self.lines[name][1])

    def keep(self, name: str, key: str, answer: Any) -> None:
        self.lines[name] = key, to_plain(answer)

    def write(self, names: Collection[str]) -> None:
        """Put the answers of these names on disk, and leave the others out."""
        text = "".join(
            json.dumps([name, *self.lines[name]], ensure_ascii=False, separators=(",", ":")) + "\n"
            for name in sorted(self.lines)
            if name in names
        )
        self.path.parent.mkdir(exist_ok=True)
        # Without a checksum or times: the same answers are the same bytes.
        data = lzma.compress(text.encode(), check=lzma.CHECK_NONE, preset=9 | lzma.PRESET_EXTREME)
        self.path.write_bytes(data)


# ---- who is asked --------------------------------------------------------------------------------


class Reference:
    """Answers jax's part: from the folder, and by a process that runs jax where it must.

    Args:
      mode: "new" asks only what the folder does not know, and keeps nothing; "some" also asks some
        of the others again, and compares; "keep" writes what was new into the folder; "all" asks
        everything anew and writes it.
    """

    def __init__(self, mode: str):
        if mode not in MODES:
            raise pytest.UsageError(f"HLOFRONT_ASK_JAX={mode}: one of {', '.join(MODES)} is wanted")
        self.mode = mode
        self.interpreter = find_interpreter()
        if mode != "new" and self.interpreter is None:
            pytest.exit(f"--ask-jax={mode} needs a Python with jax: {HOW_TO_HAVE_ONE}", 4)
        # Which ones are asked again: the same ones whenever a commit is tried.
        self.seed = _commit() if mode == "some" else ""
        self.asking = concurrent.futures.ThreadPoolExecutor(1)
        self.asked: list[Answers] = []
        self._oracle: Oracle | None = None

    def ask(self, *question: Any) -> Any:
        """Ask the process, which is started by the first question."""
        if self._oracle is None:
            assert self.interpreter is not None
            self._oracle = Oracle(self.interpreter)
            assert self._oracle.ask("version") == JAX
        return self._oracle.ask(*question)

    def answers(
        self,
        kind: str,
        name: str,
        keys: Mapping[str, str],
        wanted: Collection[str] | None = None,
        question: Callable[[str], Any] = str,
    ) -> "Answers":
        """The answers to the questions of a file.

        Args:
          kind: what the worker does with the questions.
          name: of the file.
          keys: the key of each question of the file, by the question's name.
          wanted: the names of those that are asked; all of them by default.
          question: makes of a name what the worker is told.
        """
        found = Answers(self, kind, name, keys, keys if wanted is None else wanted, question)
        self.asked.append(found)
        return found

    def close(self) -> None:
        try:
            for answers in self.asked:
                answers.finish()
        finally:
            self.asking.shutdown()
            if self._oracle is not None:
                self._oracle.close()


def title_of(kind: str, name: str) -> str:
    """What the file of the answers to the questions of a file is called."""
    return name if kind == "corpus" else f"{kind}_{name}"


class Answers:
    """The answers to the questions of one file: `answers[name]`."""

    def __init__(
        self,
        reference: Reference,
        kind: str,
        name: str,
        keys: Mapping[str, str],
        wanted: Collection[str],
        question: Callable[[str], Any],
    ):
        self.reference, self.keys = reference, keys
        self.title = title_of(kind, name)
        self.shelf = Shelf(FOLDER / f"{self.title}.jsonl.xz")
        mode = reference.mode
        self.unknown = [one for one in wanted if not self.shelf.knows(one, keys[one])]
        self.again = [one for one in wanted if one not in set(self.unknown) and self._again(one)]
        self.fresh: concurrent.futures.Future[Any] | None = None
        if reference.interpreter and (asked := [*self.unknown, *self.again]):
            self.fresh = reference.asking.submit(
                reference.ask, kind, name, {one: question(one) for one in asked}
            )
        self.writes = mode in ("keep", "all")

    def _again(self, one: str) -> bool:
        if self.reference.mode != "some":
            return self.reference.mode == "all"
        number = int(digest(self.reference.seed, self.keys[one]), 16)
        return number % 10_000 < SHARE * 10_000

    def __getitem__(self, one: str) -> Any:
        if one in self.unknown or self.reference.mode == "all":
            if self.fresh is None:
                pytest.skip(
                    f"there is no answer to this text of {one}, and no Python with jax to ask: "
                    f"{HOW_TO_HAVE_ONE}"
                )
            return self.fresh.result()[one]
        answer = self.shelf.answer(one)
        if one in self.again and self.fresh is not None:
            difference = unlike(answer, self.fresh.result()[one])
            assert not difference, (
                f"{self.title}: what is kept of {one} is not what jax gives: {difference}. Run "
                "`pytest tests/against_jax --ask-jax=all`"
            )
        return answer

    def finish(self) -> None:
        if self.fresh is None:
            if self.writes and set(self.shelf.lines) - set(self.keys):
                self.shelf.write(self.keys)
        elif not self.writes:
            self.fresh.cancel()
        else:
            for one, answer in self.fresh.result().items():
                self.shelf.keep(one, self.keys[one], answer)
            self.shelf.write(self.keys)


HOW_TO_HAVE_ONE = (
    "set HLOFRONT_ORACLE_PYTHON to one, or make a virtual environment with "
    f"jax=={JAX} at {PLACE.parents[1]}"
)


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no commit"


_FAILURE = re.compile(r"\w*(Error|Exception): ")


def unlike(kept: Any, fresh: Any, where: str = "") -> str:
    """Where two answers differ, "" if nowhere: floats may by rounding, messages may."""
    if type(kept) is not type(fresh):
        return f"{where}: {kept!r:.200}, and now {fresh!r:.200}"
    if isinstance(kept, dict):
        if kept.keys() != fresh.keys():
            return f"{where}: {sorted(kept)}, and now {sorted(fresh)}"
        pairs = [(f"{where}/{key}", kept[key], fresh[key]) for key in kept if key != "message"]
    elif isinstance(kept, list | tuple):
        if len(kept) != len(fresh):
            return f"{where}: {len(kept)}, and now {len(fresh)}"
        pairs = [(f"{where}/{i}", *both) for i, both in enumerate(zip(kept, fresh, strict=True))]
    elif isinstance(kept, Raised):
        pairs = [(where, kept.classes, fresh.classes)]
    elif isinstance(kept, np.ndarray):
        try:
            assert_close(kept, fresh, 10 * TOLERANCES.get(kept.dtype.name, 0), where=where)
        except AssertionError as error:
            return str(error)
        return ""
    else:
        if isinstance(kept, str) and _FAILURE.match(kept):
            # What follows says where on this machine it failed.
            kept, fresh = kept.partition("\n")[0], fresh.partition("\n")[0]
        same = kept == fresh or (kept != kept and fresh != fresh)
        return "" if same else f"{where}: {kept!r:.500}, and now {fresh!r:.500}"
    return next((found for pair in pairs if (found := unlike(pair[1], pair[2], pair[0]))), "")
