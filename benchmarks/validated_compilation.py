"""The first call under `verify="run"` against an ordinary first call: the example models, forward and backward.

    python benchmarks/validated_compilation.py [--runs N] [--parts]

Both in one process, alternating, without the disk cache, after another program has warmed up torch and plumbline.  CPU
seconds count this process and its children; each figure is the median of the runs.  A library that was built once in a
process stays loaded, so the C compiler is not counted, which would make the ratios smaller.  The LSTM, the
frame stack and the others are those of `examples/`, in the sizes they have there.  --parts prints the seconds of each
stage and of the comparisons.
"""

import argparse
import importlib.util
import resource
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import plumbline
from plumbline.compiler.base.events import StageDone, Validated, recording

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
Program = Callable[[], None]  # compiles, and makes the first call


def example(name: str) -> object:
    """Return a module of the examples."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trained(model: nn.Module, *arguments: torch.Tensor, **keywords: torch.Tensor) -> Program:
    """Return what compiles a model and takes the first step forward and backward."""

    def program() -> None:
        result = plumbline.compile(model)(*arguments, **keywords)
        result = getattr(result, "loss", result)
        result.float().square().mean().backward()

    return program


def mlp_with_adam() -> Program:
    """The forward and backward of a multilayer perceptron, and Adam's step."""
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    forward = trained(model, torch.randn(64, 8))

    def program() -> None:
        forward()
        plumbline.compile(optimizer.step)()

    return program


def transformer_encoder() -> Program:
    """The encoder with its padding mask, in training."""
    layer = nn.TransformerEncoderLayer(d_model=32, nhead=2, dim_feedforward=64, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
    padding = torch.arange(10) >= torch.tensor([[10], [7], [4]])
    return trained(encoder, torch.randn(3, 10, 32), src_key_padding_mask=padding)


def bert() -> Program:
    """Hugging Face's classifier with labels."""
    import transformers

    sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, intermediate_size=64, max_position_embeddings=32, num_labels=3)
    classifier = transformers.BertForSequenceClassification(config)
    return trained(classifier, input_ids=torch.randint(0, 64, (6, 12)), labels=torch.arange(6) % 3)


def frame_stack() -> Program:
    """A write to the input that overlaps what it reads, without gradients."""
    make_room = example("test_frame_stack").MakeRoom()

    def program() -> None:
        with torch.no_grad():
            plumbline.compile(make_room)(torch.zeros(4, 8, 8))

    return program


PROGRAMS: dict[str, Callable[[], Program]] = {
    "mlp and Adam": mlp_with_adam,
    "residual network": lambda: trained(example("test_residual_network").ResidualNetwork(), torch.randn(8, 3, 12, 12)),
    "gpt": lambda: trained(example("test_gpt").TinyGPT(), torch.arange(16).remainder(5).expand(4, -1)),
    "lstm": lambda: trained(example("test_lstm").RunningSum(), torch.rand(8, 5, 1)),
    "transformer encoder": transformer_encoder,
    "bert": bert,
    "frame stack": frame_stack,
}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children so far."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(make: Callable[[], Program], verify: bool | str) -> tuple[float, dict[str, float]]:
    """Return the CPU seconds of one first call, and wall seconds by stage."""
    torch.manual_seed(0)
    program = make()
    plumbline.reset()
    with plumbline.config.patch(verify=verify, disk_cache=False), recording() as events:
        start = cpu_seconds()
        program()
        seconds = cpu_seconds() - start
    stages: dict[str, float] = {}
    for event in events:
        if isinstance(event, StageDone):
            stages[event.stage] = stages.get(event.stage, 0.0) + event.seconds
        elif isinstance(event, Validated):
            name = f"compare {event.part}"
            stages[name] = stages.get(name, 0.0) + event.seconds
            if event.departed:
                raise SystemExit(f"{event.departed} departs: the figure would be of another program")
    if verify == "run" and not any(name.startswith("compare") for name in stages):
        raise SystemExit("nothing was compared")
    return seconds, stages


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="the cost of validated compilation")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parts", action="store_true", help="print seconds by stage")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    measure(frame_stack, "run")
    worst = 0.0
    print(f"{'model':22} {'ordinary':>9} {'validated':>10} {'ratio':>6}")
    for name, make in PROGRAMS.items():
        measure(make, False)  # what torch loads for these operators
        ordinary, validated = [], []
        for _ in range(arguments.runs):
            ordinary.append(measure(make, False)[0])
            seconds, stages = measure(make, "run")
            validated.append(seconds)
        before, after = statistics.median(ordinary), statistics.median(validated)
        worst = max(worst, after / before)
        print(f"{name:22} {before:7.2f} s {after:8.2f} s {after / before:6.2f}", flush=True)
        if arguments.parts:
            print("   ", ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in stages.items()))
    print(f"the greatest ratio is {worst:.2f}", file=sys.stdout)


if __name__ == "__main__":
    main()
