"""torch's tables of operators: importing them leaves the switches of the process as they were."""

import subprocess
import sys

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Broke, recording
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS, inlined


def test_flags_of_backends_can_be_set_afterwards(tmp_path):
    program = "import torch, plumbline.fuzz.operator_sweep.torch_samples; torch.backends.mkldnn.enabled = False"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nn.functional.dropout", (torch.ones(4),)),
        ("einsum", ([torch.ones(4), torch.ones(4)], "i,i->")),
        ("expand", (torch.ones(1), (4,))),
        ("where", (torch.ones(4), torch.ones(4) > 0, torch.zeros(4))),
    ],
)
def test_lambdas_of_torchs_tests_are_compiled_like_a_users(name, arguments):
    operator = inlined(OPERATORS[name].op)
    assert operator is not OPERATORS[name].op
    with recording() as events:
        plumbline.compile(lambda *args: operator(*args) + 1, backend="eager")(*arguments)
    assert [event for event in events if isinstance(event, Broke)] == []


def test_draws_are_not_seeded_before_each_call():
    dropout = inlined(OPERATORS["nn.functional.dropout"].op)
    assert not torch.equal(dropout(torch.ones(64)), dropout(torch.ones(64)))


def test_torchs_own_functions_are_called_as_they_are():
    assert inlined(torch.add) is torch.add
