"""Re-exports: derivatives compared with numerical differences, as in `jax.test_util`."""

from hlofront.transforms.check_grads import check_grads as check_grads
from hlofront.transforms.check_grads import check_jvp as check_jvp
from hlofront.transforms.check_grads import check_vjp as check_vjp
