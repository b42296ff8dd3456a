"""jax.experimental.colocated_python: functions that run on the machine that has some devices."""

from hlofront.runtime.processes.colocated import colocated_cpu_devices as colocated_cpu_devices
from hlofront.runtime.processes.colocated import colocated_python as colocated_python
