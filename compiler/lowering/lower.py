"""ATen graph to loop program: walk the nodes, ask the table, keep ATen calls for the rest.

Everything a later step needs as a real tensor (arguments of ATen calls, outputs) is named here; views become ATen
views only when asked for, so that loops read through them and outputs share memory exactly as the graph says.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import fx

from ..base.bisecting.applications import Gate, place_of_code
from ..base.errors import Unsupported
from ..base.events import FellBack, is_recording, record
from ..base.torch_facts import OpOverload
from ..graph.dynamic_sizes import is_symbolic, lowest_sizes, number_text, symbol_of
from ..graph.facts import facts_of, is_mutating, is_random, refuses
from ..graph.node_values import origin_of, value_of
from ..graph.passes import may_be_dropped
from ..graph.promises import is_workspace
from ..graph.subgraphs.subgraph_operator import SUBGRAPH_OPERATORS
from ..loops.ir import Extern, LoopProgram, Ref, SymbolicNumber
from ..loops.scalar_ops import SUPPORTED, WrongDtype
from ..symbolic.symbolic_sizes import Size
from . import (  # noqa: F401  the tables fill on import
    batch_norm,
    creation,
    float_math,
    indexing,
    losses,
    pointwise,
    reductions,
    results_so_far,
    windows,
)
from .needed_values import needed_nodes
from .registry import LoweringCall, lowering_of
from .size_reader import SizeReader
from .views import VIEWS
from .writer import LoopTensor, LoopWriter, NoLowering


def lower_graph(
    gm: fx.GraphModule,
    hints: Mapping[str, float] | None = None,
    gate: Gate | None = None,
    *,
    scans: bool = False,
) -> LoopProgram:
    """Return the loop program of a functional ATen graph whose nodes have example values.

    Placeholders: tensors, then the numbers that give dynamic sizes.  hints: by the symbol's name, what each is in the
    call that is being compiled.  gate: asked for every call that becomes a loop.  scans: whether kernels are in a
    language that has them, as Triton; in C they stay with ATen.  Raises Unsupported for an input of another kind: such
    graphs run op by op.
    """
    return _Lowering(gm, hints or {}, gate, scans=scans).run()


def loops_can_hold(value: object, device: torch.device) -> bool:
    """Return whether loops know this kind of tensor: dense, on their device, of a dtype they compute or store."""
    return (
        isinstance(value, torch.Tensor)
        and value.device == device
        and value.layout == torch.strided
        and value.dtype in SUPPORTED
        and not value.is_conj()
        and not value.is_neg()
    )


def device_of(gm: fx.GraphModule) -> torch.device:
    """Return the device of a graph's loops: the first accelerator that one of its tensors is on, else the CPU.

    What is on another device stays with ATen, numbers that the CPU holds for a GPU among it.
    """
    for node in gm.graph.nodes:
        for fake in _tensors_of(node.meta.get("val")):
            if fake.device.type == "cuda":
                return fake.device
    return torch.device("cpu")


class _Lowering:
    """The state of one walk over one graph."""

    def __init__(self, gm: fx.GraphModule, hints: Mapping[str, float], gate: Gate | None, *, scans: bool) -> None:
        self.gm = gm
        self.gate = gate
        counts = {name: hint for name, hint in hints.items() if isinstance(hint, int)}
        self.read = SizeReader(counts, lowest_sizes(gm.graph))
        self.needed = needed_nodes(gm.graph)
        self.device = device_of(gm)
        self.sizes: list[str] = []
        self.fractions: list[str] = []
        self.writer = LoopWriter(scans=scans)
        self.values: dict[fx.Node, object] = {}
        self.views: dict[fx.Node, tuple[str | None, ...]] = {}  # host names of views already asked for
        self.seen_through: set[fx.Node] = set()  # views that loops read through
        self.numbers: dict[fx.Node, LoopTensor] = {}
        self.inputs: list[str] = []
        self.constants: dict[str, torch.Tensor] = {}
        self.outputs: tuple[object, ...] = ()

    def run(self) -> LoopProgram:
        for node in self.gm.graph.nodes:
            self.writer.origins, self.writer.statement = _origins(node), _statement(node)
            if node.op == "placeholder":
                self._input(node)
            elif node.op == "get_attr":
                self._constant(node)
            elif node.op == "output":
                results = node.args[0]
                listed = results if isinstance(results, list | tuple) else (results,)
                self.outputs = tuple(self._refer(each) for each in listed)
            elif node.op == "call_function":
                self._call(node)
            else:
                raise Unsupported(f"node kind {node.op}", hint="trace to ATen first")
        writer = self.writer
        inputs, sizes, floats = tuple(self.inputs), tuple(self.sizes), frozenset(self.fractions)
        return LoopProgram(
            inputs, writer.buffers, tuple(writer.steps), self.outputs, self.constants, sizes, floats, self.device
        )

    def _input(self, node: fx.Node) -> None:
        fake = value_of(node)
        if is_symbolic(fake):
            self.sizes.append(symbol_of(node))
            if isinstance(fake, torch.SymFloat):
                self.fractions.append(symbol_of(node))
            self.values[node] = self._number(fake)
            return
        name = self.writer.fresh(node.name)
        if not isinstance(fake, torch.Tensor):
            raise Unsupported(f"input {node.name} is {type(fake).__name__}, no tensor", hint="the graph runs op by op")
        self.inputs.append(name)
        self.values[node] = self._whole(name, fake)

    def _number(self, value: object) -> object:
        """Return the value of a number that comes from dynamic sizes."""
        try:
            if isinstance(value, torch.SymInt):
                return self.read.size(value)
        except NoLowering as refusal:
            raise Unsupported(str(refusal), hint="the graph runs op by op") from None
        text, names = number_text(value)
        return SymbolicNumber(text, names)

    def _constant(self, node: fx.Node) -> None:
        value: object = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"attribute {node.target} is not a tensor", hint="the graph runs op by op")
        name = self.writer.fresh(node.name)
        self.constants[name] = value
        self.values[node] = self._whole(name, value)

    def _whole(self, name: str, fake: torch.Tensor) -> object:
        """Return the value of a tensor that exists in memory under a name."""
        if not loops_can_hold(fake, self.device):
            return Ref(name)
        try:
            shape, strides = self.read.sizes(fake.shape), self.read.sizes(fake.stride())
        except NoLowering:
            return Ref(name)
        self.writer.buffer(name, shape, fake.dtype, strides)
        return LoopTensor(name, shape, fake.dtype)

    def _call(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self._getitem(node)
            return
        if is_symbolic(value_of(node)):
            self.values[node] = self._number(value_of(node))
            return
        reason = self._try_lowering(node)
        if reason is not None:
            if is_recording() and node.target not in SUBGRAPH_OPERATORS:  # their bodies are compiled by themselves
                record(FellBack(str(node.target), reason, origin_of(node)))
            self._extern(node, reason)

    def _getitem(self, node: fx.Node) -> None:
        source, position = cast("fx.Node", node.args[0]), node.args[1]
        listed = self.values[source]
        if not isinstance(listed, tuple) or not isinstance(position, int):
            raise Unsupported("an item of something that is not a tuple", hint="the graph runs op by op")
        self.values[node] = listed[position]

    def _try_lowering(self, node: fx.Node) -> str | None:
        """Lower a call to loops, or return why not."""
        target = node.target
        if node not in self.needed and not may_be_dropped(node):
            return "it is there for its error"
        rule = lowering_of(target)
        view = VIEWS.get(target) if isinstance(target, OpOverload) and rule is None else None
        if rule is None and view is None:
            return "no lowering"
        if node.args and isinstance(node.args[0], fx.Node) and refuses(target, value_of(node.args[0])):
            return "eager has no kernel for these dtypes"
        fakes = _tensors_of(value_of(node))
        if not all(loops_can_hold(fake, self.device) for fake in fakes):
            return "a result that loops cannot hold"
        for argument in node.all_input_nodes:
            if not _known_to_loops(self.values[argument]):
                return "an argument that loops cannot hold"
        state, numbers = (dict(self.writer.buffers), len(self.writer.steps)), dict(self.numbers)
        try:
            call = self._make_call(node, fakes)
            # Asked first: a rule that raises, or never returns, has to be known and left out as well.
            if self.gate is not None and not self._is_allowed(self.gate, node, rule or view):
                raise NoLowering("switched off by the option bisect")
            result = rule(call) if rule is not None else cast("object", view(call)) if view is not None else None
        except (NoLowering, WrongDtype) as refusal:
            self.writer.buffers, self.numbers = state[0], numbers
            del self.writer.steps[state[1] :]
            return str(refusal)
        self.values[node] = result
        if rule is None:
            self.seen_through.add(node)
        return None

    def _is_allowed(self, gate: Gate, node: fx.Node, rule: object) -> bool:
        origin, where = origin_of(node), place_of_code(rule)
        what = f"made a loop of {node.target} for {node.name}"
        return gate.allows(
            "lowering", what, rule=str(node.target), where=where, place=origin.place() if origin is not None else ""
        )

    def _make_call(self, node: fx.Node, fakes: tuple[torch.Tensor, ...]) -> LoweringCall:
        target = cast("OpOverload", node.target)
        arguments: dict[str, object] = {}
        examples: dict[str, object] = {}
        for position, argument in enumerate(target._schema.arguments):
            if position < len(node.args):
                value: object = node.args[position]
            elif argument.name in node.kwargs:
                value = node.kwargs[argument.name]
            else:
                value = argument.default_value if argument.has_default_value() else None
            arguments[argument.name] = self._inside(value)
            examples[argument.name] = _example(value)
        return LoweringCall(self.writer, node.name, arguments, examples, fakes, self.read)

    def _inside(self, given: object) -> object:
        if isinstance(given, fx.Node):
            value = self.values[given]
            return self._as_tensor(given, value) if isinstance(value, SymbolicNumber) else value
        if isinstance(given, list | tuple):
            return [self._inside(each) for each in given]
        return given

    def _as_tensor(self, node: fx.Node, number: SymbolicNumber) -> LoopTensor:
        """Return a number known only when the graph runs as a tensor of one element, which loops read."""
        tensor = self.numbers.get(node)
        if tensor is None:
            name = self.writer.fresh(node.name)
            self.writer.buffer(name, (), torch.float64)
            keywords = {"dtype": torch.float64}
            step = Extern(
                self.writer.fresh(f"call_{name}"), torch.scalar_tensor, (number,), dict(keywords), (name,), True
            )
            self.writer.extern(step)
            tensor = self.numbers[node] = LoopTensor(name, (), torch.float64)
        return tensor

    def _extern(self, node: fx.Node, reason: str) -> None:
        """Keep a call as ATen call, for a reason; its results are tensors with eager's layout."""
        facts = facts_of(node.target)
        args = tuple(self._refer(arg) for arg in node.args)
        kwargs = {key: self._refer(value) for key, value in node.kwargs.items()}
        value = value_of(node)
        single = isinstance(value, torch.Tensor)
        listed = [value] if single else list(value) if isinstance(value, list | tuple) else []
        names: list[str | None] = []
        arguments: list[object] = []
        for number, fake in enumerate(listed):
            if not isinstance(fake, torch.Tensor):
                names.append(None)
                arguments.append(None)
                continue
            name = self.writer.fresh(node.name if single else f"{node.name}_{number}")
            names.append(name)
            arguments.append(self._whole(name, fake))
        mutates = facts.mutates if facts is not None else ()
        views = [n for n in facts.aliases if n not in mutates] if facts is not None else []
        mutated, shared = _named(args, mutates), _named(args, views)
        # an operator without facts may do anything; one without readers is there for its error
        unread = not listed or not (node in self.needed or may_be_dropped(node))
        ordered = facts is None or unread or is_random(node.target) or is_mutating(node.target)
        self.writer.extern(
            Extern(
                self.writer.fresh(f"call_{node.name}"),
                cast("OpOverload", node.target),
                args,
                kwargs,
                tuple(names),
                single,
                ordered,
                mutated,
                shared,
                self.writer.origins,
                tuple(
                    fake.dtype if isinstance(fake, torch.Tensor) and not is_workspace(node.target, number) else None
                    for number, fake in enumerate(listed)
                ),
                reason,
            )
        )
        self.values[node] = arguments[0] if single else tuple(arguments)

    def _refer(self, given: object) -> object:
        """Return given with names of real tensors for nodes; views are made real here, once."""
        if isinstance(given, list | tuple):
            return type(given)([self._refer(each) for each in given])
        if not isinstance(given, fx.Node):
            return given
        value = self.values[given]
        if isinstance(value, Ref | Size | SymbolicNumber | int):
            return value
        if isinstance(value, tuple):
            raise Unsupported("a tuple as argument", hint="the graph runs op by op")
        if value is None:
            return None
        source = cast("fx.Node", given.args[0]) if given.target is operator.getitem else given
        if source in self.seen_through:
            number = cast("int", given.args[1]) if given.target is operator.getitem else 0
            return Ref(cast("str", self._real_view(source)[number]))
        return Ref(cast("LoopTensor", value).buffer)

    def _real_view(self, node: fx.Node) -> tuple[str | None, ...]:
        known = self.views.get(node)
        if known is not None:
            return known
        args = tuple(self._refer(arg) for arg in node.args)
        kwargs = {key: self._refer(each) for key, each in node.kwargs.items()}
        value = value_of(node)
        single = isinstance(value, torch.Tensor)
        count = 1 if single else len(_tensors_of(value))
        names = tuple(self.writer.fresh(node.name if single else f"{node.name}_{n}") for n in range(count))
        base = next(iter(arg.name for arg in args if isinstance(arg, Ref)))
        self.writer.extern(
            Extern(
                self.writer.fresh(f"view_{node.name}"),
                cast("OpOverload", node.target),
                args,
                kwargs,
                names,
                single,
                False,
                (),
                (base,),
                self.writer.origins,
            )
        )
        self.views[node] = names
        return names


def _named(args: Sequence[object], places: Sequence[int]) -> tuple[str, ...]:
    """Return the tensors that a call is given at these places."""
    return tuple(arg.name for n in places if n < len(args) and isinstance(arg := args[n], Ref))


def _example(given: object) -> object:
    """Return an argument for questions of type: a symbolic number is some number of its kind."""
    value = value_of(given) if isinstance(given, fx.Node) else given
    return 2 if isinstance(value, torch.SymInt) else 2.0 if isinstance(value, torch.SymFloat) else value


def _known_to_loops(value: object) -> bool:
    if isinstance(value, Size | SymbolicNumber | int):
        return True
    if isinstance(value, tuple):
        return all(isinstance(each, LoopTensor) for each in value)
    return isinstance(value, LoopTensor)


def _tensors_of(value: object) -> tuple[torch.Tensor, ...]:
    listed = value if isinstance(value, list | tuple) else (value,)
    return tuple(each for each in listed if isinstance(each, torch.Tensor))


def _statement(node: fx.Node) -> str:
    origin = origin_of(node)
    place = f"{origin.place().rpartition('/')[2]} " if origin is not None else ""
    return f"{place}{node.target}" if node.op == "call_function" else ""


def _origins(node: fx.Node) -> tuple[str, ...]:
    origin = origin_of(node)
    return (f"{origin.place()}  {origin.source_line()}",) if origin is not None else ()
