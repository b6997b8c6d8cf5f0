"""torch's `map` and `scan`: written out in one graph, with eager's values, layout and gradients."""

import pytest
import torch
from torch._higher_order_ops import scan
from torch._higher_order_ops.map import map as torch_map

import plumbline
from plumbline.compiler.base.events import Broke, CompilerFailed, RanEagerly, recording
from support.torch_release import since_release

PROGRAMS = {
    "map": lambda x, w: torch_map(lambda row: row.sin(), x),
    "map with arguments": lambda x, w: torch_map(lambda row, w: (row * w, row.sum()), x, w),
    "map of a pair": lambda x, w: torch_map(lambda pair: pair[0] * pair[1], (x, x + 1)),
    "map of a closure": lambda x, w: torch_map(lambda row: row * w.exp(), x),
    "scan": lambda x, w: scan(lambda c, row: (c + row, c * row), torch.zeros(3), x),
    "scan from the end": lambda x, w: scan(lambda c, row: (c + row * w, c * row), torch.zeros(3), x, reverse=True),
    "scan of a tuple": lambda x, w: scan(lambda c, row: ((c[0] + row,), c[0].sin()), (torch.zeros(3),), x),
}


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def tensors(result):
    return [result] if isinstance(result, torch.Tensor) else [part for each in result for part in tensors(each)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph(name, gradients, backend):
    program = PROGRAMS[name]
    x, w = torch.randn(4, 3, requires_grad=gradients), torch.randn(3, requires_grad=gradients)
    expected = tensors(program(x, w))
    with recording() as events:
        found = tensors(plumbline.compile(program, backend=backend)(x, w))
    torch_loses_gradients = name.startswith("scan") and gradients and not since_release("2.13")
    assert bool([event for event in events if isinstance(event, Broke | RanEagerly)]) == torch_loses_gradients
    for ours, eagers in zip(found, expected, strict=True):
        assert torch.equal(ours, eagers)
        assert (ours.stride(), ours.requires_grad) == (eagers.stride(), eagers.requires_grad)
    if gradients:
        of = [
            torch.autograd.grad(sum(part.sum() for part in parts), (x, w), allow_unused=True)
            for parts in (found, expected)
        ]
        torch.testing.assert_close(*of)


KEPT = []


def changing(row):
    KEPT.append(1)
    return row.sin()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch_map(changing, x),
        lambda x: scan(lambda c, row: (c + row, c * row), torch.zeros(4), x, dim=1),
    ],
    ids=["something outside", "another dimension"],
)
def test_what_is_not_written_out_is_eagers(program):
    outcomes = []
    with recording() as events:
        for run in (program, plumbline.compile(program, backend="eager")):
            KEPT.clear()
            try:
                outcomes.append([value.tolist() for value in tensors(run(torch.ones(4, 4)))])
            except Exception as error:
                outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]
    assert [event for event in events if isinstance(event, Broke | RanEagerly)]
    assert not [event for event in events if isinstance(event, CompilerFailed)]
