"""jaxlib's bindings of XLA's profiler: sessions, annotations, servers, readers of profiles."""

import importlib
from types import ModuleType
from typing import Any

from hlofront.bridge.client import hlo as _hlo

# Type checkers do not see the members of these modules.
_profiler: ModuleType = importlib.import_module("jaxlib._profiler")
_profile_data: ModuleType = importlib.import_module("jaxlib._profile_data")

# `ProfilerSession(options)` starts recording when it is constructed; `stop()` returns the bytes of
# the record, and `export(record, folder)` writes it in the layout that TensorBoard reads.
ProfilerSession: Any = _profiler.ProfilerSession
# A named block on the host's timeline: `with TraceMe(name, **metadata)`.
TraceMe: Any = _profiler.TraceMe
ProfilerServer: Any = _profiler.ProfilerServer
start_server: Any = _profiler.start_server
register_subprocess: Any = _profiler.register_subprocess
# Returns the bytes of a ProfiledInstructionsProto, from a folder to which a session was exported.
get_profiled_instructions_proto: Any = _profiler.get_profiled_instructions_proto
ProfileOptions: Any = _profiler.ProfileOptions
ProfileData: Any = _profile_data.ProfileData
ProfilePlane: Any = _profile_data.ProfilePlane
ProfileLine: Any = _profile_data.ProfileLine
ProfileEvent: Any = _profile_data.ProfileEvent


def hlo_text(proto: bytes) -> str:
    """Return the text of an HLO module that a profile holds as an HloModuleProto.

    Raises:
      ValueError: if the bytes are not an HloModuleProto.
    """
    try:
        return _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string()
    except RuntimeError as error:
        raise ValueError(f"the HLO in the profile cannot be read: {error}") from error
