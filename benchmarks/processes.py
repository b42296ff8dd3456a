"""What a group of processes sends to its coordination service, and how that grows with the group.

    python benchmarks/processes.py messages 2 4 8    counts each process's messages, by method
    python benchmarks/processes.py rendezvous 4096    the rendezvous of so many processes, simulated
    python benchmarks/processes.py service 64 256    so many clients of one service, played
    python benchmarks/processes.py step 1 2 4        seconds per training step over processes

Processes that are played are threads or tasks of one process, which send what real ones send.
"""

import asyncio
import collections
import concurrent.futures
import dataclasses
import io
import json
import pathlib
import re
import sys
import tempfile
import time

from hlofront.bridge.coordination import coordination_client, start_coordinator
from hlofront.cli.run import free_port, run_group
from hlofront.pjrt import rendezvous

HERE = pathlib.Path(__file__)

# Counts the calls of the coordination client, and the bytes of its arguments and results, while a
# group joins, compiles and runs one program over all devices, and leaves.
COUNTED = """
import collections, json, sys
from hlofront.pjrt import process_failures, process_group

class Counting:
    def __init__(self, client):
        self.client, self.calls, self.bytes = client, collections.Counter(), collections.Counter()
    def __getattr__(self, name):
        method = getattr(self.client, name)
        def counted(*args, **keywords):
            result = method(*args, **keywords)
            self.calls[name] += 1
            self.bytes[name] += len(repr(args)) + len(repr(result))
            return result
        return counted

make, collectives = process_group.coordination_client, process_failures.cpu_collectives
process_group.coordination_client = lambda *args: Counting(make(*args))
process_failures.cpu_collectives = lambda client: collectives(client.client)

import numpy as np
import hlofront as jax, hlofront.numpy as jnp
from hlofront.pjrt import clients
jax.distributed.initialize()
client = process_group.current_group().client
phases = {"join": (dict(client.calls), dict(client.bytes))}

class Group:
    def __init__(self, group): self.group = group
    def __getattr__(self, name):
        return client.client if name == "client" else getattr(self.group, name)
clients.join(Group(process_group.current_group()))
mesh = jax.make_mesh((jax.device_count(),), ("x",), (jax.sharding.AxisType.Auto,))
split = jax.NamedSharding(mesh, jax.P("x"))
values = np.arange(4 * jax.device_count(), dtype=np.float32)
x = jax.make_array_from_callback(values.shape, split, lambda index: values[index])
total = jax.jit(jnp.sum)
float(total(x))
phases["devices and a first program"] = (dict(client.calls), dict(client.bytes))
for _ in range(100):
    float(total(x))
phases["100 more runs"] = (dict(client.calls), dict(client.bytes))
print("COUNTED", json.dumps(phases), flush=True)
"""

# One step of a small network over all devices, and its time.
STEP = """
import time
import numpy as np
import hlofront as jax, hlofront.numpy as jnp
jax.distributed.initialize()
mesh = jax.make_mesh((jax.device_count(),), ("x",), (jax.sharding.AxisType.Auto,))
whole, split = jax.NamedSharding(mesh, jax.P()), jax.NamedSharding(mesh, jax.P("x"))
random = np.random.default_rng(0)
def put(values, sharding):
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])
weights = [put(random.normal(size=(256, 256)).astype(np.float32) / 16, whole) for _ in range(4)]
batch = put(random.normal(size=(64, 256)).astype(np.float32), split)
def loss(weights, batch):
    for w in weights:
        batch = jnp.tanh(batch @ w)
    return (batch ** 2).mean()
@jax.jit
def step(weights, batch):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, batch))
for _ in range(5):
    weights = jax.block_until_ready(step(weights, batch))
times = []
for _ in range(50):
    start = time.perf_counter()
    weights = jax.block_until_ready(step(weights, batch))
    times.append(time.perf_counter() - start)
print("COUNTED", sorted(times)[25] * 1e3, flush=True)
"""


def printed(script: str, count: int) -> list[str]:
    """Return what each process of a group prints after the word COUNTED."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "script.py")
        path.write_text(script)
        out = io.StringIO()
        if run_group([sys.executable, str(path)], count, 1, out):
            sys.exit(out.getvalue())
    return re.findall(r"COUNTED (.*)", out.getvalue())


def messages(count: int) -> None:
    for line in sorted(printed(COUNTED, count))[:1]:
        before: collections.Counter[str] = collections.Counter()
        bytes_before = 0
        for phase, (calls, sizes) in json.loads(line).items():
            new = collections.Counter(calls) - before
            size = sum(sizes.values()) - bytes_before
            print(f"{count} processes, {phase}: {dict(new)}, {size} bytes")
            before, bytes_before = collections.Counter(calls), sum(sizes.values())


def step(count: int) -> None:
    medians = sorted(map(float, printed(STEP, count)))
    print(f"{count} processes of one device: {medians[-1]:.2f} ms per step")


def play_rendezvous(count: int) -> None:
    address = f"127.0.0.1:{free_port()}"
    own = rendezvous.Participant.of_this_process(0, count, 300.0)

    async def register(number: int) -> bytes:
        reader, writer = await asyncio.open_connection(*address.split(":"))
        record = dataclasses.asdict(dataclasses.replace(own, process_id=number))
        writer.write(rendezvous.PROTOCOL + json.dumps(record).encode() + b"\n")
        answer = await reader.readline()
        writer.close()
        return answer

    async def all_register() -> list[bytes]:
        return await asyncio.gather(*map(register, range(count)))

    started = time.perf_counter()
    call = rendezvous.Rendezvous(address, own)
    answers = asyncio.run(all_register())
    call.join()
    assert set(answers) == {rendezvous.PROTOCOL + b"\n"}
    print(f"{count} processes: rendezvous in {time.perf_counter() - started:.2f} s")


def play_service(count: int) -> None:
    address = f"127.0.0.1:{free_port()}"
    coordinator = start_coordinator(address, count, 100, 300)
    clients = [coordination_client(address, number, 300, 100, 300) for number in range(count)]

    def timed(label, call):
        started = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            list(pool.map(call, range(count)))
        print(f"{count} clients: {label} in {time.perf_counter() - started:.2f} s")

    timed("connect", lambda n: clients[n].connect())
    timed("one value each", lambda n: clients[n].key_value_set(f"a/{n}", "x" * 40))
    timed("all read all values", lambda n: clients[n].key_value_dir_get("a"))
    timed("who is alive", lambda n: clients[n].get_live_nodes(list(range(count))))
    timed("shutdown", lambda n: clients[n].shutdown())
    coordinator.stop()


if __name__ == "__main__":
    kinds = {
        "messages": messages,
        "rendezvous": play_rendezvous,
        "service": play_service,
        "step": step,
    }
    for text in sys.argv[2:]:
        kinds[sys.argv[1]](int(text))
