"""The settings of lowering for CPUs, which are part of the keys of compiled programs.

They are here so that processes that do not compile need not load lowering.
"""

from hlofront.base.named_tuple import NamedTuple


class CpuSettings(NamedTuple):
    """The kinds of code that lowering adds only for CPUs.

    Attributes:
      fences: whether values that XLA would recompute at every use are materialized, see
          lowering/core/fences.py. XLA then keeps all barriers of the module.
      formulas: whether slow operations of XLA are replaced, see lowering/replacements.py. Most
          formulas need barriers, and therefore fences.
      guards: whether operations that XLA may compute wrongly are lowered in another way, see
          bridge/xla_faults.py.
    """

    fences: bool = False
    formulas: bool = True
    guards: bool = True
