"""The modeled machine: cores of devices, their memories, copies in flight, and waiting cores."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.pallas.interpret.tpu.clocks import Key, Semaphore, Semaphores, Signal, Thread
from hlofront.pallas.interpret.tpu.memory import Buffer, BufferPart, Held
from hlofront.pallas.interpret_params import InterpretParams

AnyRef = TypeVar("AnyRef", bound=Buffer | Semaphores)

# In "random" mode, copies stop making progress with a probability of one in this number.
_CHANCE = 2


class Waiting(NamedTuple):
    """What a core waits for.

    Attributes:
      semaphore: a semaphore.
      amount: the minimum count at which the core continues.
      line: the line of the user's program.
    """

    semaphore: Semaphore
    amount: int
    line: str

    @property
    def is_over(self) -> bool:
        """Whether the core can continue, or a copy that it waits for can happen."""
        return self.semaphore.count >= self.amount or bool(self.semaphore.copies)


# The run of a core, which pauses where it waits.
Run = Generator[Waiting, None, None]


class Core:
    """A core of a device.

    Attributes:
      machine: the machine.
      device: the number of its device.
      number: its number among the cores of the device.
      thread: its clock.
      scopes: the number of times it has entered each run_scoped, by its program's identity.
    """

    __slots__ = ("device", "machine", "number", "scopes", "thread")

    def __init__(self, machine: "Machine", device: int, number: int):
        self.machine = machine
        self.device = device
        self.number = number
        self.thread = Thread(f"core {number} of device {device}")
        self.scopes: dict[int, int] = {}

    def wait(
        self, semaphore: Semaphore, amount: int, line: str, decrement: bool = True
    ) -> Generator[Waiting, None, None]:
        """Wait until a count is at least a number, and subtract it."""
        while semaphore.count < amount:
            if semaphore.copies:
                semaphore.copies[0]()
            else:
                yield Waiting(semaphore, amount, line)
        semaphore.take(self.thread, amount, decrement)

    def signal(self, semaphore: Semaphore, amount: int, line: str) -> None:
        """Add a number to a count."""
        text = f"the signal by {self.thread.name} at {line}"
        semaphore.arrive(semaphore.expect(self.thread, amount, text))


class Copy:
    """A started copy: a thread that reads, signals, writes and signals again."""

    __slots__ = ("_ends", "_held", "_is_added", "_line", "_received", "_sent", "thread")

    def __init__(
        self,
        core: Core,
        ends: tuple[Buffer, BufferPart, Buffer, BufferPart],
        sent: Semaphore | None,
        received: Semaphore,
        line: str,
        is_added: bool,
    ):
        src, part, _, _ = ends
        self.thread = Thread(f"the copy that {core.thread.name} started", core.thread.release())
        self._ends = ends
        self._line = line
        self._held: Held | None = None
        self._is_added = is_added
        size = int(np.prod(part.sizes, dtype=np.int64)) * src.values.dtype.itemsize
        self._sent = self._expected(sent, size, self.read)
        self._received = self._expected(received, size, self.write)

    def _expected(
        self, semaphore: Semaphore | None, size: int, step: Callable[[], None]
    ) -> tuple[Semaphore, Signal, Callable[[], None]] | None:
        if semaphore is None:
            return None
        semaphore.copies.append(step)
        text = f"{self.thread.name} at {self._line}"
        return semaphore, semaphore.expect(self.thread, size, text), step

    @staticmethod
    def _arrived(expected: tuple[Semaphore, Signal, Callable[[], None]] | None) -> None:
        if expected is not None:
            semaphore, signal, step = expected
            semaphore.copies.remove(step)
            semaphore.arrive(signal)

    @property
    def has_ended(self) -> bool:
        """Whether the destination was written to."""
        return self._received is None

    def read(self) -> None:
        """Read the source, unless that has happened."""
        if self._held is None:
            src, part, _, _ = self._ends
            self._held = src.read(part, self.thread, self._line)
            self._arrived(self._sent)

    def write(self) -> None:
        """Write or add to the destination, after the source has been read, unless it has happened.

        With that the copy ends.
        """
        self.read()
        held = self._held
        if self._received is None or held is None:
            return
        _, _, dst, part = self._ends
        if self._is_added:
            old = dst.read(part, self.thread, self._line)
            held = held._replace(values=held.values + old.values)
        dst.write(part, held, self.thread, self._line)
        self._arrived(self._received)
        self._received = None

    def step(self) -> None:
        """Perform the next part of the copy."""
        if self._held is None:
            self.read()
        else:
            self.write()


class Machine:
    """Devices with cores, which run a kernel.

    Attributes:
      params: the options of the interpreter.
      devices: the number of devices.
      random: the generator of random numbers.
    """

    __slots__ = ("_copies", "_tables", "devices", "params", "random")

    def __init__(self, params: InterpretParams, devices: int):
        self.params = params
        self.devices = devices
        self.random = np.random.default_rng(params.random_seed or 0)
        self._tables: dict[tuple[int, int | None], dict[Key, Any]] = {}
        self._copies: list[Copy] = []

    # ---- buffers and semaphores

    def _table(self, ref: Buffer | Semaphores, device: int, core: int) -> dict[Key, Any]:
        place = (device, None if ref.is_shared else core)
        return self._tables.setdefault(place, {})

    def allocate(self, core: Core, ref: AnyRef) -> AnyRef:
        """Return a core's buffer or semaphores: these, or those that other cores already made."""
        return self._table(ref, core.device, core.number).setdefault(ref.key, ref)

    def of_core(self, ref: AnyRef, device: int, core: int) -> AnyRef:
        """Return the counterpart of a buffer or semaphores on another core or device."""
        table = self._table(ref, device, core)
        if ref.key not in table:
            table[ref.key] = ref.like()
        return table[ref.key]

    def free(self, core: Core, ref: Buffer | Semaphores) -> None:
        """Free a buffer or semaphores of a core.

        Raises:
          RuntimeError: if the count of a semaphore is not 0.
        """
        self._table(ref, core.device, core.number).pop(ref.key, None)
        if isinstance(ref, Semaphores):
            for semaphore in ref.each:
                self._check_zero(semaphore, core)

    def _check_zero(self, semaphore: Semaphore, core: Core) -> None:
        while semaphore.copies:
            semaphore.copies[0]()
        if semaphore.count:
            causes = "; ".join(semaphore.unconsumed)
            raise RuntimeError(
                f"Semaphore {semaphore.name} has non-zero count for {core.thread.name} at its end: "
                f"{semaphore.count}. What signaled it and was not waited for may be: {causes}"
            )

    # ---- copies

    def start(self, copy: Copy) -> None:
        """Start a copy, which is performed now or later."""
        if self.params.dma_execution_mode == "eager":
            copy.write()
        else:
            self._copies.append(copy)
            self.go_on()

    def go_on(self) -> None:
        """Perform parts of some copies, if they happen at random moments."""
        if self.params.dma_execution_mode == "random":
            while self._copies and self.random.integers(_CHANCE):
                copy = self._copies[self.random.integers(len(self._copies))]
                copy.step()
                if copy.has_ended:
                    self._copies.remove(copy)

    # ---- runs

    def run(self, runs: Sequence[tuple[Core, Run]]) -> None:
        """Run cores until all have ended.

        Raises:
          RuntimeError: if cores wait forever, or semaphores are not 0 at the end.
        """
        waiting: dict[Core, Waiting] = {}
        running = dict(runs)
        while running:
            has_moved = False
            for core, run in list(running.items()):
                if core in waiting and not waiting[core].is_over:
                    continue
                has_moved = True
                try:
                    waiting[core] = next(run)
                except StopIteration:
                    del running[core]
                    waiting.pop(core, None)
            if running and not has_moved:
                raise RuntimeError(_deadlock(waiting, [core for core, _ in runs]))
        for copy in self._copies:
            copy.write()

    def check_semaphores(self, cores: Sequence[Core]) -> None:
        """Raise RuntimeError if the count of a semaphore of a core is not 0."""
        for core in cores:
            for ref in self._tables.get((core.device, core.number), {}).values():
                if isinstance(ref, Semaphores):
                    for semaphore in ref.each:
                        self._check_zero(semaphore, core)


def _deadlock(waiting: dict[Core, Waiting], cores: Sequence[Core]) -> str:
    """Return the message that cores wait forever."""
    lines: list[str] = []
    for core in cores:
        what = waiting.get(core)
        if what is None:
            lines.append(f"{core.thread.name} has ended")
        else:
            lines.append(
                f"{core.thread.name} waits at {what.line} for {what.semaphore.name} to be at least "
                f"{what.amount}, which is {what.semaphore.count}"
            )
    listed = "\n  ".join(lines)
    return (
        f"DEADLOCK\n  {listed}\nNo copy is in flight, and no core goes on, that would signal these "
        "semaphores."
    )
