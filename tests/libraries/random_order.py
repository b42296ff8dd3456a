"""A plugin of pytest that runs tests in a random order, which is the same in each run."""

import random

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.nodeid)
    random.Random(0).shuffle(items)
