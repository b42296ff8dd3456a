"""The functions `dumped`, for dumps of XLA's passes and kernels, `tpu_kernels`, `gpu_kernels`."""

import contextlib
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping

from hlofront.base.config import options
from hlofront.bridge import compile_process
from hlofront.inspect.cost import description_of
from hlofront.inspect.jitted import jitted
from hlofront.pjrt import platforms
from hlofront.pjrt.compile import compile_options
from hlofront.pjrt.targets import Description, Target
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlotools.dumps import gpu_kernels as gpu_dumps
from hlotools.dumps import tpu_kernels as tpu_dumps
from hlotools.dumps.dump_files import DumpedModule, dumped_modules, main_module
from hlotools.dumps.gpu_kernels import GpuKernels as GpuKernels
from hlotools.dumps.tpu_kernels import TpuKernels as TpuKernels

# The bundles of hand-written kernels say which lines of source they are for.
_WITH_LINES = "xla_mosaic_enable_llo_source_annotations"
_PASSES = "xla_dump_hlo_pass_re"
_disk_cache = options["hlofront_cache"]
_whole_disk_cache = options["jax_enable_compilation_cache"]


def dumped(
    function: Callable[..., object],
    folder: str | os.PathLike[str],
    target: Target | str | None = None,
) -> Callable[..., DumpedModule]:
    """Return a function that compiles `function` for its arguments while XLA dumps every pass.

    The files are those of `XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_pass_re=.*
    --xla_dump_emitter_re=^llvm"`, but only of this program: `timeline` reads what each pass
    changed, `kernels` the code of its kernels. For a TPU that is not attached libtpu's dumps of
    kernels are added, which `tpu_kernels` reads. The function does not run, and executables in
    caches on disk are not used.

    Args:
      function: the function to compile, jitted or not.
      folder: the folder for the files, created if it does not exist. It must be empty, as the
          dumps of two compilations cannot be distinguished.
      target: the device to compile for: a result of `hlofront.target`, or its name; by default the
        current device.

    Raises:
      FileExistsError: if the folder has files in it.

    Example:
      >>> import tempfile
      >>> from hlofront.inspect import dumped, timeline
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     module = dumped(lambda x: jax.nn.softmax(x).sum(), folder)(jnp.ones((8, 16)))
      ...     changes = timeline(module)
      >>> print(changes.changes[-1].stage.title)
      after optimizations
    """

    def compile_with_dumps(*args: object, **kwargs: object) -> DumpedModule:
        path = empty_folder(folder)
        device = find_target(target) if isinstance(target, str) else target
        with (
            _libtpu_dumping(path),
            device or contextlib.nullcontext(),
            _disk_cache(False),
            _whole_disk_cache(False),
        ):
            jitted(function).lower(*args, **kwargs).compile(_dumping_to(path))
        return main_module(dumped_modules(path))

    return compile_with_dumps


def _dumping_to(folder: pathlib.Path) -> dict[str, object]:
    """Return the compiler options with which XLA dumps a program, its passes and its kernels."""
    return {
        "xla_dump_to": str(folder),
        _PASSES: ".*",
        "xla_dump_hlo_as_text": True,
        # From jaxlib 0.12 on, LLVM IR is dumped only on request.
        "xla_dump_emitter_re": "^llvm",
    }


def dump_text(text: str, target: Target, folder: str | os.PathLike[str]) -> None:
    """Compile a text of StableHLO or HLO for devices that are not attached, as `dumped` does.

    Only a worker process parses the text, as it may come from anyone.

    Raises:
      FileExistsError: if the folder has files in it.
      JaxRuntimeError: if XLA refuses the module, or ends its process.
      ValueError: if the module is for more devices than the target has.
    """
    path = empty_folder(folder)
    with _libtpu_dumping(path):
        _compile_text(text, target, _dumping_to(path))


def tpu_kernels(
    folder: str | os.PathLike[str], target: Target | Description | str | None = None
) -> TpuKernels:
    """Return the kernels of a TPU's program: bundles, slots, spills, memory, and their bottlenecks.

    If the folder has dumps of several programs, such as those of a whole process, the kernels are
    those of the largest. docs/reference/costs.md explains the figures.

    ```python
    dumped(step, "dumps", "tpu:v5e:1x1")(params, x)
    report = tpu_kernels("dumps", "tpu:v5e:1x1")
    print(report)                   # a table, the kernel that takes most of the time first
    print(report.code("fusion.3"))  # its bundles
    ```

    Args:
      folder: the folder of `dumped`; or of LIBTPU_INIT_ARGS="--xla_jf_dump_to=FOLDER
        --xla_jf_dump_llo_text=true", which works in any process that uses libtpu, jax's too.
      target: a result of `hlofront.target`, or its name, whose rates give the times; by default
        there are no times.

    Raises:
      ValueError: if the folder has no such dumps.
    """
    return tpu_dumps.tpu_kernels(folder, description_of(target))


def gpu_kernels(
    folder: str | os.PathLike[str], target: Target | Description | str | None = None
) -> GpuKernels:
    """Return the kernels of a GPU's program: grids, registers, spills, memory and occupancy.

    Of several programs in the folder, it is the one with the most code. docs/reference/costs.md
    explains the figures. Registers, spills and occupancy are known if NVIDIA's `ptxas` is
    installed, which the report says otherwise.

    ```python
    dumped(step, "dumps", "cuda:h100")(params, x)
    report = gpu_kernels("dumps", "cuda:h100")
    print(report)                   # a table, the kernel that takes most of the time first
    ```

    Args:
      folder: the folder of `dumped`; or of XLA_FLAGS=--xla_dump_to=FOLDER, which works in any
        process that compiles for a GPU, jax's too.
      target: a result of `hlofront.target`, or its name, whose rates give the times; by default
        there are no times.

    Raises:
      ValueError: if the folder has no such dumps.
    """
    return gpu_dumps.gpu_kernels(folder, description_of(target))


def dump_tpu_kernels(
    program: Lowered | str, target: Target, folder: str | os.PathLike[str]
) -> None:
    """Compile a program for a TPU that is not attached, and dump its kernels into a folder.

    Args:
      program: a result of `lower` for the target; or text of StableHLO.
      target: the TPU.
      folder: the folder for the files, created if it does not exist.

    Raises:
      FileExistsError: if the folder has files in it.
      JaxRuntimeError: if the compiler refuses the program.
      ValueError: if the text is for more devices than the target has.
    """
    with _libtpu_dumping(empty_folder(folder)), _disk_cache(False), _whole_disk_cache(False):
        if isinstance(program, str):
            _compile_text(program, target)
        else:
            _compile_anew(program, folder)


def _compile_anew(lowered: Lowered, folder: str | os.PathLike[str]) -> Compiled:
    """Compile a program even if its executable is in memory, as that one comes without dumps."""
    # An option without effect, with a value that no executable in memory was compiled with.
    return lowered.compile({"xla_dump_hlo_pipeline_re": str(folder)})


@contextlib.contextmanager
def compiled_with_kernels(
    lowered: Lowered, target: Target
) -> Iterator[tuple[Compiled, TpuKernels | GpuKernels | None]]:
    """Compile a program for a device that is not attached, and yield it with its kernels.

    Inside of the block, the files of the kernels can be read. They are None if none were dumped.

    Raises:
      JaxRuntimeError: if the compiler refuses the program.
    """
    with tempfile.TemporaryDirectory(prefix="hlofront_") as folder:
        path = pathlib.Path(folder)
        with _libtpu_dumping(path), _disk_cache(False), _whole_disk_cache(False):
            if target.platform == "tpu":
                compiled = _compile_anew(lowered, folder)
            else:
                compiled = lowered.compile({**_dumping_to(path), _PASSES: ""})
        if tpu_dumps.has_tpu_kernels(folder):
            yield compiled, tpu_kernels(folder, target)
        else:
            has_kernels = gpu_dumps.has_gpu_kernels(folder)
            yield compiled, gpu_kernels(folder, target) if has_kernels else None


_PARTITIONS = re.compile(r"\bnum_partitions ?= ?(\d{1,6})\b")


def _compile_text(text: str, target: Target, overrides: Mapping[str, object] | None = None) -> None:
    partitions = _PARTITIONS.search(text)
    count = int(partitions[1]) if partitions else 1
    devices = target.devices[:count]
    if len(devices) < count:
        raise ValueError(
            f"the module is for {count} partitions, and {target.name} has {len(devices)} devices"
        )
    chosen = compile_options(devices, target.compiler_options(overrides or {}))
    compile_process.compile_in_subprocess(text, devices, chosen)


def empty_folder(folder: str | os.PathLike[str]) -> pathlib.Path:
    """Return the absolute path of an empty folder for dumps, created if it does not exist.

    Raises:
      FileExistsError: if the folder has files in it.
    """
    path = pathlib.Path(folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise FileExistsError(f"the folder for dumps, {folder}, is not empty")
    return path


@contextlib.contextmanager
def _libtpu_dumping(folder: pathlib.Path) -> Iterator[None]:
    """Let libtpu, where a worker compiles with it, dump the kernels of programs into a folder."""
    # The folder's own path may have spaces, which end a flag.
    with tempfile.TemporaryDirectory(prefix="hlofront_") as temporary:
        stages = "|".join(tpu_dumps.STAGES)
        flags = [
            f"--xla_jf_dump_to={temporary}",
            "--xla_jf_dump_llo_text=true",
            f"--xla_jf_dump_llo_pass_label_regex={stages}",
        ]
        libtpu = platforms.find_plugins().get("tpu")
        if libtpu is not None and libtpu.has_flag(_WITH_LINES):
            flags.append(f"--{_WITH_LINES}=true")
        with compile_process.with_flags(flags):
            yield
        for path in pathlib.Path(temporary).iterdir():
            shutil.move(path, folder)
