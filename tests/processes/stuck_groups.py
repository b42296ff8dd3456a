"""Groups of four processes, one of which is killed, stopped, or does not do as the others.

    python -m tests.processes.stuck_groups            # all faults, and the seconds until the report
    python -m tests.processes.stuck_groups skip kill  # those of some kinds

The watchdog must say which process it is, and the line, within ten seconds.
"""

import pathlib
import random
import re
import sys
import tempfile
import time
from typing import NamedTuple

from tests.processes.group import Group

PROCESSES = 4
SCRIPT = """
import ctypes, os, queue, signal, sys, threading, time
import hlofront as jax, hlofront.numpy as jnp, numpy as np
from hlofront.experimental.multihost_utils import sync_global_devices
kind, victim, at = os.environ["FAULT"], int(os.environ["VICTIM"]), int(os.environ["AT"])
jax.distributed.initialize(heartbeat_timeout_seconds=100, watchdog_seconds=2)
me, count = jax.process_index(), jax.device_count()
mesh = jax.make_mesh((count,), ("x",), (jax.sharding.AxisType.Auto,))
split, whole = jax.NamedSharding(mesh, jax.P("x")), jax.NamedSharding(mesh, jax.P())

def reader():
    queue.Queue().get()

def cleaned_up():
    try:
        raise ValueError("a bad batch")
    finally:
        threading.Event().wait()  # finally

def strike():
    print("fault", flush=True)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "exit":
        os._exit(3)
    if kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if kind == "sleep":
        time.sleep(1000)  # sleep
    if kind == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()  # lock
    if kind == "queue":
        queue.Queue().get()  # queue
    if kind == "input":
        os.read(os.pipe()[0], 1)  # input
    if kind == "finally":
        cleaned_up()
    if kind == "thread":
        threading.Thread(target=reader).start()
        raise ValueError("a bad batch")  # thread
    if kind == "gil":
        ctypes.PyDLL(None).sleep(1000)

def load(number):
    if me == victim and number == at and kind not in ("skip", "other", "early", "callback"):
        strike()
    return jax.make_array_from_process_local_data(split, np.full((4, 8), number, np.float32))

def note(x):
    if me == victim and np.max(x) == at:
        print("fault", flush=True)
        time.sleep(1000)  # callback

# gloo ends a process if the sizes of a collective differ: these all exchange one number at a time.
@jax.jit
def step(w, batch):
    return w - 0.001 * jax.grad(lambda w: jnp.mean((batch * w - 1) ** 2))(w)

@jax.jit
def total(w, batch):
    jax.debug.callback(note, batch) if kind == "callback" else None
    return jnp.sum(batch) * w

@jax.jit
def scaled(w, batch):
    return jnp.sum(batch * jnp.max(batch)) * w

def save():
    time.sleep(1000)  # early

w = jax.device_put(np.float32(0), whole)
batch = load(-1)
float(scaled(step(w, batch), batch) + total(w, batch))
sync_global_devices("ready")
for number in range(24):
    batch = load(number)
    strikes = me == victim and number == at
    if strikes and kind in ("skip", "other", "early"):
        print("fault", flush=True)
    if strikes and kind == "early":
        break
    if not (strikes and kind == "skip"):
        w = step(w, batch)
    if strikes and kind == "other":
        value = scaled(w, batch)  # other
    else:
        value = total(w, batch)  # skip
    if number % 3 == 0:
        float(value)
float(value)
save()
"""


class Fault(NamedTuple):
    """What goes wrong in one process, before or in a step of its training loop."""

    kind: str
    victim: int
    at: int


def faults(seed: int, counts: dict[str, int]) -> list[Fault]:
    """Faults of each kind, in random processes at random steps."""
    generator = random.Random(seed)
    return [
        Fault(kind, generator.randrange(PROCESSES), generator.randrange(2, 20))
        for kind, count in counts.items()
        for _ in range(count)
    ]


FAULTS = faults(
    seed=49,
    counts={
        "kill": 5,
        "stop": 4,
        "exit": 1,
        "skip": 4,
        "other": 4,
        "early": 2,
        "sleep": 3,
        "lock": 1,
        "queue": 1,
        "input": 1,
        "finally": 1,
        "thread": 1,
        "gil": 1,
    },
)
# The callbacks of a program over all devices run in process 0.
FAULTS.append(Fault("callback", 0, 7))

# What the report says of the process with the fault, and of its line.
LAST_SIGN = r"\n    its last sign was .* s ago: it was in .*script.py:\d+"
LAUNCHED = (
    r"process {victim} has launched {name} as launch \d+, and others another program:\n"
    r"    process {victim}: {name} at .*script.py:{line}:"
)
NOT_LAUNCHED = r"process {victim} has not launched step, launch \d+:\n    "
SAID = {
    "kill": r"process {victim} has died .*" + LAST_SIGN,
    "exit": r"process {victim} has died .*" + LAST_SIGN,
    "stop": r"process {victim} is stopped .*" + LAST_SIGN,
    "gil": r"process {victim} runs .*, and does not answer: C code holds the GIL .*" + LAST_SIGN,
    "skip": LAUNCHED.replace("{name}", "total"),
    "other": LAUNCHED.replace("{name}", "scaled"),
    "early": NOT_LAUNCHED + r"it is in save at .*script.py:{line} ",
    "callback": r"process {victim} runs a callback of total, .*\n    in note at .*:{line}\n",
    "thread": NOT_LAUNCHED
    + r"its main program has ended with ValueError: a bad batch at .*script.py:{line},.*"
    r"(\n .*)*\n    its thread .* is in reader at ",
    "finally": NOT_LAUNCHED
    + r"it is in cleaned_up at .*script.py:{line} \(in Event.wait\) for .* s, "
    r"and handles ValueError: a bad batch at ",
}
IN_STRIKE = NOT_LAUNCHED + r"it is in strike at .*script.py:{line} "


def said(fault: Fault) -> re.Pattern[str]:
    """What the report must say of a fault."""
    lines = SCRIPT.splitlines()
    line = next((n for n, text in enumerate(lines, 2) if text.endswith(f"# {fault.kind}")), 0)
    text = SAID.get(fault.kind, IN_STRIKE)
    # The first line of the file is one of the group's.
    return re.compile(text.replace("{victim}", str(fault.victim)).replace("{line}", str(line)))


def report_of(fault: Fault, folder: pathlib.Path) -> tuple[str, float]:
    """Start a group with a fault; return the report, and the seconds from the fault until it."""
    variables = {"FAULT": fault.kind, "VICTIM": str(fault.victim), "AT": str(fault.at)}
    with Group(folder, SCRIPT, PROCESSES, variables=lambda number: variables) as group:
        group.wait_for_text(fault.victim, "fault", 120)
        started = time.monotonic()
        # On a busy machine one process may be late before.
        before = [len(group.output(number)) for number in range(PROCESSES)]
        report = ""
        while not report:
            assert time.monotonic() < started + 60, f"{fault}: no report\n{group.outputs()}"
            time.sleep(0.02)
            report = reports_in(group, before)
        seconds = time.monotonic() - started
        time.sleep(0.5)  # Another process would report now.
        return reports_in(group, before), seconds


def reports_in(group: Group, before: list[int]) -> str:
    """What all processes print from "hlofront: process" on, after what they have printed before."""
    outputs = [group.output(number)[length:] for number, length in enumerate(before)]
    starts = [text.find("hlofront: process") for text in outputs]
    found = [text[start:] for text, start in zip(outputs, starts, strict=True) if start >= 0]
    return "\n".join(found)


def main(kinds: list[str]) -> None:
    """Try faults, and print the seconds until the report and what was wrong."""
    times: list[float] = []
    wrong = 0
    for fault in FAULTS:
        if kinds and fault.kind not in kinds:
            continue
        with tempfile.TemporaryDirectory() as name:
            try:
                report, seconds = report_of(fault, pathlib.Path(name))
            except AssertionError as error:
                report, seconds = str(error), float("nan")
        is_right = said(fault).search(report) and report.count("hlofront: process") == 1
        wrong += not is_right
        times.append(seconds)
        print(f"{fault}: {seconds:.1f} s{'' if is_right else '  WRONG'}", flush=True)
        if not is_right or kinds:
            print(report, flush=True)
    print(f"{len(times)} faults, {wrong} wrong, {max(times):.1f} s at most")


if __name__ == "__main__":
    main(sys.argv[1:])
