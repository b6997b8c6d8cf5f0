"""Seeds that do not depend on the backend, so that every variant of a test sees the same inputs."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import pytest

from .judge_access import RandomState, seed_everything


def seed_for(text: str) -> int:
    """Return a seed, 0 to 2**32 - 1, that depends on the text alone."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1)
def _states_of(test_id: str) -> RandomState:
    seed_everything(seed_for(test_id))
    return RandomState.now()


def seed_test(test_id: str) -> None:
    """Seed torch, NumPy and Python for a test; test_id: its node id without the backend.

    Each variant asks several times; setting a kept state is cheaper than torch.manual_seed.
    """
    _states_of(test_id).restore()


@contextmanager
def seeded_fixture(fixture: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """Seed the set-up of a fixture of wider scope by its own name, and give the test its generators back after it.

    Without this the variant that happens to set the fixture up would draw other numbers than its siblings.
    """
    before = RandomState.now()
    index = getattr(request, "param_index", 0)
    seed_everything(seed_for(f"{request.node.nodeid}::{fixture}[{index}]"))
    try:
        yield
    finally:
        before.restore()
