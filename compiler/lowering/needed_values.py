"""Which values of a graph somebody reads: what remains is there for its effect or its error, or for nothing."""

from torch import fx

from ..graph.facts import OpKind, facts_of
from ..graph.node_values import output_node
from ..graph.passes import has_no_effect, may_be_dropped


def needed_nodes(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes whose values results need, or calls that happen in any case; those calls only where read.

    A call that makes a tensor of the size of another (`zeros_like`) reads nothing of that one.
    """
    needed: set[fx.Node] = set()
    _add(needed, output_node(graph).all_input_nodes)
    for node in reversed(graph.nodes):
        if node.op == "call_function" and node not in needed and not (has_no_effect(node) and may_be_dropped(node)):
            _add(needed, node.all_input_nodes)
    return needed


def _add(needed: set[fx.Node], nodes: list[fx.Node]) -> None:
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node in needed:
            continue
        needed.add(node)
        facts = facts_of(node.target)
        if facts is None or facts.kind is not OpKind.CREATION:
            pending.extend(node.all_input_nodes)
