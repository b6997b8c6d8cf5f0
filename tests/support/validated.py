"""Compilation that is validated: each first call is held to the stages before it, and a departure fails the test."""

from collections.abc import Iterator

import pytest

import plumbline


@pytest.fixture(autouse=True)
def validated_compilation() -> Iterator[None]:
    with plumbline.config.patch(verify="run", strict=True):
        yield
