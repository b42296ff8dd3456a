"""A plugin of pytest that runs tests in a random order, which is the same in each run of a seed."""

import os
import random

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.nodeid)
    random.Random(int(os.environ["RANDOM_ORDER_SEED"])).shuffle(items)
