"""ls and verify: the contents of a bundle, and which executables can be used here."""

import dataclasses
import os
from collections.abc import Sequence

from hlofront.base.boundary import boundary
from hlofront.bridge.client import Device
from hlofront.pjrt import cache_file, clients
from hlofront.runtime.bundle.bundle_file import BundleError, read
from hlofront.runtime.bundle.fingerprint import differing, fields_of_devices
from hlofront.runtime.bundle.programs import exported_program
from hlofront.runtime.export.header_checks import reading_of
from hlofront.runtime.export.serialization import executable_header
from hlotools.terminal_text import on_one_line


@dataclasses.dataclass(frozen=True)
class ListedProgram:
    """A program of a bundle.

    Attributes:
      signature: the types of its arguments, as text.
      platforms: the platforms that its StableHLO is for.
      stablehlo_bytes: the size of its exported program.
      executables: the target and the size in bytes of each executable.
    """

    signature: str
    platforms: tuple[str, ...]
    stablehlo_bytes: int
    executables: tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True)
class Listing:
    """The contents of a bundle, whose text is a table.

    Attributes:
      path: the file.
      name: the function's name.
      written_by: the versions that wrote it.
      programs: its programs.
    """

    path: str
    name: str
    written_by: str
    programs: tuple[ListedProgram, ...]

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.name}, by {self.written_by}"]
        for program in self.programs:
            lines.append(f"  ({program.signature})")
            platforms = ", ".join(program.platforms)
            lines.append(f"    {program.stablehlo_bytes:>12,} bytes  StableHLO for {platforms}")
            for target, size in program.executables:
                lines.append(f"    {size:>12,} bytes  executable for {target}")
        return "\n".join(map(on_one_line, lines))


@boundary
def ls(path: str | os.PathLike[str]) -> Listing:
    """List the programs of a bundle, without loading any.

    Raises:
      BundleError: if the file is damaged, not a bundle, or of a newer version.
      OSError: if it cannot be read.

    Example:
      The listing of a bundle for one size and one target, `print(ls("step.hlob"))`::

        step.hlob: step, by hlofront 0.3.0, Python 3.11
          (x: f32[8,3])
                 3,120 bytes  StableHLO for cpu
                10,552 bytes  executable for cpu
    """
    contents = read(os.fspath(path))
    function = contents.header["function"]
    programs = tuple(
        ListedProgram(
            entry.signature,
            exported_program(contents, entry, trust=False).platforms,
            entry.size,
            tuple((executable.target, executable.size) for executable in entry.executables),
        )
        for entry in contents.programs
    )
    written_by = f"hlofront {function['hlofront']}, Python {function['python']}"
    return Listing(contents.path, contents.header["name"], written_by, programs)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The verdict on an executable of a bundle: whether this machine can use it.

    Attributes:
      signature: the types of the arguments of its program, as text.
      target: the target that it was compiled for.
      differing: the fields that differ here, as text; "" if it can be used.
    """

    signature: str
    target: str
    differing: str

    def __str__(self) -> str:
        reason = self.differing or "can be used here"
        return on_one_line(f"({self.signature}) for {self.target}: {reason}")


@boundary
def verify(path: str | os.PathLike[str]) -> list[Verdict]:
    """Check a whole bundle, and return which of its executables can be used on this machine.

    The checksum, the header, all types and structures, each StableHLO module and the tables of the
    executables are read; machine code is not loaded.

    Raises:
      BundleError: if a part is damaged, or the file is not a bundle, or of a newer version.
      OSError: if it cannot be read.
    """
    contents = read(os.fspath(path))
    verdicts: list[Verdict] = []
    for entry in contents.programs:
        exported = exported_program(contents, entry, trust=False)
        with reading_of(f"a program of the bundle {contents.path}", BundleError):
            exported.ir_module()
        for executable in entry.executables:
            what = f"the executable for {executable.target} of the bundle {contents.path}"
            with reading_of(what, BundleError):
                header = executable_header(cache_file.unpack(contents.value(executable.field)))
                devices = _devices_for(header["platform"], header["device_ids"])
            if devices:
                here = fields_of_devices(devices)
                # The options of a compilation are known when a program is called.
                made = {name: executable.fields.get(name, "nothing") for name in here}
                reason = differing(made, here)
            else:
                count, kind = len(header["device_ids"]), header["device_kind"]
                reason = f"it is for {count} x {kind}, which this process does not have"
            verdicts.append(Verdict(entry.signature, executable.target, reason))
    return verdicts


def _devices_for(platform: str, ids: Sequence[int]) -> list[Device]:
    """Return devices of this process for an executable; [] if there are not enough."""
    attached = [device for device in clients.devices() if device.platform == platform]
    return attached[: len(ids)] if len(attached) >= len(ids) else []
