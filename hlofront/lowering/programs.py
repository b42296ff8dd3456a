"""Operations that hold programs: jit becomes a private function and a call."""

from hlofront.core.rules import lower
from hlofront.higher_order.jit_call import jit_p
from hlofront.lowering.module import symbol_name


@lower(jit_p)
def _(build, *args, jaxpr, name, **_):
    return build.call(jaxpr, symbol_name(name), args)
