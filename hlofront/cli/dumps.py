"""Printing of XLA's passes and kernels of a program: `show --passes`, `--kernels`, `--bundles`."""

import argparse
import contextlib
import functools
import json
import pathlib
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import TextIO

from hlofront.cli.loading import load_call
from hlofront.cli.program_files import is_program, read_program, write_file
from hlofront.cli.progress import announce, finish
from hlofront.inspect.dumps import dump_text, dumped, gpu_kernels, tpu_kernels
from hlofront.inspect.target import UsageError
from hlofront.pjrt.targets import target as find_target
from hlotools.cost.costs import DeviceRates
from hlotools.dumps.dump_files import DumpedModule, dumped_modules, main_module
from hlotools.dumps.dump_folder import DumpFolder, dump_folder
from hlotools.dumps.gpu_kernels import GpuKernels, has_gpu_kernels
from hlotools.dumps.kernels import CODES, Kernel, MissingToolError, kernel_table, kernels
from hlotools.dumps.timeline import Timeline, timeline
from hlotools.dumps.tpu_kernels import TpuKernels, has_tpu_kernels
from hlotools.html.program_page import page
from hlotools.ir.program_text import TITLES
from hlotools.profiles.xplane import ProfileError
from hlotools.terminal_text import on_one_line


def add_options(show: argparse.ArgumentParser) -> None:
    """Add the options of dumps to the parser of the command `show`."""
    show.add_argument(
        "--passes",
        action="store_true",
        help="print what each of XLA's passes changed, and the time that each takes; with --html "
        "the page shows for each operation which pass made it and which one fused it",
    )
    show.add_argument(
        "--operation",
        metavar="NAME",
        help="with --passes: which passes made this operation of the optimized program",
    )
    show.add_argument(
        "--kernels",
        action="store_true",
        help="list the kernels, with the operations they compute; for TPUs with their bundles, the "
        "slots these fill, spills and memory, for GPUs with their grids, registers, spills, shared "
        "memory, occupancy and instructions; and what bounds their time",
    )
    show.add_argument(
        "--by-line",
        action="store_true",
        help="with --kernels: the totals of the kernels of TPUs and GPUs by source line",
    )
    show.add_argument(
        "--kernel", metavar="NAME", help="print the code of this kernel or operation; see --code"
    )
    show.add_argument(
        "--code",
        choices=CODES,
        help="with --kernel: LLVM IR, which is the default, a CPU's assembly by objdump, PTX, or "
        "a GPU's SASS by nvdisasm",
    )
    show.add_argument(
        "--bundles", metavar="NAME", help="print the bundles of this kernel or operation of a TPU"
    )
    show.add_argument(
        "--dump",
        metavar="FOLDER",
        help="with --passes or --kernels: keep XLA's dumps in this folder, which must be empty; "
        "`show FOLDER --passes` reads them, and those of XLA_FLAGS=--xla_dump_to; `show FOLDER "
        "--kernels` also those of LIBTPU_INIT_ARGS='--xla_jf_dump_to=FOLDER "
        "--xla_jf_dump_llo_text=true'",
    )


def only_program(path: str) -> str:
    """Return the program in a folder of dumps.

    Raises:
      UsageError: if the folder has no program, or several.
    """
    programs = [each.program for each in _dump_folder(path).programs if each.program is not None]
    if len(programs) == 1:
        return str(programs[0])
    listed = "\n".join(f"  {program}" for program in programs[:20])
    more = f"\n  and {len(programs) - 20} more" if len(programs) > 20 else ""
    raise UsageError(f"{path} has {len(programs)} programs: show one of\n{listed}{more}")


def show_folder(options: argparse.Namespace, out: TextIO) -> int:
    """Print the contents of a folder of dumps, and the file or command for each question."""
    folder = _dump_folder(options.function)
    print(folder.json() if options.json else folder.text(), file=out)
    return 0


def _dump_folder(path: str) -> DumpFolder:
    try:
        return dump_folder(path)
    except ValueError as error:
        raise UsageError(str(error)) from error


def wants_dumps(options: argparse.Namespace) -> bool:
    """Return whether the command line requests XLA's passes or kernels.

    Raises:
      UsageError: if it has an option that requires another option of dumps, without that option.
    """
    is_folder = pathlib.Path(options.function).is_dir()
    kernels_wanted = wants_kernels(options)
    if options.code and not options.kernel:
        raise UsageError("--code goes with --kernel")
    if options.operation and not options.passes and (kernels_wanted or not is_folder):
        raise UsageError("--operation goes with --passes")
    if options.by_line and (not options.kernels or options.json or options.html):
        raise UsageError("--by-line goes with --kernels; --json has the totals without it")
    if options.dump and not (options.passes or kernels_wanted):
        raise UsageError("--dump goes with --passes or --kernels")
    if options.passes and kernels_wanted:
        raise UsageError("--passes and --kernels are two reports: give one of them")
    about_dumps = options.operation or options.target or options.args
    return bool(options.passes or kernels_wanted or (is_folder and about_dumps))


def wants_kernels(options: argparse.Namespace) -> bool:
    """Return whether the command line requests the kernels of a program, or the code of one."""
    return bool(options.kernels or options.kernel or options.bundles)


def show_dumps(options: argparse.Namespace, out: TextIO) -> int:
    """Print the passes or kernels of a function, which is compiled here, or of a folder of dumps.

    Raises:
      UsageError: if options cannot be combined, or name something that the dumps lack.
    """
    if options.stage or options.style or options.mesh:
        raise UsageError("--stage, --style and --mesh do not go with --passes and --kernels")
    if len(options.target) > 1:
        raise UsageError("--passes and --kernels are of one program: give one --target with them")
    if options.html and (options.kernel or options.bundles or options.operation):
        raise UsageError("--html goes with --passes and --kernels: a page has all operations")
    if (options.kernel or options.bundles) and options.json:
        raise UsageError("--json goes with --passes and --kernels: the code of a kernel is text")
    with _folder(options) as folder:
        finish()
        if not options.passes and _is_of_tpu(options, folder):
            _print_tpu_kernels(options, folder, out)
            return 0
        if options.bundles:
            raise UsageError(f"--bundles is for kernels of TPUs, and {_NO_TPU_KERNELS}")
        if options.kernels and not options.kernel and has_gpu_kernels(folder):
            report = gpu_kernels(folder, options.target[0] if options.target else None)
            _print_report(report, options, out)
            return 0
        if options.kernels and (options.html or options.by_line):
            raise UsageError(
                "--html and --by-line are for kernels of TPUs and GPUs: the dumps have none"
            )
        module = _module(options, folder)
        if options.kernel:
            print(_code(kernels(module), options.kernel, options.code or "llvm"), file=out)
        elif options.kernels:
            _print_kernels(kernels(module), options, out)
        else:
            _print_passes(timeline(module), options, out)
            _print_times(options, out)
    return 0


@contextlib.contextmanager
def _folder(options: argparse.Namespace) -> Iterator[pathlib.Path]:
    """Yield the folder with dumps of the command line's program; create them if needed."""
    name = options.target[0] if options.target else None
    if pathlib.Path(options.function).is_dir():
        if options.args or options.dump or (name and not wants_kernels(options)):
            raise UsageError(
                f"{options.function} is a folder of dumps: --args and --dump are for functions, "
                "and --target also for --kernels"
            )
        yield pathlib.Path(options.function)
        return
    dump = _text_dumper(options, name) if is_program(options.function) else _dumper(options, name)
    announce(f"compiling {options.function}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.dump or temporary
        try:
            dump(folder)
        except FileExistsError as error:
            raise UsageError(f"--dump: {error}") from error
        yield pathlib.Path(folder)


def _dumper(options: argparse.Namespace, name: str | None) -> Callable[[str], object]:
    """Return a function that compiles the command line's function, with dumps in a folder."""
    function, args = load_call(options.function, options.args)
    return lambda folder: dumped(function, folder, name)(*args)


def _text_dumper(options: argparse.Namespace, name: str | None) -> Callable[[str], object]:
    """Return a function that compiles a file of StableHLO or HLO, with dumps in a folder."""
    read = read_program(options.function)
    target = find_target(name) if name else None
    is_input = read.kind == "stablehlo" or (read.kind == "hlo" and not _SCHEDULED.search(read.text))
    if target is None or target.is_attached or not is_input or options.args:
        kind = TITLES[read.kind] if is_input or read.kind != "hlo" else "HLO that was optimized"
        raise UsageError(
            f"{options.function} is {kind}: --passes and --kernels are for functions, for folders "
            "of dumps, and for files of StableHLO, or of HLO before optimizations, with a --target "
            "that is not attached"
        )
    return functools.partial(dump_text, read.text, target)


# In the first line of HLO that a compiler's passes have been through.
_SCHEDULED = re.compile(r"^HloModule [^\n]*\bis_scheduled=true", re.MULTILINE)


def _module(options: argparse.Namespace, folder: pathlib.Path) -> DumpedModule:
    try:
        return main_module(dumped_modules(folder))
    except ValueError as error:
        raise UsageError(f"{options.function}: {error}") from error


def _is_of_tpu(options: argparse.Namespace, folder: pathlib.Path) -> bool:
    """Return whether to show a TPU's kernels: if requested, or if the folder has nothing else."""
    return has_tpu_kernels(folder) and (wants_kernels(options) or not dumped_modules(folder))


def _print_tpu_kernels(options: argparse.Namespace, folder: pathlib.Path, out: TextIO) -> None:
    if options.kernel:
        raise UsageError("the code of a TPU's kernels is bundles: give --bundles for --kernel")
    report = tpu_kernels(folder, options.target[0] if options.target else None)
    if options.bundles:
        try:
            print(report.code(options.bundles), file=out)
        except KeyError as error:
            raise UsageError(error.args[0]) from error
    else:
        _print_report(report, options, out)


def _print_report(
    report: TpuKernels | GpuKernels, options: argparse.Namespace, out: TextIO
) -> None:
    if options.html:
        write_file(options.html, page(report.program, report.target, kernels=report))
    elif options.json:
        print(report.json(), file=out)
    else:
        print(report.line_text() if options.by_line else report.text(), file=out)


def _print_passes(changes: Timeline, options: argparse.Namespace, out: TextIO) -> None:
    if options.html:
        if changes.module.optimized is None:
            raise UsageError(f"the dumps of {changes.module.name} have no optimized program")
        rates = find_target(options.target[0]).describe() if options.target else None
        write_file(options.html, page_with_passes(changes, rates))
    elif options.operation:
        try:
            history = changes.history(options.operation)
        except KeyError as error:
            raise UsageError(error.args[0]) from error
        print(
            json.dumps(history) if options.json else "\n".join(map(on_one_line, history)), file=out
        )
    elif options.json:
        print(json.dumps(_as_dict(changes), indent=1), file=out)
    else:
        print(changes.text(), file=out)


def _print_times(options: argparse.Namespace, out: TextIO) -> None:
    """Print the time of each pass, for a function that is compiled for the current device."""
    is_folder = pathlib.Path(options.function).is_dir()
    if is_folder or options.target or options.html or options.operation or options.json:
        return
    from hlofront.inspect.pass_times import compile_times

    # A second compilation, as dumps take time.
    announce(f"compiling {options.function} without dumps")
    function, args = load_call(options.function, options.args)
    try:
        text = compile_times(function)(*args).text()
    except ProfileError as error:
        text = f"no times of passes: {error}"
    finish()
    print(f"\n{text}", file=out)


def page_with_passes(changes: Timeline, rates: DeviceRates | None = None) -> str:
    """Return the page of the optimized program, with the passes that made each operation."""
    assert changes.module.optimized is not None
    return page(
        str(changes.module.optimized),
        rates,
        title=changes.module.function,
        histories=changes.histories(),
    )


def _as_dict(changes: Timeline) -> dict[str, object]:
    return {
        "module": changes.module.name,
        "operations": changes.first.operation_count,
        "passes": [
            {"pass": change.stage.title, "operations": change.count, "change": change.summary()}
            for change in changes.changes
            if change
        ],
    }


def _print_kernels(listed: list[Kernel], options: argparse.Namespace, out: TextIO) -> None:
    if not options.json:
        print(kernel_table(listed) if listed else _NO_KERNELS, file=out)
        return
    rows = [
        {
            "kernel": kernel_row.name,
            "operation": kernel_row.operation.name if kernel_row.operation is not None else None,
            "files": {code: str(path) for code, path in kernel_row.files.items()},
        }
        for kernel_row in listed
    ]
    print(json.dumps(rows, indent=1), file=out)


_NO_TPU_KERNELS = (
    "there are none in the dumps: libtpu writes them where programs for TPUs that are not attached "
    "are compiled, and with --xla_jf_dump_to in LIBTPU_INIT_ARGS"
)
_NO_KERNELS = (
    "the dumps have no code of kernels: XLA writes that of loops and fusions, not of library calls "
    "(products by YNNPACK, oneDNN, cuBLAS or cuDNN), for TPUs only if they are not attached; "
    "from jaxlib 0.12 on, dumps by XLA_FLAGS have it with --xla_dump_emitter_re=^llvm"
)


def _code(listed: list[Kernel], name: str, code: str) -> str:
    """Return the code of a kernel by its own name or by its operation's."""
    for kernel in listed:
        if name in (kernel.name, kernel.operation.name if kernel.operation is not None else None):
            try:
                return kernel.code(code)
            except (MissingToolError, ValueError) as error:
                raise UsageError(str(error)) from error
    names = ", ".join(kernel.name for kernel in listed)
    raise UsageError(f"there is no kernel {name!r}: {names or _NO_KERNELS}")
