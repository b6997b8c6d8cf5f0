"""Run one function at every level of the backend: eager, loops interpreted, loops fused, C, Triton interpreted.

`TRITON_LEVEL=1` adds Triton's interpreter, `TRITON_LEVEL=cuda` the kernels themselves, on a GPU, in place of C.
"""

import os
from collections.abc import Callable, Sequence

import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.kernel_levels import acceptance
from plumbline.compiler.loops.loop_interpreter import interpret_program
from plumbline.compiler.loops.verify import verify
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.schedule.schedule import schedule
from support.triton_account import triton_results

STRICT = Options(strict=True, verify="run")
# Twice the time of the other levels: on request. A slice is always run, tests/compiler/codegen/triton.
TRITON_LEVEL = os.environ.get("TRITON_LEVEL", "")


def as_tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def run_levels(
    function: Callable[..., object], inputs: Sequence[torch.Tensor], options: Options = STRICT, *, native: bool = True
) -> dict[str, tuple[object, ...]]:
    """Return the outputs by level: `lowered` and `fused` loops interpreted, `c`, and on request `triton`.

    At the level `triton` every step of the graph is a kernel, or a call that `left_to_aten.toml` lists.
    """
    gm = trace(function, inputs)
    program = verify(lower_graph(gm), "lowering")
    results = {"lowered": interpret_program(program, inputs)}
    results["fused"] = interpret_program(schedule(program, options), inputs)
    if TRITON_LEVEL == "cuda":
        return {"cuda": cuda_results(function, inputs, options)}
    if TRITON_LEVEL:
        results["triton"] = triton_results(gm, inputs, options)
    if native:
        results["c"] = compile_graph(gm, inputs, options, acceptance(options))(*inputs)
    return results


def on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of a GPU with the same values in the same layout."""
    memory = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return memory.to("cuda").as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def eager(function: Callable[..., object], inputs: Sequence[torch.Tensor]) -> tuple[object, ...]:
    """Return what eager gives where the compiled levels run, on the CPU: a cast out of range, say, is the device's."""
    if TRITON_LEVEL != "cuda":
        return as_tuple(function(*inputs))
    with torch.device("cuda"):
        return _on_cpu(as_tuple(function(*map(on_gpu, inputs))))


def _on_cpu(results: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(each.cpu() if isinstance(each, torch.Tensor) else each for each in results)


def cuda_results(
    function: Callable[..., object], inputs: Sequence[torch.Tensor], options: Options
) -> tuple[object, ...]:
    """Return what kernels on a GPU give, on the CPU."""
    given = [on_gpu(each) for each in inputs]
    # Where eager says what a stage must give, it is eager of another device: the caller holds results to eager.
    with torch.device("cuda"):
        gm = trace(function, given)
    return _on_cpu(triton_results(gm, given, options.replace(verify=bool(options.verify))))


def same_form(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Return whether dtype, shape and the strides of dimensions longer than one agree."""
    strides = [(a, b) for a, b, size in zip(found.stride(), wanted.stride(), wanted.shape, strict=False) if size > 1]
    return (
        found.dtype == wanted.dtype
        and found.shape == wanted.shape
        and (wanted.numel() == 0 or all(a == b for a, b in strides))
    )
