"""The `find_error` function: the operations at which the relative error of a program jumps."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import ArrayLike, DType
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Jaxpr
from hlofront.core.programs.subprograms import all_equations, all_programs, opened
from hlofront.inspect.error.loops import LoopErrorSearch
from hlofront.inspect.error.measure import epsilon, is_inexact
from hlofront.inspect.error.other_jaxlib import OtherJaxlib, jaxlib_version
from hlofront.inspect.error.references import Float64, OtherDevice, Reference, compiled_call
from hlofront.inspect.error.report import ErrorOrigin, ErrorReport, ResultError, largest_first
from hlofront.inspect.error.search import Pair
from hlofront.inspect.stepwise.call import names_of, search_on_values
from hlofront.inspect.stepwise.report_parts import facts
from hlofront.inspect.stepwise.trails import Start, Trail
from hlofront.pjrt.clients import client_for
from hlofront.pjrt.devices import Device
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.dispatch.stages import Traced
from hlofront.transforms.discharge import discharge_program
from hlofront.transforms.simplify import dead_code_program

_ORDINARY = np.dtype(np.float64), np.dtype(np.complex128)


def find_error(
    fun: Callable[..., object],
    *,
    against: "str | Device" = "float64",
    tolerance: float | None = None,
) -> Callable[..., ErrorReport]:
    """Return a function that finds the operations at which the results of `fun` lose digits.

    The returned function traces `fun` and runs its jaxpr one operation at a time, in its own dtypes
    and in float64, also inside jitted functions, derivatives, custom rules, branches and loops. It
    reports where the relative error jumps to ten times that of the operands or more, if a result of
    `fun` is wrong by more than the tolerance because of it: with the source line, the operands, the
    loop's iteration, and the reason. A `cancellation` subtracts nearly equal numbers, or adds up
    numbers that nearly cancel; an `ill-conditioned` operation amplifies the error of its operands;
    `rounding` is the operation's own error; an `overflow` or `underflow` leaves the range of the
    dtype; and at a `decision` an integer or boolean differs from the reference, for example the
    result of a comparison or an `argmax`, so that everything that follows differs.

        report = find_error(loss)(params, batch)
        print(report)

    The error of an array is that of the whole array, by its norm, or that of the worst tenth of
    its elements, whichever is larger: elements that happen to be near zero do not count. Values
    that float64 cannot distinguish from zero either are listed as `undetermined`.

    Long loops run step by step, each step compiled, and only those at whose end the error has
    jumped run one operation at a time, at most 16 of them. Operations without a form in float64,
    such as callbacks, run in their own dtypes; those with effects run once.

    Args:
      fun: a function of pytrees of arrays, jitted or not; it must be jitted if it has static
        arguments. Donated arguments stay valid.
      against: "float64"; or a device, on which the same operations run in the same dtypes; or a
        version of jaxlib, as in "jaxlib 0.8.3", in whose process they run in the same dtypes, each
        operation compiled by itself, on CPUs. Its environment is created if it does not exist.
      tolerance: the relative error above which digits count as lost; by default the square root
        of the epsilon of the results' dtype, which is half of its digits: 3e-4 for float32.

    Returns:
      A function of the arguments of `fun` that returns an ErrorReport, which is true if a result
      has lost its digits, and prints as text.

    Raises:
      ValueError: if `against` is none of these, the tolerance is not positive, or `against` is
        "float64" and the program computes in float64 already.
      NoEnvironment: from the returned function, if no environment with this jaxlib can be created,
        or it cannot run an operation.
      TypeError: if the returned function is called while another is traced.
    """
    if tolerance is not None and not tolerance > 0:
        raise ValueError(
            f"find_error requires a positive tolerance, such as 1e-3: got {tolerance!r}"
        )
    version = jaxlib_version(against)
    if against != "float64" and not isinstance(against, Device) and version is None:
        raise ValueError(
            "find_error compares a program with itself in 'float64', on another device, such as "
            "hlofront.devices('cpu')[0], or under another jaxlib, such as 'jaxlib 0.8.3': got "
            f"against={against!r}"
        )

    def search(traced: Traced, arrays: list[ArrayLike]) -> ErrorReport:
        reference = _reference(against, version, traced.jaxpr)
        if isinstance(reference, OtherJaxlib):
            # Both sides run on CPUs.
            arrays = [device_put(x, reference.host) for x in arrays]
        # Not within `running`: captured constants may have 64 bits while these are off.
        used = (True,) * len(traced.jaxpr.out_avals)
        lean, _ = dead_code_program(traced.jaxpr, used, True)
        program = discharge_program(lean).program
        with reference.running():
            return _report(traced, program, arrays, reference, tolerance)

    return search_on_values("find_error", fun, search)


def _reference(against: "str | Device", version: str | None, program: ClosedJaxpr) -> Reference:
    if isinstance(against, Device):
        return OtherDevice(against)
    if version is not None:
        return OtherJaxlib(version)
    if not any(map(_is_narrow, _dtypes_in(program.jaxpr))):
        raise ValueError(
            "find_error compares with float64, and this program has no values in a narrower "
            "floating-point dtype: give it float32 arguments, or another device as `against`"
        )
    # TPUs have no float64.
    tpu = client_for().platform == "tpu"
    return Float64(client_for("cpu").local_devices()[0] if tpu else None)


def _dtypes_in(jaxpr: Jaxpr) -> set[DType]:
    """Return the dtypes of the values of a jaxpr and of its subprograms."""
    atoms: list[Atom] = [var for equation in all_equations(jaxpr) for var in equation.outvars]
    for inner in map(opened, all_programs(jaxpr)):
        atoms += [*inner.invars, *inner.constvars, *inner.outvars]
    return {dtype for atom in atoms if (dtype := getattr(atom.aval, "dtype", None)) is not None}


def _is_narrow(dtype: DType) -> bool:
    return (
        not isinstance(dtype, ExtendedDType)
        and issubdtype(dtype, np.inexact)
        and dtype not in _ORDINARY
    )


def _report(
    traced: Traced,
    prepared: ClosedJaxpr,
    leaves: list[ArrayLike],
    reference: Reference,
    tolerance: float | None,
) -> ErrorReport:
    program = traced.jaxpr
    tolerated = [tolerance or _tolerance(aval.dtype) for aval in program.out_avals]
    least = min(tolerated, default=tolerance or _tolerance(np.float32))
    search = LoopErrorSearch(reference, least)
    names, paths = names_of(program)
    args = [search.input_value(x, name) for name, x in zip(names, leaves, strict=True)]
    results = search.run(prepared, args)[: len(program.out_avals)]
    errors = _result_errors(program, leaves, search, results, paths, tolerated)
    trails: dict[Start, Trail] = {}
    for value, each in zip(results, errors, strict=True):
        if value.error > each.tolerance:
            for trail in value.trails:
                trails.setdefault(trail.start, trail)
    operations = largest_first(_once(search, trails))
    reached = {start.equation for start in trails}
    others = {start: None for start in search.starts if start.equation not in reached}
    return ErrorReport(
        function=program.debug_info.func_src_info if program.debug_info else traced.fun_name,
        against=reference.label,
        tolerance=least,
        results=errors,
        operation=operations[0] if operations else None,
        operations=operations,
        hidden=largest_first(_once(search, others)),
        undetermined=tuple(search.undetermined),
        own_dtypes=tuple(sorted(search.own_dtypes)),
    )


def _result_errors(
    program: ClosedJaxpr,
    leaves: list[ArrayLike],
    search: LoopErrorSearch,
    results: Sequence[Pair],
    paths: Sequence[str],
    tolerated: Sequence[float],
) -> tuple[ResultError, ...]:
    """Return the errors of the results, of the operations one by one and of the whole program."""
    compiled: list[float | None] = [None] * len(results)
    if not program.effects:
        together = compiled_call(program, leaves)
        compiled = [
            None if value.is_undetermined else search.pair(x, search.exact(value), "").error
            for x, value in zip(together, results, strict=True)
        ]
    return tuple(
        ResultError(
            facts(path, value.array),
            value.error,
            of_whole,
            limit if is_inexact(value.array) else 0.0,
        )
        for path, value, of_whole, limit in zip(paths, results, compiled, tolerated, strict=True)
    )


def _tolerance(dtype: DType) -> float:
    """Return the relative error at which half of the digits of a dtype are lost."""
    is_narrow = not isinstance(dtype, ExtendedDType) and issubdtype(dtype, np.inexact)
    return float(np.sqrt(epsilon(dtype if is_narrow else np.dtype(np.float32))))


def _once(
    search: LoopErrorSearch, starts: "dict[Start, Trail] | dict[Start, None]"
) -> list[ErrorOrigin]:
    """Return the operations, one per primitive, kind and source line, with their trails."""
    largest: dict[object, tuple[ErrorOrigin, Trail | None]] = {}
    times: dict[object, int] = {}
    for start, trail in starts.items():
        operation = start.operation
        if not isinstance(operation, ErrorOrigin):
            continue
        key = operation.primitive, operation.kind, operation.source_line or id(start.equation)
        times[key] = times.get(key, 0) + 1
        if key not in largest or operation.error > largest[key][0].error:
            largest[key] = operation, trail
    return [
        replace(operation, way=trail.steps() if trail else (), times=times[key])
        for key, (operation, trail) in largest.items()
    ]
