"""Programs with one planted fault each, for `minimize_faults.py`: every kind of failure, in made programs and models.

A made program has residual blocks, so that what the fault changes arrives at the end, and a number of operators that
is chosen; a model is one of Hugging Face's from a tiny configuration, whose own code has to be cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass

OPERATORS_OF_A_BLOCK = 6


@dataclass(frozen=True, slots=True)
class FaultRow:
    """plant: an expression of a context that makes the compiler wrong.  statement: of h, x and n, in the program.

    calls: of the compiled program.  before: of the plant's own definitions.
    """

    plant: str
    statement: str = "torch.relu(h)"
    calls: str = "compiled(x, 2)"
    before: str = ""


def _by_lowering(body: str) -> FaultRow:
    """Return a fault whose lowering of relu does something."""
    # Looked up before the fault is planted: within, the lowering of relu is the planted one.
    known = "sine, relu = lowering_of(aten.sin.default), lowering_of(aten.relu.default)"
    before = f"{known}\n\ndef planted(call):\n{body}\n"
    return FaultRow("replace_lowering(aten.relu.default, planted)", before=before)


_SINE_IF = "    return (sine if {} else relu)(call)"
_SEEN = """    folder = os.environ.get("PLUMBLINE_CACHE_DIRECTORY")
    seen = os.path.join(folder, "seen") if folder else os.devnull
    wrong = bool(folder) and os.path.exists(seen)
    open(seen, "w").close()
"""

FAULT_KINDS: Mapping[str, FaultRow] = {
    "wrong value, capture": FaultRow("replace_captured(torch.relu, torch.sin)"),
    "wrong value, lowering": FaultRow("replace_lowering(aten.relu.default, lowering_of(aten.sin.default))"),
    "wrong gradient": FaultRow(
        "replace_lowering(aten.cos.default, lowering_of(aten.sin.default))",
        "torch.sin(h)",
        "compiled(x.requires_grad_(), 2)",
    ),
    "mutation": FaultRow("replace_captured('add_', 'sub_')", "x.add_(1) + h"),
    "alias": FaultRow("replace_captured('detach', 'clone')", "h; self.kept = x.detach()"),
    "metadata": FaultRow("replace_captured('contiguous', 'clone')", "h + 1; self.kept = h.t().contiguous()"),
    "random numbers": FaultRow("replace_captured(torch.rand_like, torch.ones_like)", "h + torch.rand_like(h)"),
    "exception in a lowering": _by_lowering("    raise ValueError('refused')"),
    "segmentation fault": _by_lowering("    os.kill(os.getpid(), 11)"),
    "abort": _by_lowering("    os.abort()"),
    "hang": _by_lowering("    time.sleep(10000)"),
    "out of memory": _by_lowering("    torch.empty(1 << 60)"),
    "killed for memory": _by_lowering("    os.kill(os.getpid(), 9)"),
    "stale guard": FaultRow("ignore_guards('EQUALS')", "h * n", "compiled(x, 2); compiled(x, 3)"),
    "third call": FaultRow("ignore_guards('EQUALS')", "h * n", "compiled(x, 2); compiled(x, 2); compiled(x, 3)"),
    "recompile storm": FaultRow(
        "contextlib.nullcontext()", "h + len(n)", "[compiled(x, str(number)) for number in range(100)]"
    ),
    "threads": _by_lowering(_SINE_IF.format("torch.get_num_threads() > 1")),
    "warm cache": _by_lowering(_SEEN + _SINE_IF.format("wrong")),
    "now and then": _by_lowering(_SINE_IF.format("os.urandom(1)[0] < 120")),
}

HEAD = """import contextlib, os, time
import torch
from torch import nn
import plumbline
from plumbline.testing import ignore_guards, lowering_of, replace_captured, replace_lowering
aten = torch.ops.aten
"""


def made_program(kind: str, operators: int) -> str:
    """Return a program of about so many operators with the fault in its middle."""
    row = FAULT_KINDS[kind]
    statement, _, rest = row.statement.partition("; ")
    blocks = max(2, operators // OPERATORS_OF_A_BLOCK)
    return f"""{HEAD}
{row.before}
class Block(nn.Module):
    def __init__(self, width, scale):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.scale = scale

    def forward(self, h):
        change = torch.atan(self.inner(h)) * self.scale
        if h.dim() > 3:
            change = change.mean(0)
        return h + change


class Program(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.first = nn.ModuleList(Block(width, 0.1) for _ in range(count // 2))
        self.last = nn.ModuleList(Block(width, 0.05) for _ in range(count - count // 2))
        self.kept = None

    def forward(self, x, n):
        h = x.atan()
        for block in self.first:
            h = block(h)
        h = {statement}
        {rest or "self.kept = None"}
        for block in self.last:
            h = block(h)
        return h, self.kept


with {row.plant}:
    compiled = plumbline.compile(Program(4, {blocks}))
    x = torch.randn(4, 4)
    {row.calls}
"""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A fault in a real model: class and settings of its configuration, its inputs, the plant."""

    model: str
    config: str
    settings: str
    inputs: str
    plant: str


_SIZES = "vocab_size=100, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32"
_TOKENS = "input_ids=torch.arange(18).reshape(2, 9) % 90 + 5"
_FUNCTIONAL = "torch.nn.functional"

FAULTY_MODELS: Mapping[str, ModelRow] = {
    "bert, lowering of gelu": ModelRow(
        "BertForMaskedLM",
        "BertConfig",
        _SIZES,
        _TOKENS,
        "replace_lowering(aten.gelu.default, lowering_of(aten.silu.default))",
    ),
    "gpt2, lowering of tanh": ModelRow(
        "GPT2LMHeadModel",
        "GPT2Config",
        "vocab_size=100, n_embd=16, n_layer=2, n_head=2, n_positions=32",
        _TOKENS,
        "replace_lowering(aten.tanh.default, lowering_of(aten.sin.default))",
    ),
    "llama, lowering of silu": ModelRow(
        "LlamaForCausalLM",
        "LlamaConfig",
        _SIZES + ", num_key_value_heads=1",
        _TOKENS,
        "replace_lowering(aten.silu.default, lowering_of(aten.gelu.default))",
    ),
    "t5, lowering of relu": ModelRow(
        "T5ForConditionalGeneration",
        "T5Config",
        "vocab_size=100, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2",
        _TOKENS + ", decoder_input_ids=torch.arange(10).reshape(2, 5) + 7",
        "replace_lowering(aten.relu.default, lowering_of(aten.abs.default))",
    ),
    "vit, capture of layer_norm": ModelRow(
        "ViTModel",
        "ViTConfig",
        "hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8",
        "pixel_values=torch.linspace(-1, 1, 1536).reshape(2, 3, 16, 16)",
        f"replace_captured({_FUNCTIONAL}.layer_norm, lambda x, *rest: x)",
    ),
}


def model_program(name: str) -> str:
    """Return a program that calls a real model under its fault."""
    row = FAULTY_MODELS[name]
    return f"""import torch
from transformers import {row.config}, {row.model}
import plumbline
from plumbline.testing import lowering_of, replace_captured, replace_lowering
aten = torch.ops.aten

torch.manual_seed(0)
model = {row.model}({row.config}({row.settings})).eval()
with {row.plant}, torch.no_grad():
    plumbline.compile(model)({row.inputs})
"""
