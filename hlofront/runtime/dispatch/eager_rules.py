"""How operations that are not compiled one by one run eagerly."""

from typing import Any

from hlofront.core.aval import typeof
from hlofront.core.derived import DerivedCache
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.rules import run
from hlofront.higher_order.cond import cond_p
from hlofront.higher_order.jit_call import jit_p
from hlofront.higher_order.platform import number_for, platform_index_p
from hlofront.higher_order.scan import scan_p
from hlofront.higher_order.while_loop import while_p
from hlofront.pjrt.clients import lowering_platform
from hlofront.runtime.compilation.pipeline import executable_for
from hlofront.runtime.sharding.placement import choose_device, choose_placement
from hlofront.transforms.stage import stage


@run(jit_p)
def _(*args, jaxpr, name, donated_invars, keep_unused, compiler_options_kvs, **_):
    device, committed = choose_placement(jaxpr, args)
    donated = donated_invars if any(donated_invars) else ()
    executable = executable_for(
        jaxpr, name, device, committed, donated, keep_unused, compiler_options_kvs
    )
    return executable.run(args)


# The programs of one operation alone, by the primitive, the types of its operands and its other
# parameters. A program may meet with ever new ones: as a branch of cond, or a body of while.
_programs: DerivedCache[tuple[object, ...], ClosedJaxpr] = DerivedCache(limit=64)


def run_by_itself(primitive: Primitive, parameter: str) -> None:
    """Run an operation that holds programs as a program of it alone, compiled once.

    What is compiled is kept with the program in this parameter, the first where there are several.
    """

    def rule(*args: Any, **params: Any) -> list[Any]:
        holder = params[parameter]
        if not isinstance(holder, ClosedJaxpr):
            holder = holder[0]
        avals = tuple(map(typeof, args))
        key = (primitive, avals, *_with_another(params, holder, None).items())

        def staged() -> ClosedJaxpr:
            # A copy, as what is derived from a program must not refer to it, or it goes late.
            copied = _with_another(params, holder, ClosedJaxpr(holder.jaxpr, holder.consts))
            return stage(lambda *xs: primitive.bind(*xs, **copied), avals)

        program = _programs.get_or_compute(holder, key, staged)
        device, committed = choose_placement(program, args)
        return executable_for(program, primitive.name, device, committed).run(args)

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_run"
    run(primitive)(rule)


def _with_another(
    params: dict[str, Any], program: ClosedJaxpr, another: ClosedJaxpr | None
) -> dict[str, Any]:
    """Parameters in which another stands for a program, also as a member of a tuple."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([another if member is program else member for member in value])
        return another if value is program else value

    return {name: changed(value) for name, value in params.items()}


run_by_itself(scan_p, "jaxpr")
run_by_itself(cond_p, "branches")
run_by_itself(while_p, "body_jaxpr")


@run(platform_index_p)
def _(*, platforms):
    device, _ = choose_device(())
    return number_for(lowering_platform(device), platforms)
