"""Errors in compiled functions: jax.experimental.checkify."""

from hlofront.higher_order.checkify.checkify import checkify as checkify
from hlofront.higher_order.checkify.checkify_errors import ErrorCategory as ErrorCategory
from hlofront.higher_order.checkify.checkify_errors import JaxRuntimeError as JaxRuntimeError
from hlofront.higher_order.checkify.checkify_errors import all_checks as all_checks
from hlofront.higher_order.checkify.checkify_errors import automatic_checks as automatic_checks
from hlofront.higher_order.checkify.checkify_errors import div_checks as div_checks
from hlofront.higher_order.checkify.checkify_errors import float_checks as float_checks
from hlofront.higher_order.checkify.checkify_errors import index_checks as index_checks
from hlofront.higher_order.checkify.checkify_errors import nan_checks as nan_checks
from hlofront.higher_order.checkify.checkify_errors import user_checks as user_checks
from hlofront.higher_order.checkify.checking import Error as Error
from hlofront.higher_order.checkify.checking import check as check
from hlofront.higher_order.checkify.checking import check_error as check_error
from hlofront.higher_order.checkify.checking import debug_check as debug_check
from hlofront.higher_order.checkify.checking import init_error as init_error
