"""Graph passes: each takes a graph that it owns and returns one of the same meaning; the order is data with reasons.

A pass is found by name when it runs, so that `plumbline.testing.replace_pass` can plant a wrong one in a scope.
"""

import operator
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import fx

from ..base.bisecting.applications import gate_for, place_of_code
from ..base.errors import InternalError, UserError
from ..base.events import PassDone, record
from ..base.nested import leaves
from ..base.options import Options
from ..base.seam import planting
from ..base.torch_facts import OpOverload, lazy_module
from .aliasing import escaping_roots, memory_root, mutated_roots, view_source, written_nodes
from .checks import memory_groups, verify, verify_pass
from .dynamic_sizes import is_symbolic, same_layout
from .effects.data_failures import may_fail_on_data
from .effects.missing_kernels import kernel_refuses
from .facts import OpKind, facts_of, is_random, op_facts
from .fx_nodes import add_call, copy_node, map_nodes
from .node_values import copy_facts, in_backward, is_tensor, output_node, tensor_of

GraphPass = Callable[[fx.GraphModule], fx.GraphModule]
PASSES: dict[str, GraphPass] = {}
aten = torch.ops.aten


def graph_pass(function: GraphPass) -> GraphPass:
    """Register a pass under its own name; a second one of that name is an error."""
    name = str(getattr(function, "__name__", function))
    if name in PASSES:
        raise InternalError(f"two passes are named {name}", hint="rename one")
    PASSES[name] = function
    return function


@contextmanager
def replace_pass(name: str, function: GraphPass) -> Iterator[None]:
    """Run `function` in place of the named pass inside the block: how a wrong compiler is planted for tests.

    Raises UserError for an unknown name.
    """
    if name not in PASSES:
        raise UserError(f"no pass is named {name!r}", hint=f"one of: {', '.join(PASSES)}")
    before, PASSES[name] = PASSES[name], function
    try:
        with planting():
            yield
    finally:
        PASSES[name] = before


def run_passes(
    gm: fx.GraphModule, names: Sequence[str], options: Options, *, stage: str = "graph", functional: bool = True
) -> fx.GraphModule:
    """Run the named passes on a copy of `gm`; each is timed and recorded, and verified under `options.verify`."""
    gm = lazy_module(gm, copy_graph(gm.graph))
    gate = gate_for(options.bisect, f"{stage} graph")
    for name in names:
        what = f"{name} on {gate.graph}" if gate is not None else ""
        if gate is not None and not gate.allows("pass", what, rule=name, where=place_of_code(PASSES[name])):
            continue
        groups = memory_groups(gm) if options.verify else ()
        before, start = len(gm.graph.nodes), time.perf_counter()
        gm = PASSES[name](gm)
        record(PassDone(stage, name, before, len(gm.graph.nodes), time.perf_counter() - start))
        if options.verify:
            verify(gm, functional=functional, after=name)
            verify_pass(gm, groups, after=name)
    gm.recompile()
    return gm


def copy_graph(graph: fx.Graph) -> fx.Graph:
    """Return a copy with the same names and facts; example values are shared."""
    copied = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        new = copy_node(copied, node, mapping.__getitem__)
        copy_facts(node, new)
        mapping[node] = new
    return copied


def has_no_effect(node: fx.Node) -> bool:
    """Return whether nobody notices if the call does not happen: no write, no draw, no unknown Python callable."""
    if node.op == "get_attr":
        return True
    if node.op != "call_function":
        return False
    facts = facts_of(node.target)
    if facts is not None:
        return facts.is_pure and not is_random(node.target) and not _returns_nothing(node.target)
    return getattr(node.target, "__module__", "") in ("_operator", "math")


def _returns_nothing(target: object) -> bool:
    """Return whether an operator has no results (an assertion, a print), so that its effect is all it has."""
    return isinstance(target, OpOverload) and not target._schema.returns


def may_be_dropped(node: fx.Node) -> bool:
    """Return whether nobody notices if an unread call does not happen.

    A call that eager makes and that can raise on data is missed; what only gradients need is not, for a gradient that
    nobody asks for eager does not compute either.
    """
    if not has_no_effect(node):
        return False
    if in_backward(node) or not isinstance(node.target, OpOverload):
        return True
    args, kwargs = map_nodes((node.args, dict(node.kwargs)), lambda source: source.meta.get("val"))
    if may_fail_on_data(node.target, (*args, *kwargs.values())):
        return False
    return op_facts(node.target).kind is OpKind.VIEW or not kernel_refuses(node.target, args, kwargs)


@graph_pass
def fill_zero_tensors(gm: fx.GraphModule) -> fx.GraphModule:
    """Give memory to the zeros without memory of forward derivatives, and to products of them.

    ATen multiplies them without a look at the other factor, infinite or not a number; a kernel of ours would read them.
    """
    zeros: set[fx.Node] = set()
    for node in list(gm.graph.nodes):
        if not _is_zero_tensor(node, zeros):
            continue
        zeros.add(node)
        if node.target is aten._efficientzerotensor.default:
            with gm.graph.inserting_before(node):
                kwargs = {"dtype": tensor_of(node).dtype, "device": tensor_of(node).device}
                new = add_call(gm.graph, aten.full.default, (node.args[0], 0), kwargs)
        elif op_facts(node.target).kind is OpKind.VIEW:
            continue
        else:
            with gm.graph.inserting_after(node):
                new = add_call(gm.graph, aten.zeros_like.default, (node,), {})
        copy_facts(node, new)
        zeros.add(new)
        node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
        if not node.users:
            gm.graph.erase_node(node)
    return gm


def _is_zero_tensor(node: fx.Node, zeros: set[fx.Node]) -> bool:
    """Return whether ATen knows of a result, without a look at it, that it is zero."""
    if node.target is aten._efficientzerotensor.default:
        return True
    if not zeros or not isinstance(node.target, OpOverload) or not is_tensor(node):
        return False
    if node.target in (aten.mul.Tensor, aten.mul.Scalar):
        return any(source in zeros for source in node.all_input_nodes)
    if node.target in (aten.div.Tensor, aten.div.Scalar):
        return node.args[0] in zeros and node.args[1] not in zeros
    return op_facts(node.target).kind is OpKind.VIEW and node.all_input_nodes[0] in zeros


@graph_pass
def fold_scalar_constants(gm: fx.GraphModule) -> fx.GraphModule:
    """Compute calls on one-element constants while compiling: the result becomes one `full`."""
    constants: dict[fx.Node, torch.Tensor] = {}
    escaping = escaping_roots(gm.graph) | mutated_roots(gm.graph)
    for node in list(gm.graph.nodes):
        value = _scalar_constant(node, constants)
        if value is None or node in escaping:
            continue
        constants[node] = value
        if node.target is aten.full.default:
            continue
        with gm.graph.inserting_before(node):
            device = tensor_of(node).device
            args, kwargs = (list(value.shape), value.item()), {"dtype": value.dtype, "device": device}
            new = add_call(gm.graph, aten.full.default, args, kwargs)
        copy_facts(node, new)
        constants[new] = value
        node.replace_all_uses_with(new)
        gm.graph.erase_node(node)
    return gm


def _scalar_constant(node: fx.Node, constants: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    if node.op != "call_function" or not is_tensor(node) or not isinstance(node.target, OpOverload):
        return None
    shape = tensor_of(node)
    kind = op_facts(node.target).kind
    plain = all(type(size) is int for size in shape.shape) and shape.numel() == 1
    if not plain or kind not in (OpKind.POINTWISE, OpKind.CREATION) or shape.device.type != "cpu":
        return None
    if kind is OpKind.CREATION and (node.target is not aten.full.default or node.all_input_nodes):
        return None
    if not all(source in constants for source in node.all_input_nodes):
        return None
    if any(map(is_symbolic, leaves((node.args, node.kwargs)))):  # a number that varies stands in a call as it is
        return None
    result = node.target(*map_nodes(node.args, constants.__getitem__), **map_nodes(node.kwargs, constants.__getitem__))
    same = isinstance(result, torch.Tensor) and result.shape == shape.shape and result.dtype == shape.dtype
    return result if same else None


@graph_pass
def drop_identities(gm: fx.GraphModule) -> fx.GraphModule:
    """Replace calls that give their argument's value by that argument: alias, detach, view and expand to the same size.

    A call that is itself an output stays: its result is another object than its argument. Skipped where anything is
    mutated: there an alias is more than a value.
    """
    if mutated_roots(gm.graph):
        return gm
    outputs = set(output_node(gm.graph).all_input_nodes)
    for node in list(gm.graph.nodes):
        if node in outputs or not _is_identity(node):
            continue
        node.replace_all_uses_with(node.args[0])
        gm.graph.erase_node(node)
    return gm


_IDENTITIES = frozenset({aten.alias.default, aten.detach.default, aten.lift_fresh.default, aten.lift.default})
_IDENTITIES_IF_SAME = frozenset(
    {aten.view.default, aten._unsafe_view.default, aten.expand.default, aten.slice.Tensor, aten.permute.default}
)


def _is_identity(node: fx.Node) -> bool:
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], fx.Node):
        return False
    if node.target in _IDENTITIES:
        return True
    if node.target not in _IDENTITIES_IF_SAME or not is_tensor(node) or not is_tensor(node.args[0]):
        return False
    if node.target is aten.permute.default and list(node.args[1]) != list(range(tensor_of(node).dim())):  # type: ignore[arg-type]  # a list of dimensions by schema
        return False
    return same_layout(tensor_of(node), tensor_of(node.args[0]))


@graph_pass
def share_common_nodes(gm: fx.GraphModule) -> fx.GraphModule:
    """Merge pure calls of one operator on the same arguments.

    Never across a write or a call of unknown effect (grad mode, autocast, Python callables), and never two values
    that the caller can both see, or one that is written to: they must not become one tensor.  Nor does a backward read
    what the caller sees in place of what it computes itself.
    """
    escaping, mutated = escaping_roots(gm.graph), mutated_roots(gm.graph)
    seen: dict[tuple[object, ...], fx.Node] = {}
    epoch = 0
    for node in list(gm.graph.nodes):
        if node.op not in ("call_function", "get_attr") or not has_no_effect(node):
            epoch += bool(written_nodes(node)) or (node.op.startswith("call_") and not is_random(node.target))
            continue
        key = (epoch, *call_key(node))
        try:
            twin = seen.setdefault(key, node)
        except TypeError:  # an argument that cannot be a key (a generator, a list of odd things)
            continue
        if twin is node or _must_stay_apart(twin, node, escaping, mutated):
            continue
        if memory_root(node) in escaping:
            escaping.add(memory_root(twin))
        stamps = [node.meta["stamp"]] if "stamp" in node.meta else []
        twin.meta["merged"] = (*twin.meta.get("merged", ()), *stamps, *node.meta.get("merged", ()))
        node.replace_all_uses_with(twin)
        gm.graph.erase_node(node)
    return gm


def call_key(node: fx.Node) -> tuple[object, ...]:
    """Return what is equal for calls of one operator on the same arguments; no key where an argument cannot be one."""
    return node.target, _hashable(node.args), _hashable(node.kwargs)


def _must_stay_apart(first: fx.Node, second: fx.Node, escaping: set[fx.Node], mutated: set[fx.Node]) -> bool:
    one, other = memory_root(first), memory_root(second)
    if one is other:  # views of one memory, or one attribute: the same object twice only if both are given out
        return first in escaping and second in escaping and first.op != "get_attr"
    if one in mutated or other in mutated or (one in escaping and other in escaping):
        return True
    if in_backward(second) and not in_backward(first) and (one in escaping or _visible_results(one, escaping)):
        return True  # the caller may write to it before the backward: eager's formula computes a value of its own
    if (one in escaping) is not (other in escaping) and _is_read_late(other if one in escaping else one):
        return True  # as above: what eager has saved is another tensor than the one that the caller gets
    seen, seen_too = _visible_results(one, escaping | mutated), _visible_results(other, escaping | mutated)
    if _reads_late_one_of(other, seen) or _reads_late_one_of(one, seen_too):
        return True
    return bool(seen & seen_too) or any(part in mutated for call in (one, other) for part in call.users)


def _is_read_late(node: fx.Node) -> bool:
    """Return whether a backward reads a value of the forward, directly or through views."""
    pending = [node]  # views of views may be deeper than Python's stack
    while pending:
        here = pending.pop()
        if any(map(in_backward, here.users)):
            return True
        pending.extend(user for user in here.users if view_source(user) is here)
    return False


def _reads_late_one_of(call: fx.Node, results: set[object]) -> bool:
    """Return whether a backward reads one of these results of a call."""
    return any(u.target is operator.getitem and u.args[1] in results and _is_read_late(u) for u in call.users)


def _visible_results(call: fx.Node, visible: set[fx.Node]) -> set[object]:
    """Return which results of a call with several the caller can see: each is a tensor of its own."""
    return {user.args[1] for user in call.users if user.target is operator.getitem and user in visible}


def _hashable(value: object) -> object:
    """Return a key that tells 1, 1.0, True and -0.0 apart."""
    if isinstance(value, (tuple, list)):
        return tuple(_hashable(part) for part in value)
    if isinstance(value, dict):
        return tuple((name, _hashable(part)) for name, part in sorted(value.items()))
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    if isinstance(value, (int, float, complex, bool)) or is_symbolic(value):
        return (type(value), repr(value))
    return value


@graph_pass
def drop_dead_nodes(gm: fx.GraphModule) -> fx.GraphModule:
    """Remove calls whose result nobody reads and whose absence nobody notices; draws and errors always stay."""
    for node in reversed(list(gm.graph.nodes)):
        if not node.users and may_be_dropped(node):
            gm.graph.erase_node(node)
    return gm


SIMPLIFY: tuple[str, ...] = (
    "fill_zero_tensors",  # first: an identity of zeros without memory is one of zeros with it
    "drop_identities",  # before folding: a detached constant is a constant, two detaches of one value are that value
    "fold_scalar_constants",  # before merging: makes equal nodes equal
    "share_common_nodes",  # before dead code: leaves duplicates unused
    "drop_dead_nodes",
)
