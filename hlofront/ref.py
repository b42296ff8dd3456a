"""Re-exports: mutable references under the names of `jax.ref`."""

from hlofront.core.references import AbstractRef as AbstractRef
from hlofront.primitives.references.references import addupdate as addupdate
from hlofront.primitives.references.references import empty_ref as empty_ref
from hlofront.primitives.references.references import free_ref as free_ref
from hlofront.primitives.references.references import freeze as freeze
from hlofront.primitives.references.references import get as get
from hlofront.primitives.references.references import new_ref as new_ref
from hlofront.primitives.references.references import set as set
from hlofront.primitives.references.references import swap as swap
from hlofront.runtime.array.reference import Ref as Ref
