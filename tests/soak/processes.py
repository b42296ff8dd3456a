"""Processes that start and end, also by force, also with work under way."""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

AT_ONCE = 3
SECONDS = 120

# ---- processes that share a cache, and of which some are killed ----------------------------------

_COMPILING = """
import sys
import hlofront as jax, hlofront.numpy as jnp, numpy as np
for number in map(int, sys.argv[1:]):
    x = np.arange(number + 2, dtype=np.float32)
    found = jax.jit(lambda x: jnp.sin(x) * number + jnp.cumsum(x))(x)
    np.testing.assert_allclose(found, np.sin(x) * number + np.cumsum(x), 1e-5)
print("done")
"""


def processes(chance: random.Random) -> Iterator[int]:
    """Processes with one cache on disk, half of them killed; the cache stays whole."""
    from hlofront.pjrt.cache_store import Store

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        variables = {"HLOFRONT_CACHE": "on", "HLOFRONT_CACHE_DIR": folder}
        variables["HLOFRONT_CACHE_MAX_SIZE"] = str(1 << 17)
        while True:
            group = [
                _started(_COMPILING, *map(str, chance.choices(range(6), k=3)), **variables)
                for _ in range(AT_ONCE)
            ]
            killed = [process for process in group if chance.random() < 0.5]
            for process in killed:
                time.sleep(chance.random())
                process.kill()
            for process in group:
                out, said = process.communicate(timeout=SECONDS)
                if process.returncode == -signal.SIGKILL and process in killed:
                    continue
                assert process.returncode == 0 and out == "done\n", (process.returncode, said)
            damaged = [each.problem for each in Store(folder).verify() if each.damaged]
            assert not damaged, damaged
            yield AT_ONCE


def _started(code: str, *words: str, **variables: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )


# ---- ends of the interpreter ---------------------------------------------------------------------

_BEGIN = """
import atexit, os, signal, sys, threading, time
import hlofront as jax, hlofront.numpy as jnp, numpy as np

def work(count=10**9):
    for number in range(count):
        jax.jit(lambda x: jnp.sin(x) * number)(np.ones(8, np.float32))

def slow(x):
    time.sleep(0.5)
    return np.asarray(x)

def waiting(x):
    return jax.pure_callback(slow, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

def started(**how):
    thread = threading.Thread(target=work, **how)
    thread.start()
    return thread

work(1)
"""
# How a process ends, with the code that it must end with.
#
# Before Python 3.14, threads that need the interpreter's lock while it ends are ended as well, by
# unwinding their stacks; C++ on them answers that by ending the process (python/cpython#87135). A
# daemon that compiles at that moment may do so, under jax as well.
ENDS: dict[str, tuple[str, int]] = {
    "a large program runs": ("jax.jit(lambda x: x @ x @ x)(jnp.ones((700, 700)))", 0),
    "a callback runs": ("jax.jit(waiting)(jnp.ones(3))", 0),
    "a daemon compiles": ("started(daemon=True)\ntime.sleep(0.1)", 0),
    "daemons compile": ("for _ in range(8): started(daemon=True)\ntime.sleep(0.2)", 0),
    "a thread still compiles": ("started(args=(10,))", 0),
    "an error": ("started(daemon=True)\nraise SystemExit(5)", 5),
    "at once": ("started(daemon=True)\nos._exit(3)", 3),
    "a program at exit": ("atexit.register(work, 2)", 0),
    "a program in a finalizer": (
        "class Last:\n    def __del__(self):\n        self.made(self.x)\n"
        "last = Last()\nlast.made, last.x = jax.jit(jnp.sin), jnp.ones(3)\nlast.made(last.x)",
        0,
    ),
    "terminated": ("started(daemon=True)\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)",
                   -signal.SIGTERM),
    "a forked child": (
        "child = os.fork()\nif child == 0: os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\nwork(2)",
        0,
    ),
    "tracers are left": ("jax.make_jaxpr(lambda x: globals().update(x=x) or x)(1.0)", 0),
    "arrays in cycles": ("x = [jnp.ones(3)]\nx.append(x)\ny = jax.jit(waiting)(x[0])", 0),
}  # fmt: skip
_BAD = re.compile("Fatal Python|terminate called|Segmentation|Check failed|Exception ignored")


def exits(chance: random.Random) -> Iterator[int]:
    """Processes that end with work under way: with the right code, and without a crash."""
    while True:
        name = chance.choice(list(ENDS))
        ended(name)
        yield 1


def ended(name: str) -> None:
    """Start a process that ends in this manner, and raise unless it does so."""
    code, expected = ENDS[name]
    process = _started(_BEGIN + code, HLOFRONT_CACHE="off")
    try:
        _, said = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"{name}: the process does not end") from None
    if "exception not rethrown" in said and "daemon=True" in code and sys.version_info < (3, 14):
        return
    if process.returncode != expected or _BAD.search(said):
        raise AssertionError(f"{name}: {process.returncode}, {said[-400:]}")
