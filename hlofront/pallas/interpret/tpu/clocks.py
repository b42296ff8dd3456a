"""Vector clocks of cores and copies, and semaphores, which order their actions."""

import dataclasses
from collections.abc import Callable

from hlofront.base.named_tuple import NamedTuple

# The name of a buffer or of semaphores among those of a core.
Key = tuple[object, ...]
# The latest time of each thread that another thread is known to follow.
Clock = dict["Thread", int]


class Thread:
    """A core, or a copy, with a vector clock.

    Attributes:
      name: its name, for messages.
      clock: per thread, the latest time that is over before this thread's next action.
    """

    __slots__ = ("clock", "name")

    def __init__(self, name: str, before: Clock | None = None):
        self.name = name
        self.clock: Clock = dict(before or {})
        self.clock[self] = 1

    @property
    def time(self) -> int:
        return self.clock[self]

    def release(self) -> Clock:
        """Return the clock of the actions so far, for threads that acquire it; begin a new time."""
        clock = dict(self.clock)
        self.clock[self] += 1
        return clock

    def acquire(self, clock: Clock) -> None:
        """Record that everything in another thread's clock happened before this thread goes on."""
        for thread, time in clock.items():
            if time > self.clock.get(thread, 0):
                self.clock[thread] = time

    def follows(self, thread: "Thread", time: int) -> bool:
        """Return whether another thread's actions at a time certainly happened before now."""
        return self.clock.get(thread, 0) >= time


@dataclasses.dataclass(slots=True, eq=False)
class Signal:
    """A number that a thread adds, or will add, to a semaphore.

    Attributes:
      source: the thread.
      amount: the number.
      text: the operation that adds it, for messages.
      clock: the thread's clock when it was added; None before.
    """

    source: Thread
    amount: int
    text: str
    clock: Clock | None = None


class Semaphore:
    """A semaphore of a core: a count, and the threads that increased it.

    Attributes:
      name: its name, for messages.
      count: its count.
      copies: the pending parts of copies that will signal it.
    """

    __slots__ = ("_consumed", "_signals", "copies", "count", "name")

    def __init__(self, name: str):
        self.name = name
        self.count = 0
        self.copies: list[Callable[[], None]] = []
        # The signals since all were last consumed, and the amount that is consumed of them.
        self._signals: list[Signal] = []
        self._consumed = 0

    def expect(self, source: Thread, amount: int, text: str) -> Signal:
        """Record that a thread will increase the count, and return the signal for `arrive`."""
        signal = Signal(source, amount, text)
        self._signals.append(signal)
        return signal

    def arrive(self, signal: Signal) -> None:
        """Increase the count by an expected signal."""
        signal.clock = signal.source.release()
        self.count += signal.amount

    def take(self, thread: Thread, amount: int, decrement: bool) -> None:
        """Order a thread that has waited after the signals that must have arrived.

        If several threads signal the same semaphore, what has arrived may be from any of them: only
        the part that exceeds all signals of the others is certainly from one thread.
        """
        consumed = self._consumed + amount
        total = sum(signal.amount for signal in self._signals)
        own: dict[Thread, int] = {}
        for signal in self._signals:
            own[signal.source] = own.get(signal.source, 0) + signal.amount
        before = dict.fromkeys(own, 0)
        for signal in self._signals:
            source = signal.source
            if before[source] < consumed - (total - own[source]) and signal.clock is not None:
                thread.acquire(signal.clock)
            before[source] += signal.amount
        if not decrement:
            return
        self.count -= amount
        self._consumed = consumed
        if consumed == total:
            self._signals.clear()
            self._consumed = 0

    @property
    def unconsumed(self) -> list[str]:
        """The operations that signaled it since it was last 0, for messages."""
        return list(dict.fromkeys(signal.text for signal in self._signals))


class Semaphores(NamedTuple):
    """The semaphores of one parameter of a kernel, on one core.

    Attributes:
      key: its name among those of the core; other cores use the same one.
      name: its name, for messages.
      shape: the shape of the array of semaphores.
      each: the semaphores, in row-major order.
    """

    key: Key
    name: str
    shape: tuple[int, ...]
    each: list[Semaphore]

    def like(self) -> "Semaphores":
        """Return semaphores of the same kind for another core."""
        return semaphores(self.key, self.name, self.shape)

    @property
    def is_shared(self) -> bool:
        """False: each core has its own."""
        return False


def semaphores(key: Key, name: str, shape: tuple[int, ...]) -> Semaphores:
    """Return an array of semaphores whose counts are 0."""
    names = [name]
    for size in shape:
        names = [f"{each}[{i}]" for each in names for i in range(size)]
    each = [Semaphore(one.replace("][", ", ")) for one in names]
    return Semaphores(key, name, shape, each)
