"""Dumps of programs to files during compilation, by the option jax_dump_ir_to."""

import itertools
import json
import os
import pathlib
import re
import zlib
from collections import Counter
from typing import TYPE_CHECKING

from hlofront.base import source
from hlofront.base.config import options
from hlofront.bridge.client import profile_of_json
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.programs.print import print_jaxpr
from hlofront.core.programs.subprograms import all_equations

if TYPE_CHECKING:
    from hlofront.lowering.module import Module

_folder = options["jax_dump_ir_to"]
_modes = options["jax_dump_ir_modes"]
_with_locations = options["jax_include_debug_info_in_dumps"]

_module_numbers = itertools.count()
_jaxpr_numbers = itertools.count()

# zlib's window size for the gzip format.
_GZIP = 31


def are_on() -> bool:
    """Return whether the option jax_dump_ir_to names a folder."""
    return bool(_folder.value)


def dump_jaxpr(program: ClosedJaxpr, name: str) -> None:
    """Write a lowered program's jaxpr, if a folder and a mode for jaxprs are set.

    The mode "jaxpr" writes its text, and "eqn_count_pprof" a profile of its equations, for `pprof`.
    """
    if not are_on():
        return
    modes = _wanted_modes()
    if not modes & {"jaxpr", "eqn_count_pprof"}:
        return
    start = f"jax_{next(_jaxpr_numbers):06d}_{_file_name(name)}"
    if "jaxpr" in modes:
        text = print_jaxpr(program.jaxpr, use_color=False)
        (_made_folder() / f"{start}.jaxpr.txt").write_text(text)
    if "eqn_count_pprof" in modes:
        profile = _equation_profile(program.jaxpr, name)
        (_made_folder() / f"{start}.eqn_count_pprof").write_bytes(profile)


def dump_module(module: "Module") -> None:
    """Write a compiled module, if a folder and the mode "stablehlo" are set."""
    if not are_on() or "stablehlo" not in _wanted_modes():
        return
    name = f"jax_ir{next(_module_numbers):04d}_{_file_name(module.name)}_compile.mlir"
    (_made_folder() / name).write_text(module.text(debug_info=_with_locations.value))


def _wanted_modes() -> set[str]:
    return set(_modes.value.split(","))


def _file_name(name: str) -> str:
    """Return a function's name, such as <lambda>, with only characters safe in file names."""
    return re.sub(r"[^\w.)( -]", "", name)


def _made_folder() -> pathlib.Path:
    """Return the folder for dumps, created if missing.

    Raises:
      ValueError: if the option is "sponge", the output folder of a Bazel test, and this process
        is not such a test.
    """
    folder = _folder.value
    if folder == "sponge":
        folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "")
        if not folder:
            raise ValueError(
                "the option jax_dump_ir_to is 'sponge', which stands for the folder that "
                "TEST_UNDECLARED_OUTPUTS_DIR names, and that variable is not set"
            )
    path = pathlib.Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path


# ---- the profile of equations --------------------------------------------------------------------


def _equation_profile(jaxpr: Jaxpr, name: str) -> bytes:
    """Return a profile of the number of equations per primitive and user stack.

    The format is a gzipped pprof message, whose strings are indices into one table.
    """
    strings: dict[str, int] = {"": 0}
    functions: dict[tuple[str, str, int], int] = {}
    locations: dict[tuple[int, int], int] = {}

    def number(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def location(frame: source.Frame) -> int:
        function = (frame.code.co_qualname, frame.file, frame.code.co_firstlineno)
        function_id = functions.setdefault(function, len(functions) + 1)
        return locations.setdefault((function_id, frame.line), len(locations) + 1)

    counts = Counter(
        (equation.primitive.name, tuple(map(location, source.user_frames(equation.traceback))))
        for equation in all_equations(jaxpr)
    )
    samples = [
        {
            "locationId": list(stack),
            "value": [count],
            "label": [{"key": number("primitive"), "str": number(primitive)}],
        }
        for (primitive, stack), count in counts.items()
    ]
    profile: dict[str, object] = {
        "sampleType": [{"type": number("equations"), "unit": number("count")}],
        "sample": samples,
        "location": [
            {"id": location_id, "line": [{"functionId": function_id, "line": line}]}
            for (function_id, line), location_id in locations.items()
        ],
        "function": [
            {"id": function_id, "name": number(name), "filename": number(file), "startLine": line}
            for (name, file, line), function_id in functions.items()
        ],
        "comment": [number(name)],
    }
    profile["stringTable"] = list(strings)
    compressor = zlib.compressobj(wbits=_GZIP)
    return compressor.compress(profile_of_json(json.dumps(profile))) + compressor.flush()
