"""Models whose batch and sequence length change: two graphs and two libraries for all sizes, each answer eager's.

The first call compiles for its own sizes, the second, where a size has changed, for all sizes from then on.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from torch import nn

import plumbline
from plumbline.compiler.base.events import Broke, Captured, KernelBuilt, RanEagerly, recording

pytest.importorskip("transformers", reason="the models come from the optional hf dependency")

import transformers

from support.hugging_face import FAMILIES, tokens
from support.torch_release import since_release

LENGTHS = (9, 7, 12, 5, 16, 17, 31, 10)
BACKENDS = ["eager", pytest.param("inductor", marks=[pytest.mark.cc, pytest.mark.slow])]


def close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Return whether two results differ by rounding only: 100 units of the greatest value."""
    units = torch.finfo(torch.float32).eps * max(float(wanted.abs().max()), 1.0)
    return found.shape == wanted.shape and bool(((found - wanted).abs() <= 100 * units).all())


def made(events: list[Any]) -> tuple[int, int]:
    """Return how many graphs were captured and how many libraries built; nothing may break or run eagerly."""
    assert not [event for event in events if isinstance(event, Broke | RanEagerly)]
    graphs = sum(isinstance(event, Captured) for event in events)
    return graphs, sum(isinstance(event, KernelBuilt) for event in events)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_sequences_grow(family: str, backend: str) -> None:
    model = FAMILIES[family].make()
    settings = {} if family == "bert" else {"use_cache": False}
    compiled = plumbline.compile(model, backend=backend)
    counts = []
    with torch.no_grad():
        for length in LENGTHS:
            inputs = tokens(length)
            wanted = model(**inputs, **settings)[0]
            with recording() as events:
                found = compiled(**inputs, **settings)[0]
            counts.append(made(events))
            assert torch.equal(found, wanted) if backend == "eager" else close(found, wanted), length
    assert [graphs for graphs, _ in counts] == [1, 1, 0, 0, 0, 0, 0, 0]
    assert all(built <= 1 for _, built in counts[:2])
    assert not any(built for _, built in counts[2:])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_generation_with_a_growing_cache(family: str, backend: str) -> None:
    model = FAMILIES[family].make()
    compiled = plumbline.compile(model, backend=backend)
    start = torch.arange(5)[None] + 7

    def generated(call: Callable[..., Any]) -> tuple[list[int], list[tuple[int, int]]]:
        cache, given, chosen, counts = transformers.DynamicCache(), start, [], []
        for _ in range(12):
            with torch.no_grad(), recording() as events:
                result = call(given, past_key_values=cache, use_cache=True)
            counts.append(made(events))
            cache, given = result.past_key_values, result.logits[:, -1:].argmax(-1)
            chosen.append(int(given))
        return chosen, counts

    wanted, _ = generated(model)
    found, counts = generated(compiled)
    assert found == wanted
    # the prompt; one token, which is another size; one token with a cache of another size, and so on from there
    assert [graphs for graphs, _ in counts] == [1, 1, 1, *[0] * 9]
    assert not any(built for _, built in counts[3:])


class Attention(nn.Module):
    """Self-attention by hand, causal, with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mixed, self.out = nn.LayerNorm(24), nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [batch, length, 24]."""
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, 3, 8).transpose(1, 2) for part in self.mixed(self.norm(x)).chunk(3, -1))
        seen = torch.tril(torch.ones(length, length, dtype=torch.bool))
        scores = (q @ k.transpose(-2, -1) / 8**0.5).masked_fill(~seen, float("-inf")).softmax(-1)
        return x + F.gelu(self.out((scores @ v).transpose(1, 2).reshape(batch, length, width)))


class Pooled(nn.Module):
    """A convolution, batch normalisation, pooling and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [batch, 3, height, width]."""
        return self.head(F.max_pool2d(F.relu(self.norm(self.first(x))), 2).mean((2, 3)))


class Cell(nn.Module):
    """One step of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.inward, self.onward = nn.Linear(6, 32), nn.Linear(8, 32)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
        """x: [batch, 6]; hidden, cell: [batch, 8]."""
        enter, forget, value, leave = (self.inward(x) + self.onward(hidden)).chunk(4, -1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * value.tanh()
        return leave.sigmoid() * cell.tanh()


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], tuple[torch.Tensor, ...]]]] = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(5, 17), nn.GELU(), nn.Linear(17, 3), nn.LogSoftmax(-1)),
        lambda n: (torch.randn(n, 5),),
    ),
    "attention": (Attention, lambda n: (torch.randn(n + 1, 2 * n, 24),)),
    "convolution": (Pooled, lambda n: (torch.randn(n, 3, n + 6, n + 7),)),
    "cell": (Cell, lambda n: (torch.randn(n, 6), torch.randn(n, 8), torch.randn(n, 8))),
}


# How many graphs torch's own shape rules ask for: those of 2.11 ask of a pool whether its input can be divided, and of
# a convolution whether there are sixteen images.
ASKED_OF_SIZES = {} if since_release("2.13") else {"convolution": 4}


def gradients(call: Callable[..., torch.Tensor], model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[Any]:
    """Return the result and the gradients of all parameters and inputs."""
    leaves = [*model.parameters(), *(tensor.detach().requires_grad_() for tensor in inputs)]
    result = call(*leaves[len(leaves) - len(inputs) :])
    weights = torch.linspace(-1, 1, result.numel()).reshape(result.shape)
    return [result.detach(), *torch.autograd.grad((result * weights).sum(), leaves, allow_unused=True)]


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", MODELS)
def test_training_with_other_sizes(name: str, backend: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name][0]()
    compiled = plumbline.compile(model, backend=backend)
    counts = []
    for size in (5, 6, 4, 9, 3, 16, 17, 2, 7, 12):
        inputs = MODELS[name][1](size)
        state = {key: value.clone() for key, value in model.state_dict().items()}
        wanted = gradients(model, model, inputs)
        model.load_state_dict(state)
        with recording() as events:
            found = gradients(compiled, model, inputs)
        counts.append(made(events))
        for one, other in zip(found, wanted, strict=True):
            assert (one is None) == (other is None)
            assert one is None or close(one, other), size
    assert [graphs for graphs, _ in counts[:2]] == [1, 1]
    later = [sum(column) for column in zip(*counts[2:], strict=True)]
    if name in ASKED_OF_SIZES:
        assert 1 < later[0] <= ASKED_OF_SIZES[name]
        return
    assert later[0] <= 1  # a size of two may need a graph of its own
    assert later[1] <= 2
