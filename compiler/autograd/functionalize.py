"""Mutations and views become values: a recorded ATen graph with writes -> the same meaning without writes.

Every tensor object of the recorded program is a `Handle`: the whole of a `Region` (one piece of memory) or a view of
another handle. A write gives its handle a new value, carries it up to the region through the inverse of each view
(view_writes) and makes every other view of the region stale; a stale view is taken again from the region when it is
next read. Nodes are taken in one at a time, so that the joint trace can ask about aliases half way.
"""

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from ..base.errors import InternalError, Unsupported
from ..base.torch_facts import FakeTensorMode, OpOverload, lazy_module, storage_key
from ..graph.aliasing import argument
from ..graph.facts import OpKind, is_random, is_view, op_facts
from ..graph.fx_nodes import map_nodes
from ..graph.node_values import (
    in_backward,
    is_loose_view,
    is_tensor,
    made_with_grad,
    outputs,
    tensor_of,
    value_of,
)
from .functional_twins import GEOMETRY_CHANGES, Twin, cloning_twin, twin_of
from .memory_overlap import (
    is_dense,
    lies_within,
    overlap,
    overlaps_itself,
    repeats,
    same_places,
    same_steps,
    same_unused_strides,
)
from .value_graph import ValueGraph
from .view_writes import ViewStep, Write, write_through

aten = torch.ops.aten
_READS_STORAGE = frozenset({aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_scatter.default})
_WITH_A_PART_REPLACED = frozenset(
    {
        aten.slice_scatter.default,
        aten.select_scatter.default,
        aten.diagonal_scatter.default,
        aten.as_strided_scatter.default,
    }
)


@dataclass(slots=True, eq=False)
class Region:
    """One piece of memory. value: the node of its current content; version: how often it was written.

    root: the recorded node that made it.  born_in_backward: it did not exist during the forward.
    """

    value: fx.Node
    root: fx.Node
    version: int = 0
    born_in_backward: bool = False


@dataclass(slots=True, eq=False)
class Handle:
    """A recorded tensor object: its region, and the view it is of `parent` (None: it is the whole region).

    node: its value in the new graph, right for `version` of the region.  example: sizes, strides and dtype.
    """

    region: Region
    parent: "Handle | None"
    step: ViewStep | None
    node: fx.Node
    version: int
    example: torch.Tensor

    def steps(self) -> tuple[ViewStep, ...]:
        """Return the views from the region to this handle."""
        above = self.parent.steps() if self.parent is not None else ()
        return above if self.step is None else (*above, self.step)


@dataclass(slots=True)
class Functionalizer:
    """Takes recorded nodes in with `take`, answers questions about their memory, and ends with `value_after`."""

    result: ValueGraph
    handles: dict[fx.Node, Handle] = field(default_factory=dict)
    constants: list[fx.Node] = field(default_factory=list)  # recorded get_attr nodes, inputs of the new graph
    _values: dict[fx.Node, object] = field(default_factory=dict)  # recorded nodes that are not tensors
    _regions: dict[int, Handle] = field(default_factory=dict)  # storage of an example value -> the whole region
    _taken: set[fx.Node] = field(default_factory=set)

    # -- taking nodes in ---------------------------------------------------------------------------------------

    def take(self, nodes: Sequence[fx.Node]) -> None:
        """Translate recorded nodes that were not taken yet; raises Unsupported where values cannot follow memory."""
        for node in nodes:
            if node in self._taken or node.op == "output":
                continue
            self._taken.add(node)
            self.result.recorded = node
            if node.op in ("placeholder", "get_attr"):
                self._take_input(node)
            else:
                self._take_call(node)
        self.result.recorded = None

    def _take_input(self, node: fx.Node) -> None:
        if node.op == "get_attr":
            self.constants.append(node)
        if not is_tensor(node):
            self._values[node] = value_of(node)
            return
        self._new_region(node, self.result.add_input(node))

    def _take_call(self, node: fx.Node) -> None:
        target = node.target
        if target is operator.getitem:
            self._take_item(node)
        elif not isinstance(target, OpOverload):
            raise InternalError(f"{node.name} calls {target}, which is not an operator", hint="trace to ATen first")
        elif target in GEOMETRY_CHANGES:
            self._take_geometry_change(node, GEOMETRY_CHANGES[target])
        elif op_facts(target).mutates:
            self._take_write(node, target)
        elif is_view(target) or self._shares_memory(node):
            self._take_view(node, target)
        else:
            self._take_value(node, target)

    def _take_value(self, node: fx.Node, target: OpOverload) -> None:
        if target in _READS_STORAGE:
            self._demand_plain_memory(node)
        source = argument(node, 0) if target in _WITH_A_PART_REPLACED else None
        if isinstance(source, fx.Node) and overlaps_itself(tensor_of(source)) and not repeats(tensor_of(source)):
            # eager copies what repeats element by element, and the memory of any other overlap as it is
            raise Unsupported("a write to a copy of memory that overlaps itself", hint="expected: it runs eagerly")
        new = self.result.emit(target, self._read_args(node.args), self._read_args(node.kwargs), value_of(node))
        if is_tensor(node):
            self._new_region(node, new)
        else:
            self._values[node] = new

    def _take_item(self, node: fx.Node) -> None:
        whole, index = node.args
        assert isinstance(whole, fx.Node)
        assert isinstance(index, int)
        source = self._values.get(whole)
        if isinstance(source, tuple):  # results of a write or parts of a view, one handle or node each
            part = source[index]
            if isinstance(part, Handle):
                self.handles[node] = part
            elif isinstance(part, fx.Node):
                self._new_region(node, part)
            else:
                self._values[node] = part
            return
        assert isinstance(source, fx.Node)
        new = self.result.emit(operator.getitem, (source, index), {}, value_of(node))
        if is_tensor(node):
            self._new_region(node, new)
        else:
            self._values[node] = new

    def _new_region(self, node: fx.Node, value: fx.Node) -> Handle:
        region = Region(value, node, born_in_backward=in_backward(node))
        handle = Handle(region, None, None, value, 0, tensor_of(node))
        self.handles[node] = handle
        self._regions.setdefault(storage_key(handle.example), handle)
        return handle

    # -- views -------------------------------------------------------------------------------------------------

    def _shares_memory(self, node: fx.Node) -> bool:
        """Return whether the result is an argument's memory although the schema does not say so."""
        first = node.args[0] if node.args else None
        if not is_tensor(node) or not isinstance(first, fx.Node) or first not in self.handles:
            return False
        whole = self._regions.get(storage_key(tensor_of(node)))
        return whole is not None and whole.region is self.handles[first].region

    def _take_view(self, node: fx.Node, target: OpOverload) -> None:
        position = (op_facts(target).aliases or (0,))[0]
        source = argument(node, position)
        if position != 0 or not isinstance(source, fx.Node) or source not in self.handles:
            raise Unsupported(f"{target} views something odd", hint="expected: the graph runs eagerly")
        parent = self.handles[source]
        if target is aten.as_strided.default:
            self._demand_plain_memory(node)
            _demand_gradient_through(parent, node)
            while parent.parent is not None:
                parent = parent.parent
        args: tuple[object, ...] = tuple(node.args[1:])
        kwargs: tuple[tuple[str, object], ...] = tuple(sorted(node.kwargs.items()))
        if target is aten.as_strided.default and parent is not self.handles[source]:
            args, kwargs = _with_offset(node, args, kwargs, parent.region.root), ()
        grad = made_with_grad(node)
        if is_tensor(node):
            step = ViewStep(target, args, kwargs, None, grad)
            self.handles[node] = self._view(parent, step, tensor_of(node))
            return
        parts = value_of(node)
        assert isinstance(parts, (tuple, list))
        steps = [ViewStep(target, args, kwargs, index, grad, is_loose_view(node)) for index in range(len(parts))]
        source_node = self._read(parent)
        whole = self.result.emit(target, (source_node, *args), dict(kwargs), value_of(node))
        handles = []
        for step, part in zip(steps, parts, strict=True):
            item = self.result.emit(operator.getitem, (whole, step.index), {}, part)
            handles.append(Handle(parent.region, parent, step, item, parent.region.version, part))
        self._values[node] = tuple(handles)

    def _view(self, parent: Handle, step: ViewStep, example: torch.Tensor) -> Handle:
        node = self.result.take_view(step, self._read(parent), example)
        return Handle(parent.region, parent, step, node, parent.region.version, example)

    def _take_geometry_change(self, node: fx.Node, view: OpOverload) -> None:
        source = node.args[0]
        assert isinstance(source, fx.Node)
        old = self.handles[source]
        if old.parent is None and old.region.root.op in ("placeholder", "get_attr"):
            raise Unsupported(
                f"an input changes its sizes or history ({node.target})",
                why="the caller's tensor object itself would have to change",
                hint="expected: the graph runs eagerly",
            )
        if view is aten.as_strided.default:
            self._demand_plain_memory(node)
        args, kwargs = tuple(node.args[1:]), tuple(sorted(node.kwargs.items()))
        step = ViewStep(view, args, kwargs, None, made_with_grad(node))
        handle = self._view(old, step, tensor_of(node))
        self.handles[source] = self.handles[node] = handle

    def _demand_plain_memory(self, node: fx.Node) -> None:
        """Strides given as numbers address memory: right only while a region's value is laid out as its memory was."""
        source = node.args[0]
        assert isinstance(source, fx.Node)
        handle = self.handles[source]
        whole = handle
        while whole.parent is not None:
            whole = whole.parent
        if whole.example.dtype != handle.example.dtype:
            raise Unsupported("as_strided of memory under another dtype", hint="expected: the graph runs eagerly")
        input_written = whole.region.root.op == "placeholder" and whole.region.version > 0
        if input_written or not is_dense(whole.example):
            if whole.region.version == 0 and handle is whole:
                return  # the caller's own tensor, untouched: its memory is what the program means
            raise Unsupported(
                "as_strided addresses memory that is not laid out densely, or was written",
                hint="expected: the graph runs eagerly",
            )
        if handle.region.version:
            handle.node, handle.version = self._fresh(handle), handle.region.version

    # -- reading -----------------------------------------------------------------------------------------------

    def _read_args(self, args: object) -> object:
        return map_nodes(args, self._read_node)

    def _read_node(self, node: fx.Node) -> object:
        if node in self.handles:
            return self._read(self.handles[node])
        return self._values[node]

    def _read(self, handle: Handle) -> fx.Node:
        if handle.version != handle.region.version:
            handle.node = self._fresh(handle)
            handle.version = handle.region.version
        return handle.node

    def _fresh(self, handle: Handle) -> fx.Node:
        if handle.parent is None or handle.step is None:
            return handle.region.value
        if handle.step.target is aten.as_strided.default and not is_dense(handle.parent.example):
            raise Unsupported(
                "as_strided of memory that was written afterwards", hint="expected: the graph runs eagerly"
            )
        source = self._fresh(handle.parent) if handle.parent.parent is not None else handle.region.value
        return self.result.take_view(handle.step, source, handle.example)

    # -- writing -----------------------------------------------------------------------------------------------

    def _take_write(self, node: fx.Node, target: OpOverload) -> None:
        written = self._written_handles(node, target)
        flat = [handle for group in written for handle in (group if isinstance(group, list) else [group])]
        read = _by_region(self.handles[part] for part in node.all_input_nodes if part in self.handles)
        for handle in flat:
            self._demand_safe_write(node, handle, read.get(handle.region, []))
        for together in _by_region(flat).values():
            if any(_share_elements(one, other) for one, other in itertools.combinations(together, 2)):
                raise Unsupported(f"{target} writes twice to one memory", hint="expected: the graph runs eagerly")
        twin = twin_of(target)
        if op_facts(twin.operator).kind is not OpKind.POINTWISE:
            self._demand_no_reader(node, target, flat)
        if is_random(target) and (twin.dropped or not all(handle.example.is_contiguous() for handle in flat)):
            twin = cloning_twin(target)  # what is drawn depends on the layout; the kernel may refuse the dtype of out=
        results = self._call_twin(node, target, twin)
        if twin.dropped and _dtypes(results, twin.written) != [h.example.dtype for h in flat]:
            twin = cloning_twin(target)  # reductions and scans compute in the dtype of out=, the twin in its own
            results = self._call_twin(node, target, twin)
        for place, group in zip(twin.written, written, strict=True):
            self._store_group(group, results[place])
        self._return_results(node, target, twin, results, written)

    def _written_handles(self, node: fx.Node, target: OpOverload) -> "list[Handle | list[Handle]]":
        written: list[Handle | list[Handle]] = []
        for position in op_facts(target).mutates:
            value = argument(node, position)
            if isinstance(value, fx.Node):
                written.append(self.handles[value])
            elif isinstance(value, (tuple, list)):
                written.append([self.handles[part] for part in value if isinstance(part, fx.Node)])
            else:
                raise Unsupported(f"{target} writes to an absent argument", hint="expected: the graph runs eagerly")
        return written

    def _call_twin(self, node: fx.Node, target: OpOverload, twin: Twin) -> list[object]:
        names = [item.name for item in target._schema.arguments]
        args = [value for value, name in zip(node.args, names, strict=False) if name not in twin.dropped]
        kwargs = {name: value for name, value in node.kwargs.items() if name not in twin.dropped}
        demanded = {item.name for item in twin.operator._schema.arguments if not item.has_default_value()}
        for item in target._schema.arguments[len(node.args) :]:  # the twin may lack the original's defaults
            if item.has_default_value() and item.name in demanded and item.name not in kwargs:
                kwargs[item.name] = item.default_value
        new = self.result.emit(twin.operator, self._read_args(tuple(args)), self._read_args(kwargs))
        if twin.single:
            return [new]
        parts = value_of(new)
        assert isinstance(parts, (tuple, list))
        return [self.result.emit(operator.getitem, (new, index), {}, part) for index, part in enumerate(parts)]

    def _store_group(self, group: "Handle | list[Handle]", result: object) -> None:
        assert isinstance(result, fx.Node)
        if isinstance(group, Handle):
            self.store(group, result)
            return
        parts = value_of(result)
        assert isinstance(parts, (tuple, list))
        for index, handle in enumerate(group):
            self.store(handle, self.result.emit(operator.getitem, (result, index), {}, parts[index]))

    def _return_results(
        self,
        node: fx.Node,
        target: OpOverload,
        twin: Twin,
        results: list[object],
        written: "list[Handle | list[Handle]]",
    ) -> None:
        returned: list[object] = []
        for item, place in zip(target._schema.returns, twin.returned, strict=False):
            handle = written[twin.written.index(place)] if item.alias_info is not None else None
            returned.append(results[place] if handle is None else handle)
        if isinstance(value_of(node), (tuple, list)):
            self._values[node] = tuple(returned)
        elif returned and isinstance(returned[0], Handle):
            self.handles[node] = returned[0]
        elif returned and isinstance(returned[0], fx.Node):
            self._new_region(node, returned[0])

    def store(self, handle: Handle, new: fx.Node) -> None:
        """Make `new` the value of `handle`, of its region, and so of every view of it."""
        region = handle.region
        new = self._settle(handle, new)
        here, value = handle, new
        while here.parent is not None and here.step is not None:
            parent = here.parent
            source = self._read(parent)
            write = Write(here.step, parent.example, here.example, source, value, self.result.emit)
            value = self._settle(parent, write_through(write))
            here = parent
        region.value = value
        region.version += 1
        here.node, here.version = value, region.version
        if same_steps(tensor_of(new), handle.example):
            handle.node, handle.version = new, region.version

    def _settle(self, handle: Handle, new: fx.Node) -> fx.Node:
        """Give a new value the dtype and sizes of the written tensor, and for a whole region its strides too."""
        mine, example = tensor_of(new), handle.example
        same = mine.dtype == example.dtype and mine.shape == example.shape
        if same and (handle.parent is not None or (same_steps(mine, example) and same_unused_strides(mine, example))):
            return new
        if 0 in example.shape and mine.shape != example.shape:
            return _grown(handle, new)
        return self.result.emit(aten.copy.default, (self._read(handle), new), {}, example)

    def _demand_safe_write(self, node: fx.Node, handle: Handle, mates: Sequence[Handle]) -> None:
        """Raise Unsupported for a write that values cannot follow.  mates: tensors of its memory that the call gets."""
        if handle.region.root.op != "placeholder" and in_backward(node) and not handle.region.born_in_backward:
            raise Unsupported("a backward writes to what the forward made", hint="expected: the graph runs eagerly")
        if any(overlaps_itself(one.example) for one in _with_ancestors(handle)):
            raise Unsupported("a write to memory that overlaps itself", hint="expected: eager decides")
        if any(_leaves_its_value(one) for one in _with_ancestors(handle)):
            raise Unsupported("a write through as_strided beyond what a graph holds", hint="expected: it runs eagerly")
        if any(mate is not handle and overlap(mate.example, handle.example) for mate in mates):
            raise Unsupported("a call reads and writes overlapping parts of one memory", hint="expected: eager decides")

    def _demand_no_reader(self, node: fx.Node, target: OpOverload, written: list[Handle]) -> None:
        """Refuse a call that moves elements of the tensor it writes: eager raises, or reads what it has written."""
        mutates, of_region = op_facts(target).mutates, _by_region(written)
        for position in set(range(len(target._schema.arguments))).difference(mutates):
            value = argument(node, position)
            for part in value if isinstance(value, (tuple, list)) else [value]:
                mate = self.handles.get(part) if isinstance(part, fx.Node) else None
                if mate is not None and any(_same_elements(mate, each) for each in of_region.get(mate.region, ())):
                    raise Unsupported(
                        f"{target} reads the tensor that it writes to",
                        hint="expected: eager decides, and may refuse it",
                    )

    # -- answers -----------------------------------------------------------------------------------------------

    def value_after(self, node: fx.Node) -> fx.Node:
        """Return the node of the new graph that holds what the recorded tensor holds now."""
        self.result.recorded = node
        value = self._read(self.handles[node])
        self.result.recorded = None
        return value


def _with_ancestors(handle: Handle) -> Iterator[Handle]:
    """Yield a handle, what it is a view of, and so on to the whole region: other views of theirs see its writes."""
    here: Handle | None = handle
    while here is not None:
        yield here
        here = here.parent


def _leaves_its_value(handle: Handle) -> bool:
    """Return whether a view by numbers may address memory beside the value that stands for it in the graph.

    That is memory with gaps; and an offset counts from the start of the storage, where an input need not begin.
    """
    if handle.step is None or handle.step.target is not aten.as_strided.default or handle.parent is None:
        return False
    offset = dict(handle.step.kwargs).get("storage_offset", [*handle.step.args, None, None, None][2])
    begins_anywhere = handle.region.root.op in ("placeholder", "get_attr") and offset is not None
    return begins_anywhere or not is_dense(handle.parent.example)


def _by_region(handles: Iterable[Handle]) -> dict[Region, list[Handle]]:
    found: dict[Region, list[Handle]] = {}
    for handle in handles:
        found.setdefault(handle.region, []).append(handle)
    return found


def _share_elements(one: Handle, other: Handle) -> bool:
    """Return whether two tensors of one memory have an element in common."""
    return same_places(one.example, other.example) or overlap(one.example, other.example)


def _same_elements(one: Handle, other: Handle) -> bool:
    """Return whether two tensors are the same elements of one memory; kernels refuse that of one element too."""
    return one.region is other.region and same_places(one.example, other.example)


def _grown(handle: Handle, new: fx.Node) -> fx.Node:
    """Let a tensor without elements, an intermediate, have the size that `out=` gives it."""
    mine = tensor_of(new)
    if handle.parent is not None or handle.region.root.op == "placeholder" or mine.dtype != handle.example.dtype:
        raise Unsupported("a tensor changes its size", why="graphs hold values", hint="expected: it runs eagerly")
    handle.example = mine
    return new


def _demand_gradient_through(seen: Handle, node: fx.Node) -> None:
    """Raise where `as_strided` of a view reaches beyond it and gradients flow: eager hands on those inside alone."""
    made = tensor_of(node)
    if seen.parent is not None and made.requires_grad and not lies_within(made, seen.example):
        raise Unsupported("as_strided reaches beyond the view that it is taken of", hint="expected: it runs eagerly")


def _with_offset(
    node: fx.Node, args: tuple[object, ...], kwargs: tuple[tuple[str, object], ...], root: fx.Node
) -> tuple[object, ...]:
    """Return size, stride and offset of an `as_strided` that is taken of the whole memory instead of a view of it.

    Without an offset of its own the call begins where the view begins.  root: what the memory came with; where in its
    storage an input begins is not known.
    """
    named = dict(zip(("size", "stride", "storage_offset"), args, strict=False)) | dict(kwargs)
    offset = named.get("storage_offset")
    if offset is None:
        source = node.args[0]
        assert isinstance(source, fx.Node)
        if any(type(size) is int and size == 0 for size in tensor_of(source).shape):
            # where it begins says nothing: kernels and fake tensors differ for a diagonal
            raise Unsupported("as_strided of a view without elements", hint="expected: it runs eagerly")
        offset = tensor_of(node).storage_offset()
        if type(offset) is not int:
            raise Unsupported("as_strided of a view that begins at a dynamic place", hint="expected: it runs eagerly")
        if root.op in ("placeholder", "get_attr"):
            if offset:
                raise Unsupported("as_strided of a part of an input", hint="expected: it runs eagerly")
            offset = None
    return named["size"], named["stride"], offset


def _dtypes(results: Sequence[object], places: tuple[int, ...]) -> list[torch.dtype]:
    """Return the dtypes of some results, those of a list one after the other."""
    values = [value_of(node) for node in (results[place] for place in places) if isinstance(node, fx.Node)]
    parts = [part for value in values for part in (value if isinstance(value, (tuple, list)) else (value,))]
    return [part.dtype for part in parts if isinstance(part, torch.Tensor)]


def functionalize(gm: fx.GraphModule, mode: FakeTensorMode) -> tuple[fx.GraphModule, tuple[int, ...]]:
    """Return `gm` without writes: its outputs, then the new contents of the inputs that it wrote to.

    Also the positions of those inputs among the placeholders (attributes, which become placeholders, behind them).
    Raises Unsupported where values cannot follow memory.
    """
    worker = Functionalizer(ValueGraph(mode))
    nodes = list(gm.graph.nodes)
    worker.take(nodes)
    results = [map_nodes(part, worker.value_after) for part in outputs(gm.graph)]
    inputs = [node for node in nodes if node.op == "placeholder"] + worker.constants
    written = tuple(
        index for index, node in enumerate(inputs) if node in worker.handles and worker.handles[node].region.version
    )
    results += [worker.value_after(inputs[index]) for index in written]
    worker.result.graph.output(tuple(results))
    return lazy_module({}, worker.result.graph), written
