"""How operations that are not compiled one by one run eagerly."""

from hlofront.core.rules import run
from hlofront.higher_order.jit_call import jit_p
from hlofront.runtime.placement import choose_device
from hlofront.runtime.programs import executable_for


@run(jit_p)
def _(*args, jaxpr, name, donated_invars, keep_unused, compiler_options_kvs, **_):
    device, committed = choose_device(args)
    donated = donated_invars if any(donated_invars) else ()
    executable = executable_for(
        jaxpr, name, device, committed, donated, keep_unused, compiler_options_kvs
    )
    return executable.run(args)
