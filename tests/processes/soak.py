"""A training loop over four processes of which one is killed or stopped at a random moment, often.

    python -m tests.processes.soak --kills 100 --stops 20
    python -m tests.processes.soak --leaves 200

Each round starts the group from its last checkpoint, waits a random time, and kills (SIGKILL) or
stops (SIGSTOP) a random process. The others must end with a ProcessFailureError that names it
within the heartbeat's time and ten seconds, no process may be left, and the checkpoint must be
whole. The last round runs to its end: the numbers are those of a run without failures.

With `--leaves` the processes do nothing but leave their group, each after a random time; in every
third round one of them is killed at a random moment. The others must leave within ten seconds, or
within the heartbeat's time and ten seconds if one was killed.
It is started by hand: it takes minutes to hours.
"""

import argparse
import json
import pathlib
import random
import signal
import statistics
import tempfile
import time

import numpy as np

from tests.processes.group import Group

PROCESSES, HEARTBEAT, STEPS_PER_CHECKPOINT = 4, 3, 5
TRAINING = f"""
import os, sys, time
import hlofront as jax, hlofront.numpy as jnp, numpy as np
folder, steps = os.environ["SOAK_FOLDER"], int(os.environ["SOAK_STEPS"])
jax.distributed.initialize(heartbeat_timeout_seconds={HEARTBEAT})
me, count = jax.process_index(), jax.device_count()
mesh = jax.make_mesh((count,), ("x",), (jax.sharding.AxisType.Auto,))
split, whole = jax.NamedSharding(mesh, jax.P("x")), jax.NamedSharding(mesh, jax.P())
data = np.linspace(-1, 1, 8 * count * 4, dtype=np.float32).reshape(8 * count, 4)
x = jax.make_array_from_callback(data.shape, split, lambda index: data[index])
def loss(w, x, step):
    return jnp.mean((jnp.tanh(x @ w) - jnp.cos(step)) ** 2)
train = jax.jit(lambda w, x, step: w - 0.1 * jax.grad(loss)(w, x, step), out_shardings=whole)
path, step, w = f"{{folder}}/checkpoint.npz", 0, np.ones(4, np.float32)
if os.path.exists(path):
    with np.load(path) as kept:
        step, w = int(kept["step"]), kept["w"]
print("from", step, flush=True)
try:
    while step < steps:
        w = train(w, x, np.float32(step))
        step += 1
        if step % {STEPS_PER_CHECKPOINT} == 0:
            values = np.asarray(w)
            if me == 0:
                with open(path + ".writing", "wb") as file:
                    np.savez(file, step=step, w=values)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(path + ".writing", path)
    print("end", step, np.asarray(w).tolist(), flush=True)
except jax.errors.JaxRuntimeError as error:
    print("failure", type(error).__name__, getattr(error, "failed_processes", None),
          time.time(), flush=True)
"""

LEAVING = f"""
import random, time
import hlofront as jax
jax.distributed.initialize(heartbeat_timeout_seconds={HEARTBEAT})
print("joined", flush=True)
time.sleep(random.random())
started = time.monotonic()
jax.distributed.shutdown()
print("left", time.monotonic() - started, flush=True)
"""


def start(folder: pathlib.Path, steps: int) -> Group:
    """Start the group, which goes on from the checkpoint in the folder."""
    folder.mkdir(exist_ok=True)
    own = {"SOAK_FOLDER": str(folder), "SOAK_STEPS": str(steps)}
    return Group(folder, TRAINING, PROCESSES, variables=lambda number: own)


def last_line(group: Group, number: int) -> list[str]:
    """Return the words of the last line that a process printed."""
    return (group.output(number).splitlines() or [""])[-1].split(maxsplit=2)


def fail_once(folder: pathlib.Path, how: signal.Signals, wait: float, victim: int) -> list[float]:
    """Kill or stop one process; return after how many seconds each survivor had its error."""
    with start(folder, 10**9) as group:
        for number in range(PROCESSES):
            group.wait_for_text(number, "from", 120)
        time.sleep(wait)
        group.processes[victim].send_signal(how)
        at = time.time()
        others = [number for number in range(PROCESSES) if number != victim]
        assert group.wait(others, HEARTBEAT + 30) == [0] * len(others), group.outputs()
        seconds = []
        for number in others:
            words = group.output(number).splitlines()[-1].split()
            assert words[:2] == ["failure", "ProcessFailureError"], group.outputs()
            assert str(victim) in "".join(words[2:-1]), group.outputs()
            seconds.append(float(words[-1]) - at)
            assert seconds[-1] < HEARTBEAT + 10, group.outputs()
    assert all(process.poll() is not None for process in group.processes)
    return seconds


def finish(folder: pathlib.Path, steps: int) -> str:
    """Run to the end from the checkpoint; return what all processes print of the weights."""
    with start(folder, steps) as group:
        assert group.wait(seconds=300) == [0] * PROCESSES, group.outputs()
        ends = {" ".join(last_line(group, number)) for number in range(PROCESSES)}
    assert len(ends) == 1, ends
    return ends.pop()


def check_resumed(folder: pathlib.Path, other: pathlib.Path) -> int:
    """Check that a run goes on to the numbers of one that never failed; return its step before."""
    step = 0
    if (folder / "checkpoint.npz").exists():
        with np.load(folder / "checkpoint.npz") as checkpoint:
            step = int(checkpoint["step"])
    resumed, alone = finish(folder, step + 20), finish(other, step + 20)
    assert resumed == alone, (resumed, alone)
    assert not list(folder.glob("*.writing"))
    return step


def leave_once(folder: pathlib.Path, wait: float, victim: int | None) -> list[float]:
    """Start a group that leaves, and kill one of it; return how long each survivor needed."""
    with Group(folder, LEAVING, PROCESSES) as group:
        others = [number for number in range(PROCESSES) if number != victim]
        if victim is not None:
            for number in range(PROCESSES):
                group.wait_for_text(number, "joined", 120)
            time.sleep(wait)
            group.processes[victim].kill()
        assert group.wait(others, 120) == [0] * len(others), group.outputs()
        seconds = [float(last_line(group, number)[1]) for number in others]
        most = 10 if victim is None else HEARTBEAT + 10
        assert max(seconds) < most, (seconds, group.outputs())
    return seconds


def leave_often(rounds: int, generator: random.Random) -> None:
    """Run rounds of groups that leave, and print how long leaving took."""
    times: dict[str, list[float]] = {"in order": [], "one killed": []}
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds):
            wait = generator.random() * 1.5
            victim = generator.randrange(PROCESSES) if number % 3 == 0 else None
            kind = "in order" if victim is None else "one killed"
            times[kind] += leave_once(pathlib.Path(name), wait, victim)
    for kind, seconds in times.items():
        if seconds:
            median, most = statistics.median(seconds), max(seconds)
            print(f"{kind}: {len(seconds)} leaves, median {median:.2f} s, most {most:.2f} s")


def main() -> None:
    """Run the rounds, and print the distribution of the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--stops", type=int, default=0)
    parser.add_argument("--leaves", type=int, default=0, help="groups that do nothing but leave")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    if options.leaves:
        leave_often(options.leaves, generator)
    if not options.kills and not options.stops:
        return
    rounds = [signal.SIGKILL] * options.kills + [signal.SIGSTOP] * options.stops
    generator.shuffle(rounds)
    started = time.monotonic()
    times: dict[str, list[float]] = {"SIGKILL": [], "SIGSTOP": []}
    counts = dict.fromkeys(times, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "run"
        for how in rounds:
            if time.monotonic() - started > options.seconds:
                break
            wait, victim = generator.random() * 2, generator.randrange(PROCESSES)
            seconds = fail_once(folder, how, wait, victim)
            counts[how.name] += 1
            times[how.name] += seconds
            print(how.name, "of", victim, [round(each, 2) for each in seconds], flush=True)
        step = check_resumed(folder, pathlib.Path(name) / "whole")
    for how, found in times.items():
        if found:
            print(json.dumps({
                "signal": how, "rounds": counts[how], "errors": len(found),
                "median": round(statistics.median(found), 2), "most": round(max(found), 2),
            }))  # fmt: skip
    print("resumed to the same numbers after", step, "steps")


if __name__ == "__main__":
    main()
