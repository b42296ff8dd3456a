"""Functions whose derivatives are the user's."""

from hlofront.higher_order.custom_rules.custom_gradient import custom_gradient as custom_gradient
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp as custom_jvp
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from hlofront.higher_order.custom_rules.custom_rule import SymbolicZero as SymbolicZero
from hlofront.higher_order.custom_rules.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from hlofront.higher_order.custom_rules.custom_vjp import custom_vjp as custom_vjp
from hlofront.higher_order.custom_rules.custom_vjp import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from hlofront.higher_order.custom_rules.custom_vjp import zero_from_primal as zero_from_primal
from hlofront.higher_order.custom_rules.custom_vjp_call import (
    custom_vjp_call_p as custom_vjp_call_p,
)
from hlofront.higher_order.custom_rules.custom_vjp_call import remat_opt_p as remat_opt_p
from hlofront.higher_order.custom_rules.linear_call import linear_call as linear_call
from hlofront.transforms.make_jaxpr import closure_convert as closure_convert
