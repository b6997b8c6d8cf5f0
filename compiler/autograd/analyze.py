"""Find the CallSignature of a traced forward: which inputs were written, what each output is in terms of memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import fx
from torch.autograd.function import BackwardCFunction

from ..base.errors import Unsupported
from ..base.torch_facts import FakeTensor
from .call_signature import CallSignature, OutputFact, OutputKind, WriteFact
from .functionalize import Functionalizer, Handle, Region
from .memory_overlap import overlaps_itself
from .view_writes import ViewStep, take_views

GradientNode = torch.autograd.graph.Node
_FALL_BACK = "expected: the graph runs eagerly"


@dataclass(frozen=True, slots=True)
class StateBefore:
    """What autograd knows of an input before the program runs: its history, and how often it was written."""

    history: GradientNode | None
    version: int

    @classmethod
    def of(cls, item: torch.Tensor) -> "StateBefore":
        """Return the present state of a tensor."""
        return cls(item.grad_fn, item._version)


@dataclass(slots=True)
class TracedCall:
    """One run of the program on fake tensors.

    inputs: the tensor objects that it saw, one per tensor input; before: their state before it ran; leaves: the
    tensors that gradients are asked for.  results: what it gave.  node_of, object_of: recorded nodes and their objects.
    """

    worker: Functionalizer
    input_nodes: Sequence[fx.Node]
    inputs: Sequence[torch.Tensor]
    before: Sequence[StateBefore]
    leaves: Sequence[torch.Tensor]
    results: Sequence[object]
    node_of: Callable[[torch.Tensor], fx.Node]
    object_of: Callable[[fx.Node], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The signature; for each value of the graph the functional node that holds it and the object autograd knows."""

    signature: CallSignature
    values: tuple[fx.Node, ...]
    objects: tuple[torch.Tensor, ...]


def analyze(call: TracedCall, positions: Sequence[int]) -> Analysis:
    """Return the signature of a traced call; raises Unsupported for what the wrappers could not rebuild exactly.

    positions: where each tensor input stands among the arguments of the call.
    """
    writes = tuple(_writes(call))
    finder = _Outputs(call)
    outputs = tuple(finder.describe(position, result) for position, result in enumerate(call.results))
    values = [*finder.values, *(call.worker.value_after(call.input_nodes[fact.input]) for fact in writes)]
    needs = [item.requires_grad for item in finder.objects]
    needs += [fact.tracked and call.inputs[fact.input].requires_grad for fact in writes]
    objects = [*finder.objects, *(call.inputs[fact.input] for fact in writes)]
    _demand_known_leaves(call, [item for item, need in zip(objects, needs, strict=True) if need])
    views = frozenset(place for place, item in enumerate(finder.objects) if item._is_view())
    signature = CallSignature(tuple(positions), outputs, writes, len(finder.values), tuple(needs), views)
    return Analysis(signature, tuple(values), tuple(objects))


def _writes(call: TracedCall) -> Iterator[WriteFact]:
    for index, (node, item) in enumerate(zip(call.input_nodes, call.inputs, strict=True)):
        tracked = item.grad_fn is not call.before[index].history
        if call.worker.handles[node].region.version:
            yield WriteFact(index, tracked, versions=item._version - call.before[index].version)
        elif tracked:
            raise Unsupported("an input's history changes without a write", hint=_FALL_BACK)
    for node in call.worker.constants:
        if node in call.worker.handles and call.worker.handles[node].region.version:
            raise Unsupported("a constant tensor is written", hint=_FALL_BACK)


class _Outputs:
    """Describes outputs one by one, and collects the values that the graph must return for them."""

    def __init__(self, call: TracedCall) -> None:
        self.values: list[fx.Node] = []
        self.objects: list[torch.Tensor] = []
        self._call = call
        self._seen: dict[int, int] = {}
        self._inputs = {id(call.worker.handles[node].region): i for i, node in enumerate(call.input_nodes)}
        self._bases: dict[int, int] = {}  # region -> graph value
        self._members: dict[int, set[int]] = {}  # region -> objects that the caller gets
        detached: dict[int, set[int]] = {}  # what a `detach` gives -> objects that are it, or views of it
        for item in call.results:
            if isinstance(item, FakeTensor):
                self._members.setdefault(id(self._handle(item).region), set()).add(id(item))
                last = _last_detached(self._handle(item))
                if last is not None:
                    detached.setdefault(id(last), set()).add(id(item))
        several = (key for key, items in detached.items() if len(items) > 1)
        self._shared = {key: number for number, key in enumerate(several)}

    def _handle(self, item: torch.Tensor) -> Handle:
        return self._call.worker.handles[self._call.node_of(item)]

    def describe(self, position: int, item: object) -> OutputFact:
        """Return the fact of one output."""
        if not isinstance(item, FakeTensor):
            return OutputFact(OutputKind.CONSTANT, constant=item)
        first = self._seen.setdefault(id(item), position)
        if first != position:
            return OutputFact(OutputKind.SAME, first)
        handle = self._handle(item)
        if handle.region.root.op == "get_attr":
            raise Unsupported("an output shares memory with a constant", hint=_FALL_BACK)
        source = self._inputs.get(id(handle.region))
        if source is not None:
            return self._from_input(item, handle, source)
        if len(self._members[id(handle.region)]) == 1 and not (item.requires_grad and _refuses_writes(item, handle)):
            return OutputFact(OutputKind.RETURNED, self._return(self._read(item), item), (), item.requires_grad)
        base = self._call.object_of(handle.region.root)
        steps, value = handle.steps(), self._base(handle.region, base)
        _demand_same_history(item, base, steps)
        return OutputFact(OutputKind.RETURNED, value, steps, item.requires_grad, shared=self._shared_by(handle))

    def _from_input(self, item: torch.Tensor, handle: Handle, source: int) -> OutputFact:
        owner = self._call.inputs[source]
        if item is owner:
            return OutputFact(OutputKind.INPUT, source, (), item.requires_grad)
        self._demand_its_sizes(owner)
        steps = handle.steps()
        _demand_same_history(item, owner, steps)
        return OutputFact(OutputKind.INPUT, source, steps, item.requires_grad, shared=self._shared_by(handle))

    def _shared_by(self, handle: Handle) -> tuple[int, int] | None:
        last = _last_detached(handle)
        return None if last is None or id(last) not in self._shared else (len(last.steps()), self._shared[id(last)])

    def _read(self, item: torch.Tensor) -> fx.Node:
        return self._call.worker.value_after(self._call.node_of(item))

    def _return(self, value: fx.Node, item: torch.Tensor) -> int:
        if item.requires_grad and item.grad_fn is None:
            raise Unsupported("an output is a leaf that requires grad", hint=_FALL_BACK)
        self.values.append(value)
        self.objects.append(item)
        return len(self.values) - 1

    def _base(self, region: Region, item: torch.Tensor) -> int:
        if id(region) not in self._bases:
            self._demand_its_sizes(item)
            self._bases[id(region)] = self._return(region.value, item)
        return self._bases[id(region)]

    def _demand_its_sizes(self, base: torch.Tensor) -> None:
        """Require that views can be taken of a tensor again: that the program has not changed its own sizes."""
        if self._handle(base).steps():
            raise Unsupported("the memory behind several outputs changed its sizes", hint=_FALL_BACK)


def _last_detached(handle: Handle) -> Handle | None:
    """Return the last `detach` on the way to a tensor, None without one."""
    place: Handle | None = handle
    while place is not None and (place.step is None or place.step.target is not torch.ops.aten.detach.default):
        place = place.parent
    return place


def _refuses_writes(item: torch.Tensor, handle: Handle) -> bool:
    """Return whether eager refuses a later write to an output, at once or in backward, because of what it is a view of.

    Backward gives the base the gradient of the written view, and does not write to one place twice. Views of a call
    that gives several, `split` and its like, are not written to at all.
    """
    steps = handle.steps()
    return any(step.index is not None and not step.loose for step in steps) or (bool(steps) and overlaps_itself(item))


def _demand_same_history(item: torch.Tensor, base: torch.Tensor, steps: tuple[ViewStep, ...]) -> None:
    """Require that rebuilding the views gives the output's autograd history: plain views of the base, nothing else."""
    again = take_views(base, steps)
    if (item.requires_grad, item.is_leaf) != (again.requires_grad, again.is_leaf):
        raise Unsupported("an output shares memory but not history with its base", hint=_FALL_BACK)
    if item.grad_fn is None:
        return
    node: GradientNode | None = item.grad_fn
    for _ in range(len(steps) + 2):
        if node is base.grad_fn or (base.grad_fn is None and _is_leaf_end(node)):
            return
        following = [source for source, _ in node.next_functions if source is not None] if node is not None else []
        if isinstance(node, BackwardCFunction) or len(following) != 1:
            break
        node = following[0]
    raise Unsupported("an output is a view with a history of its own", hint=_FALL_BACK)


def _is_leaf_end(node: GradientNode | None) -> bool:
    return node is not None and hasattr(node, "variable")


def _demand_known_leaves(call: TracedCall, objects: Sequence[torch.Tensor]) -> None:
    """Require that every leaf behind the results is an input: gradients of others have nowhere to go."""
    known = {id(item) for item in call.leaves}
    if any(id(leaf) not in known for leaf in leaves_behind(objects)):
        raise Unsupported("the program makes a leaf that requires grad", hint=_FALL_BACK)


def leaves_behind(objects: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors at whose gradients the histories of others end."""
    found = []
    pending: list[GradientNode] = [item.grad_fn for item in objects if item.grad_fn is not None]
    seen: set[GradientNode] = set(pending)
    while pending:
        node = pending.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            found.append(leaf)
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                pending.append(source)
    return found
