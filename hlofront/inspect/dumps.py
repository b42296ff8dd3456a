"""The `dumped` function: a program compiled with dumps of XLA's passes and kernels."""

import contextlib
import os
import pathlib
from collections.abc import Callable

from hlofront.base.config import options
from hlofront.inspect.jitted import jitted
from hlofront.pjrt.targets import Target
from hlofront.pjrt.targets import target as find_target
from hlotools.dumps.dump_files import DumpedModule, dumped_modules, main_module

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
    changed, `kernels` the code of its kernels. The function does not run, and executables in caches
    on disk are not used.

    Args:
      function: the function to compile, jitted or not.
      folder: the folder for the files, which is made if there is none. It must be empty, as the
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
        path = pathlib.Path(folder).absolute()
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise FileExistsError(f"the folder for dumps, {folder}, is not empty")
        device = find_target(target) if isinstance(target, str) else target
        with device or contextlib.nullcontext(), _disk_cache(False), _whole_disk_cache(False):
            jitted(function).lower(*args, **kwargs).compile(
                {
                    "xla_dump_to": str(path),
                    "xla_dump_hlo_pass_re": ".*",
                    "xla_dump_hlo_as_text": True,
                    # From jaxlib 0.12 on, LLVM IR is dumped only on request.
                    "xla_dump_emitter_re": "^llvm",
                }
            )
        return main_module(dumped_modules(path))

    return compile_with_dumps
