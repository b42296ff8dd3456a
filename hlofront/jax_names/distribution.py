"""The distribution "jax", from which `importlib.metadata` takes its version."""

# pyright: strict

import importlib.metadata
import os
import pathlib
from collections.abc import Iterator

from hlofront.jax_names.version import __version__

_TEXTS = {
    "METADATA": (
        f"Metadata-Version: 2.1\nName: jax\nVersion: {__version__}\n"
        "Summary: hlofront under JAX's names\n"
    ),
    "top_level.txt": "jax\n",
}


class _Distribution(importlib.metadata.Distribution):
    """The jax that hlofront provides: a name and a version, without files."""

    def read_text(self, filename: str) -> str | None:
        return _TEXTS.get(filename)

    def locate_file(self, path: str | os.PathLike[str]) -> pathlib.Path:
        return pathlib.Path(__file__).parents[2] / path


def distributions(
    context: importlib.metadata.DistributionFinder.Context | None,
) -> Iterator[importlib.metadata.Distribution]:
    """Yield jax if the context requests it or all, unless that version of it is installed.

    This one comes before an installed jax of another version: callers need the version of what
    `import jax` imports.
    """
    context = context or importlib.metadata.DistributionFinder.Context()
    if context.name not in (None, "jax"):
        return
    installed = importlib.metadata.MetadataPathFinder.find_distributions(
        importlib.metadata.DistributionFinder.Context(name="jax")
    )
    if all(distribution.version != __version__ for distribution in installed):
        yield _Distribution()
