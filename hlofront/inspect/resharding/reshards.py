"""The function `reshards`, which reports the values that XLA reshards."""

import contextlib
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hlofront.bridge.client import JaxRuntimeError
from hlofront.bridge.mlir import context, ir, parsed_attribute
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.inspect.jitted import jitted
from hlofront.inspect.program_mesh import mesh_over
from hlofront.inspect.resharding.places import Cause, Places, ReshardPlace
from hlofront.inspect.resharding.propagation import (
    AxisSplit,
    MarkedProgram,
    main_of,
    mark_of,
    operations_of,
    splits_in,
)
from hlofront.inspect.resharding.report import Cure, Reshards, cause_text, rows_of
from hlofront.pjrt.compile import mlir_lock
from hlofront.pjrt.targets import Target
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.stages import Lowered
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlotools.cost.collectives import collectives
from hlotools.cost.mesh_groups import MeshAxes


def reshards(
    function: Callable[..., object], target: Target | str | None = None
) -> Callable[..., Reshards]:
    """Return a function that reports which values of `function` XLA reshards, and why.

    Where an operation needs a value split differently from how it was produced, the devices
    exchange parts of it, or each of them gathers all of it. The report lists each such place: the
    value, both PartitionSpecs, the bytes that each device receives, the line of the operation, and
    the argument or sharding constraint that causes it. It also lists other specs that avoid it,
    and the bytes that devices then send, as the program is compiled with each of these specs.

    Args:
      function: the function, jitted or not.
      target: the devices to compile for; by default those of the arguments' shardings.

    Raises:
      ValueError: if the arguments are on one device, or XLA's compiler does not report its splits.

    Example:
      >>> import numpy as np
      >>> from hlofront.inspect import reshards
      >>> from hlofront.sharding import Mesh, NamedSharding, PartitionSpec as P
      >>> mesh = Mesh(np.array(jax.devices("cpu")), ("x",))  # as many as there are
      >>> def rows(*shape):
      ...     return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P("x")))
      >>> if mesh.size > 1:  # The rows of the second matrix are columns of what they multiply.
      ...     print(reshards(jnp.dot)(rows(128, 128), rows(128, 128)))
    """

    def found(*args: object, **kwargs: object) -> Reshards:
        device = find_target(target) if isinstance(target, str) else target
        with device or contextlib.nullcontext():
            return reshards_of(jitted(function).lower(*args, **kwargs))

    return found


def reshards_of(lowered: Lowered, tries_specs: bool = True) -> Reshards:
    """Return which values of a lowered program XLA reshards, and why.

    Args:
      lowered: the program.
      tries_specs: whether to try other specs, with one more compilation each.

    Raises:
      ValueError: if the program is for one device, or XLA's compiler does not report its splits.
    """
    where = lowered._where
    if type(where) is not DeviceAssignment:
        raise ValueError(
            "the program is for one device: reshards() needs arguments with shardings over several"
        )
    return _found(lowered._traced.program, lowered._jitted.name, where, tries_specs)


def _found(program: ClosedJaxpr, name: str, where: DeviceAssignment, tries_specs: bool) -> Reshards:
    marked = MarkedProgram(program, name, where)
    propagated, hlo = marked.propagated()
    places = Places(propagated).found()
    mesh = mesh_over(where)
    sent = collectives(hlo, mesh)
    cures = cures_of(marked, places, mesh, sent.moved_bytes) if tries_specs else []
    return Reshards(rows_of(places, sent), cures)


def warn_of_reshards(program: ClosedJaxpr, name: str, where: DeviceAssignment) -> None:
    """Print on stderr which values of a compiled program XLA reshards, if any."""
    try:
        rows = _found(program, name, where, tries_specs=False).rows
    except ValueError as error:
        print(f"hlofront: what {name} reshards is not known: {error}", file=sys.stderr)
        return
    if rows:
        info = program.debug_info
        lines = "\n".join(row.text() for row in rows)
        print(
            f"hlofront: in {info.func_src_info if info else name}, XLA reshards:\n"
            f"{textwrap.indent(lines, '  ')}",
            file=sys.stderr,
        )


# ---- cures ---------------------------------------------------------------------------------------


# The number of causes that are tried, and the seconds after which no other is.
_TRIED, _SECONDS = 6, 60.0
# A cure saves at least a tenth.
_LEAST = 0.9
_DIMENSIONS = re.compile(r"\[(?:\{[^\[\]]*\})?\]")


def cures_of(
    marked: MarkedProgram, places: Sequence[ReshardPlace], mesh: MeshAxes | None, sent: int
) -> list[Cure]:
    """Return the specs with which each device sends at least a tenth less, the best first.

    One argument or constraint at a time is left to XLA; the program is then compiled with the spec
    that XLA chose.

    Args:
      marked: the program.
      places: its places.
      mesh: its mesh.
      sent: the bytes that each device sends now.
    """
    found: list[Cure] = []
    started = time.monotonic()
    for cause in _causes(places)[:_TRIED]:
        if time.monotonic() - started > _SECONDS:
            break
        chosen = _chosen(marked, cause)
        if chosen is None or chosen == cause.split:
            continue
        less = _sent(marked, cause, chosen, mesh)
        if less is not None and less <= _LEAST * sent:
            of = cause_text(cause._replace(split=chosen))
            assert of is not None
            of = of.replace(f"the sharding constraint {chosen}", "the sharding constraint")
            found.append(Cure(of, str(cause.split), str(chosen), sent, less))
    # Of equally good ones, users would rather change an argument's spec than a constraint.
    return sorted(found, key=lambda cure: (cure.sent, not cure.of.startswith("argument ")))


def _causes(places: Sequence[ReshardPlace]) -> list[Cause]:
    """Return the arguments and constraints that cause resharding, those of the most bytes first.

    A constraint that is differentiated occurs twice in the program, on one line of the user's.
    """
    received: dict[object, int] = {}
    causes: dict[object, Cause] = {}
    for place in places:
        for cause in {place.made_so, place.needed_so}:
            if cause is not None:
                place_of_user = _key(cause)
                causes.setdefault(place_of_user, cause)
                received[place_of_user] = received.get(place_of_user, 0) + place.received
    return [causes[key] for key in sorted(received, key=lambda key: -received[key])]


def _key(cause: Cause) -> object:
    """Return a key that is equal for all constraints on one line of the user's source."""
    if cause.origin is None or cause.origin.file is None:
        return cause
    return cause.origin.file, cause.origin.line, cause.split


def _chosen(marked: MarkedProgram, cause: Cause) -> AxisSplit | None:
    """Return the split that XLA chooses for an argument or constrained value."""
    with _changed(marked, cause, None) as is_there:
        if not is_there:
            return None
        try:
            program, _ = marked.propagated()
        except JaxRuntimeError:
            return None
    places = Places(program)
    if cause.argument is not None:
        return places.arguments[cause.number]
    marks = map(places.constraint_mark, places.constraints)
    found = dict(zip(marks, places.constraints, strict=True)).get(cause.number)
    return None if found is None else places.split_of(found.results[0])


def _sent(
    marked: MarkedProgram, cause: Cause, split: AxisSplit, mesh: MeshAxes | None
) -> int | None:
    """Return the bytes that each device sends with another split; None if XLA rejects it."""
    with _changed(marked, cause, split):
        try:
            executable = marked.compile({})
        except JaxRuntimeError:
            return None
    text = "\n\n".join(module.to_string() for module in executable.hlo_modules())
    return collectives(text, mesh).moved_bytes


@contextmanager
def _changed(marked: MarkedProgram, cause: Cause, split: AxisSplit | None) -> Iterator[bool]:
    """Give an argument or constraint of a program another split inside of the block.

    Args:
      marked: the program.
      cause: the argument or constraint.
      split: its split; None to leave it to XLA.

    Yields:
      Whether the program has this argument or constraint.
    """
    body = marked.module.ir_module.operation
    if cause.argument is None:
        operations = [
            each
            for each in operations_of(body)
            if each.name == "sdy.sharding_constraint" and _is_of(marked, each, cause)
        ]
        before = [each.attributes["sharding"] for each in operations]
        for each in operations:
            each.attributes["sharding"] = _with_split(each.attributes["sharding"], split)
        try:
            yield bool(operations)
        finally:
            for each, attribute in zip(operations, before, strict=True):
                each.attributes["sharding"] = attribute
        return
    main = main_of(marked.module.ir_module)
    given = main.attributes["arg_attrs"] if "arg_attrs" in main.attributes else ()
    # The split of an argument may already be XLA's choice.
    if not given or "sdy.sharding" not in given[cause.number]:
        yield False
        return
    with mlir_lock:
        changed = list(given)
        entries = {entry.name: entry.attr for entry in changed[cause.number]}
        entries["sdy.sharding"] = _with_split(entries["sdy.sharding"], split)
        changed[cause.number] = ir.DictAttr.get(entries, context=context)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(changed, context=context)
    try:
        yield True
    finally:
        main.attributes["arg_attrs"] = given


def _is_of(marked: MarkedProgram, operation: ir.Operation, cause: Cause) -> bool:
    """Return whether a constraint has the line and the split of a cause."""
    number = mark_of(operation)
    if number is None:
        return False
    (split,) = splits_in(operation.attributes["sharding"])
    return number == cause.number or _key(
        Cause(number, marked.origins[number], None, split)
    ) == _key(cause)


def _with_split(attribute: ir.Attribute, split: AxisSplit | None) -> ir.Attribute:
    """Return a sharding on the same mesh with another split; None lets XLA choose it."""

    def changed(match: re.Match[str]) -> str:
        rank = match[0].count("{")
        axes = ["{?}"] * rank if split is None else map(_dimension_text, split.axes)
        return f"[{', '.join(axes)}]"

    return parsed_attribute(_DIMENSIONS.sub(changed, str(attribute), count=1))


def _dimension_text(axes: Sequence[str]) -> str:
    names = (axis.partition(":") for axis in axes)
    return "{" + ", ".join(f'"{name}"{colon}{part}' for name, colon, part in names) + "}"
