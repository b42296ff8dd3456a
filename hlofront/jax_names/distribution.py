"""The distribution "jax", by which `importlib.metadata` answers questions about its version."""

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
    """jax as hlofront provides it: a name and a version, without any files."""

    def read_text(self, filename: str) -> str | None:
        return _TEXTS.get(filename)

    def locate_file(self, path: str | os.PathLike[str]) -> pathlib.Path:
        return pathlib.Path(__file__).parents[2] / path


def distributions(
    context: importlib.metadata.DistributionFinder.Context | None,
) -> Iterator[importlib.metadata.Distribution]:
    """Yield jax if the context requests it or all, unless that version of it is installed.

    An installed jax of another version comes after this one: a caller that asks for the version
    needs to know what `import jax` gives.
    """
    context = context or importlib.metadata.DistributionFinder.Context()
    if context.name not in (None, "jax"):
        return
    installed = importlib.metadata.MetadataPathFinder.find_distributions(
        importlib.metadata.DistributionFinder.Context(name="jax")
    )
    if all(distribution.version != __version__ for distribution in installed):
        yield _Distribution()
