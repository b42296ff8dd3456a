"""jax.experimental.colocated_python.func: functions of values on colocated devices."""

from hlofront.runtime.processes.colocated import colocated_python as colocated_python
