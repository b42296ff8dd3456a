"""The `find_nan` function: the operation that makes the first NaN of a result, and its source."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hlofront.base.typing import Array, ArrayLike
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.sharding.mesh_context import NO_MESH
from hlofront.higher_order.calls.jit_call import jit_p
from hlofront.inspect.nan.report import NanOrigin, NanReport
from hlofront.inspect.nan.search import TrailSearch, Value
from hlofront.inspect.nan.subprogram_search import ProgramSearch
from hlofront.inspect.stepwise.call import names_of, search_on_values
from hlofront.inspect.stepwise.report_parts import Values, facts
from hlofront.inspect.stepwise.trails import Start, Trail
from hlofront.runtime.checks.nan_search import nonfinite
from hlofront.runtime.dispatch.stages import Traced, Wrapped
from hlofront.transforms.simplify import dead_code_program


def find_nan(
    fun: Callable[..., object], *, nan: bool = True, inf: bool = False
) -> Callable[..., NanReport]:
    """Return a function that finds the operation which makes the first NaN in the results of `fun`.

    The returned function traces `fun` and runs its jaxpr one operation at a time, including inside
    jitted functions, derivatives, branches and loops. An operation is bad if its result has a NaN
    and its operands have none; elementwise operations are compared element by element. NaNs are
    followed to the results; operations whose NaNs reach no result, because a `where` drops them,
    are listed as `hidden`.

        report = find_nan(jax.grad(loss))(params, batch)
        print(report)

    Short loops are run step by step. Long ones are compiled and run whole, and then only the steps
    in which an operation makes its first bad value are run one operation at a time, at most 16 of
    them; loops and branches inside long loops are searched if their results are bad. Callbacks run
    as often as without the search, except for pure ones in long loops.

    Args:
      fun: a function of pytrees of arrays, jitted or not; it must be jitted if it has static
        arguments. Donated arguments stay valid.
      nan: whether to search for NaNs.
      inf: whether to search for infinities. An operation on infinite operands is not bad, and
        infinite constants and arguments are allowed.

    Returns:
      A function of the arguments of `fun` that returns a NanReport, which is true if a result
      is bad and prints as text.

    Raises:
      ValueError: if both `nan` and `inf` are False.
      TypeError: if the returned function is called while another is traced.
    """
    kinds = (*(("nan",) if nan else ()), *(("inf",) if inf else ()))
    if not kinds:
        raise ValueError("find_nan looks for nothing: give nan=True or inf=True")

    return search_on_values(
        "find_nan", fun, lambda traced, leaves: _report(fun, traced, leaves, kinds)
    )


def _report(
    fun: Callable[..., object], traced: Traced, leaves: list[ArrayLike], kinds: tuple[str, ...]
) -> NanReport:
    program = traced.jaxpr
    search = ProgramSearch(kinds)
    names, paths = names_of(program)
    args = [search.input_value(x, name) for name, x in zip(names, leaves, strict=True)]
    arguments = _bad_values(search, args, names)
    lean, _ = dead_code_program(program, (True,) * len(program.out_avals), True)
    results = search.run(lean, args)
    bad = _bad_values(search, results, paths)
    only_compiled = False
    if not bad and isinstance(fun, Wrapped) and not program.effects and not arguments:
        compiled = [Value(x, "") for x in _compiled(traced, program, leaves)]
        bad = _bad_values(search, compiled, paths)
        only_compiled = bool(bad)
    trails: dict[Start, Trail] = {}
    for value in results:
        for trail in value.bad:
            trails.setdefault(trail.start, trail)
    reached = sorted(trails, key=lambda start: start.number)
    operations = _once(search, reached, trails)
    seen = {id(start.equation) for start in reached} | search.carried
    others = [start for start in search.starts if id(start.equation) not in seen]
    return NanReport(
        function=program.debug_info.func_src_info if program.debug_info else traced.fun_name,
        kinds=kinds,
        has_nan=bool(bad),
        operation=operations[0] if operations else None,
        operations=operations,
        hidden=_once(search, others, {}),
        arguments=arguments,
        results=bad,
        only_compiled=only_compiled,
        inputs=tuple(dict.fromkeys(s.argument for s in reached if s.equation is None)),
    )


def _bad_values(
    search: TrailSearch, values: list[Value], names: Sequence[str]
) -> tuple[Values, ...]:
    """Return a summary of each value with bad elements, under its name."""
    bad: list[Values] = []
    for name, value in zip(names, values, strict=True):
        host = nonfinite(value.array)
        if host is not None and (mask := search.mask(host)).any():
            index = tuple(int(i) for i in np.unravel_index(int(mask.argmax()), host.shape))
            bad.append(facts(name, host, index))
    return tuple(bad)


def _once(
    search: TrailSearch, starts: list[Start], trails: dict[Start, Trail]
) -> tuple[NanOrigin, ...]:
    """Return the origins of bad values, one per equation, with their trails and counts."""
    origins: dict[int, NanOrigin] = {}
    for start in starts:
        operation, key = start.operation, id(start.equation)
        if operation is None or key in origins:
            continue
        trail = trails.get(start)
        origins[key] = replace(
            operation, way=trail.steps() if trail else (), times=search.times.get(key, 1)
        )
    return tuple(origins.values())


def _compiled(traced: Traced, program: ClosedJaxpr, leaves: list[ArrayLike]) -> list[Array]:
    """Return the results of a program compiled as a whole, with no argument donated."""
    function = traced._jitted
    return jit_p.bind(
        *leaves,
        name=function.name,
        jaxpr=program,
        donated_invars=(False,) * len(leaves),
        keep_unused=function.keep_unused,
        inline=False,
        compiler_options_kvs=function.compiler_options,
        ctx_mesh=NO_MESH,
    )
