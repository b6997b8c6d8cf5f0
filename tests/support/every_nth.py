"""A pytest plugin that runs every nth test: `PYTHONPATH=tests EVERY=4,0 pytest -p support.every_nth tests/meaning`.

EVERY: how many there are to one that runs, and which of them it is, counted from 0.
"""

import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    count, which = map(int, os.environ["EVERY"].split(","))
    config.hook.pytest_deselected(items=[item for index, item in enumerate(items) if index % count != which])
    items[:] = items[which::count]
