"""The invariants of a graph, as a table of named checks; they run under `Options(verify=True)` and in tests.

docs/ir-checks.md is this table, rendered.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from ..base.errors import InternalError
from ..base.torch_facts import FakeTensor, OpOverload
from .aliasing import memory_root, written_nodes
from .fx_nodes import map_nodes
from .graph_interpreter import run_node
from .node_values import has_value, origin_of, output_node, outputs, placeholders, type_text, value_of
from .shapes.shape_rules import corrected

Rule = Callable[[fx.GraphModule], Iterator[tuple[fx.Node, str]]]
PassRule = Callable[[fx.GraphModule, Sequence[int]], Iterator[tuple[fx.Node, str]]]


class Holds(enum.Enum):
    """For which graphs an invariant holds."""

    ALWAYS = "every ATen graph"
    FUNCTIONAL = "from functionalisation on"


@dataclass(frozen=True, slots=True)
class GraphCheck:
    """A named invariant.  costly: it runs the whole graph on fake tensors, which is done once per trace."""

    rule: Rule
    holds: Holds = Holds.ALWAYS
    costly: bool = False

    @property
    def name(self) -> str:
        """The name of the rule."""
        return str(getattr(self.rule, "__name__", self.rule))


@dataclass(frozen=True, slots=True)
class PassCheck:
    """A named invariant of what a pass makes of a graph; the rule is also given `memory_groups` from before it."""

    rule: PassRule

    @property
    def name(self) -> str:
        """The name of the rule."""
        return str(getattr(self.rule, "__name__", self.rule))


def verify(gm: fx.GraphModule, *, functional: bool = False, costly: bool = False, after: str = "") -> None:
    """Run the named checks; raises InternalError naming the check, the node and its user line.

    after: the stage or pass to blame in the message.
    """
    for check in CHECKS:
        if (check.holds is Holds.FUNCTIONAL and not functional) or (check.costly and not costly):
            continue
        for node, complaint in check.rule(gm):
            raise _fault(node, complaint, check.name, after)


def verify_pass(gm: fx.GraphModule, before: Sequence[int], after: str) -> None:
    """Run the checks of passes; before: `memory_groups` of the graph that the pass was given.  Raises as `verify`."""
    for check in PASS_CHECKS:
        for node, complaint in check.rule(gm, before):
            raise _fault(node, complaint, check.name, after)


def _fault(node: fx.Node, complaint: str, check: str, after: str) -> InternalError:
    origin = origin_of(node)
    return InternalError(
        f"{complaint} (check {check}{' after ' + after if after else ''})",
        where=origin.place() if origin else node.name,
        hint="this is a bug of plumbline: report it with the graph",
    )


def memory_groups(gm: fx.GraphModule) -> tuple[int, ...]:
    """Return for each output the first output with the same memory."""
    roots = [memory_root(part) if isinstance(part, fx.Node) else None for part in outputs(gm.graph)]
    return tuple(place if root is None else roots.index(root) for place, root in enumerate(roots))


def results_stay_apart(gm: fx.GraphModule, before: Sequence[int]) -> Iterator[tuple[fx.Node, str]]:
    """A pass gives no two outputs the same memory that had memory of their own: the caller may write to one."""
    for place, (first, earlier) in enumerate(zip(memory_groups(gm), before, strict=True)):
        if first != earlier and first != place:
            yield output_node(gm.graph), f"output {place} has become one tensor with output {first}"


def every_argument_is_defined_before_use(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """Require that a node reads only nodes that stand before it in the same graph."""
    seen: set[fx.Node] = set()
    for node in gm.graph.nodes:
        for source in node.all_input_nodes:
            if source not in seen:
                yield node, f"{node.name} reads {source.name} too early"
        seen.add(node)


def there_is_one_output_and_it_is_last(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """Exactly one output node ends the graph and gives a tuple."""
    nodes = list(gm.graph.nodes)
    ends = [node for node in nodes if node.op == "output"]
    if len(ends) != 1 or nodes[-1] is not ends[0]:
        yield nodes[-1], f"the graph has {len(ends)} outputs or does not end with one"
    elif not isinstance(ends[0].args[0], (tuple, list)):
        yield ends[0], "the output is not a tuple"


def inputs_come_first(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """No placeholder stands after a call."""
    computing = False
    for node in gm.graph.nodes:
        computing = computing or node.op.startswith("call_")
        if computing and node.op == "placeholder":
            yield node, f"the input {node.name} stands after a call"


def names_are_unique(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """No two nodes have one name."""
    seen: set[str] = set()
    for node in gm.graph.nodes:
        if node.name in seen:
            yield node, f"two nodes are named {node.name}"
        seen.add(node.name)


def every_value_is_described(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """Every node but the output has an example value, and tensors in it are fake."""
    for node in gm.graph.nodes:
        if node.op == "output":
            continue
        if not has_value(node):
            yield node, f"{node.name} has no example value"
        elif isinstance(value_of(node), torch.Tensor) and not isinstance(value_of(node), FakeTensor):
            yield node, f"the example value of {node.name} holds real memory"


def every_call_is_an_operator(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """Require that an ATen graph calls operator overloads, getitem and integer arithmetic; no methods, no modules."""
    for node in gm.graph.nodes:
        if node.op in ("call_method", "call_module"):
            yield node, f"{node.name} is a {node.op}"
        elif node.op == "call_function" and not isinstance(node.target, OpOverload) and not _is_arithmetic(node.target):
            yield node, f"{node.name} calls {node.target}, which is not an operator overload"


def _is_arithmetic(target: object) -> bool:
    module = getattr(target, "__module__", "")
    return module in ("_operator", "math", "builtins") or target is torch.sym_max or target is torch.sym_min


def nothing_is_mutated(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """No call writes to memory that another node can read."""
    for node in gm.graph.nodes:
        for written in written_nodes(node):
            yield node, f"{node.name} ({node.target}) writes to {written.name}"


def example_values_are_what_the_operators_give(gm: fx.GraphModule) -> Iterator[tuple[fx.Node, str]]:
    """Require that running every node on fake tensors gives the described sizes, strides and dtypes."""
    modes = [value_of(node).fake_mode for node in placeholders(gm.graph) if isinstance(value_of(node), FakeTensor)]  # type: ignore[attr-defined]  # isinstance does not narrow a call
    if not modes:
        return
    output = output_node(gm.graph)
    with modes[0], torch.no_grad():
        for node in gm.graph.nodes:
            if node.op != "call_function" or node is output:
                continue
            environment = {source: value_of(source) for source in node.all_input_nodes}
            if written_nodes(node):  # running it again would change the example values it writes to
                continue
            args, kwargs = map_nodes((node.args, node.kwargs), environment.__getitem__)
            expected = corrected(node.target, args, kwargs, run_node(gm, node, environment))
            if _type_of(expected) != _type_of(value_of(node)):
                yield node, f"{node.name} gives {type_text(expected)} but its example is {type_text(value_of(node))}"


def _type_of(value: object) -> object:
    if isinstance(value, torch.Tensor):
        steps = tuple(step for size, step in zip(value.shape, value.stride(), strict=True) if size != 1)
        return tuple(value.shape), steps if value.numel() else (), value.dtype, value.device
    if isinstance(value, (tuple, list)):
        return tuple(_type_of(part) for part in value)
    return type(value)


CHECKS: tuple[GraphCheck, ...] = (
    GraphCheck(every_argument_is_defined_before_use),
    GraphCheck(there_is_one_output_and_it_is_last),
    GraphCheck(inputs_come_first),
    GraphCheck(names_are_unique),
    GraphCheck(every_value_is_described),
    GraphCheck(every_call_is_an_operator),
    GraphCheck(nothing_is_mutated, Holds.FUNCTIONAL),
    GraphCheck(example_values_are_what_the_operators_give, costly=True),
)
PASS_CHECKS: tuple[PassCheck, ...] = (PassCheck(results_stay_apart),)
