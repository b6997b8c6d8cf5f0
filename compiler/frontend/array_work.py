"""How much work a captured graph of NumPy arrays is: whether calls of its function are better left to NumPy.

A call of a compiled function costs 10 to 15 microseconds before its first kernel starts: guards, tensors over the
arrays, allocation, and what tells that NumPy would not warn.  NumPy's own call of one operation costs a third of a
microsecond, and then about as much for each 2000 elements that it reads or writes.  So the work is counted in such
elements; the option `numpy_threshold` says up to how many NumPy is the faster one.  Matrix products and their like are
calls of libraries either way, and count nothing.  (benchmarks/numpy_against_stock.py measures both.)
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..base.nested import leaves
from ..values.library.numpy_rows import FOLDS
from .entry_questions import storages_of

_CALL = 2000  # elements that NumPy reads or writes in the time that it takes to start an operation
_FOLD = 3 * _CALL  # a fold is Python code around the operation
_VIEW = 500  # and to make a view
_SLOW = 4  # how much longer an element of exp and its like takes
_OF_LIBRARIES = frozenset(  # what compiled code calls as NumPy does: nothing is won by compiling it
    {torch.matmul, torch.einsum, torch.sort, torch.linalg.inv, torch.linalg.det, torch.linalg.solve}
)
_FOLDS = frozenset(row.run for row in FOLDS.values())
_SLOW_FUNCTIONS = frozenset(
    {torch.exp, torch.exp2, torch.expm1, torch.log, torch.log2, torch.log10, torch.log1p, torch.sin, torch.cos}
    | {torch.tan, torch.asin, torch.acos, torch.atan, torch.atan2, torch.tanh, torch.hypot, torch.pow}
)


@dataclass(frozen=True, slots=True)
class ArrayWork:
    """What one run of a graph does.

    calls: the part that does not depend on sizes.  elements: read and written by its operations; an expression of
    sizes where these are open.
    """

    calls: int
    elements: Any

    def is_at_most(self, threshold: int) -> bool:
        """Return whether the work is not more; where sizes are open, the capture holds from now on only where it is."""
        return bool(self.elements <= threshold - self.calls)

    def sizes_within(self, threshold: int, elements: int) -> int:
        """Return up to how many elements of all arguments the work stays within a threshold, from those of now.

        It is taken to grow with the square of the arguments, as outer products do; what grows less is asked again.
        """
        work = int(self.elements)
        room = threshold - self.calls
        return sys.maxsize if not work else max(elements, int(elements * (room / work) ** 0.5))


def array_work(graph: fx.Graph, results: Iterable[fx.Node]) -> ArrayWork:
    """Return the work that leads to the results and to what the graph writes; checks for warnings are no part of it."""
    needed = dict.fromkeys([*results, *(node for node in graph.nodes if "wrote" in node.meta)])
    for node in reversed(graph.nodes):
        if node in needed:
            needed |= dict.fromkeys(node.all_input_nodes)
    calls, elements = 0, 0
    for node in graph.nodes:
        if node not in needed or node.op == "placeholder":
            continue
        if _is_view(node):
            calls += _VIEW
            continue
        if node.target in _OF_LIBRARIES:
            continue
        calls += _FOLD if node.target in _FOLDS else _CALL
        passed = sum(tensor.numel() for tensor in _tensors([node, *node.all_input_nodes]))
        elements = elements + passed * (_SLOW if node.target in _SLOW_FUNCTIONS else 1)
    return ArrayWork(calls, elements)


def _tensors(nodes: list[fx.Node]) -> list[torch.Tensor]:
    return [leaf for node in nodes for leaf in leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor)]


def _is_view(node: fx.Node) -> bool:
    """Return whether a node gives memory of its operands and writes nothing."""
    own = storages_of(node.meta.get("val"))
    return "wrote" not in node.meta and any(own & storages_of(part.meta.get("val")) for part in node.all_input_nodes)
