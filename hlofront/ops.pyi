# Written by scripts/write_stubs.py from the running package: do not edit.

from typing import Any, TypeAlias

from hlofront import Array
from hlofront.lax import GatherScatterMode
from hlofront.typing import ArrayLike

PartitionSpec: TypeAlias = Any
NamedSharding: TypeAlias = Any

def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
