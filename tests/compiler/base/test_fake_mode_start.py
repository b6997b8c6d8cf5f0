import subprocess
import sys

import pytest
import torch

from plumbline.compiler.base import fake_mode_start
from plumbline.compiler.base.fake_mode_start import make_fake, start_fake_mode, without_compiler
from plumbline.compiler.base.torch_facts import FakeTensorMode, WatchedFakeMode

CAPTURE = """
import sys
import torch
import plumbline
from torch import nn

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.end = nn.LSTM(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return torch.stack([self.end(self.layers(x)[0][-1]), x.new_zeros(3, 2)])

plumbline.compile(Recurrent(), backend="eager", fullgraph=True)(torch.randn(5, 3, 4)).sum().backward()
assert "torch.distributed.tensor" not in sys.modules
assert "torch.onnx" not in sys.modules

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4), nn.Dropout(0.1), nn.GELU(), nn.Softmax(1))
plumbline.compile(model, backend="eager", fullgraph=True)(torch.randn(3, 4)).sum().backward()
assert "torch._dynamo" not in sys.modules

step = plumbline.compile(model, backend="aot_eager", fullgraph=True)
for rows in (3, 5, 6):  # the parameters have gradients by now, and the number of rows is open from the second call on
    step(torch.randn(rows, 4)).sum().backward()
plumbline.compile(lambda x: x.t()[: x.shape[0] * 2] + 1, backend="aot_eager", dynamic=True)(torch.randn(3, 4))
assert not {"torch._dynamo", "torch._inductor", "torch.export._trace"} & sys.modules.keys()
import torch._dynamo
step(torch.randn(7, 4)).sum().backward()
plumbline.compile(model, backend="eager", fullgraph=True, dynamic=True)(torch.randn(3, 4)).sum().backward()
plumbline.compile(nn.Sequential(nn.Linear(4, 2)), backend="eager", fullgraph=True)(torch.randn(3, 4))
"""


def test_capture_does_not_import_torchs_compiler():
    done = subprocess.run([sys.executable, "-c", CAPTURE], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


REFERENCES = """
import sys
import torch
from plumbline.compiler.base.torch_facts import WatchedFakeMode

with WatchedFakeMode():
    assert torch._refs.cat([torch.ones(2), torch.ones(3)]).shape == (5,)
assert "torch._dynamo" not in sys.modules
import torch._dynamo
with WatchedFakeMode():
    assert torch._refs.cat([torch.ones(2), torch.ones(3)]).shape == (5,)
kept = [f.__dynamo_disable for f in [torch._refs.cat.__wrapped__, torch._refs.cat.__wrapped__.__wrapped__]
        if hasattr(f, "__dynamo_disable")]
assert kept and all(getattr(f, "_torchdynamo_disable", False) for f in kept), kept
"""


def test_references_are_left_alone_by_the_compiler_once_there_is_one():
    done = subprocess.run([sys.executable, "-c", REFERENCES], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_mode_is_what_torch_makes_it():
    mine, torchs = WatchedFakeMode(allow_non_fake_inputs=True), FakeTensorMode(allow_non_fake_inputs=True)
    assert vars(mine).keys() == vars(torchs).keys()
    for name in ("cache_enabled", "cache_crosscheck_enabled", "allow_non_fake_inputs", "static_shapes", "allow_meta"):
        assert getattr(mine, name) == getattr(torchs, name)


def test_where_torch_wants_more_of_its_compiler_it_is_imported(monkeypatch):
    def wants_more(mode: object, **settings: object) -> None:
        raise AttributeError("a setting that is not known here")

    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    monkeypatch.setattr(fake_mode_start, "without_compiler", lambda code: wants_more)
    mode = FakeTensorMode.__new__(FakeTensorMode)
    start_fake_mode(mode)
    assert mode.fake_tensor_converter is not None


def test_settings_are_answered_for_until_the_compiler_is_imported(monkeypatch):
    def asks() -> object:
        return torch._dynamo.config._custom_ops_profile

    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    assert without_compiler(asks)() is None


@pytest.mark.parametrize("make", [lambda: torch.ones(3), lambda: torch.tensor(3), lambda: torch.ones(4, 2).t()[1:]])
def test_twins_look_like_their_originals_and_share_memory_as_they_do(make):
    tensor, mode = make(), WatchedFakeMode()
    twin = make_fake(mode, tensor)
    assert (twin.shape, twin.stride(), twin.dtype, twin.storage_offset()) == (
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.storage_offset(),
    )
    assert make_fake(mode, tensor) is twin


def test_the_name_of_a_gradient_is_known_without_the_compiler(monkeypatch):
    def asks() -> object:
        from torch._dynamo.source import AttrSource

        return AttrSource(fake_mode_start.UnknownInput(), "grad").name

    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    assert without_compiler(asks)() == "unknown.grad"


def test_other_names_are_those_of_the_compiler():
    code = (
        "import sys\nfrom plumbline.compiler.base.fake_mode_start import without_compiler\n"
        "def asks():\n    from torch._dynamo.source import LocalSource\n    return LocalSource\n"
        "assert without_compiler(asks)().__module__ == 'torch._dynamo.source'"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
