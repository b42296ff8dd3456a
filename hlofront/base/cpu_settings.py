"""The settings of lowering for CPUs, which are in the keys of compiled programs.

Processes that compile nothing have them too, and load no module of lowering.
"""

from hlofront.base.named_tuple import NamedTuple


class CpuSettings(NamedTuple):
    """The kinds of code that lowering adds for CPUs; modules for other platforms get none of it.

    Attributes:
      fences: whether values that XLA would recompute at every use are stored, as
        lowering/fences.py says. XLA is then told to keep all barriers of the module.
      formulas: whether slow operations of XLA are replaced, as lowering/cpu_formulas.py says. Most
        formulas need barriers, and so fences, too.
      guards: whether operations that XLA may compute wrongly are lowered in another way, as
        bridge/xla_faults.py says.
    """

    fences: bool = False
    formulas: bool = True
    guards: bool = True
