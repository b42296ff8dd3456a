"""jax.experimental.ode: initial value problems of ordinary differential equations."""

from hlofront.scipy.initial_value_problems import abs2 as abs2
from hlofront.scipy.initial_value_problems import (
    fit_4th_order_polynomial as fit_4th_order_polynomial,
)
from hlofront.scipy.initial_value_problems import initial_step_size as initial_step_size
from hlofront.scipy.initial_value_problems import interp_fit_dopri as interp_fit_dopri
from hlofront.scipy.initial_value_problems import mean_error_ratio as mean_error_ratio
from hlofront.scipy.initial_value_problems import odeint as odeint
from hlofront.scipy.initial_value_problems import optimal_step_size as optimal_step_size
from hlofront.scipy.initial_value_problems import runge_kutta_step as runge_kutta_step
