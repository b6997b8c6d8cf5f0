"""The graph under construction: operations run on fake tensors and become nodes; graphs inside it, for transforms."""

import operator
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..base.origin import Origin
from ..base.torch_facts import FakeTensorMode, enable_python_dispatcher, fake_run_failure, set_default_dtype
from ..graph.effects import EffectLog, Event
from ..values.constant import Constant
from ..values.guard import storage_pattern
from ..values.python.containers.lists import ListValue
from ..values.python.containers.mappings import DictValue
from ..values.python.containers.tuples import TupleValue
from ..values.reasons import (
    AUTOGRAD_CALL,
    DATA_DEPENDENT_SHAPE,
    DATA_DEPENDENT_VALUE,
    DISABLED,
    FUNCTION_TRANSFORM,
    OPERATION_FAILED,
    TORCH_CALL_FORM,
    Break,
)
from ..values.source import Source
from ..values.torch.tensor import TensorValue
from ..values.torch.transforms import PullBack, ResultFunction
from ..values.value import Arguments, CaptureContext, Keywords, Value
from .assumptions import MOST
from .frame import FrameState
from .sizes import Sizes, SymbolicDimensions
from .torch_blocks import TorchBlocks


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A graph under construction. lifted: node of the next outer graph -> the placeholder that stands for it here."""

    graph: fx.Graph
    lifted: dict[fx.Node, fx.Node]


class GraphBuilding(CaptureContext):
    """The half of a capture that adds operations to graphs.

    effects, written_globals, changed_states: what was changed so far, which a graph inside the graph must not add to.
    """

    def __init__(self, symbolic: SymbolicDimensions) -> None:
        self.graph = fx.Graph()
        self.levels = [Level(self.graph, {})]  # the graph, then those of functions under torch.func transforms
        self.placeholders: dict[fx.Node, tuple[Source, object]] = {}  # inputs of the graph, as (source, real)
        self.sizes = Sizes(symbolic, self.graph, self.placeholders, self.here)
        self.fake_mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.sizes.environment)
        self.inputs: list[TensorValue] = []
        self.by_fake: dict[int, TensorValue] = {}
        self.effects: list[Value] = []
        self.written_globals: dict[tuple[int, str], tuple[dict[str, object], str]] = {}
        self.changed_states: set[str] = set()
        self.blocks = TorchBlocks()
        self.frames: list[FrameState] = []
        self.graph_free = False
        self.mutates_inputs = False
        self.happens = EffectLog()
        self.assumed: list[tuple[TensorValue, bool]] = []  # truth values, to be checked when the graph has run
        self.may_assume = True

    def assume(self, condition: Value, outcome: bool) -> bool:
        """Assume a truth value that only the graph can give; see CaptureContext."""
        if not self.may_assume or self.graph_free or len(self.levels) > 1 or len(self.assumed) >= MOST:
            return False
        if not isinstance(condition, TensorValue) or condition.fake.device.type != "cpu":
            return False
        if [size for size in condition.fake.shape if type(size) is not int or size != 1]:
            return False
        kept = self.call_torch("call_function", torch.any, [condition], {})  # as it is now
        assert isinstance(kept, TensorValue)
        self.assumed.append((kept, outcome))
        return True

    def here(self) -> Origin | None:
        """Return the innermost user line, without its callers."""
        if not self.frames:
            return None
        frame = self.frames[-1]
        code = frame.decoded.code
        return Origin(code.co_filename, frame.current().line or code.co_firstlineno, code.co_name)

    def rebound(self, tensor: Value) -> None:
        """Note that a tensor's value stands for another node now."""
        assert isinstance(tensor, TensorValue)
        self.by_fake[id(tensor.fake)] = tensor

    def graph_inputs(self) -> list[TensorValue]:
        """Return the tensors from outside that were looked at so far."""
        return self.inputs

    def graph_leaves(self) -> list[TensorValue]:
        """Return the tensors of the graph that may collect gradients, in the order they came in or were made."""
        found = {id(value): value for value in self.by_fake.values()}
        return [value for value in found.values() if value.fake.requires_grad and value.fake.is_leaf]

    def is_apart(self) -> bool:
        """Return whether a function is being evaluated in a graph of its own."""
        return len(self.levels) > 1

    def is_dropped(self) -> bool:
        """Return whether the instruction after the one being evaluated drops its result."""
        frame = self.frames[-1]
        return frame.decoded.instructions[frame.index].name == "POP_TOP"

    def enter_device(self, device: torch.device) -> None:
        """Make tensors on a device from here on."""
        self.blocks.devices.append(device)

    def leave_device(self) -> None:
        """Make tensors where they were made before the innermost device block."""
        self.blocks.leave_device()

    def default_device(self) -> torch.device:
        """Return where tensors are made."""
        return self.blocks.devices[-1] if self.blocks.devices else torch.get_default_device()

    def set_default_dtype(self, dtype: torch.dtype) -> None:
        """Change the default dtype for what is captured next, and when the graph has run."""
        set_default_dtype(dtype)

    def change_block(self, change: Callable[[], None], block: Value | None) -> None:
        """Enter or leave a block, now and in the graph; block: the one that is entered."""
        change()
        if block is not None:
            self.blocks.open.append(block)
        else:
            self.blocks.open.pop()
        node = self.graph.call_function(change)
        node.meta["origin"] = self.here()
        self.blocks.in_graph = True
        self.changed_states.add("block")

    def size_argument(self, value: Value) -> object:
        """Return the node that computes a symbolic size; under a transform the size as it is now, which is guarded."""
        return value.constant() if self.is_apart() else self.sizes.argument(value)

    def call_torch(self, kind: str, target: object, args: Arguments, kwargs: Keywords) -> Value:
        """Run an operation on fake tensors and add it to the graph if it gives or changes tensors."""
        if self.graph_free:
            raise Break(DISABLED, f"an operation in {self.frames[0].decoded.code.co_name}, which is not compiled")
        pairs = [self.realize(arg).graph_argument(self) for arg in args]
        named = {name: self.realize(value).graph_argument(self) for name, value in kwargs.items()}
        fake_args = [fake for _, fake in pairs]
        fake_kwargs = {name: fake for name, (_, fake) in named.items()}
        extra = self.blocks.extra_arguments(target, fake_args, fake_kwargs)
        fake_kwargs |= extra
        versions = [_version(value) for value in self.inputs]
        written = fake_args[0] if fake_args and _repeats_elements(fake_args[0]) else None
        before = getattr(written, "_version", 0)
        result = self._fake_run(kind, target, fake_args, fake_kwargs)
        if getattr(written, "_version", 0) != before:  # eager refuses most of these, the shape rules none
            raise Break(OPERATION_FAILED, f"{target} writes into a tensor whose elements share memory")
        if any(_version(value) != old for value, old in zip(self.inputs, versions, strict=True)):
            self.mutates_inputs = True
        if target is torch.nn.functional.batch_norm or target is torch.nn.functional.instance_norm:
            self.mutates_inputs = True  # running statistics change without a trace on fake tensors
        if not _has_tensor(result) and result is not None:
            return self.known(result)
        if "dtype" in extra and isinstance(result, torch.Tensor):
            extra["dtype"] = result.dtype
        named |= {name: (value, value) for name, value in extra.items()}
        positional: Any = tuple(node for node, _ in pairs)  # what graphs carry: graph_argument saw to it
        keywords: Any = {name: node for name, (node, _) in named.items()}
        operation: Any = target
        if len(self.levels) > 1:
            positional, keywords = fx.map_arg((positional, keywords), self._carried)
        node = self.graph.create_node(kind, operation, positional, keywords)
        node.meta["origin"] = self.frames[-1].origin() if self.frames else None
        return self._from_graph(result, node)

    def fake_run(self, run: Callable[..., object], args: list[object], kwargs: dict[str, object], what: str) -> object:
        """Run a Python function over fake tensors."""
        run.__name__ = what
        return self._fake_run("call_function", run, args, kwargs)

    def add_call(
        self,
        target: Callable[..., object],
        args: tuple[object, ...],
        result: object,
        kwargs: dict[str, object] | None = None,
    ) -> Value:
        """Add a call whose result on fake tensors is known."""
        given: Any = (args, kwargs or {})  # what graphs carry: graph_argument saw to it
        node = self.graph.call_function(target, *fx.map_arg(given, self._carried))
        changes = bool(getattr(target, "mutates_inputs", False))
        self.mutates_inputs = self.mutates_inputs or changes
        writes = frozenset(node for node in args if node in self.placeholders) if changes else frozenset()
        self.happens.note(Event(writes, may_fail=True))  # it may run a graph, in an order of its own
        node.meta["origin"] = self.frames[-1].origin() if self.frames else None
        return self._from_graph(result, node)

    def evaluate_apart(
        self, function: Value, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[object, fx.GraphModule, tuple[fx.Node, ...]]:
        """Evaluate a call on fake tensors in a graph of its own; see CaptureContext."""
        level = Level(fx.Graph(), {})
        effects, states, globals_before = len(self.effects), set(self.changed_states), len(self.written_globals)
        grad_mode = torch.is_grad_enabled()
        self.levels.append(level)
        self.graph = level.graph
        try:
            values = [self._entering(arg) for arg in args]
            named = {name: self._entering(value) for name, value in kwargs.items()}
            nodes, fakes = self.realize(self.call(function, values, named)).graph_argument(self)
            if len(self.effects) > effects or len(self.written_globals) > globals_before:
                raise Break(FUNCTION_TRANSFORM, f"{function.describe()} changes something outside, under a transform")
            if self.changed_states - {"grad"} != states - {"grad"} or torch.is_grad_enabled() != grad_mode:
                raise Break(FUNCTION_TRANSFORM, f"{function.describe()} changes a global state, under a transform")
            results: Any = nodes
            level.graph.output(fx.map_arg(results, self._carried))
        finally:
            self.levels.pop()
            self.graph = self.levels[-1].graph
        return fakes, fx.GraphModule(torch.nn.Module(), level.graph), tuple(level.lifted)

    def _entering(self, value: object) -> Value:
        """Return the value of what a transform passes to its function: tensors are inputs of the level's graph."""
        if isinstance(value, torch.Tensor):
            node = self.graph.placeholder(f"argument_{len(self.graph.nodes)}")
            node.meta.update(example_value=value, val=value)
            made = TensorValue(node, value, torch.Tensor)
            self.by_fake[id(value)] = made
            return made
        if isinstance(value, tuple):
            return TupleValue([self._entering(item) for item in value], kind=type(value))
        if isinstance(value, list):
            return ListValue([self._entering(item) for item in value])
        if isinstance(value, dict):
            return DictValue.of(self, [(self.known(key), self._entering(item)) for key, item in value.items()])
        return self.known(value)

    def _carried(self, node: fx.Node, depth: int = -1) -> fx.Node:
        """Return the node in the graph of a level that stands for one of an outer graph."""
        level = self.levels[depth]
        if node.graph is level.graph:
            return node
        if -depth >= len(self.levels):
            raise Break(FUNCTION_TRANSFORM, "a tensor that has left the transform it was made under")
        outer = self._carried(node, depth - 1)
        if outer not in level.lifted:
            level.lifted[outer] = level.graph.placeholder(f"lifted_{len(level.lifted)}")
            level.lifted[outer].meta.update(outer.meta)
        return level.lifted[outer]

    def evaluate_dry(self, evaluate: Callable[[], None], what: str) -> None:
        """Evaluate for the guards; drop the operations; refuse effects."""
        before, effects, globals_before = set(self.graph.nodes), len(self.effects), len(self.written_globals)
        events = len(self.happens.events)
        states, grad_mode, may_assume = set(self.changed_states), torch.is_grad_enabled(), self.may_assume
        self.may_assume = False
        evaluate()
        self.may_assume = may_assume
        if torch.is_grad_enabled() == grad_mode and self.changed_states == states | {"grad"}:
            self.changed_states = states  # what changed it is dropped with the rest
        if len(self.effects) > effects or len(self.written_globals) > globals_before or self.changed_states != states:
            raise Break(AUTOGRAD_CALL, f"{what} changes something outside")
        del self.happens.events[events:]
        kept = {*self.placeholders, *self.levels[-1].lifted.values()}
        for node in reversed(list(self.graph.nodes)):
            if node not in before and node not in kept:
                self.sizes.forget(node)
                self.graph.erase_node(node)

    def _fake_run(self, kind: str, target: object, args: list[object], kwargs: dict[str, object]) -> object:
        try:
            symbolic = self.sizes.environment is not None
            with self.fake_mode, enable_python_dispatcher() if symbolic else nullcontext(), self.happens.watch():
                if kind == "call_method":
                    return getattr(args[0], str(target))(*args[1:], **kwargs)
                return target(*args, **kwargs)  # type: ignore[operator]  # a function by construction
        except Exception as error:
            failure = fake_run_failure(error)
            name = target if isinstance(target, str) else getattr(target, "__name__", target)
            first = f"{type(error).__name__}: {error}".partition("\n")[0]
            if failure == "shape":
                raise Break(DATA_DEPENDENT_SHAPE, f"{name}") from None
            if failure == "value":
                raise Break(DATA_DEPENDENT_VALUE, f"{name}") from None
            raise Break(OPERATION_FAILED, f"{name}: {first}") from None

    def _from_graph(self, result: object, node: fx.Node) -> Value:
        if isinstance(result, torch.Tensor):
            known = self.by_fake.get(id(result))
            if known is not None:
                node.meta.update(example_value=result, val=result)
                return known
            node.meta.update(example_value=result, val=result)
            kind = torch.nn.Parameter if isinstance(result, torch.nn.Parameter) else torch.Tensor
            made = TensorValue(node, result, kind)
            self.by_fake[id(result)] = made
            return made
        if isinstance(result, tuple | list):
            node.meta.update(example_value=result, val=result)
            items: list[Value] = []
            for position, item in enumerate(result):
                items.append(self._part(node, position, item))
            return ListValue(items) if isinstance(result, list) else TupleValue(items, kind=type(result))
        if type(result) is dict:
            node.meta.update(example_value=result, val=result)
            pairs = [(self.known(key), self._part(node, key, item)) for key, item in result.items()]
            return DictValue.of(self, pairs)
        if result is None:
            return Constant(None)
        raise Break(TORCH_CALL_FORM, f"{node.target} gives a {type(result).__name__}")

    def _part(self, node: fx.Node, key: Any, item: object) -> Value:
        """Return the value of a part of what a node gives."""
        if not _has_tensor(item) and not isinstance(item, ResultFunction):
            return self.known(item)
        part = self.graph.call_function(operator.getitem, (node, key))
        part.meta["origin"] = node.meta["origin"]
        return PullBack(part, item.call) if isinstance(item, ResultFunction) else self._from_graph(item, part)

    def storage_pattern(self) -> tuple[int, ...]:
        """Return which inputs share storage."""
        return storage_pattern(*(value.real for value in self.inputs if value.real is not None))


def _repeats_elements(value: object) -> bool:
    """Return whether a tensor was expanded: several of its elements are one in memory."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_inference():
        return False
    return any(
        type(stride) is int and stride == 0 and (type(size) is not int or size > 1)
        for size, stride in zip(value.shape, value.stride(), strict=True)
    )


def _version(value: TensorValue) -> int:
    """Return how often the input was changed; inference tensors do not count."""
    return 0 if value.fake.is_inference() else value.fake._version


def _has_tensor(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if isinstance(value, tuple | list):
        return any(_has_tensor(item) for item in value)
    if isinstance(value, dict):
        return any(_has_tensor(item) for item in value.values())
    return False
