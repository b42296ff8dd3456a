"""What tests of targets need: the plugins that compile for them."""

import pytest

from hlofront.pjrt import targets


def need(platform):
    missing = targets.install_hint(platform)
    if missing:
        pytest.skip(f"compiling for {platform} takes `{missing}`")
