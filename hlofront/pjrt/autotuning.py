# pyright: strict
"""The results of autotuning that XLA loads and keeps when it compiles for NVIDIA GPUs.

For matrix products and some fusions XLA tries several kernels on the GPU and takes the fastest, so
that two machines, or two runs, may get different programs. A file of results makes this choice
instead, for absent GPUs, too. XLA reads one file in the life of a process and keeps its results for
all programs that it compiles afterwards, so this is an option of the process.

With jax_compilation_cache_dir, XLA also keeps what it finds in a folder there, and takes it from
there, in other processes too.
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
_cache_folder = options["jax_compilation_cache_dir"]
_kept = options["jax_persistent_cache_enable_xla_caches"]
# XLA's own caches by the options with their paths, and the options that each needs.
_CACHES: dict[str, dict[str, object]] = {
    "xla_gpu_per_fusion_autotune_cache_dir": {},
    "xla_gpu_kernel_cache_file": {"xla_gpu_enable_llvm_module_compilation_parallelism": True},
}


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


def autotune_options(client: Client) -> list[tuple[str, object]]:
    """Return XLA's options by which programs for a client load and keep results of autotuning.

    They name files of this machine, and are not part of cache keys.
    """
    results = autotune_results(client)
    found: list[tuple[str, object]] = [] if results is None else [(LOADING, results.path)]
    if _cache_folder.value and client.platform == "gpu" and raw_platform_of(client) == "cuda":
        folder = pathlib.Path(_cache_folder.value).expanduser().absolute()
        for name in _kept_caches():
            found += [(name, str(folder / name)), *_CACHES[name].items()]
    return found


def _kept_caches() -> list[str]:
    text: str = _kept.value or "none"
    names = [name.strip() for name in text.split(",")]
    if names == ["none"]:
        return []
    return list(_CACHES) if names == ["all"] else names


def _check_caches(value: object, local: bool) -> None:
    if not isinstance(value, str):
        return
    names = value.replace(" ", "").split(",")
    unknown = [name for name in names if name not in _CACHES]
    if unknown and names not in (["all"], ["none"]):
        raise ValueError(
            f"jax_persistent_cache_enable_xla_caches is all, none, or a list of "
            f"{', '.join(_CACHES)}, separated by commas: got {value!r}"
        )


_kept.watch(_check_caches)


def _refuse_late_change(value: object, local: bool) -> None:
    if _loaded is not None and value != _file.value:
        raise RuntimeError(
            f"XLA has loaded the autotuning results of {_loaded.path}, and keeps them: set "
            "hlofront_autotune_results before the first compilation for a GPU, or start a process "
            "for other results"
        )


_file.watch(_refuse_late_change)
