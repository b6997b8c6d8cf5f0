"""A graph as Python text that runs: types and user lines are comments, `exec` of the text gives the same graph.

Nodes keep their names. Values that have no Python literal (generators, devices with odd names, callables that are no
operators) are bound by name in the returned scope.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import fx

from ..base.nested import nested_text
from ..base.torch_facts import OpOverload
from .node_values import has_value, origin_of, outputs, type_text, value_of

_TORCH_LITERALS = (torch.dtype, torch.layout, torch.memory_format)


@dataclass(frozen=True, slots=True)
class GraphText:
    """Text of a function and the names it needs besides `torch` and `operator`."""

    text: str
    scope: dict[str, object]

    def run(self) -> Callable[..., tuple[object, ...]]:
        """Return the function that the text defines."""
        names: dict[str, object] = {"torch": torch, "nan": float("nan"), "inf": float("inf"), **self.scope}
        exec(compile(self.text, "<graph>", "exec"), names)
        function = names["forward"]
        assert callable(function)
        return function


def graph_text(gm: fx.GraphModule, name: str = "forward") -> GraphText:
    """Return `gm` as the text of one function `name(inputs) -> tuple`, one line per node."""
    return _Printer(gm, name).run()


class _Printer:
    def __init__(self, gm: fx.GraphModule, name: str) -> None:
        self._gm = gm
        self._name = name
        self._scope: dict[str, object] = {}
        self._lines: list[str] = []

    def run(self) -> GraphText:
        inputs = [node for node in self._gm.graph.nodes if node.op == "placeholder"]
        self._lines.append("import operator\n")
        self._lines.append(f"def {self._name}({', '.join(node.name for node in inputs)}):")
        self._lines += [f"    # {node.name}: {type_text(value_of(node))}" for node in inputs if has_value(node)]
        place = ""
        for node in self._gm.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            place = self._print_place(node, place)
            self._lines.append(f"    {node.name} = {self._call(node)}{self._comment(node)}")
        results = [self._value(part) for part in outputs(self._gm.graph)]
        self._lines.append(f"    return ({', '.join(results)}{',' if len(results) == 1 else ''})")
        return GraphText("\n".join(self._lines) + "\n", self._scope)

    def _print_place(self, node: fx.Node, last: str) -> str:
        origin = origin_of(node)
        place = origin.place() if origin is not None else last
        if origin is not None and place != last:
            self._lines.append(f"    # {place}    {origin.source_line()}".rstrip())
        return place

    def _comment(self, node: fx.Node) -> str:
        return f"  # {type_text(value_of(node))}" if has_value(node) else ""

    def _call(self, node: fx.Node) -> str:
        if node.op == "get_attr":
            return self._named(str(node.target).replace(".", "_"), _fetch(self._gm, str(node.target)))
        parts = [self._value(part) for part in node.args]
        parts += [f"{name}={self._value(part)}" for name, part in node.kwargs.items()]
        if node.op == "call_method":
            return f"{parts[0]}.{node.target}({', '.join(parts[1:])})"
        if node.op == "call_module":
            target = self._named(str(node.target).replace(".", "_"), self._gm.get_submodule(str(node.target)))
            return f"{target}({', '.join(parts)})"
        return f"{self._target(node.target)}({', '.join(parts)})"

    def _target(self, target: object) -> str:
        if isinstance(target, OpOverload):
            return f"torch.ops.{target}"
        module, name = getattr(target, "__module__", ""), getattr(target, "__name__", "")
        if module == "_operator" and hasattr(torch.ops, "aten"):
            return f"operator.{name}"
        if module in ("torch", "torch._C._VariableFunctions") and getattr(torch, name, None) is target:
            return f"torch.{name}"
        if getattr(torch.nn.functional, name, None) is target:
            return f"torch.nn.functional.{name}"
        return self._named(name or "function", target)

    def _value(self, value: object) -> str:
        return nested_text(value, self._leaf)

    def _leaf(self, value: object) -> str:
        if isinstance(value, fx.Node):
            return value.name
        if value is None or isinstance(value, (bool, int, float, complex, str)) or value is Ellipsis:
            return repr(value) if value is not Ellipsis else "..."
        if isinstance(value, _TORCH_LITERALS):
            return str(value)
        if isinstance(value, torch.device):
            return f"torch.{value!r}" if not repr(value).startswith("torch") else repr(value)
        return self._named(type(value).__name__.lower(), value)

    def _named(self, name: str, value: object) -> str:
        """Return a name of the scope bound to `value`; the same object keeps its name."""
        base = "".join(letter if letter.isalnum() else "_" for letter in name) or "value"
        names = {node.name for node in self._gm.graph.nodes}
        for number in range(len(self._scope) + len(names) + 2):
            candidate = f"{base}_{number}" if number else f"_{base.lstrip('_')}"
            if self._scope.get(candidate, value) is value and candidate not in names:
                self._scope[candidate] = value
                return candidate
        raise AssertionError("a free name always exists")


def _fetch(gm: fx.GraphModule, path: str) -> object:
    value: object = gm
    for part in path.split("."):
        value = getattr(value, part)
    return value
