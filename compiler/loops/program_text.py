"""A whole loop program as one Python file's text: its loops as functions, and `forward`, which calls them in order.

scope = {"torch": torch, "op": scalar_operations(), ...}; exec(text, scope); scope["forward"](*inputs)
"""

import torch

from ..base.nested import nested_text
from ..symbolic.symbolic_sizes import Size
from .ir import Buffer, Extern, Loop, LoopProgram, Ref, SymbolicNumber
from .loop_interpreter import InterpretedLoop
from .loop_printing import dtype_text, print_loop


def program_text(program: LoopProgram) -> str:
    """Return the text; it reads `torch` and `op` (`loop_printing.scalar_operations`), and constants by name."""
    parts: list[str] = []
    lines = [f"    # {name}: {_type(program.buffers[name])}" for name in program.inputs if name in program.buffers]
    made = {*program.inputs, *program.constants}
    for step in program.steps:
        interpreted = step.target if isinstance(step, Extern) else None
        if isinstance(step, Extern) and not isinstance(interpreted, InterpretedLoop):
            lines.append(f"    {_call(step)}")
            made |= step.writes
            continue
        loop = interpreted.loop if isinstance(interpreted, InterpretedLoop) else step
        assert isinstance(loop, Loop)
        parts.append(print_loop(loop, program))
        lines += [f"    {_allocation(program.buffers[name])}" for name in sorted(loop.writes - made)]
        made |= loop.writes
        lines.append(f"    {loop.name}(op, {', '.join(sorted(loop.reads | loop.writes))})")
    results = [_text(output) for output in program.outputs]
    lines.append(f"    return ({''.join(f'{result}, ' for result in results)})")
    inputs = ", ".join([*program.inputs, *program.sizes])
    return "\n".join([*parts, f"def forward({inputs}):", *lines, ""])


def _type(buffer: Buffer) -> str:
    return f"{dtype_text(buffer.dtype)}{list(buffer.shape)} strides {tuple(buffer.strides)}"


def _allocation(buffer: Buffer) -> str:
    shape, strides = tuple(buffer.shape), tuple(buffer.strides)
    return f"{buffer.name} = torch.empty_strided({shape}, {strides}, dtype=torch.{dtype_text(buffer.dtype)})"


def _call(step: Extern) -> str:
    words = [_text(arg) for arg in step.args] + [f"{key}={_text(value)}" for key, value in step.kwargs.items()]
    name = str(step.target) if str(step.target).startswith("torch.") else f"torch.ops.{step.target}"
    if step.target is torch.scalar_tensor:
        name = "torch.scalar_tensor"
    call = f"{name}({', '.join(words)})"
    if step.single:
        return f"{step.results[0] or '_'} = {call}"
    names = [name or "_" for name in step.results]
    return f"{', '.join(names)}, = {call}" if names else call


def _text(value: object) -> str:
    return nested_text(value, _leaf)


def _leaf(value: object) -> str:
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, SymbolicNumber):
        return f"({value.text})"
    if isinstance(value, Size | torch.dtype | torch.layout | torch.memory_format):
        return str(value)
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if isinstance(value, float):
        return f"float({str(value)!r})"
    return repr(value)
