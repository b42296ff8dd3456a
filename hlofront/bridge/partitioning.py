"""Custom calls that Python code partitions while XLA compiles for several devices."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hlofront.bridge import state
from hlofront.bridge.client import HloSharding

# The targets of custom calls that the host partitions: the first is JAX's, the second passes a
# sharding to a callback.
PARTITIONED = "CustomSPMDPartitioning"
INSPECTED = "hlofront_inspect_sharding"


class Partitioned(NamedTuple):
    """The module that replaces a custom call on each device, with its shardings.

    Attributes:
      bytecode: a StableHLO module, whose main function takes the shards of the operands and returns
        those of the results.
      operands: the shardings that XLA must give to the operands.
      results: the shardings of the results.
    """

    bytecode: bytes
    operands: Sequence[HloSharding]
    results: Sequence[HloSharding]


# (backend_config of the call, shardings of its operands, those of its results) -> Partitioned
Partition = Callable[[str, list[HloSharding], list[HloSharding]], Partitioned]


# The function that partitions custom calls, once it is registered.
_partition: list[Partition] = []
# The APIs of loaded plugins, which have their own compilers.
_plugin_apis: list[object] = []


def register_partitioner(partition: Partition) -> None:
    """Register the function that partitions custom calls of both targets, once per process.

    jaxlib's compiler and those of all plugins, even if they are loaded later, call it from their
    own threads while another thread waits for the executable.
    """
    _partition.append(partition)
    for api in (None, *_plugin_apis):
        _register(partition, api)


def note_plugin(api: object) -> None:
    """Make the function that partitions custom calls available to the compiler of a plugin."""
    _plugin_apis.append(api)
    for partition in _partition:
        _register(partition, api)


def _register(partition: Partition, api: object) -> None:
    """Register the function with the compiler of a plugin, or with jaxlib's for None."""

    def on_call(
        shapes: Sequence[object],
        shardings: Sequence[HloSharding],
        result_shape: Any,
        result_sharding: HloSharding,
        backend_config: bytes,
    ) -> tuple[bytes, Sequence[HloSharding], HloSharding]:
        several = result_shape.is_tuple()
        results = result_sharding.tuple_elements() if several else [result_sharding]
        partitioned = partition(backend_config.decode(), list(shardings), list(results))
        if several:
            sharding = HloSharding.tuple_sharding(result_shape, list(partitioned.results))
        else:
            (sharding,) = partitioned.results
        return partitioned.bytecode, list(partitioned.operands), sharding

    # GSPMD called these to learn how shardings propagate through a call. Shardy has rules instead.
    def refuse(*_: object) -> HloSharding:
        raise RuntimeError("Shardy passes shardings through custom calls, by their rules")

    for target in (PARTITIONED, INSPECTED):
        state.extension.register_custom_call_partitioner(
            target,
            prop_user_sharding=refuse,
            partition=on_call,
            infer_sharding_from_operands=refuse,
            can_side_effecting_have_replicated_sharding=True,
            c_api=api,
        )
