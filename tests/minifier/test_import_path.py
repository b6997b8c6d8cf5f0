import importlib
import operator

import pytest
import torch

from plumbline.minifier.import_path import import_path


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (torch.nn.functional.softmax, ("torch.nn.functional", "softmax")),
        (operator.matmul, ("_operator", "matmul")),
        (torch.nn.Linear, ("torch.nn.modules.linear", "Linear")),
        (len, ("builtins", "len")),
    ],
)
def test_what_a_fresh_process_finds_is_named(value, path):
    assert import_path(value) == path


BUILTINS = {"torch.sin": torch.sin, "Tensor.sin": torch.Tensor.sin, "nn.gelu": torch.nn.functional.gelu}


@pytest.mark.parametrize("value", BUILTINS.values(), ids=BUILTINS)
def test_builtins_of_torch_are_found_by_looking(value):
    module, attribute = import_path(value)
    found = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    assert found is value


def test_what_only_this_process_has_is_not_named():
    def local():
        pass

    assert import_path(local) is None
    assert import_path(lambda: None) is None
    assert import_path(3) is None
