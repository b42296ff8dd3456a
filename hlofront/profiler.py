"""Re-exports: timelines, annotations and memory profiles under the names of `jax.profiler`."""

from hlofront.bridge.profiler import ProfileData as ProfileData
from hlofront.bridge.profiler import ProfileEvent as ProfileEvent
from hlofront.bridge.profiler import ProfileLine as ProfileLine
from hlofront.bridge.profiler import ProfileOptions as ProfileOptions
from hlofront.bridge.profiler import ProfilePlane as ProfilePlane
from hlofront.runtime.debugging.profiler import ProfileSession as ProfileSession
from hlofront.runtime.debugging.profiler import StepTraceAnnotation as StepTraceAnnotation
from hlofront.runtime.debugging.profiler import TraceAnnotation as TraceAnnotation
from hlofront.runtime.debugging.profiler import annotate_function as annotate_function
from hlofront.runtime.debugging.profiler import device_memory_profile as device_memory_profile
from hlofront.runtime.debugging.profiler import export_profile_data as export_profile_data
from hlofront.runtime.debugging.profiler import register_subprocess as register_subprocess
from hlofront.runtime.debugging.profiler import (
    save_device_memory_profile as save_device_memory_profile,
)
from hlofront.runtime.debugging.profiler import start_server as start_server
from hlofront.runtime.debugging.profiler import start_trace as start_trace
from hlofront.runtime.debugging.profiler import stop_server as stop_server
from hlofront.runtime.debugging.profiler import stop_trace as stop_trace
from hlofront.runtime.debugging.profiler import trace as trace
