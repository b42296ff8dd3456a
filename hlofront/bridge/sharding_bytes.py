"""Conversions between XLA's descriptions of shardings and the bytes of their protocol buffers."""

from typing import Any

from hlofront.bridge.client import HloSharding, OpSharding


def get_op_sharding_from_serialized_proto(sharding: bytes) -> OpSharding:
    """Return the OpSharding that these bytes describe."""
    described: Any = OpSharding()
    described.ParseFromString(sharding)
    return described


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> HloSharding:
    """Return the HloSharding that these bytes describe."""
    of_proto: Any = HloSharding.from_proto
    return of_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: HloSharding) -> bytes:
    """Return the bytes of the protocol buffer of an HloSharding."""
    described: Any = sharding.to_proto()
    return described.SerializeToString()
