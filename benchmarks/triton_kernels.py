"""Build every distinct Triton kernel of some models, forward and backward, and check the machine code of each.

Needs triton and no GPU: kernels are built for the capabilities named (`--for 80 90 100 gfx942`).  Models have their
real widths and two layers.  Each row says how many kernels a model has, how many of them differ, the CPU seconds of
building those, the most registers and shared bytes of one, and how many break a rule of `kernel_checks`; of AMD's, the
rules about spilled registers and shared memory.  At the end: the calls that
are left to ATen, by reason.  `--only-left` builds nothing and prints those alone.

    python benchmarks/triton_kernels.py                   all models, sm_80 and sm_90
    python benchmarks/triton_kernels.py BERT --for 90     one model
"""

import argparse
import importlib.util
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

import plumbline
from plumbline.compiler.autograd.compile import compile_with_autograd
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton.cuda_segments import request_of
from plumbline.compiler.codegen.triton.kernel_checks import faults_of
from plumbline.compiler.codegen.triton.launch_table import LaunchTable, write_launch_table
from plumbline.compiler.codegen.triton.split_reductions import with_split_reductions
from plumbline.compiler.codegen.triton.tiles import DeviceFacts
from plumbline.compiler.graph.example_values import with_example_values
from plumbline.compiler.graph.promises import checked_at_first
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import extra_decompositions
from plumbline.compiler.runtime.triton_build import build_kernels
from plumbline.compiler.schedule.execution_plan import plan_execution
from plumbline.compiler.schedule.left_to_aten import assigned_steps
from plumbline.compiler.schedule.schedule import schedule

Step = Callable[[], object]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def tables_of(step: Callable[[Callable[..., Any]], object], left: Counter[tuple[str, str]]) -> list[LaunchTable]:
    """Return the launch tables of all graphs that a step compiles; ATen runs them meanwhile.

    left: gets the calls that have no kernel, by reason and operator.
    """
    tables: list[LaunchTable] = []

    def collect(part: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
        lowered = lower_graph(with_example_values(part, inputs), scans=True)
        plan = plan_execution(with_split_reductions(schedule(lowered, Options())))
        tables.append(write_launch_table(plan, DeviceFacts()))
        account = assigned_steps(plan, "triton", tables[-1].launched)
        left.update((call.reason, call.operation) for call in account.left if call.reason != "VIEW")
        return checked_at_first(part)

    def backend(graph: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        return compile_with_autograd(graph, inputs, collect, Options(), decompositions=extra_decompositions)

    step(lambda function: plumbline.compile(function, backend=backend, dynamic=False))
    return tables


def trained(model: torch.nn.Module, **inputs: torch.Tensor) -> Callable[[Callable[..., Any]], object]:
    """Return a step that calls a compiled model and takes the gradients of the sum of its first result."""

    def step(compiled: Callable[..., Any]) -> object:
        result = compiled(model)(**inputs)
        first = result[0] if isinstance(result, tuple) else next(iter(result.values()))
        return first.float().sum().backward()

    return step


def adam(compiled: Callable[..., Any]) -> object:
    """Update two tensors as Adam does."""

    def update(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        return p - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v

    return [compiled(update)(*(torch.rand(shape) for _ in range(4))) for shape in ((768, 3072), (768,))]


def language(name: str, **settings: Any) -> Callable[[Callable[..., Any]], object]:
    """Return a training step of a language model from a configuration of transformers."""
    config = transformers.AutoConfig.for_model(name, **settings)
    model = transformers.AutoModel.from_config(config)
    return trained(model, input_ids=torch.arange(256).reshape(2, 128))


def images(name: str, **settings: Any) -> Callable[[Callable[..., Any]], object]:
    """Return a training step of a model of images."""
    config = transformers.AutoConfig.for_model(name, **settings)
    return trained(transformers.AutoModel.from_config(config), pixel_values=torch.rand(2, 3, 224, 224))


def example(file: str, make: Callable[[Any], torch.nn.Module], *inputs: torch.Tensor) -> Callable[..., object]:
    """Return a training step of a model of examples/."""
    spec = importlib.util.spec_from_file_location(file, EXAMPLES / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def step(compiled: Callable[..., Any]) -> object:
        result = compiled(make(module))(*inputs)
        return (result[0] if isinstance(result, tuple) else result).sum().backward()

    return step


MODELS: dict[str, Callable[[], Callable[..., object]]] = {
    "BERT": lambda: language("bert", num_hidden_layers=2),
    "GPT-2": lambda: language("gpt2", n_layer=2),
    "Llama": lambda: language(
        "llama", num_hidden_layers=2, hidden_size=1024, intermediate_size=2816, num_attention_heads=16, vocab_size=32000
    ),
    "ViT": lambda: images("vit", num_hidden_layers=2),
    "ResNet": lambda: images("resnet", depths=[1, 1, 1, 1]),
    "Adam step": lambda: adam,
    "example: encoder layer": lambda: trained_layer(),
    "example: residual network": lambda: example(
        "test_residual_network", lambda module: module.ResidualNetwork(), torch.rand(2, 3, 16, 16)
    ),
}


def trained_layer() -> Callable[..., object]:
    """Return a training step of torch's own encoder layer."""
    layer = torch.nn.TransformerEncoderLayer(512, 8, dropout=0.0, batch_first=True)
    return trained_first(layer, torch.rand(4, 128, 512))


def trained_first(model: torch.nn.Module, *inputs: torch.Tensor) -> Callable[..., object]:
    """Return a step of a model that gives one tensor."""
    return lambda compiled: compiled(model)(*inputs).sum().backward()


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main() -> None:
    """Build the kernels of the chosen models and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--only-left", action="store_true")
    parser.add_argument("--for", dest="capabilities", nargs="+", default=["80", "90"])
    chosen = parser.parse_args()
    capabilities = [int(each) if each.isdigit() else each for each in chosen.capabilities]
    left: Counter[tuple[str, str]] = Counter()
    print(f"{'model':28}{'kernels':>8}{'distinct':>9}{'launches':>9}{'CPU s':>8}{'registers':>10}{'shared':>8}  faults")
    for name in chosen.models or MODELS:
        torch.manual_seed(0)
        tables = tables_of(MODELS[name](), left)
        if chosen.only_left:
            continue
        kernels = [kernel for table in tables for kernel in table.kernels]
        requests = [request_of(kernel, capability) for kernel in kernels for capability in capabilities]
        start, began = cpu_seconds(), time.perf_counter()
        built = build_kernels(requests, Options(disk_cache=False), name)
        faults = [
            (request, fault)
            for request, each in zip(requests, built, strict=True)
            for fault in faults_of(request, each)
        ]
        launches = sum(len(segment) for table in tables for segment in table.segments)
        print(
            f"{name:28}{len(kernels):8}{len({request.key for request in requests}) // len(capabilities):9}"
            f"{launches:9}{cpu_seconds() - start:8.1f}{max(each.registers for each in built):10}"
            f"{max(each.shared for each in built):8}  {len(faults)}   ({time.perf_counter() - began:.0f} s)",
            flush=True,
        )
        for request, fault in faults:
            print(f"    {request.capability}: {fault}\n{request.text.split('def kernel')[1][:600]}")
    for (reason, operation), count in sorted(left.items()):
        print(f"left to ATen: {reason:12}{operation:60}{count:5}")


if __name__ == "__main__":
    main()
