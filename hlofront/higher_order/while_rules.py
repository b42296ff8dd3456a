"""while under transformations: the derivative, splitting, batching, dead code."""

from collections.abc import Sequence
from typing import Any

from hlofront.core import rules
from hlofront.core.axes import AxisData
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Literal, Var
from hlofront.core.marks import Zero
from hlofront.higher_order.cond_rules import Flags
from hlofront.higher_order.jit_call import spread
from hlofront.higher_order.while_loop import split, while_p
from hlofront.primitives.batching import to_front
from hlofront.primitives.derivatives import instantiate
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import live, partial_eval_program
from hlofront.transforms.simplify import dead_code_program
'''+"'''" + '''
