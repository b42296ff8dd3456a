"""Re-exports: mutable references under the names of `jax.ref`."""

from hlofront.core.references import AbstractRef as AbstractRef
from hlofront.primitives.references import addupdate as addupdate
from hlofront.primitives.references import empty_ref as empty_ref
from hlofront.primitives.references import free_ref as free_ref
from hlofront.primitives.references import freeze as freeze
from hlofront.primitives.references import get as get
from hlofront.primitives.references import new_ref as new_ref
from hlofront.primitives.references import set as set
from hlofront.primitives.references import swap as swap
from hlofront.runtime.array.reference import Ref as Ref
