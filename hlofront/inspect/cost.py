"""Costs of what hlofront compiles, on a target: by instruction and by source line."""

from hlofront.pjrt.targets import Description, Target
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlotools.cost import costs as text_costs
from hlotools.cost.costs import Costs as Costs
from hlotools.ir.hlo import HloModule
from hlotools.ir.hlo_parser import parse


def costs(program: object, target: Target | Description | str | None = None) -> Costs:
    """Return where a program spends operations, bytes and time.

    The numbers are estimates from shapes: a fusion moves its operands and its result, a loop runs
    as often as XLA wrote down. The time is a lower bound from the target's published rates: the
    greater of operations by its peak rate for their dtype and bytes by its memory's bandwidth.

    Args:
      program: what `compile` returned; text of HLO, the path of a file of it, or what `parse`
        gave; or what `lower` returned, for the program before optimization.
      target: what `hlofront.target` gives, or its name, such as "cuda:h100".

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is nothing of these.
    """
    return text_costs.costs(_readable(program), description_of(target))


def description_of(target: Target | Description | str | None) -> Description | None:
    """Return the numbers of a target, or of the target of this name."""
    described = find_target(target) if isinstance(target, str) else target
    return described.describe() if isinstance(described, Target) else described


def _readable(program: object) -> object:
    """Return a stage of ours as a module of HLO, and anything else as it is."""
    if isinstance(program, Compiled):
        return parse(program.as_text() or "")
    if isinstance(program, Lowered):
        module: HloModule = parse(program.as_text("hlo", debug_info=True))
        return module
    return program
