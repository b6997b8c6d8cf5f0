"""The workspace of an LSTM is as large as the library below says: its backward ran op by op wherever it was not empty.

Found by `plumbline sweep operators --sizes dynamic`.
"""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_the_backward_of_an_lstm_is_compiled_code(layers, dynamic):
    lstm = torch.nn.LSTM(2, 3, num_layers=layers)
    sequence = torch.linspace(-1, 1, 8).view(4, 1, 2)
    expected = torch.autograd.grad(lstm(sequence)[0].square().sum(), list(lstm.parameters()))
    with recording() as events:
        result = plumbline.compile(lstm, dynamic=dynamic)(sequence)[0].square().sum()
        found = torch.autograd.grad(result, list(lstm.parameters()))
    assert not [event for event in events if swallowed_error(event)]
    torch.testing.assert_close(found, expected)
