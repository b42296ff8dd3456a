"""Named mathematical constants, such as pi and inf."""

from __future__ import annotations

import numpy as np

e = np.e
euler_gamma = np.euler_gamma
inf = np.inf
nan = np.nan
newaxis = np.newaxis
pi = np.pi
