"""Generated code as plain data, and what it runs as in another process; nothing is lowered or scheduled for that."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx

from .base.locks import ForkedLock
from .base.options import Options
from .codegen.c_text import CText, built_segments
from .codegen.host_call import Compiled, GraphFallback, HostProgram, bind
from .graph.graph_failure import report_graph_failure
from .graph.graph_interpreter import interpret
from .stored.graph_data import graph_of_plain, plain_graph
from .stored.plain_data import NotPlain, Plain, plain_value, value_of_plain


def plain_code(gm: fx.GraphModule, host: HostProgram, c: CText) -> Plain:
    """Return the generated code of a graph as plain data; raises NotPlain.

    gm: what runs operator by operator where the code cannot go on.
    """
    if host.device.type != "cpu":
        raise NotPlain(f"code for tensors on {host.device}")
    graph = plain_graph(gm)
    if _holds_size(graph):
        raise NotPlain("a graph with a symbol in an argument")
    return plain_value(host), plain_value(c), graph


def _holds_size(form: Plain) -> bool:
    """Return whether a number is left that only the process knows in which the graph was traced."""
    if not isinstance(form, tuple):
        return False
    is_size = len(form) == 2 and form[0] == "size" and isinstance(form[1], str)
    return is_size or any(map(_holds_size, form))


def code_of_plain(form: Plain, options: Options) -> tuple[Compiled, Compiled]:
    """Return generated code that was kept, and the graph that runs operator by operator.

    It is built anew only where its library is not on disk any more.
    """
    host, c, graph = form
    program: HostProgram = value_of_plain(host)
    text: CText = value_of_plain(c)
    late = _LateGraph(graph)

    def report(error: Exception, inputs: Sequence[object]) -> None:
        report_graph_failure("compiled kernels", late.graph(), inputs, error, "inductor", options)

    return bind(program, built_segments(text, options), GraphFallback(late, options.strict, report)), late


class _LateGraph:
    """A graph that is read when it first runs: nobody may ever need it."""

    __slots__ = ("_form", "_gm", "_lock")

    def __init__(self, form: Plain) -> None:
        self._form = form
        self._gm: fx.GraphModule | None = None
        self._lock = ForkedLock()

    def graph(self) -> fx.GraphModule:
        with self._lock:
            if self._gm is None:
                self._gm = graph_of_plain(self._form)
            return self._gm

    def __call__(self, *inputs: object) -> tuple[object, ...]:
        return interpret(self.graph(), inputs)
