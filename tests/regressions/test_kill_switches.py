"""The switches that every user of torch's compiler knows were not looked at."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UserError


def body(x):
    return x + 1


@pytest.mark.parametrize("name", ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_nothing_is_compiled(name, monkeypatch):
    module = torch.nn.Linear(2, 2)
    monkeypatch.setenv(name, "1")
    assert plumbline.compile(body) is body
    assert plumbline.compile(backend="eager")(body) is body
    assert plumbline.compile(module) is module
    monkeypatch.setenv(name, "0")
    assert plumbline.compile(body) is not body


def test_a_value_that_is_neither_on_nor_off(monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "maybe")
    with pytest.raises(UserError, match="TORCHDYNAMO_DISABLE"):
        plumbline.compile(body)


def test_a_wrong_backend_is_still_said(monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    with pytest.raises(UserError, match="no backend"):
        plumbline.compile(body, backend="none such")
