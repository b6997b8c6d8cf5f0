"""A function as one graph, for those who want the graph: `export`, `aot_function`, `aot_module`."""

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from .ahead_of_time import GraphCompiler, PartitionFunction, aot_autograd
from .base.config import CONFIG
from .base.errors import UserError
from .base.torch_facts import OpOverload
from .controls import original_of
from .frontend.guards.guard_rules import guard_words
from .frontend.guards.recompile_reasons import failing_guard
from .frontend.units.unit import Unit
from .graph.node_values import outputs, placeholders, type_text
from .pipeline import compile_callable, make_family


@dataclass(frozen=True, slots=True)
class ExportedInput:
    """One input of an exported graph.

    name: of the placeholder.  source: where a call finds it, such as `x` or `self.weight`.  kind: "argument",
    "parameter" or "state".  type: dtype and shape in words, `f32[3, 4]`.
    """

    name: str
    source: str
    kind: str
    type: str


@dataclass(frozen=True, slots=True)
class ExportSignature:
    """inputs: of the graph, in order.  outputs: dtype and shape of each of its results in words."""

    inputs: tuple[ExportedInput, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line for each input, and one for the results."""
        rows = [f"{one.name}: {one.type}, {one.kind} {one.source}" for one in self.inputs]
        return "\n".join([*rows, f"gives {', '.join(self.outputs)}"])


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """What `export` gives.

    graph_module: the torch-level graph; it takes one tensor for each input of the signature and gives a flat tuple.
    guards: in words, what must hold for it to be the function.  signature: its inputs and outputs.
    A call takes what the function takes and gives what it gives; it raises UserError where a guard does not hold.
    """

    graph_module: fx.GraphModule
    guards: tuple[str, ...]
    signature: ExportSignature
    call: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph as the function is called."""
        return self.call(*args, **kwargs)

    def __str__(self) -> str:
        """Return the graph as Python, its signature and its guards."""
        text = self.graph_module.print_readable(print_output=False)
        guards = "\n".join(f"  {guard}" for guard in self.guards)
        return f"{text.rstrip()}\n\n{self.signature}\nguards:\n{guards}\n"


class _NotRun(BaseException):
    """Ends a call when its graph has been captured: nothing of it runs; not an Exception, which would be mended."""


def export(function: Any, *, dynamic: bool | None = None) -> Callable[..., Exported]:
    """Return what captures a function as one graph: `export(f)(*args, **kwargs)` gives an `Exported`.

    dynamic: True makes every size symbolic; it may also be given with the arguments, `export(f)(x, dynamic=True)`, if f
    has no argument of that name.  The function is not run.  Raises Unsupported with `file:line` at the first graph
    break; UserError where there is nothing to export.
    """

    def run(*args: Any, **kwargs: Any) -> Exported:
        wanted = dynamic if _takes(function, "dynamic") else kwargs.pop("dynamic", dynamic)
        return _export(function, wanted, args, kwargs)

    return run


def _takes(function: Any, name: str) -> bool:
    target = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        return name in inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False


def _export(function: Any, dynamic: bool | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exported:
    made: list[tuple[fx.GraphModule, list[object]]] = []
    runs: list[bool] = []

    def keep(graph: fx.GraphModule, example_inputs: list[object]) -> Callable[..., object]:
        made.append((graph, example_inputs))

        def call(*values: object) -> object:
            if not runs:
                raise _NotRun
            return graph.forward(*values)

        return call

    family = make_family(keep, CONFIG.over_environment({"strict": True}), fullgraph=True, dynamic=dynamic)
    compiled = compile_callable(original_of(function), family)
    with suppress(_NotRun):
        compiled(*args, **kwargs)
    if len(made) != 1:
        name = getattr(function, "__name__", type(function).__name__)
        hint = "export a function that computes tensors" if not made else "export its parts"
        raise UserError(f"{name} has {len(made)} graphs for these arguments", hint=hint)
    graph, example_inputs = made[0]
    units = [unit for unit in family.units.values() if unit.entries]
    guards = tuple(guard_words(guard) for unit in units for guard in unit.entries[0].guards)
    family.on_miss = _refuse
    runs.append(True)
    return Exported(graph, guards, _signature_of(graph, example_inputs), compiled)


def _refuse(unit: Unit, args: tuple[object, ...]) -> None:
    """Raise for a call that an exported graph is not right for."""
    guard, expected, actual = failing_guard(unit.entries[-1].guards, unit.parameters, args)
    words = guard_words(guard) if guard is not None else "a guard"
    raise UserError(
        f"the exported graph of {unit.name} needs that {words}",
        why=f"expected {expected}, found {actual}",
        hint="export it for these arguments too, or with dynamic=True",
    )


def _signature_of(graph: fx.GraphModule, example_inputs: list[object]) -> ExportSignature:
    inputs = []
    for node, value in zip(placeholders(graph.graph), example_inputs, strict=True):
        source = str(node.meta.get("source", node.name))
        kind = "argument" if source.isidentifier() or source.startswith(("args", "kwargs")) else "state"
        kind = "parameter" if isinstance(value, torch.nn.Parameter) else kind
        inputs.append(ExportedInput(node.name, source, kind, _type_of(node)))
    given = tuple(_type_of(part) if isinstance(part, fx.Node) else repr(part) for part in outputs(graph.graph))
    return ExportSignature(tuple(inputs), given)


def _type_of(node: fx.Node) -> str:
    value = node.meta.get("val", node.meta.get("example_value"))
    return type_text(value) if value is not None else "?"


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: GraphCompiler,
    bw_compiler: GraphCompiler | None = None,
    partition_fn: PartitionFunction | None = None,
    decompositions: Mapping[OpOverload, Callable[..., object]] | None = None,
    *,
    dynamic: bool | None = False,
) -> Callable[..., Any]:
    """Return the function with its forward and backward traced to ATen and compiled by the caller's compilers.

    The arguments are those of `aot_autograd`.  Raises Unsupported, when it is called, if it is not one graph.
    """
    backend = aot_autograd(
        fw_compiler=fw_compiler, bw_compiler=bw_compiler, partition_fn=partition_fn, decompositions=decompositions
    )
    family = make_family(backend, CONFIG.over_environment(), fullgraph=True, dynamic=dynamic)
    compiled = compile_callable(original_of(fn), family)
    return functools.wraps(fn)(compiled) if hasattr(fn, "__name__") else compiled


def aot_module(
    mod: torch.nn.Module,
    fw_compiler: GraphCompiler,
    bw_compiler: GraphCompiler | None = None,
    partition_fn: PartitionFunction | None = None,
    decompositions: Mapping[OpOverload, Callable[..., object]] | None = None,
    *,
    dynamic: bool | None = False,
) -> torch.nn.Module:
    """Return the module, compiled as `aot_function` does it; it shares everything with the original."""
    compiled = aot_function(mod, fw_compiler, bw_compiler, partition_fn, decompositions, dynamic=dynamic)
    assert isinstance(compiled, torch.nn.Module)
    return compiled
