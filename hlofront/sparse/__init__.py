"""hlofront.sparse: sparse arrays; their public names are those of hlofront.experimental.sparse."""

from hlofront.sparse import operators as operators
