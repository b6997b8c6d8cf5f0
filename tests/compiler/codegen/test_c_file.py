"""The whole C file: equal kernels once, no includes, one entry per run of kernels between ATen calls."""

from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.base.events import Artifact, KernelBuilt, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph

pytestmark = pytest.mark.cc


def compiled_text(function: Callable[..., object], *inputs: torch.Tensor) -> tuple[str, int]:
    with recording() as events:
        compile_graph(trace(function, inputs), inputs, Options(strict=True, verify=True))
    text = next(event.text for event in events if isinstance(event, Artifact) and event.name == "graph.c")
    return text, next(event.kernels for event in events if isinstance(event, KernelBuilt))


@pytest.mark.parametrize("layers", [2, 5])
def test_repeated_layers_share_their_kernels(layers: int) -> None:
    weights = [torch.zeros(8, 8) for _ in range(layers)]

    def network(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = torch.nn.functional.gelu(x @ weight).softmax(-1)
        return x

    text, kernels = compiled_text(network, torch.zeros(4, 8), *weights)
    assert kernels == 1
    assert text.count("\nint segment_") == layers
    assert "#include" not in text


def test_kernels_between_two_calls_are_one_segment() -> None:
    text, kernels = compiled_text(lambda x: ((x.sum(1) * 2, x.sum(0) + 1), x @ x)[0], torch.zeros(16, 16))
    assert text.count("\nint segment_") == 1
    assert kernels == 2
