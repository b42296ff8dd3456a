"""Mutants of what hlofront and hlotools read: each is read, or refused with a documented error.

Texts of programs, profiles, logs of runs, dumps, entries of the cache, exports and bundles, and
command lines. A find is any other error, silence of ten seconds, or the end of the process.
"""

import contextlib
import dataclasses
import functools
import io
import json
import os
import pathlib
import random
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import hlotools
from hlofront.base.errors import JaxRuntimeError
from hlofront.cli import main as command_line
from hlofront.inspect import profiles_in
from hlofront.pjrt import cache_file
from hlofront.pjrt.cache_store import Store
from hlotools.profiles.compile_times import compile_times
from hlotools.profiles.xplane import ProfileError, read_xplane
from hlotools.run_log.log_page import log_page
from hlotools.run_log.records import LogError, read_log
from hlotools.run_log.summary import RunSummary
from tests.export import mutants
from tests.fuzz.drawing import is_internal

_TESTS = pathlib.Path(__file__).parents[1]
_TEXTS = _TESTS / "inspect" / "texts"
SECONDS = 10


@dataclasses.dataclass
class Target:
    """What is read, and how: `read` has the mutant, and its name, in a folder of its own."""

    originals: Callable[[], dict[str, bytes]]
    read: Callable[[str, bytes, pathlib.Path], None]
    refusals: tuple[type[Exception], ...]
    weight: int


# ---- programs as text ----------------------------------------------------------------------------


def _texts() -> dict[str, bytes]:
    paths = [*_TEXTS.glob("*.*"), *_TEXTS.glob("kernels/*")]
    return {path.name: path.read_bytes() for path in paths if path.suffix != ".pb"}


def _read_text(name: str, data: bytes, folder: pathlib.Path) -> None:
    text = data.decode("utf-8", "surrogateescape" if len(data) % 2 else "replace")
    original = _texts_once()[name].decode()
    uses: list[Callable[[], Any]] = [
        lambda: hlotools.canonical(text),
        lambda: hlotools.styled(text, "short"),
        lambda: hlotools.diff(original, text).text(),
        lambda: hlotools.page(text),
    ]
    if name.endswith(".hlo"):
        uses += [
            lambda: hlotools.write(hlotools.parse(text)),
            lambda: hlotools.costs(text).text(by="line"),
            lambda: hlotools.memory_use(text).text(),
            lambda: hlotools.collectives(text).text(),
        ]
    _each(uses, data, TARGETS["texts"].refusals)


_texts_once = functools.cache(_texts)
# In how many ways a mutant is used, of those that there are.
_USES = 1


def _each(
    uses: list[Callable[[], Any]], data: bytes, refusals: tuple[type[Exception], ...]
) -> None:
    """Use what was read in some ways, which its bytes choose, whether or not another refuses it."""
    refused: Exception | None = None
    for use in random.Random(data).sample(uses, min(_USES, len(uses))):
        try:
            use()
        except refusals as error:
            if is_internal(error):
                raise
            refused = error
    if refused:
        raise refused


def _dumps() -> dict[str, bytes]:
    endings = {
        "layer.hlo": "cpu_after_optimizations.txt",
        "scan_grad.before.hlo": "before_optimizations.txt",
        "batch_dot.hlo": "0001.fusion.after_cse.before_dce.txt",
    }
    files = {name: (_TEXTS / name).read_text() for name in endings}
    report = "Memory Space: default (color=0)\nTotal bytes: 1024 (1.0KiB)\n"
    made = {f"module_0001.jit_f.{endings[name]}": text for name, text in files.items()}
    made["module_0001.jit_f.cpu_after_optimizations-memory-usage-report.txt"] = report
    return {name: text.encode() for name, text in made.items()}


def _read_dump(name: str, data: bytes, folder: pathlib.Path) -> None:
    for each, original in _dumps().items():
        (folder / each).write_bytes(data if each == name else original)

    def of_modules() -> None:
        for module in hlotools.dumped_modules(folder):
            hlotools.timeline(module).text()
            hlotools.kernels(module)

    _each(
        [lambda: hlotools.dump_folder(folder).text(), of_modules], data, TARGETS["dumps"].refusals
    )


# ---- what runs have written ----------------------------------------------------------------------


def _profiles() -> dict[str, bytes]:
    return {"jax.xplane.pb": (_TEXTS / "jax.xplane.pb").read_bytes()}


@functools.cache
def _profile_once() -> Any:
    (measured,) = profiles_in(_TEXTS / "jax.xplane.pb")
    return measured


def _read_profile(name: str, data: bytes, folder: pathlib.Path) -> None:
    path = folder / name
    path.write_bytes(data)
    space = read_xplane(path)

    def of_programs(use: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: [use(measured) for measured in profiles_in(path)]

    uses: list[Callable[[], Any]] = [
        of_programs(lambda measured: measured.text()),
        of_programs(lambda measured: measured.page()),
        of_programs(lambda measured: hlotools.compare_profiles(_profile_once(), measured).text()),
        lambda: compile_times(space, "f", 1.0).text(),
    ]
    _each(uses, data, TARGETS["profiles"].refusals)


def _logs() -> dict[str, bytes]:
    place = {"name": "step", "thread": "MainThread", "line": "/home/me/train.py:7"}
    events: list[dict[str, Any]] = [
        {"event": "process", "time": 100.0, "format": "hlofront.log/1", "pid": 1},
        {"event": "trace", "time": 100.5, "seconds": 0.5, "arguments": "f32[4]", **place},
        {"event": "disk_miss", "time": 100.5, "why": "step is not in the cache on disk", **place},
        {"event": "compile_begin", "time": 100.6, "devices": 1, **place},
        {"event": "compile", "time": 102.6, "seconds": 2.0, "program": "h-1-0-step", **place},
        {"event": "recompile", "time": 103.0, "why": "x: f32[4] -> f32[5]", **place},
        {"event": "disk_hit", "time": 103.3, "seconds": 0.1, "saved": 1.6, **place},
        {"event": "memory_hits", "time": 104.5, "count": 4, **place},
        {"event": "compile_error", "time": 104.7, "seconds": 1, "error": "X: y", **place},
        {"event": "end", "time": 106.0},
    ]
    return {"host-1.jsonl": "".join(json.dumps(each) + "\n" for each in events).encode()}


def _read_log(name: str, data: bytes, folder: pathlib.Path) -> None:
    (folder / name).write_bytes(data)
    run = read_log(folder)
    RunSummary(run).text()
    log_page(run, folder / "log.html").encode("utf-8", "surrogatepass")


def _entries() -> dict[str, bytes]:
    about = {"name": "f", "file": "/home/me/train.py", "line": 7, "seconds": 0.5, "devices": ["0"]}
    key = {"name": "f", "program": "x" * 64, "x": "f32[2]", "jaxlib": "0.10.2"}
    fields = {
        "key": json.dumps(key).encode(),
        "about": json.dumps(about).encode(),
        "executable": bytes(100),
        "hlo": b"HloModule f",
    }
    return {"1" * 64: cache_file.pack(fields)}


def _read_entry(name: str, data: bytes, folder: pathlib.Path) -> None:
    os.chmod(folder, 0o700)
    place = folder / "cache"
    place.mkdir(mode=0o700, exist_ok=True)
    path = place / f"{name}.xla"
    path.write_bytes(data)
    path.chmod(0o600)
    store = Store(place)
    for entry in store.entries():
        assert entry.name is not None
    store.nearest({"name": "f", "x": "f32[3]"}, file="/home/me/train.py")
    with contextlib.suppress(cache_file.DamagedEntry, cache_file.NewerEntry):
        store.get(name, cache_file.unpack(data).get("key", b""))
    list(store.verify())
    store.get(name, b"another")


def _read_program(name: str, data: bytes, folder: pathlib.Path) -> None:
    said = mutants.outcome(name, data, str(folder))
    if said.startswith("refused"):
        raise JaxRuntimeError(said)
    if said != "accepted":
        raise AssertionError(said)


# ---- command lines -------------------------------------------------------------------------------

_USERS_FILE = """import hlofront.numpy as jnp

def step(x, y=2):
    return jnp.sin(x) * y
"""
_COMMANDS = (
    "show model.py:step --args f32[4] --stage jaxpr",
    "show model.py:step --args f32[4,2] f32[2] --stage jaxpr --json",
    "show model.py:step --args f32[4] --stage stablehlo --style short",
    "show layer.hlo --stage memory",
    "show layer.hlo --json",
    "show . --json",
    "diff layer.hlo scan_grad.hlo --json",
    "diff layer.hlo layer.hlo --markdown",
    "cost layer.hlo --by line --most 3",
    "cost layer.hlo --rates tpu:v5e --json",
    "log . --json",
    "profile layer.hlo --xplane jax.xplane.pb --by operation",
    "replacements model.py:step --args f32[4]",
    "completion bash",
    "bundle ls file.hlob",
    "show --help",
)
_WORDS = (
    "", "-", "--", "-1", "0", "1e999", "9" * 400, "nan", "f32[", "f32[-1]", "f32[4]@",
    "f32[9999999999]", "f999[4]", "i4[2]", "key[]", "(f32[4],", "{'a':f32[2]}", "[" * 500,
    "x=f32[4]", "tpu:v5e:2x2", "tpu:v5e:0x0", "tpu:", "gpu:h100", ":", "model.py", "model.py:",
    ":step", "model.py:absent", "layer.hlo", "jax.xplane.pb", ".", "absent", "\x1b[31m",
    "\udcff", "é", "%s", "{}", "jaxpr", "--stage", "--args", "--json", "--html", "--target",
    "--mesh", "a=2,b=4", "a=0", "a=b=c", "--in-specs", "P('a')", "P(", "--most", "--by",
    "--style", "--static", "--grad", "--help",
)  # fmt: skip


def _command_lines() -> dict[str, bytes]:
    return {line: "\n".join(line.split()).encode() for line in _COMMANDS}


def _changed_words(data: bytes, chance: random.Random) -> bytes:
    words = data.decode().split("\n")
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(1, len(words) + 1)
        way = chance.randrange(4)
        if way == 0:
            words[at:at] = [chance.choice(_WORDS)]
        elif way == 1 and at < len(words):
            del words[at]
        elif way == 2 and at < len(words) and words[at]:
            place = chance.randrange(len(words[at]))
            words[at] = words[at][:place] + chance.choice("[],:-=0é") + words[at][place + 1 :]
        else:
            words[at : at + 1] = [chance.choice(_WORDS)]
    return "\n".join(words).encode("utf-8", "surrogatepass")


def _read_command_line(name: str, data: bytes, folder: pathlib.Path) -> None:
    words = data.decode("utf-8", "surrogatepass").split("\n")
    (folder / "model.py").write_text(_USERS_FILE)
    for each in ("layer.hlo", "scan_grad.hlo", "jax.xplane.pb"):
        (folder / each).write_bytes((_TEXTS / each).read_bytes())
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stderr(said):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                command_line.main(words, out)
            except SystemExit:
                return
    # A call that the user's function refuses has a traceback of it, as it is the user's.
    if "Traceback" in said.getvalue() and "model.py" not in said.getvalue():
        raise AssertionError(f"{words}: {said.getvalue()[-300:]}")


# ---- all of them ---------------------------------------------------------------------------------

_SYNTAX = (hlotools.HloSyntaxError, ValueError)
TARGETS = {
    "texts": Target(_texts, _read_text, _SYNTAX, 40),
    "dumps": Target(_dumps, _read_dump, _SYNTAX, 10),
    "profiles": Target(_profiles, _read_profile, (ProfileError, *_SYNTAX), 20),
    "logs": Target(_logs, _read_log, (LogError,), 20),
    "cache": Target(_entries, _read_entry, (), 20),
    "command lines": Target(_command_lines, _read_command_line, (), 2),
    "exports": Target(mutants.originals, _read_program, (JaxRuntimeError,), 1),
}
_SHARES = [name for name, target in TARGETS.items() for _ in range(target.weight)]
_TOKEN, _LINE = re.compile(rb"[\w.]+|\S"), re.compile(rb"(?<=\n)[^\n]*\n")
# Files in memory, where the system has such a folder: to make and remove one on a disk takes longer
# than to read what is in it.
_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_PIECES = [
    b"", b"0", b"-1", b"99999999999999999999", b"9" * 300, b"4294967296", b"nan", b"1e999", b"(",
    b")", b"{", b"}", b"[" * 60, b"]", b'"', b",", b"=", b"%", b"\\", b"\n", b"\0", b"\xff",
    b"\xc3\xa9", b"f32[]", b"f32[4]{0}", b"(f32[2], s32[])", b"pred[0]", b"token[]", b"f32[?]",
    b"f32[<=4]", b"{1,0:T(8,128)}", b"ROOT", b"ENTRY", b"calls=", b"to_apply=", b"metadata={",
    b"loc(", b"->", b"true", b"null", b"tensor<?xf32>", b"tensor<4xf32>", b"#loc1", b"^bb0",
    b"module", b"func.func",
]  # fmt: skip


def changed_text(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Return a text some of whose lines or words are dropped, repeated, exchanged or others."""
    if chance.randrange(8) == 0:
        return mutants.changed_bytes(data, others, chance)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        cut = _TOKEN if chance.randrange(3) else _LINE
        start, stop = _place(cut, data, chance)
        way = chance.randrange(5)
        if way == 0:
            piece = b""
        elif way == 1:
            piece = data[start:stop] * 2
        elif way == 2:
            first, last = _place(cut, data, chance)
            piece = data[first:last]
        elif way == 3:
            other = chance.choice(others)
            first, last = _place(cut, other, chance)
            piece = other[first:last]
        else:
            piece = chance.choice(_PIECES)
        data = data[:start] + piece + data[stop:]
    return data


def _place(cut: re.Pattern[bytes], data: bytes, chance: random.Random) -> tuple[int, int]:
    """Return where a word or a line is: the first after a place anywhere."""
    match = cut.search(data, chance.randrange(len(data) + 1)) or cut.search(data)
    return match.span() if match else (0, 0)


@functools.cache
def _originals(target: str) -> dict[str, bytes]:
    return TARGETS[target].originals()


def mutant(number: int, only: str = "") -> tuple[str, str, bytes]:
    """Return the target, the name and the bytes of a mutant."""
    chance = random.Random(number)
    target = only or chance.choice(_SHARES)
    files = _originals(target)
    names = sorted(files)
    # Short ones are read many times in the time of a long one.
    (name,) = chance.choices(names, [1 / (1000 + len(files[name])) for name in names])
    if target == "command lines":
        return target, name, _changed_words(files[name], chance)
    if files[name].startswith(cache_file.MAGIC) or target in ("profiles", "exports"):
        return target, name, mutants.mutant(name, files, chance)
    return target, name, changed_text(files[name], list(files.values()), chance)


class Hang(BaseException):
    """Something took longer than it may."""


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> NoReturn:
        raise Hang(f"takes longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def find(number: int, only: str = "") -> str:
    """Try a mutant; say what is wrong with what comes of it, "" if nothing is."""
    target, name, data = mutant(number, only)
    # Processes that read exports have time limits of their own.
    seconds = SECONDS if target != "exports" else 120
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        try:
            with limited(seconds):
                TARGETS[target].read(name, data, pathlib.Path(folder))
        except TARGETS[target].refusals as error:
            if is_internal(error):
                return f"{target}, {name}: {type(error).__name__}: {error}"
        except (Exception, Hang) as error:
            return f"{target}, {name}: {type(error).__name__}: {error}"
    return ""
