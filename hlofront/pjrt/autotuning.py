# pyright: strict
"""The results of autotuning that XLA loads when it compiles for NVIDIA GPUs.

For matrix products and some fusions XLA tries several kernels on the GPU and takes the fastest, so
that two machines, or two runs, may get different programs. A file of results makes this choice
instead, for absent GPUs, too. XLA reads one file in the life of a process and keeps its results for
all programs that it compiles afterwards, so this is an option of the process.
"""

import hashlib
import pathlib

from hlofront.base.config import options
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.client import Client
from hlofront.bridge.members import raw_platform_of

# XLA's option with the path of the file.
LOADING = "xla_gpu_load_autotune_results_from"
# The environment variable of the option.
VARIABLE = "HLOFRONT_AUTOTUNE_RESULTS"
_file = options["hlofront_autotune_results"]


class AutotuneResults(NamedTuple):
    """A file of results: its path, and a digest of its contents."""

    path: str
    digest: str


# The file that this process's programs are compiled with, if any are.
_loaded: AutotuneResults | None = None


def autotune_results(client: Client) -> AutotuneResults | None:
    """Return the results that programs for a client are compiled with, or None.

    Raises:
      ValueError: if the file of the option hlofront_autotune_results cannot be read.
    """
    global _loaded
    if not _file.value or client.platform != "gpu" or raw_platform_of(client) != "cuda":
        return None
    if _loaded is None:
        path = pathlib.Path(_file.value).expanduser().absolute()
        try:
            contents = path.read_bytes()
        except OSError as error:
            raise ValueError(
                f"hlofront_autotune_results is a file that XLA wrote for its option "
                f"xla_gpu_dump_autotune_results_to: {path} cannot be read: {error.strerror}"
            ) from error
        _loaded = AutotuneResults(str(path), hashlib.sha256(contents).hexdigest())
    return _loaded


def _refuse_late_change(value: object, local: bool) -> None:
    if _loaded is not None and value != _file.value:
        raise RuntimeError(
            f"XLA has loaded the autotuning results of {_loaded.path}, and keeps them: set "
            "hlofront_autotune_results before the first compilation for a GPU, or start a process "
            "for other results"
        )


_file.watch(_refuse_late_change)
