"""The first run of a program over several processes, which compare the program before it runs."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.digest import program_digest
from hlofront.pjrt.cache_key import text_digest
from hlofront.pjrt.launches import Launch
from hlofront.pjrt.process_group import current_group
from hlofront.pjrt.program_comparison import CallbackFailure, CallbackOutcome, ComparedProgram
from hlofront.runtime.sharding.device_assignment import DeviceAssignment

# The maximum number of changes that an error lists.
_MAX_CHANGES = 12


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The first run of an executable that spans several processes.

    Attributes:
      name: the name of the traced function.
      device_assignment: the devices of the executable.
      settings: what else its compilation depends on, as text.
      lowered: returns the StableHLO of its program, without source lines.
    """

    name: str
    device_assignment: DeviceAssignment
    settings: str
    lowered: Callable[[ClosedJaxpr], str]

    def compare(self, program: ClosedJaxpr, processes: tuple[int, ...]) -> str:
        """Wait until all processes are about to run the same program; return its digest.

        If the jaxpr has a digest, it is compared instead of the module's: equal jaxprs lower to
        equal modules, which are compared if the digests differ.

        Raises:
          RuntimeError: if their programs differ, or a process does not arrive.
          ProcessFailureError: if a process has failed.
        """
        group = current_group()
        if group is None:
            return ""  # The devices of other processes are pretended ones.

        def text() -> str:
            ids = [device.id for device in self.device_assignment.devices]
            return f"devices {ids}, options {self.settings}\n{self.lowered(program)}"

        digest = program_digest(program)
        if digest is None:
            digest = text_digest(self.lowered(program))
        full = f"{digest} {self.settings} {self.device_assignment.text()}"
        compared = ComparedProgram(self.name, text_digest(full), text, difference)
        group.programs.compare(processes, compared)
        return compared.digest


def agreed_error(
    processes: tuple[int, ...], name: str, own: RuntimeError | None
) -> RuntimeError | None:
    """Return the error of a program's callbacks in this process, or else in another one.

    The processes meet after a run in which a callback failed in any of them: the call fails in all.

    Args:
      processes: the processes whose devices the program spans.
      name: the name of the traced function.
      own: the error of this process's callbacks, or None.

    Raises:
      ProcessFailureError: if a process has failed.
    """
    group = current_group()
    if group is None:
        return own
    text = "no callback failed" if own is None else str(own)

    def each(first: str, second: str, labels: tuple[str, str]) -> str:
        return "\n".join(
            f"{of}: {outcome}" for of, outcome in zip(labels, (first, second), strict=True)
        )

    try:
        group.programs.compare(processes, CallbackOutcome(name, text, lambda: text, each))
    except CallbackFailure as error:
        return own or error
    return own


def note_start(processes: tuple[int, ...], name: str) -> None:
    """Record that this process starts a program in which it exchanges values with others."""
    group = current_group()
    if group is not None:
        group.programs.note_start(processes, name)


def note_launch(connecting: Collection[int], launch: Launch | None = None) -> None:
    """Note that a program starts which has waited for the one before it.

    Args:
      connecting: its processes, if it runs for the first time: they may connect.
      launch: the launch of it that the watchdog looks at, or None.
    """
    group = current_group()
    if group is not None:
        group.note_launch(connecting)
    if launch is not None:
        launch.runs()


def difference(first: str, second: str, labels: tuple[str, str]) -> str:
    """Return the differences of two programs, each with a line of settings; "" if there are none.

    Example:
      >>> difference("devices [0, 1]\\n", "devices [1, 0]\\n", ("process 0", "process 1"))
      'devices [0, 1] in process 0\\ndevices [1, 0] in process 1'
    """
    from hlotools.matching.difference import Side, diff_of_sides

    lines = first.split("\n", 1), second.split("\n", 1)
    if lines[0][0] != lines[1][0]:
        return "\n".join(f"{line[0]} in {of}" for line, of in zip(lines, labels, strict=True))
    sides = [Side("stablehlo", of, line[1]) for line, of in zip(lines, labels, strict=True)]
    changes = diff_of_sides(*sides)
    return "" if changes.equal else changes.text(limit=_MAX_CHANGES)
