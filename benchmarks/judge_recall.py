"""How many planted faults the judge finds in values and gradients, and how often it calls legitimate programs wrong.

    python benchmarks/judge_recall.py [--seed 0] [--programs 12] [--large] [--save FILE] [--against FILE]

Each seed draws other programs (chains of layers), inputs and faults.  Every program is judged in float32, float16 and
bfloat16, against three legitimate variants (written otherwise; each layer in a wider dtype; all layers in a wider dtype
and rounded once) and against faults.  A fault sits behind one layer, where it changes the values and leaves the
gradients alone, or changes what flows back, or it sits on one parameter and changes its gradient alone.

Faults that change nothing in float64 are left out, and so are those that change no bit of output and gradients beside
the same form without the fault, because the dtype rounds them away: of these, which are counted, no judge can know.
`gross` counts faults that change some tensor by more than 64 roundings of the dtype, relative to its largest value.
`twins` counts programs whose fault is found in float32, where it is not in their own dtype.  --save writes the
verdicts, --against prints which changed.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from plumbline.compiler.base.torch_facts import apply_function
from plumbline.oracle import check, judge
from plumbline.oracle.cotangents import COTANGENTS, cotangents_for
from plumbline.oracle.numeric import exact_value

Change = Callable[[Tensor], Tensor]
Form = Callable[..., Tensor]
BATCH, LENGTH, WIDTH = 4, 12, 24
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
ALARMS = ("WRONG", "NONDETERMINISTIC", "UNSTABLE", "NO_REFERENCE")
GROSS = 64.0
ROUNDED_AWAY = "ROUNDED AWAY"


@dataclass(frozen=True, slots=True)
class Block:
    """One kind of layer, [batch, length, width] to the same.

    shapes: of its parameters.  plain: as programs write it.  otherwise: the same function by other operations.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    plain: Form
    otherwise: Form


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * weight + bias


def _split(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x[..., half:] @ weight[:, half:].t() + x[..., :half] @ weight[:, :half].t() + bias


def _softmax(x: Tensor) -> Tensor:
    weights = (x - x.amax(-1, keepdim=True).detach()).exp()
    return weights / weights.sum(-1, keepdim=True)


def _attention(x: Tensor, weight: Tensor) -> Tensor:
    query, key, value = (x @ weight.t()).chunk(3, -1)
    return functional.scaled_dot_product_attention(query[:, None], key[:, None], value[:, None])[:, 0]


def _attention_otherwise(x: Tensor, weight: Tensor) -> Tensor:
    query, key, value = (x @ part.t() for part in weight.chunk(3, 0))
    return _softmax(query / WIDTH**0.5 @ key.transpose(1, 2)) @ value


def _gated(x: Tensor, up: Tensor, gate: Tensor) -> Tensor:
    return x + functional.silu(x @ gate.t()) * (x @ up.t())


def _gated_otherwise(x: Tensor, up: Tensor, gate: Tensor) -> Tensor:
    opened = x @ gate.t()
    return opened * (x @ up.t()) / (1 + (-opened).exp()) + x


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def _rms_otherwise(x: Tensor, weight: Tensor) -> Tensor:
    return weight * (x / torch.sqrt(x.flip(-1).square().sum(-1, keepdim=True) / x.shape[-1] + 1e-6))


def _convolution(x: Tensor, weight: Tensor) -> Tensor:
    return functional.conv1d(x.transpose(1, 2), weight, padding=1).transpose(1, 2).contiguous()


def _convolution_otherwise(x: Tensor, weight: Tensor) -> Tensor:
    padded = functional.pad(x, (0, 0, 1, 1))
    return sum((padded[:, k : k + x.shape[1]] @ weight[:, :, k].t() for k in (2, 1, 0)), torch.zeros((), dtype=x.dtype))


def _running_mean(x: Tensor) -> Tensor:
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]


def _running_mean_otherwise(x: Tensor) -> Tensor:
    lower = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
    return lower @ x / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]


def _looked_up(x: Tensor, table: Tensor) -> Tensor:
    return x + functional.embedding(_indices(), table)


def _looked_up_otherwise(x: Tensor, table: Tensor) -> Tensor:
    chosen = functional.one_hot(_indices(), table.shape[0]).to(x.dtype)
    return chosen @ table + x


def _indices() -> Tensor:
    return (torch.arange(BATCH * LENGTH).view(BATCH, LENGTH) * 7) % 30


_SQUARE = (WIDTH, WIDTH)
BLOCKS = (
    Block("linear", (_SQUARE, (WIDTH,)), functional.linear, _split),
    Block("norm", ((WIDTH,), (WIDTH,)), lambda x, w, b: functional.layer_norm(x, [WIDTH], w, b), _layer_norm),
    Block("rms", ((WIDTH,),), _rms, _rms_otherwise),
    Block("attention", ((3 * WIDTH, WIDTH),), _attention, _attention_otherwise),
    Block("gated", (_SQUARE, _SQUARE), _gated, _gated_otherwise),
    Block("gelu", (), functional.gelu, lambda x: 0.5 * x * (1 + torch.erf(x * 0.5**0.5))),
    Block("softmax", (), lambda x: functional.softmax(x, -1) * WIDTH, lambda x: _softmax(x) * WIDTH),
    Block("convolution", ((WIDTH, WIDTH, 3),), _convolution, _convolution_otherwise),
    Block("running mean", (), _running_mean, _running_mean_otherwise),
    Block("embedding", ((40, WIDTH),), _looked_up, _looked_up_otherwise),
    Block("relu", (_SQUARE, (WIDTH,)), lambda x, w, b: functional.relu(functional.linear(x, w, b)),
          lambda x, w, b: _split(x, w, b).clamp(min=0)),
    Block("tanh", (), torch.tanh, lambda x: torch.sinh(x) / torch.cosh(x)),
    Block("centred", (), lambda x: x - x.logsumexp(-1, keepdim=True),
          lambda x: x - x.exp().sum(-1, keepdim=True).log()),
    Block("unit", (), lambda x: functional.normalize(x, dim=-1) * 4,
          lambda x: 4 * x / x.square().sum(-1, keepdim=True).sqrt().clamp(min=1e-12)),
)  # fmt: skip


def _one(change: Callable[[Tensor, Tensor], Tensor]) -> Change:
    """Return a change of one element in the middle: of its value and the largest absolute value."""

    def run(value: Tensor) -> Tensor:
        flat = value.clone().reshape(-1)
        at = flat.numel() // 2
        flat[at] = change(flat[at], value.abs().max())
        return flat.view(value.shape)

    return run


def _tail(value: Tensor, replacement: Change) -> Tensor:
    result = value.clone()
    width = max(1, value.shape[-1] // 8)
    result[..., -width:] = replacement(result[..., :width])
    return result


def _row(value: Tensor, change: Change) -> Tensor:
    result = value.clone()
    result[-1] = change(result[-1])
    return result


FAULTS: dict[str, Change] = {
    "gain 1.03": lambda v: v * 1.03,
    "gain 1.003": lambda v: v * 1.003,
    "gain 1.0001": lambda v: v * 1.0001,
    "one element 3 % off": _one(lambda v, top: v * 1.03),
    "one element off by 3 % of the largest": _one(lambda v, top: v + 0.03 * top),
    "one element of the other sign": _one(lambda v, top: -v),
    "rows swapped": lambda v: v.flip(0) if v.dim() > 1 else v.roll(1, 0),
    "tail lost": lambda v: _tail(v, torch.zeros_like),
    "tail stale": lambda v: _tail(v, lambda head: head),
    "last row lost": lambda v: _row(v, torch.zeros_like),
    "last row doubled": lambda v: _row(v, lambda row: 2 * row),
    "last row 1 % off": lambda v: _row(v, lambda row: 1.01 * row),
    "rounded to 7 bits": lambda v: (v + v * 128) - v * 128 if v.dtype == torch.float64 else v.bfloat16().to(v.dtype),
    "offset": lambda v: v + 0.01 * v.abs().mean(),
    "rounded to 3 bits": lambda v: v.to(torch.float8_e4m3fn).to(v.dtype),
}


class _Faulty(torch.autograd.Function):
    """The identity with one change, in the forward or in the backward."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, change: Change, backward: bool) -> Tensor:
        ctx.change = change if backward else None
        return value.clone() if backward else change(value.detach())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        gradient = gradients[0]
        return (ctx.change(gradient) if ctx.change else gradient), None, None


@dataclass(frozen=True, slots=True)
class Fault:
    """A change behind layer `place` (values or gradients), or of the gradient of parameter `place`."""

    kind: str
    place: int
    change: str


@dataclass(frozen=True, slots=True)
class Program:
    """A chain of layers, as a function of its input and of all their parameters.

    form: plain, otherwise, layers (each in the wider dtype) or whole (all in the wider dtype).
    """

    blocks: tuple[Block, ...]
    form: str = "plain"
    fault: Fault | None = None

    def __call__(self, x: Tensor, *parameters: Tensor) -> Tensor:
        """Run the chain; the result has the dtype of the input."""
        dtype = x.dtype
        wide = torch.float64 if dtype == torch.float32 else torch.float32
        if self.form == "otherwise" or dtype == torch.float64:
            wide = torch.promote_types(dtype, torch.float32)
        fault = self.fault
        taken = 0
        for number, block in enumerate(self.blocks):
            own = list(parameters[taken : taken + len(block.shapes)])
            if fault is not None and fault.kind == "parameter" and taken <= fault.place < taken + len(own):
                own[fault.place - taken] = self._changed(own[fault.place - taken], fault, backward=True)
            taken += len(own)
            if self.form == "plain":
                x = block.plain(x, *own)
            else:
                run = block.otherwise if self.form == "otherwise" else block.plain
                x = run(x.to(wide), *[p.to(wide) for p in own])
                x = x if self.form == "whole" else x.to(dtype)
            if fault is not None and fault.kind != "parameter" and number == fault.place:
                x = self._changed(x, fault, backward=fault.kind == "backward")
        return x.to(dtype)

    @staticmethod
    def _changed(value: Tensor, fault: Fault, *, backward: bool) -> Tensor:
        result = apply_function(_Faulty, value, FAULTS[fault.change], backward)
        assert isinstance(result, Tensor)
        return result


def _inputs(blocks: tuple[Block, ...], dtype: torch.dtype, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randn(BATCH, LENGTH, WIDTH, generator=generator, dtype=torch.float64)]
    for shape in (shape for block in blocks for shape in block.shapes):
        scale = shape[-1] ** -0.5 if len(shape) > 1 else 0.3
        offset = 0.0 if len(shape) > 1 else 1.0
        values.append(torch.randn(shape, generator=generator, dtype=torch.float64) * scale + offset)
    return [value.to(torch.bfloat16).to(dtype).requires_grad_() for value in values]


def effect(right: Program, wrong: Program, seed: int) -> float:
    """Return the largest change of output and gradients in float64, relative to the largest value of the tensor."""

    def everything(program: Program) -> list[Tensor]:
        inputs = _inputs(right.blocks, torch.float64, seed)
        output = program(*inputs)
        cotangent = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        return [output.detach(), *torch.autograd.grad(output, inputs, cotangent)]

    pairs = zip(everything(right), everything(wrong), strict=True)
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=1e-30)) for a, b in pairs)


def changes_bits(sound: Program, wrong: Program, inputs: tuple[Tensor, ...]) -> bool:
    """Return whether a fault changes a bit of what the judge looks at: the output, or a gradient for a cotangent."""

    def everything(program: Program) -> list[Tensor]:
        output = program(*inputs)
        kinds = [cotangents_for([output], kind, 0) for kind in COTANGENTS]
        found = [torch.autograd.grad(output, inputs, cotangent, retain_graph=True) for cotangent in kinds]
        return [output.detach(), *(gradient for gradients in found for gradient in gradients)]

    return not all(map(torch.equal, everything(sound), everything(wrong)))


def programs(seed: int, count: int, faults: int) -> Iterator[tuple[str, Program, list[Fault], int]]:
    """Yield names, programs, their faults, and the seed of their inputs."""
    for number in range(count):
        drawn = random.Random(1000 * seed + number)
        blocks = tuple(drawn.choice(BLOCKS) for _ in range(drawn.randint(2, 4)))
        parameters = sum(len(block.shapes) for block in blocks)
        planted = []
        for _ in range(faults):
            kind = drawn.choice(["forward", "backward", "parameter"] if parameters else ["forward", "backward"])
            place = drawn.randrange(parameters if kind == "parameter" else len(blocks))
            planted.append(Fault(kind, place, drawn.choice(list(FAULTS))))
        name = f"{seed}.{number} {' > '.join(block.name for block in blocks)}"
        yield name, Program(blocks), planted, 1000 * seed + number


def judged(seed: int, count: int, faults: int) -> Iterator[tuple[str, str, str, float]]:
    """Yield for every trial its name, its dtype, its verdict and its effect; the effect is 0 where it is legitimate.

    The verdict is ROUNDED_AWAY where the dtype leaves nothing of a fault.
    """
    for name, program, planted, inputs_seed in programs(seed, count, faults):
        trials = [(form, Program(program.blocks, form), 0.0) for form in ("otherwise", "layers", "whole")]
        for number, fault in enumerate(planted):
            form = ("plain", "otherwise", "layers")[number % 3]
            wrong = Program(program.blocks, form, fault)
            size = effect(program, wrong, inputs_seed)
            if size > 1e-9 and size == size:
                trials.append((f"{fault.kind} {fault.place} {fault.change} ({form})", wrong, size))
        for dtype_name, dtype in DTYPES.items():
            for words, compiled, size in trials:
                inputs = tuple(_inputs(program.blocks, dtype, inputs_seed))
                if not bool(torch.isfinite(program(*inputs)).all()):
                    continue
                if compiled.fault is not None and not changes_bits(replace(compiled, fault=None), compiled, inputs):
                    yield f"{name} | {words} | {dtype_name}", dtype_name, ROUNDED_AWAY, size
                    continue
                verdict = check(program, inputs, compiled=compiled)
                yield f"{name} | {words} | {dtype_name}", dtype_name, verdict.kind.value, size


def _share(found: int, total: int) -> str:
    return f"{found}/{total} ({found / max(1, total):.1%})"


def _fault(name: str) -> str:
    """Return the name of a trial without its dtype."""
    return name.rpartition(" | ")[0]


def main() -> None:
    """Print recall and false alarms, per dtype and in all."""
    parser = argparse.ArgumentParser(description="recall of the judge on planted faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=12)
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--large", action="store_true", help="judge as calls of large models are judged")
    parser.add_argument("--all", action="store_true", help="print every fault that is missed and every alarm")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.large:
        judge.LARGE_CALL = exact_value.SHORTENED = 0
    started = time.process_time()
    found = list(judged(arguments.seed, arguments.programs, arguments.faults))
    seconds = time.process_time() - started
    caught_in_full = {_fault(name) for name, dtype, kind, _ in found if (dtype, kind) == ("float32", "WRONG")}
    for dtype in [*DTYPES, "all"]:
        rows = [row for row in found if dtype in (row[1], "all")]
        away = sum(row[2] == ROUNDED_AWAY for row in rows)
        wrong = [row for row in rows if row[3] and row[2] != ROUNDED_AWAY]
        legitimate = [row for row in rows if not row[3]]
        gross = [row for row in wrong if row[3] > GROSS * torch.finfo(DTYPES[row[1]]).eps / 2]
        caught, gross_caught = (sum(row[2] == "WRONG" for row in group) for group in (wrong, gross))
        alarms = sum(row[2] in ALARMS for row in legitimate)
        twins = sum(row[2] == "WRONG" or _fault(row[0]) in caught_in_full for row in wrong)
        words = f"recall {_share(caught, len(wrong))}, with twins {_share(twins, len(wrong))}"
        words += f", gross {_share(gross_caught, len(gross))}, false alarms {_share(alarms, len(legitimate))}"
        print(f"{dtype:<9} {words}; rounded away {away}")
    print(f"{len(found)} judgements, {seconds:.1f} CPU seconds")
    if arguments.all:
        for name, _, kind, size in found:
            if (kind not in ("WRONG", ROUNDED_AWAY)) if size else (kind in ALARMS):
                print(f"  {kind:<12} {name}{f' changes {size:.2g}' if size else ''}")
    if arguments.save:
        arguments.save.write_text(json.dumps({name: kind for name, _, kind, _ in found}, indent=0))
    if arguments.against:
        before = json.loads(arguments.against.read_text())
        for name, _, kind, size in found:
            turned = before.get(name) != kind and "WRONG" in (kind, before.get(name))
            if turned or (kind in ALARMS and not size):
                print(f"  {before.get(name)} -> {kind}: {name} changes {size:.2g}")


if __name__ == "__main__":
    main()
