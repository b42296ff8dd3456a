"""The cost analysis of an executable, even for plugins that have none."""

from typing import TYPE_CHECKING

from hlofront.bridge.client import hlo_module_cost_analysis
from hlofront.bridge.state import JaxRuntimeError
from hlofront.pjrt import clients

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import HloModule, LoadedExecutable

# NVIDIA's libraries for matrix products, which XLA's analysis counts as free.
_LIBRARY_CALLS = ("__cublas", "__cudnn", "__triton_gemm")


def cost_of(loaded: "LoadedExecutable", unoptimized: "HloModule | None" = None) -> dict[str, float]:
    """Return XLA's cost estimate of an executable: flops, bytes accessed, and so on.

    Args:
      loaded: jaxlib's executable. GPU plugins have no estimate; it is computed from their HLO.
      unoptimized: the HLO module before optimization, whose flops are used if the optimized one
        calls libraries.
    """
    try:
        return loaded.cost_analysis()
    except JaxRuntimeError as error:
        if "UNIMPLEMENTED" not in str(error):
            raise
    client = clients.client_for("cpu")
    module = loaded.hlo_modules()[0]
    cost = dict(hlo_module_cost_analysis(client, module))
    if unoptimized is not None and any(name in module.to_string() for name in _LIBRARY_CALLS):
        before = hlo_module_cost_analysis(client, unoptimized)
        cost["flops"] = max(cost.get("flops", 0.0), before.get("flops", 0.0))
    return cost
