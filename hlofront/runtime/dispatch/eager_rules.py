"""The eager rules of operations that are not compiled individually."""

from collections.abc import Callable, Sequence

from hlofront.base.typing import ArrayLike, Params
from hlofront.bridge.client import ArrayImpl, NamedSharding, Sharding
from hlofront.bridge.members import sharding_of
from hlofront.core.aval import typeof
from hlofront.core.compile_time import folding_constants
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import DerivedCache
from hlofront.core.programs.subprograms import Subprogram, with_program
from hlofront.core.rules import run, subprograms
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.higher_order.calls.jit_call import jit_p
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.platform import number_for, platform_index_p
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.shard_map.shard_map import shard_map_p
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.named_shardings import with_all_determined
from hlofront.primitives.sharding.placing import CopySemantics, argument_sharding_p
from hlofront.runtime.array.transfer import put_leaf
from hlofront.runtime.compilation.traced_program import CompilerOptionPairs
from hlofront.runtime.dispatch.references import distinct_references, run_program
from hlofront.runtime.sharding.device_assignment import check_requested
from hlofront.runtime.sharding.placement import choose_device
from hlofront.transforms.stage import stage


@run(jit_p)
def _(
    *args: object,
    jaxpr: ClosedJaxpr,
    name: str,
    donated_invars: tuple[bool, ...],
    keep_unused: bool,
    compiler_options_kvs: CompilerOptionPairs,
    **_: object,
) -> list[object]:
    donated = donated_invars if any(donated_invars) else ()
    return run_program(jaxpr, name, args, donated, keep_unused, compiler_options_kvs)


# The programs of single operations, by the primitive, the types of its operands and its other
# parameters. A subprogram may occur in any number of them: as a branch of cond, or a body of while.
_programs: DerivedCache[tuple[object, ...], ClosedJaxpr] = DerivedCache(limit=64)


def run_by_itself(primitive: Primitive) -> Callable[..., list[object]]:
    """Return the eager rule of a primitive with subprograms: compile and run it as a program.

    The compiled program is cached with the first branch, or with the body of a loop.
    """

    def rule(*args: ArrayLike, **params: object) -> list[object]:
        parts = subprograms[primitive](**params)
        holder = next(part.program for part in parts if part.role != "condition")
        # An operation may take one reference as several operands.
        operands, numbers = distinct_references(args)
        avals = tuple(map(typeof, operands))
        key = (primitive, avals, numbers, *_with_another(params, parts, holder, None).items())

        def staged() -> ClosedJaxpr:
            # A copy, as a reference from derived data would delay the program's deletion.
            copied = _with_another(params, parts, holder, ClosedJaxpr(holder.jaxpr, holder.consts))
            with folding_constants(False):
                return stage(lambda *xs: primitive.bind(*[xs[n] for n in numbers], **copied), avals)

        program = _programs.get_or_compute(holder, key, staged)
        return run_program(program, primitive.name, operands)

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_run"
    return rule


def _with_another(
    params: Params,
    parts: Sequence[Subprogram],
    program: ClosedJaxpr,
    another: ClosedJaxpr | None,
) -> Params:
    """Return parameters with each occurrence of `program` replaced by `another`, or None."""
    for part in parts:
        if part.program is program:
            params = with_program(params, part, another)
    return params


for _primitive in (scan_p, cond_p, while_p):
    run(_primitive)(run_by_itself(_primitive))
_run_mapped = run_by_itself(shard_map_p)


@run(shard_map_p)
def _(*args: ArrayLike, out_specs: Sequence[object], **params: object) -> list[object]:
    results = _run_mapped(*args, out_specs=out_specs, **params)
    return [_as_specified(x, spec) for x, spec in zip(results, out_specs, strict=True)]


def _as_specified(x: object, spec: object) -> object:
    """Return an array with the sharding of a spec, if that is equivalent to the array's own.

    XLA only reports which parts are where.
    """
    if type(x) is not ArrayImpl or not isinstance(spec, PartitionSpec):
        return x
    sharding = sharding_of(x)
    if type(sharding) is not NamedSharding or sharding.spec == spec:
        return x
    requested = NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)
    if not requested.is_equivalent_to(sharding, x.ndim):
        return x
    return put_leaf(x, requested, CopySemantics.REUSE_INPUT)


@run(argument_sharding_p)
def _(x: object, *, name: str, sharding: Sharding, from_anywhere: bool, **_: object) -> object:
    sharding = with_all_determined(sharding)
    if not from_anywhere:
        check_requested([sharding], [x], lambda _: name)
    return put_leaf(x, sharding, CopySemantics.REUSE_INPUT)


@run(platform_index_p)
def _(*, platforms: Sequence[Sequence[str]]) -> int:
    device, _ = choose_device(())
    return number_for(lowering_platform(device), platforms)
