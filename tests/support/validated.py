"""Compilation that is validated: each first call is held to the stages before it, and a departure fails the test."""

from collections.abc import Iterator

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import RanEagerly, Validated, recording
from support.programs import Program


@pytest.fixture(autouse=True)
def validated_compilation() -> Iterator[None]:
    with plumbline.config.patch(verify="run", strict=True):
        yield


def check_stages(program: Program) -> None:
    """Run a program in native code, forward and backward; fails where a stage departs, or what ran was not compared."""
    arguments = program.arguments()
    with recording() as events:
        result = plumbline.compile(program.function, backend="inductor")(*arguments)
        ends = [value for value in _tensors(result) if value.requires_grad]
        if ends:
            sum(value.sum() for value in ends).backward()
    compared = [event for event in events if isinstance(event, Validated)]
    eager = any(isinstance(event, RanEagerly) for event in events)  # a program that takes gradients itself
    assert compared or eager
    assert [event.departed for event in compared] == [""] * len(compared)


def _tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for part in parts for tensor in _tensors(part)]
