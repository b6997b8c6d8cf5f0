"""The graph under construction: operations run on fake tensors and become nodes; graphs inside it, for transforms."""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ...base.dense_order import dense_order
from ...base.fake_mode_start import in_legacy_vmap, make_fake
from ...base.nested import leaves
from ...base.symbol_facts import make_symbolic_fake
from ...base.torch_facts import (
    FakeTensor,
    WatchedFakeMode,
    asked_once,
    fake_run_failure,
    load_fake_modes,
    unwrapped,
    without_transforms,
)
from ...graph.effects.call_effects import CallEffect, EffectLog
from ...graph.node_values import set_entry_shape
from ...graph.shapes.metadata_rules import MetadataRules
from ...graph.shapes.shape_dispatch import call_with_dynamic_sizes
from ...graph.shapes.shape_rules import corrected_in
from ...values.constant import Constant
from ...values.guard import GuardKind, TensorFacts, storage_pattern
from ...values.python.containers.lists import ListValue
from ...values.python.containers.mappings import DictValue
from ...values.python.containers.tuples import TupleValue
from ...values.reasons import (
    AUTOGRAD_CALL,
    DATA_DEPENDENT_SHAPE,
    DATA_DEPENDENT_VALUE,
    DISABLED,
    FUNCTION_TRANSFORM,
    OPERATION_FAILED,
    SIDE_EFFECT_CALL,
    TENSOR_STATE,
    TORCH_CALL_FORM,
    UNSUPPORTED_TENSOR,
    Break,
)
from ...values.source import Argument, Source
from ...values.torch.overrides.override_calls import asked_first
from ...values.torch.overrides.subclass_values import (
    PlainTwin,
    SubclassValue,
    as_plain,
    has_plain_twin,
    hold_switch,
    own_again,
)
from ...values.torch.spent_history import is_gradient_leaf, tells_history
from ...values.torch.tensor import TensorValue
from ...values.torch.transforms import PullBack, ResultFunction
from ...values.value import Arguments, CaptureContext, GraphInProgress, Keywords, Value
from ..entry_questions import EntryQuestions, is_of_torch, stands_in_loop, storages_of
from .assumptions import MOST
from .attempt import CaptureAttempt
from .effect_list import EffectList
from .frame import may_handle_errors
from .frame_stack import FrameStack
from .mode_changes import ModeRecord
from .repeated_warnings import OperationWarning, operation_warnings, warnings_in_c
from .sizes import Sizes, stride_text

_WRITING_UNSEEN = (torch.nn.functional.batch_norm, torch.nn.functional.instance_norm)
_PLAIN_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A graph under construction.

    lifted: node of the next outer graph -> the placeholder that stands for it here.  takes_numbers: see evaluate_apart.
    """

    graph: fx.Graph
    lifted: dict[fx.Node, fx.Node]
    takes_numbers: bool = False


class GraphBuilder(GraphInProgress):
    """The graph of one capture. fx: the innermost graph; levels: it and the graphs around it, the outermost first.

    assumed: truth values, to be checked when the graph has run. happens: what the operations do beside giving values.
    is_handled: errors of some operations go to a handler of the program's.
    """

    def __init__(
        self,
        ctx: CaptureContext,
        attempt: CaptureAttempt,
        frames: FrameStack,
        effects: EffectList,
        modes: ModeRecord,
        open_up: Callable[[int | float, Source], Value],
    ) -> None:
        self.ctx, self.attempt = ctx, attempt
        self.frames, self.effects, self.modes = frames, effects, modes
        self.open_up = open_up  # makes a symbol of a number from outside
        self.fx = fx.Graph()
        self.levels = [Level(self.fx, {})]  # the graph, then those of functions under torch.func transforms
        self.placeholders: dict[fx.Node, tuple[Source, object]] = {}  # inputs of the graph, as (source, real)
        self.sizes = Sizes(attempt.symbolic, self.fx, self.placeholders, frames.here, attempt.varying_numbers)
        load_fake_modes()
        self.fake_mode = WatchedFakeMode(allow_non_fake_inputs=True, shape_env=self.sizes.environment)
        self.fake_mode.correction = corrected_in
        self.fake_mode.rules = MetadataRules()
        asked_once(self.fake_mode)
        self.input_values: list[TensorValue] = []
        self.by_fake: dict[int, TensorValue] = {}
        self._versions: list[int] = []  # of the inputs, as they were when nothing was known to change them
        self._mutates_inputs = False
        self._known_events = 0  # how many of what happens were noted then
        self._of_nodes = 0  # how many were, when the last node was added
        self.happens = EffectLog()
        self.is_handled = False
        self.quiet_at: int | None = None  # which of `assumed` says that NumPy would not warn
        self.assumed: list[tuple[TensorValue, bool]] = []
        self.assumes_finite = False  # that NumPy does not warn, since results are finite
        self._finite_inputs: dict[fx.Node, bool] = {}
        self.quiet: list[tuple[Value, Value]] = []  # flags, and that all of them are true
        self.warned: list[OperationWarning] = []  # by the operations, while their shapes were asked for
        self.questions = EntryQuestions(self.fx, self.placeholders)
        self.drawn_numbers: list[tuple[Value, object]] = []  # from Python's generators, in the program's order
        self.is_dry = False  # what is being evaluated is dropped again
        self.handed: frozenset[str] = frozenset()  # the numbers, by symbol, that what is evaluated so is given

    @property
    def mutates_inputs(self) -> bool:
        """Return whether an operation changes an input; versions are compared here, not after every operation."""
        if not self._mutates_inputs:
            noted = any(event.writes for event in self.happens.events[self._known_events :])
            pairs = zip(map(_version, self.input_values), self._versions, strict=True)
            self._mutates_inputs = noted or any(new != old for new, old in pairs)
        return self._mutates_inputs

    @mutates_inputs.setter
    def mutates_inputs(self, known: bool) -> None:
        self._mutates_inputs = known
        self._versions = list(map(_version, self.input_values))
        self._known_events = len(self.happens.events)

    def add_input(self, value: torch.Tensor, source: Source) -> Value:
        """Return the value of a tensor from outside: an input of the graph, guarded by its metadata."""
        kind = type(value)
        if kind not in _PLAIN_KINDS and has_plain_twin(kind):
            self.ctx.guards.add(source, GuardKind.TYPE, kind)
            hold_switch(self.ctx)
            inner = self.add_input(as_plain(value), PlainTwin(source))
            assert isinstance(inner, TensorValue)
            return SubclassValue(kind, inner, source, value)
        if kind not in _PLAIN_KINDS or value.layout is not torch.strided or value.is_quantized or value.is_nested:
            self.ctx.guards.add(source, GuardKind.TYPE, kind)
            raise Break(UNSUPPORTED_TENSOR, f"an input of type {kind.__name__}, layout {value.layout}")
        if in_legacy_vmap(value):
            raise Break(UNSUPPORTED_TENSOR, "an input of torch's old vmap")
        if not tells_history(value):
            self.ctx.guards.add(source, GuardKind.TYPE, kind)
            raise Break(
                UNSUPPORTED_TENSOR, "a view made under no_grad, whose base was written to with grad mode enabled"
            )
        bits = (value.is_conj(), value.is_neg(), value.is_inference())
        varying = self.sizes.varying(value, source)
        shape = tuple(None if index in varying else size for index, size in enumerate(value.shape))
        strides = (None,) * value.dim() if varying else tuple(value.stride())
        facts = TensorFacts(kind, value.dtype, value.device, shape, strides, value.requires_grad, bits, value.is_leaf)
        self.ctx.guards.add(source, GuardKind.TENSOR, facts)
        if varying:
            order = dense_order(value.shape, value.stride())
            assert order is not None  # or nothing would vary
            self.ctx.guards.add(source, GuardKind.EXPRESSION, stride_text(order))
            with without_transforms():
                fake = make_symbolic_fake(self.fake_mode, value, varying, order)
        else:
            with without_transforms():
                fake = _twin(self.fake_mode, value)
        node = self.levels[0].graph.placeholder(f"input_{len(self.input_values)}")
        node.meta.update(example_value=fake, val=fake, source=source.words(), origin=self.frames.here())
        set_entry_shape(node, fake)
        tensor = TensorValue(node, fake, kind, source, value)
        self.input_values.append(tensor)
        self._versions.append(_version(tensor))
        self.by_fake[id(fake)] = tensor
        self.placeholders[node] = (source, value)
        self.happens.note_input(fake, node)
        self.sizes.note_input(fake, varying, source, node, value)
        return tensor

    def call(self, kind: str, target: object, args: Arguments, kwargs: Keywords) -> Value:
        """Run an operation on fake tensors and add it to the graph if it gives or changes tensors."""
        if self.modes.overrides.is_idle():
            return self._call(kind, target, args, kwargs)
        answer, owners = asked_first(self.ctx, kind, target, args, kwargs)
        return answer if answer is not None else own_again(self._call(kind, target, args, kwargs), owners)

    def _call(self, kind: str, target: object, args: Arguments, kwargs: Keywords) -> Value:
        if self.attempt.graph_free:
            raise Break(DISABLED, f"an operation in {self.frames.stack[0].decoded.code.co_name}, which is not compiled")
        pairs = [self.ctx.realize(arg).graph_argument(self.ctx) for arg in args]
        named = {name: self.ctx.realize(value).graph_argument(self.ctx) for name, value in kwargs.items()}
        fake_args = [fake for _, fake in pairs]
        fake_kwargs = {name: fake for name, (_, fake) in named.items()}
        extra = self.modes.blocks.extra_arguments(target, fake_args, fake_kwargs)
        fake_kwargs |= extra
        tensors = [leaf for leaf in leaves((fake_args, list(fake_kwargs.values()))) if isinstance(leaf, torch.Tensor)]
        unseen = target in _WRITING_UNSEEN or any(tensor.is_inference() for tensor in tensors)
        ages = _ages(tensors)
        happened = len(self.happens.events)
        written = fake_args[0] if fake_args and _repeats_elements(fake_args[0]) else None
        before = getattr(written, "_version", 0)
        outputs = _shapes_and_versions(fake_kwargs.get("out"))
        try:
            result = self._fake_run(kind, target, fake_args, fake_kwargs)
        except Break as signal:
            numbers = [self._with_numbers(arg) for arg in args] if signal.reason is DATA_DEPENDENT_VALUE else list(args)
            if all(new is old for new, old in zip(numbers, args, strict=True)):
                raise
            return self._call(kind, target, numbers, kwargs)
        for (shape, version), now in zip(outputs, _shapes_and_versions(fake_kwargs.get("out")), strict=True):
            name = target if isinstance(target, str) else getattr(target, "__name__", target)
            if now[0] != shape or 0 in shape:  # not every shape rule lets it grow
                raise Break(TENSOR_STATE, f"{name} gives the tensor of its argument out= another size")
            if now[1] == version:  # matrix_rank does not write there while anybody watches
                raise Break(TORCH_CALL_FORM, f"{name} does not say that it writes to its argument out=")
        if getattr(written, "_version", 0) != before:  # eager refuses most of these, the shape rules none
            raise Break(OPERATION_FAILED, f"{target} writes into a tensor whose elements share memory")
        if target in _WRITING_UNSEEN:
            self.mutates_inputs = True  # running statistics change without a trace on fake tensors
        if not _has_tensor(result) and result is not None:
            return self.ctx.known(result)
        if "dtype" in extra and isinstance(result, torch.Tensor):
            extra["dtype"] = result.dtype
        named |= {name: (value, value) for name, value in extra.items()}
        positional: Any = tuple(node for node, _ in pairs)  # what graphs carry: graph_argument saw to it
        keywords: Any = {name: node for name, (node, _) in named.items()}
        operation: Any = target
        if target is operator.pow and not isinstance(positional[0], fx.Node):
            operation = torch.pow  # fx would print `-2 ** x`, which is another number
        if len(self.levels) > 1:
            positional, keywords = fx.map_arg((positional, keywords), self._carried)
        node = self.fx.create_node(kind, operation, positional, keywords)
        node.meta["origin"] = self.frames.stack[-1].origin() if self.frames.stack else None
        found = self.happens.events[happened:]
        written_to = _written_among(tensors, None if unseen else ages, {key for one in found for key in one.storages})
        if written_to is not None:
            node.meta["wrote"] = written_to
        if any(event.draws for event in found):
            node.meta["draws"] = True
        self._begin_node()
        return self._from_graph(result, node)

    def _begin_node(self) -> None:
        if len(self.levels) == 1:  # what happens in a graph of its own is of the node that runs it
            self._of_nodes = len(self.happens.events)

    def fake_run(self, run: Callable[..., object], args: list[object], kwargs: dict[str, object], what: str) -> object:
        """Run a Python function over fake tensors."""
        run.__name__ = what
        return self._fake_run("call_function", run, args, kwargs)

    def add(
        self,
        target: Callable[..., object],
        args: tuple[object, ...],
        result: object,
        kwargs: dict[str, object] | None = None,
    ) -> Value:
        """Add a call whose result on fake tensors is known."""
        arguments: Any = (args, kwargs or {})  # what graphs carry: graph_argument saw to it
        node = self.fx.call_function(target, *fx.map_arg(arguments, self._carried))
        changes = bool(getattr(target, "mutates_inputs", False))
        if changes:
            self.mutates_inputs = True
        writes = frozenset(node for node in args if node in self.placeholders) if changes else frozenset()
        read = _own_storages(leaves([part.meta.get("val") for part in node.all_input_nodes]))
        noted = {key for event in self.happens.events[self._of_nodes :] for key in event.storages}  # by its own graph
        if changes or noted & read:
            node.meta["wrote"] = read if changes else noted & read
        self.happens.note(CallEffect(writes, may_fail=True))  # it may run a graph, in an order of its own
        self._begin_node()
        node.meta["origin"] = self.frames.stack[-1].origin() if self.frames.stack else None
        return self._from_graph(result, node)

    def evaluate_apart(
        self,
        function: Value,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        once: bool = False,
        takes_numbers: bool = False,
    ) -> tuple[object, fx.GraphModule, tuple[fx.Node, ...]]:
        """Evaluate a call on fake tensors in a graph of its own; see CaptureContext."""
        level = Level(fx.Graph(), {}, takes_numbers)
        effects, states = self.effects.count(), set(self.modes.changed)
        grad_mode = torch.is_grad_enabled()
        self.levels.append(level)
        self.fx = level.graph
        try:
            values = [self._entering(arg) for arg in args]
            named = {name: self._entering(value) for name, value in kwargs.items()}
            nodes, fakes = self.ctx.realize(self.ctx.call(function, values, named)).graph_argument(self.ctx)
            if self.effects.count() != effects and not once:
                raise Break(FUNCTION_TRANSFORM, f"{function.describe()} changes something outside, under a transform")
            if self.modes.changed - {"grad"} != states - {"grad"} or torch.is_grad_enabled() != grad_mode:
                raise Break(FUNCTION_TRANSFORM, f"{function.describe()} changes a global state, under a transform")
            results: Any = nodes
            level.graph.output(fx.map_arg(results, self._carried))
        finally:
            self.levels.pop()
            self.fx = self.levels[-1].graph
        return fakes, fx.GraphModule(torch.nn.Module(), level.graph), tuple(level.lifted)

    def _entering(self, value: object) -> Value:
        """Return the value of what a transform passes to its function: tensors are inputs of the level's graph."""
        if isinstance(value, torch.Tensor):
            node = self.fx.placeholder(f"argument_{len(self.fx.nodes)}")
            node.meta.update(example_value=value, val=value)
            tensor = TensorValue(node, value, torch.Tensor)
            self.by_fake[id(value)] = tensor
            return tensor
        if isinstance(value, tuple):
            return TupleValue([self._entering(item) for item in value], kind=type(value))
        if isinstance(value, list):
            return ListValue([self._entering(item) for item in value])
        if isinstance(value, dict):
            return DictValue.of(self.ctx, [(self.ctx.known(key), self._entering(item)) for key, item in value.items()])
        return self.ctx.known(value)

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

    def evaluate_dry(self, evaluate: Callable[[], None], what: str, given: Sequence[Value] = ()) -> None:
        """Evaluate for the guards; drop the operations; refuse effects."""
        before, effects = set(self.fx.nodes), self.effects.count()
        events = len(self.happens.events)
        states, grad_mode, outer = set(self.modes.changed), torch.is_grad_enabled(), (self.is_dry, self.handed)
        self.is_dry, self.handed = True, frozenset(self.sizes.open_numbers(given))
        evaluate()
        self.is_dry, self.handed = outer
        if torch.is_grad_enabled() == grad_mode and self.modes.changed == states | {"grad"}:
            self.modes.changed = states  # what changed it is dropped with the rest
        if self.effects.count() != effects or self.modes.changed != states:
            raise Break(AUTOGRAD_CALL, f"{what} changes something outside")
        del self.happens.events[events:]
        inputs = {*self.placeholders, *self.levels[-1].lifted.values()}
        for node in reversed(list(self.fx.nodes)):
            if node not in before and node not in inputs:
                self.sizes.forget(node)
                self.fx.erase_node(node)

    def ask(self, condition: Value, *, anywhere: bool = False) -> bool | None:
        """Return a truth value that is computed at entry and guarded; see CaptureContext."""
        if not isinstance(condition, TensorValue) or not self._may_ask(anywhere):
            return None
        if any(type(size) is not int or size != 1 for size in condition.fake.shape):
            return None
        found = self._asked("call_function", torch.any, condition)
        return None if found is None else bool(found)

    def number_at_entry(self, tensor: Value) -> int | float | bool | None:
        """Return the number in a small tensor of one element; see CaptureContext."""
        ours = not (self.frames.stack and is_of_torch(self.frames.stack[-1].namespace))
        if ours or not isinstance(tensor, TensorValue) or tensor.fake.numel() != 1 or not self._may_ask(anywhere=True):
            return None
        if not (tensor.fake.is_floating_point() or tensor.fake.dtype in (torch.int64, torch.bool)):
            return None
        found: Any = self._asked("call_method", "clone", tensor, written=False)
        return found  # type: ignore[no-any-return]  # a number of Python's

    def open_number(self, tensor: Value) -> Value | None:
        """Return the number in a tensor of one element as one that varies from call to call; see CaptureContext."""
        if self.sizes.environment is None or not isinstance(tensor, TensorValue) or not self._may_ask(anywhere=True):
            return None
        copy = self._call("call_method", "clone", [tensor], {})
        assert isinstance(copy, TensorValue)
        found = self.questions.number(copy.node)
        self.fx.erase_node(copy.node)
        self.by_fake.pop(id(copy.fake), None)
        if found is None:
            return None
        source, number = found
        plain = isinstance(number, int | float) and not isinstance(number, bool)
        if plain and isinstance(number, int | float) and self.sizes.can_be_open(number):
            return self.open_up(number, source)
        return self.ctx.wrap(number, source)

    def computed_number(self, function: Callable[..., object], operands: Sequence[object]) -> Value | None:
        """Return a float that a pure function gives for numbers that vary; see GraphInProgress."""
        found = self.sizes.computed(function, operands)
        if found is None:
            return None
        number, source = found
        self.ctx.guards.add(source, GuardKind.TYPE, float)  # `2 ** n` is a whole number for some
        return self.open_up(number, source) if self.sizes.can_be_open(number) else self.ctx.wrap(number, source)

    def draw(self, generator: Value, draw: object, sample: torch.Tensor, words: str) -> Value | None:
        """Return the tensor of a number that is drawn before the graph runs; see CaptureContext."""
        if self.is_dry or self.attempt.graph_free or len(self.levels) > 1:
            return None
        source = Argument(f"_d{len(self.drawn_numbers)}", words)
        with without_transforms():
            fake = make_fake(self.fake_mode, sample)
        node = self.fx.placeholder(f"drawn_{len(self.drawn_numbers)}")
        node.meta.update(example_value=fake, val=fake, source=words, origin=self.frames.here(), draws=True)
        set_entry_shape(node, fake)
        self.drawn_numbers.append((generator, draw))
        self.placeholders[node] = (source, sample)
        tensor = self.by_fake[id(fake)] = TensorValue(node, fake, torch.Tensor, source)
        return tensor

    def warn(self, message: str, category: type[Warning]) -> None:
        """Warn at the line that is evaluated, at each call."""
        frame = self.frames.stack[-1]
        file, line = frame.decoded.code.co_filename, frame.line()
        self.warned.append(OperationWarning(message, category, file, line, frame.namespace, in_graph=False))

    def _with_numbers(self, value: Value) -> Value:
        """Return a size, or a list of sizes, with numbers in place of tensors of one, where they are known at entry."""
        value = self.ctx.realize(value)
        if isinstance(value, TensorValue) and not value.fake.dim():
            size = self.number_at_entry(value)
            return self.ctx.known(size) if type(size) is int else value
        if not isinstance(value, ListValue | TupleValue) or value.kind not in (list, tuple, torch.Size):
            return value
        parts = [self.ctx.realize(part) for part in value.items]
        numbers = [self.number_at_entry(part) for part in parts]
        if not any(type(number) is int for number in numbers):
            return value
        pairs = zip(parts, numbers, strict=True)
        return TupleValue([part if number is None else self.ctx.known(number) for part, number in pairs])

    def may_start(self) -> bool:
        """Return whether something may be made before capture; see CaptureContext."""
        values = any("val" in node.meta for node in self.fx.nodes if node.op != "placeholder")
        return (
            not (values or self.drawn_numbers)
            and self.effects.count() == (0, 0)
            and len(self.levels) == 1
            and self.attempt.may_start
        )

    def _asked(self, kind: str, target: object, value: TensorValue, *, written: bool = True) -> object | None:
        """Return the number that an operation gives, of a tensor that it makes anew."""
        answer = self._call(kind, target, [value], {})
        assert isinstance(answer, TensorValue)
        of_torch = bool(self.frames.stack) and is_of_torch(self.frames.stack[-1].namespace)
        found = self.questions.answer(answer.node, written=written, of_torch=of_torch)
        if found is None:
            self.fx.erase_node(answer.node)
            self.by_fake.pop(id(answer.fake), None)
        return found

    def _may_ask(self, anywhere: bool) -> bool:
        plain = not (self.is_dry or self.attempt.graph_free or len(self.levels) > 1 or self.modes.overrides.modes)
        if not (plain and self.attempt.may_ask) or self.modes.changed - {"grad"} or self.warned:
            return False
        if anywhere or not self.frames.stack:
            return anywhere
        frame = self.frames.stack[-1]
        return stands_in_loop(frame.namespace, frame.decoded, frame.current())

    def assume(self, condition: Value, outcome: bool) -> bool:
        """Assume a truth value that only the graph can give; see CaptureContext."""
        if (
            not self.attempt.may_assume
            or self.is_dry
            or self.attempt.graph_free
            or len(self.levels) > 1
            or len(self.assumed) >= MOST
        ):
            return False
        if not isinstance(condition, TensorValue) or condition.fake.device.type != "cpu":
            return False
        if [size for size in condition.fake.shape if type(size) is not int or size != 1]:
            return False
        flag = self.call("call_function", torch.any, [condition], {})  # as it is now
        assert isinstance(flag, TensorValue)
        self.assumed.append((flag, outcome))
        return True

    def sees_finite_numbers(self) -> bool:
        """Return whether all inputs so far are finite, and results may be assumed to be; see GraphInProgress."""
        for node, (_, real) in self.placeholders.items():
            if node not in self._finite_inputs:
                self._finite_inputs[node] = not isinstance(real, torch.Tensor) or _is_finite(real)
        return self.attempt.all_finite and all(self._finite_inputs.values())

    def assume_no_warning(self, flags: Value, *, finite: bool = False) -> bool:
        """Assume that all flags are true; all assumptions of this kind are one; see CaptureContext."""
        self.assumes_finite = self.assumes_finite or finite
        condition = self.call("call_function", torch.all, [flags], {})
        if self.quiet_at is None:
            assumed = self.assume(condition, True)
            self.quiet_at = len(self.assumed) - 1 if assumed else None
            self.quiet = [(flags, condition)] if assumed else []
            return assumed
        known, _ = self.assumed[self.quiet_at]
        self.quiet.append((flags, condition))
        self.assumed[self.quiet_at] = self._both(known, condition), True
        return True

    def follows(self, flags: Value) -> None:
        """Take back what is assumed of flags: it follows from what was assumed last."""
        others = [pair for pair in self.quiet if pair[0] is not flags]
        if self.quiet_at is None or len(others) == len(self.quiet) or not others:
            return
        self.quiet = others
        known: Value = others[0][1]
        for _, condition in others[1:]:
            known = self._both(known, condition)
        assert isinstance(known, TensorValue)
        self.assumed[self.quiet_at] = known, True

    def _both(self, one: Value, other: Value) -> TensorValue:
        both = self.call("call_function", torch.logical_and, [one, other], {})
        assert isinstance(both, TensorValue)
        return both

    def assumes_only_no_warning(self) -> bool:
        """Return whether the only assumption is that NumPy would not warn."""
        return self.quiet_at is not None and len(self.assumed) == 1

    def rebound(self, tensor: Value) -> None:
        """Note that a tensor's value stands for another node now."""
        assert isinstance(tensor, TensorValue)
        self.by_fake[id(tensor.fake)] = tensor

    def inputs(self) -> list[TensorValue]:
        """Return the tensors from outside that were looked at so far."""
        return self.input_values

    def leaves(self) -> list[TensorValue]:
        """Return the tensors of the graph that may collect gradients, in the order they came in or were made."""
        values = {id(value): value for value in self.by_fake.values()}
        return [value for value in values.values() if is_gradient_leaf(value.fake)]

    def draws(self) -> Sequence[object]:
        """Return what operations so far draw random numbers from: a generator or a device for each of them."""
        return [drawn for event in self.happens.events for drawn in event.draws]

    def is_apart(self) -> bool:
        """Return whether a function is being evaluated in a graph of its own."""
        return len(self.levels) > 1

    def size_argument(self, value: Value) -> object:
        """Return the node that computes a symbolic size; under a transform the size as it is now, which is guarded."""
        read = self.is_dry and not self.handed.issuperset(self.sizes.open_numbers([value]))
        if read or not all(level.takes_numbers for level in self.levels[1:]):
            return value.constant()
        node = self.sizes.argument(value)
        if isinstance(node, fx.Node) and self.is_apart():
            node.meta.setdefault("val", value.symbol)  # type: ignore[attr-defined]  # only of a symbol there is a node
        return node

    def _fake_run(self, kind: str, target: object, args: list[object], kwargs: dict[str, object]) -> object:
        self.is_handled = self.is_handled or any(map(may_handle_errors, self.frames.stack))
        outer, self.fake_mode.watcher = self.fake_mode.watcher, self.happens.watch
        warned = len(self.frames.warned)
        try:
            function: Any = getattr(args[0], str(target)) if kind == "call_method" else target
            operands = args[1:] if kind == "call_method" else args
            with self.fake_mode, operation_warnings(self.warned, self.frames):
                if self.sizes.environment is not None:
                    result = call_with_dynamic_sizes(function, operands, kwargs)
                else:
                    result = function(*operands, **kwargs)
            if len(self.frames.warned) > warned and self.frames.stack:
                frame = self.frames.stack[-1]
                self.warned += warnings_in_c(self.frames.warned[warned:], frame, frame.line(), in_graph=True)
            if self.sizes.environment is not None and any(warning.names_symbols() for warning in self.warned):
                raise Break(SIDE_EFFECT_CALL, "an operation that warns, on symbolic sizes")
            return result
        except Break:
            raise
        except Exception as error:
            failure = fake_run_failure(error)
            name = target if isinstance(target, str) else getattr(target, "__name__", target)
            first = f"{type(error).__name__}: {error}".partition("\n")[0]
            if failure == "shape":
                raise Break(DATA_DEPENDENT_SHAPE, f"{name}") from None
            if failure == "value":
                raise Break(DATA_DEPENDENT_VALUE, f"{name}") from None
            raise Break(OPERATION_FAILED, f"{name}: {first}") from None
        finally:
            self.fake_mode.watcher = outer
            del self.frames.warned[warned:]  # those of shape rules are in other words than the operation's

    def _from_graph(self, result: object, node: fx.Node) -> Value:
        if isinstance(result, torch.Tensor):
            known = self.by_fake.get(id(result))
            if known is not None:
                node.meta.update(example_value=result, val=result)
                return known
            node.meta.update(example_value=result, val=result)
            kind = torch.nn.Parameter if isinstance(result, torch.nn.Parameter) else torch.Tensor
            if isinstance(result, FakeTensor):
                result.constant = None  # a write to a list of tensors would not tell: known inside a call alone
            tensor = TensorValue(node, result, kind)
            self.by_fake[id(result)] = tensor
            return tensor
        if isinstance(result, tuple | list):
            node.meta.update(example_value=result, val=result)
            items: list[Value] = []
            for position, item in enumerate(result):
                items.append(self._part(node, position, item))
            return ListValue(items) if isinstance(result, list) else TupleValue(items, kind=type(result))
        if type(result) is dict:
            node.meta.update(example_value=result, val=result)
            pairs = [(self.ctx.known(key), self._part(node, key, item)) for key, item in result.items()]
            return DictValue.of(self.ctx, pairs)
        if result is None:
            return Constant(None)
        raise Break(TORCH_CALL_FORM, f"{node.target} gives a {type(result).__name__}")

    def _part(self, node: fx.Node, key: Any, item: object) -> Value:
        """Return the value of a part of what a node gives."""
        if not _has_tensor(item) and not isinstance(item, ResultFunction):
            return self.ctx.known(item)
        part = self.fx.call_function(operator.getitem, (node, key))
        part.meta["origin"] = node.meta["origin"]
        return PullBack(part, item.call) if isinstance(item, ResultFunction) else self._from_graph(item, part)

    def storage_pattern(self) -> tuple[int, ...]:
        """Return which inputs share storage."""
        return storage_pattern(*(value.real for value in self.input_values if value.real is not None))

    def add_change(self, change: Callable[..., object], args: tuple[object, ...] = ()) -> None:
        """Add a call that changes a setting of torch and gives nothing."""
        constants: Any = args  # flags, dtypes and device names
        node = self.fx.call_function(change, constants)
        node.meta["origin"] = self.frames.here()


def _twin(mode: WatchedFakeMode, value: torch.Tensor) -> torch.Tensor:
    """Return the fake twin of an input; torch's own check refuses some views whose base took a history later."""
    try:
        return make_fake(mode, value)
    except AssertionError as error:
        raise Break(UNSUPPORTED_TENSOR, "a view that cannot be rebuilt with its history") from error


def _repeats_elements(value: object) -> bool:
    """Return whether a tensor was expanded: several of its elements are one in memory."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_inference():
        return False
    return any(
        type(stride) is int and stride == 0 and (type(size) is not int or size > 1)
        for size, stride in zip(value.shape, value.stride(), strict=True)
    )


def _is_finite(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has finite numbers alone; asked of CPU tensors, whose data is at hand."""
    if not tensor.dtype.is_floating_point:
        return not tensor.dtype.is_complex
    with without_transforms():
        return tensor.device.type == "cpu" and bool(torch.isfinite(tensor.detach()).all())


def _version(value: TensorValue) -> int:
    """Return how often the input was changed; inference tensors do not count."""
    return 0 if value.fake.is_inference() else value.fake._version


def _ages(tensors: Sequence[torch.Tensor]) -> list[int]:
    return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


def _written_among(tensors: Sequence[torch.Tensor], ages: Sequence[int] | None, noted: set[int]) -> set[int] | None:
    """Return the storages of the operands that an operation has written to, None if it wrote to none.

    ages: versions before it ran, None where it writes and does not count.  noted: storages that its parts write to.
    """
    pairs = zip(tensors, ages, _ages(tensors), strict=True) if ages is not None else ()
    wrote = list(tensors) if ages is None else [tensor for tensor, old, new in pairs if old != new]
    keys = storages_of(wrote)
    keys |= noted & _own_storages(tensors) if noted else set()  # some parts count no version
    return keys if wrote or keys else None


def _own_storages(values: Iterable[object]) -> set[int]:
    """Return the storages of tensors, of those under a transform too."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    pairs = [(unwrapped(tensor), tensor) for tensor in tensors]
    return storages_of([tensor if inner is None else inner for inner, tensor in pairs])


def _shapes_and_versions(outputs: object) -> list[tuple[tuple[Any, ...], int]]:
    """Return the shapes of what was passed as `out=`, and how often it was changed: a tensor, several, or None."""
    several = outputs if isinstance(outputs, tuple | list) else (outputs,)
    tensors = [output for output in several if isinstance(output, torch.Tensor) and not output.is_inference()]
    return [(tuple(tensor.shape), tensor._version) for tensor in tensors]


def _has_tensor(value: object) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves(value))
