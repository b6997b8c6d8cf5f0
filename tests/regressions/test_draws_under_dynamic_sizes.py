"""Under dynamic sizes, calls that torch composes of others give what eager gives: its draws, its pixels."""

import pytest
import torch
from torch import nn

import plumbline

BACKENDS = ("eager", "aot_eager", "inductor")


def rnn(kind, **options):
    torch.manual_seed(3)
    return getattr(nn, kind)(3, 4, 2, dropout=0.5, **options)


RNNS = ("gru", "lstm", "rnn")
FUNCTIONS = {
    "gru": rnn("GRU", batch_first=True),
    "lstm": rnn("LSTM", bidirectional=True),
    "rnn": rnn("RNN"),
    "dropout": lambda x: nn.functional.dropout(x, 0.5),
    "dropout of all": lambda x: nn.functional.dropout(x, 1.0),
    "dropout of channels": lambda x: nn.functional.dropout1d(x, 0.5),
    "alpha dropout": lambda x: nn.functional.alpha_dropout(x, 0.5, training=True),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "native dropout": lambda x: torch.native_dropout(x, 0.5, None),
}


def outcome(function, batch):
    torch.manual_seed(7)
    result = function(torch.ones(batch, 2, 3))
    return result, torch.rand(1)  # the last tells how much was drawn


RUNS = [(name, backend) for name in FUNCTIONS for backend in BACKENDS if name not in RNNS or backend == "aot_eager"]


@pytest.mark.parametrize(("name", "backend"), RUNS)
def test_as_eager(name, backend):
    function = FUNCTIONS[name]
    compiled = plumbline.compile(function, backend=backend, dynamic=True)
    for batch in (4, 6):
        torch.testing.assert_close(outcome(compiled, batch), outcome(function, batch))


def test_a_packed_batch():
    module = rnn("GRU")

    def packed(function, lengths):
        torch.manual_seed(7)
        batch = nn.utils.rnn.pack_padded_sequence(torch.ones(3, len(lengths), 3), torch.tensor(lengths))
        return function(batch)[0].data

    compiled = plumbline.compile(module, backend="aot_eager", dynamic=True)
    for lengths in ([3, 2], [3, 2, 1]):
        torch.testing.assert_close(packed(compiled, lengths), packed(module, lengths))


@pytest.mark.parametrize(
    ("mode", "backend"), [("bilinear", "aot_eager"), ("bilinear", "inductor"), ("nearest", "eager")]
)
def test_resizing_of_bytes(mode, backend):
    def resized(x):
        return nn.functional.interpolate(x, scale_factor=1.7, mode=mode)

    compiled = plumbline.compile(resized, backend=backend, dynamic=True)
    for batch in (2, 3):
        x = (torch.rand(batch, 3, 6, 5) * 255).to(torch.uint8)
        assert torch.equal(compiled(x), resized(x))


def interpolate(x, times):
    return x.repeat(1, 1, times)


def test_a_function_of_the_same_name_is_no_resizing():
    allowed = plumbline.allow_in_graph(interpolate)
    compiled = plumbline.compile(lambda x: allowed(x, 2) + 1, backend="aot_eager", dynamic=True)
    for size in (3, 4):
        x = torch.arange(2.0 * size).reshape(1, 2, size)
        assert torch.equal(compiled(x), interpolate(x, 2) + 1)
