"""The `profile` function: a program that runs under XLA's profiler, and its times by line."""

import os
import time
from collections.abc import Callable

import numpy as np

from hlofront.base import source
from hlofront.base.tree import PyTree, tree_leaves, tree_map
from hlofront.bridge import profiler as bridge
from hlofront.inspect.cost import description_for, description_of
from hlofront.inspect.jitted import LibraryJit, jitted
from hlofront.numpy import array, complexfloating, floating, issubdtype
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.targets import Description, Target
from hlofront.primitives.arrays.creation import full
from hlofront.runtime.array.array import Array
from hlofront.runtime.array.transfer import block_until_ready, device_put
from hlofront.runtime.debugging.profiler import ProfileSession
from hlofront.transforms.flatten import ShapeDtypeStruct
from hlotools.ir.hlo import HloModule
from hlotools.ir.hlo_parser import parse
from hlotools.profiles import profile as text_profile
from hlotools.profiles.operations import program_times
from hlotools.profiles.profile import Profile, described_programs, joined, operations_inside
from hlotools.profiles.xplane import ProfileError, parse_xplane, read_xplane

_GPUS = ("cuda", "rocm")
# XLA launches operations on GPUs together as graphs, and profiles show a graph's kernels without
# its operations. No graph reaches this size.
_WITHOUT_GRAPHS = {"xla_gpu_graph_min_graph_size": 2**31 - 1}


def profile(
    function: Callable[..., object],
    *,
    runs: int = 10,
    warm_ups: int = 2,
    target: Target | Description | str | None = None,
    log_dir: str | os.PathLike[str] | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> Callable[..., Profile]:
    """Return a function that runs `function` under XLA's profiler, and returns its times by line.

    The times of operations are means over the runs. The profiler itself takes time, about half a
    microsecond per operation on CPUs. On GPUs each operation is launched separately, rather than as
    part of a CUDA graph, so that its time is known. Within a graph, gaps between operations may be
    shorter.

    Args:
      function: the function to run, jitted or not. Each run gets copies, made beforehand, of the
          arguments that it donates.
      runs: the number of runs that are measured, each until its results are ready.
      warm_ups: the number of runs before them; the first one compiles.
      target: the device whose rates give bounds for the times, such as "cuda:h100"; by default
        no bounds.
      log_dir: a folder to write the profile to, as `jax.profiler.trace` does; None to write none.
      tell: called with a line of text before runs that take long.

    Raises:
      ProfileError: if the profiler recorded no operation of the program.
      TargetError: if the function runs on a device of another platform than the target's.
      ValueError: if there are no runs.

    Example:
      >>> from hlofront.inspect import profile
      >>> measured = profile(lambda x: jnp.sin(x @ x).sum(), runs=3)(jnp.ones((200, 200)))
      >>> measured.runs, sum(row.share for row in measured.lines) > 0.99
      (3, True)
    """
    if runs < 1 or warm_ups < 0:
        raise ValueError(f"runs is 1 or more, warm_ups 0 or more: got {runs} and {warm_ups}")

    def run_under_profiler(*args: object, **kwargs: object) -> Profile:
        args, kwargs = with_values((args, kwargs))
        staged = jitted(function)
        lowered = staged.lower(*args, **kwargs)
        options = {} if lowering_platform(lowered._first_device) not in _GPUS else _WITHOUT_GRAPHS
        compiled = lowered.compile(options)
        described = description_of(target)
        if described is not None:
            described = description_for(compiled, described)
        # The stages of a library's function take other arguments than the function.
        measured = compiled if options and not isinstance(staged, LibraryJit) else staged
        name = source.callable_name(function)
        is_donated = any(info.donated for info in tree_leaves(lowered.args_info))

        def run() -> float:
            call = tree_map(_copied, (args, kwargs)) if is_donated else (args, kwargs)
            block_until_ready(call)
            start = time.perf_counter()
            block_until_ready(measured(*call[0], **call[1]))
            return time.perf_counter() - start

        for number in range(warm_ups):
            tell(f"running {name}: warm-up {number + 1} of {warm_ups}")
            run()
        recording = bridge.ProfileOptions()
        # The events of Python functions would slow down what is measured.
        recording.python_tracer_level = 0
        with ProfileSession(log_dir, profiler_options=recording) as session:
            tell(f"running {name} {runs} times")
            walls: list[float] = []
            for number in range(runs):
                # Short runs follow each other without interruption.
                if walls and walls[-1] > 1:
                    tell(f"running {name}: run {number + 1} of {runs}")
                walls.append(run())
        assert session.record is not None
        space = parse_xplane(session.record.content)
        wall = sum(walls) / runs
        return text_profile.profile(space, compiled, described, wall=wall)

    return run_under_profiler


def profiles_in(
    path: str | os.PathLike[str], target: Target | Description | str | None = None
) -> list[Profile]:
    """Return the measured times of all programs in a file of XLA's profiler, the longest first.

    The file has the programs' HLO, so programs that ran under jax can be read as well.

    Args:
      path: a file `HOST.xplane.pb`, or a folder that `jax.profiler.trace` wrote to, whose last
          recording is read.
      target: the device whose rates give bounds for the times, such as "cuda:h100".

    Raises:
      OSError: if the file cannot be read.
      ProfileError: if the file is not a profile, or lacks operations of programs with known HLO.
    """
    space = read_xplane(path)
    described = description_of(target)
    measured = program_times(space, {})
    texts: dict[tuple[int | None, str], tuple[str, HloModule]] = {}
    for times in measured:
        record = space.program(times.number, times.name, times.operations)
        if record is not None:
            try:
                text = bridge.hlo_text(record.proto)
                texts[times.number, times.name] = text, parse(text)
            except ValueError as error:
                raise ProfileError(f"{space.path}: {error}") from error
    inside = {name: operations_inside(module) for (_, name), (_, module) in texts.items()}
    read = [
        joined(times, *texts[times.number, times.name], described)
        for times in program_times(space, inside)
        if (times.number, times.name) in texts
    ]
    if not read:
        without = " of known HLO" if measured else ""
        raise ProfileError(f"{space.path} has no program{without}. {described_programs(measured)}")
    return read


def with_values(tree: PyTree) -> PyTree:
    """Return a pytree whose ShapeDtypeStructs are replaced by arrays: normal numbers, or zeros."""
    generator = np.random.default_rng(0)

    def value(leaf: object) -> object:
        if not isinstance(leaf, ShapeDtypeStruct):
            return leaf
        if issubdtype(leaf.dtype, floating) or issubdtype(leaf.dtype, complexfloating):
            made = array(generator.standard_normal(leaf.shape), dtype=leaf.dtype)
        else:
            # Zeros are valid indices and labels.
            made = full(leaf.shape, 0, leaf.dtype)
        return made if leaf.sharding is None else device_put(made, leaf.sharding)

    return tree_map(value, tree)


def _copied(leaf: object) -> object:
    return leaf.copy() if isinstance(leaf, Array) else leaf
