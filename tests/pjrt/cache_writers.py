"""Processes that write to one cache folder, killed as they go: a script, run without jaxlib.

cache_writers.py kill FOLDER KILLS MAX_BYTES    8 writers; prints what became of the folder
cache_writers.py limited FOLDER                 writes under RLIMIT_FSIZE
cache_writers.py full FOLDER                    writes until the disk is full
cache_writers.py read-only FOLDER               mounts a disk there, and makes it read-only
"""

import hashlib
import json
import logging
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import types

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "hlofront"


def load_store():
    """The store alone: without hlofront's __init__, and with nobody who listens to events."""
    for name, path in (("hlofront", PACKAGE), ("hlofront.base", PACKAGE / "base")):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]
    events = types.ModuleType("hlofront.base.events")
    events.record_event = lambda event, **metadata: None
    sys.modules["hlofront.base.events"] = events
    from hlofront.pjrt import cache_store

    assert "jaxlib" not in sys.modules
    return cache_store


DIGESTS = [hashlib.sha256(b"%d" % i).hexdigest() for i in range(6)]


def key_of(digest):
    return json.dumps({"name": "f", "program": digest}).encode()


def fields_for(digest, rng):
    payload = rng.randbytes(rng.choice((50, 5_000, 150_000)))
    return {
        "key": key_of(digest),
        "about": b'{"name": "f"}',
        "call": hashlib.sha256(payload).digest(),
        "executable": payload,
    }


def write_for_ever(module, folder, max_bytes, seed):
    rng = random.Random(seed)
    store = module.Store(folder, max_bytes)
    while True:
        digest = rng.choice(DIGESTS)
        if not store.put(digest, fields_for(digest, rng)):
            os._exit(4)
        digest = rng.choice(DIGESTS)
        found = store.get(digest, key_of(digest))
        if found and hashlib.sha256(found["executable"]).digest() != found["call"]:
            os._exit(3)


def kill(folder, kills, max_bytes):
    module = load_store()
    rng = random.Random(0)

    def start(seed):
        child = os.fork()
        if child == 0:
            try:
                write_for_ever(module, folder, max_bytes, seed)
            finally:
                os._exit(5)
        return child

    children = [start(seed) for seed in range(8)]
    exits = []
    for i in range(kills):
        time.sleep(rng.uniform(0, 0.02))
        victim = children.pop(rng.randrange(8))
        os.kill(victim, signal.SIGKILL)
        exits.append(os.waitpid(victim, 0)[1])
        children.append(start(100 + i))
    for child in children:
        os.kill(child, signal.SIGKILL)
        exits.append(os.waitpid(child, 0)[1])

    store = module.Store(folder, max_bytes)
    whole = [store.get(digest, key_of(digest)) for digest in DIGESTS]
    left_over = [name for name in os.listdir(folder) if name.startswith(".writing-")]
    for name in left_over:
        os.utime(os.path.join(folder, name), (0, 0))
    size = sum(os.stat(os.path.join(folder, name)).st_size for name in os.listdir(folder))
    return {
        "by_themselves": [status for status in exits if status != signal.SIGKILL],
        "whole": sum(fields is not None for fields in whole),
        "wrong": sum(
            fields is not None and hashlib.sha256(fields["executable"]).digest() != fields["call"]
            for fields in whole
        ),
        "damaged": [entry.problem for entry in store.verify() if entry.problem],
        "aside": os.path.exists(os.path.join(folder, "damaged")),
        "left_over": len(left_over),
        "removed": store.gc().temporaries,
        "size": size,
        "names": sorted(os.listdir(folder)),
    }


class Heard(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []
        logging.getLogger().addHandler(self)

    def emit(self, record):
        self.messages.append(record.getMessage())


def report(store, heard, **more):
    return {"heard": heard.messages, "names": sorted(os.listdir(store.folder)), **more}


def limited(folder):
    import resource

    store, heard = load_store().Store(folder), Heard()
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    fields = {"key": b"{}", "executable": bytes(10_000)}
    puts = [store.put(digest, fields) for digest in DIGESTS]
    return report(store, heard, puts=puts)


def mount(folder, *options):
    subprocess.run(["mount", "-t", "tmpfs", *options, "none", folder], check=True)
    os.chmod(folder, 0o700)


def full(folder):
    mount(folder, "-o", "size=64k")
    store, heard = load_store().Store(folder), Heard()
    fields = {"key": b"{}", "executable": bytes(20_000)}
    puts = [store.put(digest, fields) for digest in DIGESTS]
    reads = [store.get(digest, b"{}") is not None for digest in DIGESTS]
    # Room again, and a minute later.
    os.unlink(os.path.join(folder, DIGESTS[0] + ".xla"))
    store._no_writes_until = 0.0
    return report(store, heard, puts=puts, reads=reads, later=store.put(DIGESTS[5], fields))


def read_only(folder):
    mount(folder)
    store, heard = load_store().Store(folder), Heard()
    fields = {"key": b"{}", "executable": bytes(20_000)}
    store.put(DIGESTS[0], fields)
    pathlib.Path(folder, DIGESTS[1] + ".xla").write_bytes(b"foreign")
    os.utime(os.path.join(folder, DIGESTS[0] + ".xla"), (0, 0))
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    reads = [store.get(digest, b"{}") is not None for digest in DIGESTS[:2]]
    puts = [store.put(digest, fields) for digest in DIGESTS]
    return report(store, heard, puts=puts, reads=reads, gc=store.gc()._asdict())


if __name__ == "__main__":
    command, where, *numbers = sys.argv[1:]
    run = {"kill": kill, "limited": limited, "full": full, "read-only": read_only}[command]
    print(json.dumps(run(where, *map(int, numbers))))
