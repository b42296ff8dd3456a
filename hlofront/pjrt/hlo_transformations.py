"""Functions of the user that transform HLO modules while XLA compiles them."""

import enum
from collections.abc import Callable, Sequence

from hlofront.bridge.client import Client
from hlofront.bridge.hlo_transformations import table
from hlofront.pjrt import clients

# (the bytes of an HloModuleProto) -> those of the transformed module, or None for no change.
Transformation = Callable[[bytes], bytes | None]


class PipelineStage(enum.Enum):
    """The places in XLA's pipeline of passes where a transformation runs."""

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def register_hlo_module_transformation(
    callback: Transformation,
    *,
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> None:
    """Register a function that XLA calls with each HLO module while it compiles.

    Functions of one stage are called in the order in which they were registered.

    Args:
      callback: takes an HloModuleProto as bytes, and returns a changed one, or None for no change.
      name: the name of the pass.
      stage: where in the pipeline the pass runs.
      platforms: a platform, or several, whose programs are transformed; by default all.

    Raises:
      TypeError: if `stage` is not a PipelineStage.
    """
    number = _number(stage)
    listed = _listed(platforms)
    if listed is None or "cpu" in listed:
        table().register_xla_transform(name, number, callback)

    def prepare(client: Client) -> None:
        if client.platform != "cpu" and (listed is None or client.platform in listed):
            table().register_xla_transform_c_api(client, name, number, callback)

    for client in clients.clients().values():
        prepare(client)
    clients.on_made(prepare)
    _prepared.setdefault((name, stage), []).append(prepare)


def clear_hlo_module_transformation(
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> bool:
    """Remove the functions that were registered under a name; return whether there were any.

    Args:
      name: the name of the pass.
      stage: its stage.
      platforms: a platform, or several, whose programs are no longer transformed; by default all.

    Raises:
      TypeError: if `stage` is not a PipelineStage.
    """
    number = _number(stage)
    listed = _listed(platforms)
    cleared = False
    if listed is None or "cpu" in listed:
        cleared = bool(table().clear_xla_transform(name, number))
    for platform, client in clients.clients().items():
        if platform != "cpu" and (listed is None or platform in listed):
            cleared |= bool(table().clear_xla_transform_c_api(client, name, number))
    if listed is None:
        for prepare in _prepared.pop((name, stage), ()):
            clients.not_on_made(prepare)
    return cleared


# The hooks that prepare new clients, by the name and the stage of the pass.
_prepared: dict[tuple[str, PipelineStage], list[Callable[[Client], object]]] = {}


def _number(stage: object) -> int:
    if not isinstance(stage, PipelineStage):
        raise TypeError(f"stage must be a PipelineStage enum, got {type(stage)}")
    return stage.value


def _listed(platforms: Sequence[str] | str | None) -> Sequence[str] | None:
    return (platforms,) if isinstance(platforms, str) else platforms
