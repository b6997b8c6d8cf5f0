"""What the minifier asks of a compiler: the graphs of a call, and one graph compiled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from torch import fx

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.captured_graphs import CallToCapture, CapturedGraph
from plumbline.oracle.harness.compilers import CompileRequest

from .plumbline_graphs import PlumblineGraphs

LEVELS = ("dynamo", "aot")
"""After which stage a graph is taken: bytecode capture (torch-level), or autograd and functionalisation (ATen)."""


class GraphCompiler(Protocol):
    """The interface of a compiler whose failures can be minified."""

    name: str

    def capture(self, call: CallToCapture, after: str) -> list[CapturedGraph]:
        """Compile the target, let the call run it, and return its graphs in the order of their first run.

        Each graph is executed operator by operator: no backend runs.
        """

    def compile(
        self, graph: fx.GraphModule, inputs: Sequence[object], backend: str, after: str, request: CompileRequest
    ) -> Callable[..., object]:
        """Compile one graph; the callable takes one value per placeholder."""

    def settings(self) -> str:
        """Return Python statements that configure the compiler as in this process."""


def _stock() -> GraphCompiler:
    from plumbline.oracle.harness.stock_torch import StockGraphs  # takes seconds to import; only who asks for it pays

    return StockGraphs()


_KNOWN: Mapping[str, Callable[[], GraphCompiler]] = {"torch": _stock, "plumbline": PlumblineGraphs}


def find_graph_compiler(name: str) -> GraphCompiler:
    """Return the compiler of this name; raises UserError for an unknown one."""
    if name not in _KNOWN:
        hint = f"choose from {', '.join(sorted(_KNOWN))}"
        raise UserError(f"unknown compiler {name!r}", where="--compiler", hint=hint)
    return _KNOWN[name]()
