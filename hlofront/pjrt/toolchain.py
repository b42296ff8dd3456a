"""NVIDIA's `ptxas`, which compiling for a GPU that is not attached requires."""

import functools
import importlib.util
import os
import shutil
import subprocess

from hlofront.base.errors import PluginError

_DATA_DIR = "xla_gpu_cuda_data_dir"
# Per major version of CUDA: the folders of the packages' tools, and the package of ptxas.
_FOLDERS = {"13": ("cu13",), "12": ("cuda_nvcc", "cu12")}
PACKAGES = {"13": "nvidia-cuda-nvcc", "12": "nvidia-cuda-nvcc-cu12"}


def find_ptxas(cuda: str = "13") -> str | None:
    """Return the path of `ptxas` in NVIDIA's Python packages, the toolkit, or on PATH, or None.

    Args:
      cuda: the major version of CUDA that the plugin is built for.
    """
    folders: list[str] = []
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        folders += [os.path.join(folder, name, "bin") for name in _FOLDERS.get(cuda, ())]
    folders += [
        os.path.join(os.environ[n], "bin") for n in ("CUDA_HOME", "CUDA_DIR") if n in os.environ
    ]
    folders += os.environ.get("PATH", "").split(os.pathsep)
    folders.append("/usr/local/cuda/bin")
    return shutil.which("ptxas", path=os.pathsep.join(folders))


@functools.cache
def version_of_tool(path: str) -> str:
    """Return the version of a CUDA tool, such as "13.0"; empty if `--version` prints none."""
    try:
        output = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    _, _, after = output.partition("release ")
    return after.partition(",")[0].strip()


def ptxas_overrides(cuda: str, options: dict[str, object]) -> dict[str, object]:
    """Return compiler options, extended by the one with which XLA finds `ptxas`, unless it is set.

    Raises:
      PluginError: if there is no `ptxas`, or it is of an older CUDA than the plugin.
    """
    if _DATA_DIR in options or _DATA_DIR in os.environ.get("XLA_FLAGS", ""):
        return options
    path = find_ptxas(cuda)
    install = f"Run `pip install {PACKAGES.get(cuda, PACKAGES['13'])}`"
    if path is None:
        raise PluginError(
            "to compile for a GPU that is not attached, XLA needs the assembler `ptxas`, and there "
            f"is none in NVIDIA's Python packages, in CUDA_HOME or on PATH. {install}; the rest of "
            "the CUDA toolkit is not needed."
        )
    version = version_of_tool(path)
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < int(cuda):
        raise PluginError(
            f"the assembler {path} is of CUDA {version}, and the GPU plugin is made for CUDA "
            f"{cuda}. {install}, whose ptxas is found before that one."
        )
    return {**options, _DATA_DIR: os.path.dirname(os.path.dirname(path))}
