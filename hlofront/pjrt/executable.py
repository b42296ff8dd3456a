"""What can be asked of an executable: its cost, also where its plugin does not know it."""

from typing import Any

from hlofront.bridge.client import hlo_module_cost_analysis
from hlofront.bridge.state import JaxRuntimeError
from hlofront.pjrt import clients

# Products of matrices that NVIDIA's libraries compute: XLA's analysis takes them for free.
_LIBRARY_CALLS = ("__cublas", "__cudnn", "__triton_gemm")


def cost_of(loaded: Any, unoptimized: Any = None) -> Any:
    """XLA's estimate of an executable: flops, bytes accessed, and so on.

    Args:
      loaded: jaxlib's executable. Plugins of GPUs have no estimate; it is made of their HLO then.
      unoptimized: the HLO module before optimization, whose flops count where the optimized one
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
