# pyright: strict
"""The comparison of host values that processes put on devices of all of them."""

import hashlib

import numpy as np

from hlofront.base.caches import memoize
from hlofront.bridge.client import Sharding
from hlofront.pjrt.launches import noted
from hlofront.pjrt.process_group import current_group
from hlofront.pjrt.program_comparison import ComparedValue

# The maximum size of an array that an error shows in full; for larger ones it shows the first and
# the last three numbers.
_MAX_NUMBERS = 20


def compare_values(value: np.ndarray, sharding: Sharding) -> None:
    """Wait until all processes are about to put the same value on devices of all of them.

    Processes compare digests. A sharding over only some of the processes may be a different one in
    each process, with different values, which are not compared.

    Raises:
      AssertionError: in all processes, if their values, dtypes or shapes differ.
      RuntimeError: if a process does not arrive.
      ProcessFailureError: if one has failed.
    """
    group, processes = current_group(), _processes_of(sharding)
    if group is None or len(processes) != group.process_count:
        return
    kind = f"{value.dtype}{list(value.shape)}"
    digest = hashlib.sha256(kind.encode() + np.ascontiguousarray(value).tobytes()).hexdigest()

    def text() -> str:
        with np.printoptions(threshold=_MAX_NUMBERS):
            return f"{kind} {value!r}"

    compared = ComparedValue(f"device_put of {kind}", digest, text, _values_text)

    def compare() -> tuple[()]:
        group.programs.compare(processes, compared)
        return ()

    noted(processes, compared.name, compare)


@memoize
def _processes_of(sharding: Sharding) -> tuple[int, ...]:
    return tuple(sorted({device.process_index for device in sharding.device_set}))


def _values_text(first: str, second: str, labels: tuple[str, str]) -> str:
    return f"{labels[0]} has {first}\n{labels[1]} has {second}"
