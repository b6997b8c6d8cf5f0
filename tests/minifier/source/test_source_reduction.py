"""A fault of capture deep in a module is found by compiling its children, before anything is copied or cut."""

from plumbline.minifier.reduce.problem import Budget
from plumbline.minifier.source.source_case import source_case
from plumbline.minifier.source.source_reduction import reduce_source
from plumbline.minifier.source.source_run import SourceSettings
from plumbline.minifier.source.warm_process import WarmProcess

DEEP = """
import torch
import plumbline
from plumbline.testing import replace_captured

class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.inner, self.other = torch.nn.LayerNorm(width), torch.nn.Linear(width, width), torch.nn.GELU()
    def forward(self, x, scale, also=None):
        x = x + self.other(self.inner(self.norm(x))) * scale
        if also is not None:
            for one in also:
                x = x + one
        return x

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(width) for _ in range(3))
        self.first = torch.nn.Linear(width, width)
    def forward(self, x):
        x = self.first(x)
        for number, layer in enumerate(self.layers):
            x = layer(x, 2, also=[x])
        return x.sum(0)

with torch.no_grad(), replace_captured(torch.nn.functional.layer_norm, lambda x, *rest: x):
    plumbline.compile(Model(4))(torch.randn(3, 4))
"""


def test_a_child_is_compiled_before_anything_is_cut():
    case = source_case(DEEP)
    settings = SourceSettings(compiler="plumbline", backend="eager", threads=1)
    with WarmProcess() as warm:
        first = warm.ask(case.text, settings)
        reduced = reduce_source(case, first, warm, settings, Budget(400, 300), fresh=True)
    assert reduced.complete
    assert "torch.nn.LayerNorm" in reduced.case.text
    assert len(reduced.case) <= 5  # without that step: 17
