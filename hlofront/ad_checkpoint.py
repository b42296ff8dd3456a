"""Policies for which values differentiation saves, and which it recomputes."""

from hlofront.higher_order.checkpoint.checkpoint import checkpoint as checkpoint
from hlofront.higher_order.checkpoint.checkpoint import checkpoint as remat
from hlofront.higher_order.checkpoint.checkpoint_policies import Offloadable as Offloadable
from hlofront.higher_order.checkpoint.checkpoint_policies import Recompute as Recompute
from hlofront.higher_order.checkpoint.checkpoint_policies import Saveable as Saveable
from hlofront.higher_order.checkpoint.checkpoint_policies import checkpoint_name as checkpoint_name
from hlofront.higher_order.checkpoint.checkpoint_policies import (
    checkpoint_name as checkpoint_name_fwd,
)
from hlofront.higher_order.checkpoint.checkpoint_policies import (
    checkpoint_policies as checkpoint_policies,
)
from hlofront.higher_order.checkpoint.checkpoint_policies import name_p as name_p
from hlofront.higher_order.checkpoint.saved_residuals import (
    print_saved_residuals as print_saved_residuals,
)
from hlofront.higher_order.checkpoint.saved_residuals import saved_residuals as saved_residuals
