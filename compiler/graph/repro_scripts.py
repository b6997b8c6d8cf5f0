"""Scripts that reproduce a failure: inputs are made up, of the same kind as the call's, and hold no user's data."""

from collections.abc import Sequence

import torch
from torch import fx

from ..base.options import Options, changed_options
from ..base.torch_facts import FakeTensor
from .graph_printing import graph_text

_PLAIN = (torch.dtype, torch.layout, torch.memory_format, torch.device)

_HEAD = '''"""{title}

Run it: the error is raised while it is there. The inputs are made up; only their kinds are those of the call.
"""

import torch

import plumbline


def tensor(shape, strides, dtype, device, requires_grad):
    """Return made-up values in the layout of an input."""
    size = 1 + sum((length - 1) * step for length, step in zip(shape, strides)) if all(shape) else 0
    fractional = dtype.is_floating_point or dtype.is_complex
    values = torch.rand(size).to(dtype) if fractional else torch.zeros(size, dtype=dtype)
    return values.to(device).as_strided(shape, strides).requires_grad_(requires_grad)


nan, inf = float("nan"), float("inf")
'''


def stand_in(value: object) -> str | None:
    """Return text that makes a value like this one, None if there is none.

    Elements of tensors and letters of strings are not kept; numbers are, because captured code depends on them.
    """
    if value is None or isinstance(value, bool | int | float | complex):
        return repr(value) if type(value) in (type(None), bool, int, float, complex) else None
    if type(value) is str:
        return repr("x" * len(value))
    if type(value) in (tuple, list):
        return _sequence(value)  # type: ignore[arg-type]  # a tuple or list
    if type(value) is dict:
        parts = {key: stand_in(part) for key, part in value.items() if isinstance(key, str)}
        if len(parts) < len(value) or None in parts.values():
            return None
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in parts.items()) + "}"
    if isinstance(value, _PLAIN):
        return f"torch.device({str(value)!r})" if isinstance(value, torch.device) else str(value)
    return _tensor(value) if type(value) in (torch.Tensor, torch.nn.Parameter, FakeTensor) else None


def _sequence(values: Sequence[object]) -> str | None:
    parts = [stand_in(value) for value in values]
    if None in parts:
        return None
    inner = ", ".join(part or "" for part in parts)
    if isinstance(values, list):
        return f"[{inner}]"
    return f"({inner},)" if len(parts) == 1 else f"({inner})"


def _tensor(value: object) -> str | None:
    assert isinstance(value, torch.Tensor)
    if value.layout is not torch.strided or value.is_quantized or not all(isinstance(n, int) for n in value.shape):
        return None
    return (
        f"tensor({tuple(value.shape)}, {tuple(value.stride())}, {value.dtype}, {str(value.device)!r},"
        f" {value.requires_grad})"
    )


def graph_so_far(graph: fx.Graph) -> fx.GraphModule:
    """Return a copy of a graph under construction that gives the value of its last operation."""
    copied = fx.Graph()
    names: dict[fx.Node, fx.Node] = {}
    last: fx.Node | None = None
    for node in graph.nodes:
        if node.op == "output":
            break
        last = names[node] = copied.node_copy(node, lambda old: names[old])
    copied.output((last,) if last is not None else ())
    return fx.GraphModule(torch.nn.Module(), copied)


def graph_script(
    graph: fx.GraphModule, inputs: Sequence[object], title: str, backend: str, options: Options, find: str = ""
) -> str | None:
    """Return a script that compiles and runs a graph on made-up inputs; None if it cannot stand alone.

    find: lines that name the backend `backend`, where it is not one of ours.
    """
    printed = graph_text(graph)
    texts = [stand_in(value) for value in inputs]
    if printed.scope or None in texts or len(inputs) != sum(node.op == "placeholder" for node in graph.graph.nodes):
        return None
    call = call_text("forward", texts, backend, options)
    if find:
        call = f"{find}\n\n{call.replace(f'backend={backend!r}', 'backend=backend')}"
    return f"{_HEAD.format(title=title)}\n\n{printed.text}\n\n{call}"


def function_script(find: str, arguments: Sequence[str], title: str, backend: str, options: Options) -> str:
    """Return a script that compiles and calls the function that `find` assigns to the name `function`."""
    return f"{_HEAD.format(title=title)}\n\n{find}\n\n{call_text('function', arguments, backend, options)}"


def call_text(function: str, arguments: Sequence[str | None], backend: str, options: Options) -> str:
    """Return the lines that compile a function strictly and call it."""
    asked = changed_options(options)
    chosen = {**{name: value for name, value in asked.items() if not name.startswith("repro_")}, "strict": True}
    listed = "".join(f"\n    {argument}," for argument in arguments)
    return (
        f"compiled = plumbline.compile({function}, backend={backend!r}, options={chosen!r})\n"
        f"print(compiled({listed}\n))\n"
        'print("the error is gone")\n'
    )
