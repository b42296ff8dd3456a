"""Re-exports: internal events and durations, and listeners to them, from base/events.py."""

from hlofront.base.events import clear_event_listeners as clear_event_listeners
from hlofront.base.events import record_event as record_event
from hlofront.base.events import record_event_duration_secs as record_event_duration_secs
from hlofront.base.events import record_event_time_span as record_event_time_span
from hlofront.base.events import record_scalar as record_scalar
from hlofront.base.events import (
    register_event_duration_secs_listener as register_event_duration_secs_listener,
)
from hlofront.base.events import register_event_listener as register_event_listener
from hlofront.base.events import (
    register_event_time_span_listener as register_event_time_span_listener,
)
from hlofront.base.events import register_scalar_listener as register_scalar_listener
from hlofront.base.events import (
    unregister_event_duration_listener as unregister_event_duration_listener,
)
from hlofront.base.events import unregister_event_listener as unregister_event_listener
from hlofront.base.events import (
    unregister_event_time_span_listener as unregister_event_time_span_listener,
)
from hlofront.base.events import unregister_scalar_listener as unregister_scalar_listener
