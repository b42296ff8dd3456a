"""jax.extend.linear_util: functions that are transformed in steps."""

from hlofront.transforms.linear_util import StoreException as StoreException
from hlofront.transforms.linear_util import WrappedFun as WrappedFun
from hlofront.transforms.linear_util import cache as cache
from hlofront.transforms.linear_util import merge_linear_aux as merge_linear_aux
from hlofront.transforms.linear_util import transformation as transformation
from hlofront.transforms.linear_util import transformation2 as transformation2
from hlofront.transforms.linear_util import transformation_with_aux as transformation_with_aux
from hlofront.transforms.linear_util import transformation_with_aux2 as transformation_with_aux2
from hlofront.transforms.linear_util import wrap_init as wrap_init

__all__ = [
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]
