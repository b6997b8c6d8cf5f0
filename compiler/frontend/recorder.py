"""The capture in progress: owns the graph, the guards and the side effects; the context that values talk to."""

import builtins
import inspect
import math
import operator
import re
import sys
import types
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import fx

from ..base.options import Options
from ..base.origin import Origin
from ..base.torch_facts import (
    FakeTensorMode,
    any_autocast_enabled,
    enable_python_dispatcher,
    expression_text,
    fake_run_failure,
    function_mode_depth,
    make_fake,
    make_shape_environment,
    make_symbolic_fake,
    make_symbolic_number,
    outside_transforms,
    size_conditions,
    size_expression,
    without_transforms,
)
from ..bytecode.instruction import decode
from ..values.constant import LITERAL_TYPES, Constant, Known, MethodOf, call_rule
from ..values.functions import CellValue, FunctionValue, bind_arguments, require_inlinable
from ..values.guard import Guard, Kind, TensorFacts, storage_pattern
from ..values.mappings import DictValue, SetValue
from ..values.objects import (
    ClassValue,
    ExceptionValue,
    ObjectValue,
    OpaqueValue,
    bind_raw,
    class_lookup,
)
from ..values.operators import compare, equal, unpack
from ..values.reasons import (
    AUTOGRAD_CALL,
    DATA_DEPENDENT_SHAPE,
    DATA_DEPENDENT_VALUE,
    DISABLED,
    LIMIT,
    OPERATION_FAILED,
    UNKNOWN_CALLEE,
    UNSUPPORTED_OPERATION,
    UNSUPPORTED_TENSOR,
    Break,
    SkipFrame,
)
from ..values.scalar import SizeValue
from ..values.sequences import ListValue, TupleValue, tuple_fields
from ..values.source import Injected, Item, Source
from ..values.tensor import TensorValue
from ..values.torch_calls import to_graph
from ..values.value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value
from ..values.wrap import wrap_object
from .frame import FrameState
from .skip_rules import compiled_original, refusal

_SHARED = (ListValue, DictValue, SetValue, ObjectValue, TensorValue, CellValue, FunctionValue, OpaqueValue)
_UNTOUCHED = object()

SymbolicDimensions = Callable[[torch.Tensor, Source], frozenset[int]]
RunFrame = Callable[["Recorder", FrameState], None]
MakeGenerator = Callable[["Recorder", FrameState], Value]


@dataclass(frozen=True, slots=True, eq=False)
class SymbolOrigin:
    """Where a symbol comes from: a size of an input (tensor, number: the dimension) or a whole number (its value)."""

    source: Source
    suffix: str
    tensor: fx.Node | None
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A graph under construction. lifted: node of the next outer graph -> the placeholder that stands for it here."""

    graph: fx.Graph
    lifted: dict[fx.Node, fx.Node]


class LazyValue(Value):
    """A value from outside that nothing has looked at: not wrapped, not guarded."""

    def __init__(self, ctx: "Recorder", raw: object, source: Source) -> None:
        self.ctx = ctx
        self.raw = raw
        self.source = source
        self.inner: Value | None = None

    def realize(self) -> Value:
        """Return the value, wrapped on first use."""
        if self.inner is None:
            assert self.source is not None
            self.inner = self.ctx.wrap(self.raw, self.source)
        return self.inner

    def python_type(self) -> type:
        """Return the type, guarding it."""
        return self.realize().python_type()

    def describe(self) -> str:
        """Return the description of what is there."""
        return self.realize().describe()

    def is_constant(self) -> bool:
        """Ask the value."""
        return self.realize().is_constant()

    def constant(self) -> object:
        """Ask the value."""
        return self.realize().constant()

    def identity(self) -> object:
        """Ask the value."""
        return self.realize().identity()

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Ask the value."""
        return self.realize().hash_token(ctx)

    def rebuild(self, out: Rebuilder) -> str:
        """Ask the value."""
        return out.value(self.realize())


class Recorder(CaptureContext):
    """One capture."""

    def __init__(
        self, options: Options, run_frame: RunFrame, make_generator: MakeGenerator, symbolic: SymbolicDimensions
    ) -> None:
        self.options = options
        self.symbolic = symbolic
        self.shape_env = make_shape_environment() if symbolic is not no_symbols else None
        self.symbols: dict[str, SymbolOrigin] = {}  # name of a symbol -> where it comes from
        self.numbers: dict[Source, Value] = {}
        self.placeholders: dict[fx.Node, tuple[Source, object]] = {}  # inputs of the graph, as (source, real)
        self.varying_numbers: frozenset[Source] = frozenset()
        self.size_nodes: dict[str, object] = {}
        self.run_frame = run_frame
        self.make_generator = make_generator
        self.graph = fx.Graph()
        self.levels = [Level(self.graph, {})]  # the graph, then those of functions under torch.func transforms
        self.fake_mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.shape_env)
        self.guards: list[Guard] = []
        self.guard_keys: set[object] = set()
        self.shared: dict[int, Value] = {}
        self.alive: list[object] = []  # keeps the ids of `shared` and `by_fake` unique
        self.inputs: list[TensorValue] = []
        self.by_fake: dict[int, TensorValue] = {}
        self.effects: list[Value] = []
        self.globals: dict[tuple[int, str], Value | None] = {}
        self.written_globals: dict[tuple[int, str], tuple[dict[str, object], str]] = {}
        self.frames: list[FrameState] = []
        self.steps = 0
        self.root_step = 0
        self.stop_at = -1
        self.graph_free = False
        self.nesting = 0  # autocast blocks entered and not left
        self.changed_states: set[str] = set()
        self.mutates_inputs = False
        self.autocast_at_entry = autocast_state()
        self.guard_global_state()

    # --- guards and values from outside

    def guard_global_state(self) -> None:
        """Hold the global state of torch that captured code may read or that changes what operations do."""
        for function in (
            torch.is_grad_enabled, torch.is_inference_mode_enabled, torch.get_default_dtype,
            any_autocast_enabled, function_mode_depth,
            torch.are_deterministic_algorithms_enabled,
        ):
            self.guard(None, Kind.STATE, (function, function()))
        self.guard(None, Kind.STATE, (outside_transforms, True))
        if any_autocast_enabled():
            self.guard(None, Kind.STATE, (autocast_state, autocast_state()))

    def guard(self, source: Source | None, kind: Kind, expected: object, others: tuple[Source, ...] = ()) -> None:
        """Demand a condition at entry, once; identities of injected objects hold by construction."""
        if isinstance(source, Injected) and _holds_by_construction(source.value, kind):
            return
        guard = Guard(source, kind, expected, self.here(), others)
        key = (guard.key(), others)
        if key not in self.guard_keys:
            self.guard_keys.add(key)
            self.guards.append(guard)

    def here(self) -> Origin | None:
        """Return the innermost user line, without its callers."""
        if not self.frames:
            return None
        frame = self.frames[-1]
        code = frame.decoded.code
        return Origin(code.co_filename, frame.current().line or code.co_firstlineno, code.co_name)

    def wrap(self, value: object, source: Source) -> Value:
        """Return the value of a real object; one object has one value, however it is reached."""
        if type(value) is int and source in self.varying_numbers:
            return self._number(value, source)
        known = self.shared.get(id(value))
        if known is not None:
            if known.source is not None and known.source != source and not isinstance(known.source, Injected):
                self.guard(source, Kind.SAME_AS, id(value), (known.source,))
            elif isinstance(known.source, Injected) and not isinstance(source, Injected):
                self.guard(source, Kind.IDENTITY, value)
            return known
        made = self._input(value, source) if isinstance(value, torch.Tensor) else wrap_object(self, value, source)
        if isinstance(made, _SHARED):
            self.shared[id(value)] = made
            self.alive.append(value)
        return made

    def lazy(self, value: object, source: Source) -> Value:
        """Return a value that is wrapped on first use."""
        known = self.shared.get(id(value))
        if known is not None and known.source == source:
            return known
        return LazyValue(self, value, source)

    def real(self, value: Value) -> Value:
        """Return the value itself."""
        return value.realize() if isinstance(value, LazyValue) else value

    def _input(self, value: torch.Tensor, source: Source) -> Value:
        kind = type(value)
        plain = kind is torch.Tensor or kind is torch.nn.Parameter or kind is getattr(torch.nn, "Buffer", None)
        if not plain or value.layout is not torch.strided or value.is_quantized or value.is_nested:
            self.guard(source, Kind.TYPE, kind)
            raise Break(UNSUPPORTED_TENSOR, f"an input of type {kind.__name__}, layout {value.layout}")
        bits = (value.is_conj(), value.is_neg(), value.is_inference())
        varying = self._varying(value, source)
        shape = tuple(None if index in varying else size for index, size in enumerate(value.shape))
        strides = (None,) * value.dim() if varying else tuple(value.stride())
        facts = TensorFacts(
            kind, value.dtype, value.device, shape, strides, value.requires_grad, bits, value.is_leaf
        )
        self.guard(source, Kind.TENSOR, facts)
        if varying:
            self.guard(source, Kind.EXPRESSION, "{0}.is_contiguous() and {0}.storage_offset() == 0")
        with without_transforms():
            fake = make_symbolic_fake(self.fake_mode, value, varying) if varying else make_fake(self.fake_mode, value)
        node = self.levels[0].graph.placeholder(f"input_{len(self.inputs)}")
        node.meta.update(example_value=fake, val=fake, source=source.words(), origin=self.here())
        made = TensorValue(node, fake, kind, source, value)
        self.inputs.append(made)
        self.by_fake[id(fake)] = made
        self.placeholders[node] = (source, value)
        for index in varying:
            name = str(size_expression(fake.shape[index]))
            self.symbols[name] = SymbolOrigin(source, f".shape[{index}]", node, index)
        return made

    def _number(self, value: int, source: Source) -> Value:
        """Return the symbol of a whole number that has changed between calls."""
        if source not in self.numbers:
            assert self.shape_env is not None
            self.guard(source, Kind.TYPE, int)
            symbol = make_symbolic_number(self.shape_env, value, f"number_{len(self.numbers)}")
            self.symbols[str(size_expression(symbol))] = SymbolOrigin(source, "", None, value)
            self.numbers[source] = _size_value(symbol)
        return self.numbers[source]

    def _symbol_node(self, origin: "SymbolOrigin") -> fx.Node:
        """Return the node that gives a symbol: the size of an input, or an input of its own."""
        if origin.tensor is not None:
            return self.levels[0].graph.call_method("size", (origin.tensor, origin.number))
        node = self.levels[0].graph.placeholder(f"number_{len(self.placeholders)}")
        node.meta.update(example_value=origin.number, val=origin.number, source=origin.source.words())
        self.placeholders[node] = (origin.source, origin.number)
        return node

    def _varying(self, value: torch.Tensor, source: Source) -> frozenset[int]:
        """Return the dimensions of an input that are to be symbols; 0 and 1 never are."""
        if self.shape_env is None or not value.is_contiguous() or value.storage_offset() or not value.dim():
            return frozenset()
        wanted = self.symbolic(value, source)
        return frozenset(index for index in wanted if value.shape[index] > 1)

    def size_argument(self, value: Value) -> object:
        """Return the node that computes a symbolic size."""
        assert isinstance(value, SizeValue)
        made = self._size_node(size_expression(value.symbol))
        return value.constant() if made is None else made

    def _size_node(self, expression: Any) -> Any:
        """Return the node of an expression, None if it is made of something that has no node."""
        text = str(expression)
        if text in self.size_nodes:
            return self.size_nodes[text]
        if expression.is_Integer:
            return int(expression)
        operation = _SIZE_OPERATIONS.get(type(expression).__name__)
        if text in self.symbols:
            made: Any = self._symbol_node(self.symbols[text])
        elif operation is None:
            return None
        else:
            parts = [self._size_node(part) for part in expression.args]
            if not any(part is None for part in parts) and operation in (float, math.sqrt):
                return self.levels[0].graph.call_function(operation, tuple(parts))
            if any(part is None for part in parts):
                return None
            made = parts[0]
            for part in parts[1:]:
                made = self.levels[0].graph.call_function(operation, (made, part))
        if isinstance(made, fx.Node):
            made.meta["origin"] = self.here()
        self.size_nodes[text] = made
        return made

    def size_guards(self) -> list[Guard]:
        """Return the guards on symbolic sizes that the capture relied on."""
        if self.shape_env is None:
            return []
        guards: list[Guard] = []
        for condition in size_conditions(self.shape_env):
            text, sources = self.size_text(condition)
            guards.append(Guard(None, Kind.EXPRESSION, text, None, sources))
        return guards

    def size_text(self, expression: Any) -> tuple[str, tuple[Source, ...]]:
        """Return Python text with places {1}, {2}, ... for the inputs that give the sizes, and their sources."""
        text = expression_text(expression).replace("{", "{{").replace("}", "}}")
        sources: list[Source] = []
        for name in sorted((str(symbol) for symbol in expression.free_symbols), key=len, reverse=True):
            origin = self.symbols[name]
            if origin.source not in sources:
                sources.append(origin.source)
            place = f"{{{sources.index(origin.source) + 1}}}{origin.suffix}"
            text = re.sub(rf"\b{name}\b", place, text)
        return text, tuple(sources)

    def known(self, value: object) -> Value:
        """Return the value of an object computed while evaluating."""
        kind = type(value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return _size_value(value)
        if kind in LITERAL_TYPES:
            return Constant(value)
        if kind is slice:
            return Constant(value)
        if kind is list:
            return ListValue([self.known(item) for item in value])  # type: ignore[attr-defined]  # a list
        if isinstance(value, tuple):
            return TupleValue([self.known(item) for item in value], kind=kind)
        if kind is dict:
            pairs = value.items()  # type: ignore[attr-defined]  # a dict
            return DictValue.of(self, [(self.known(key), self.known(item)) for key, item in pairs])
        if kind in (set, frozenset):
            members = list(value)  # type: ignore[call-overload]  # sets iterate
            return SetValue.of(self, [self.known(item) for item in members], kind)
        if isinstance(value, type):
            return ClassValue(value)
        if isinstance(value, torch.Tensor):
            raise Break(UNSUPPORTED_TENSOR, "a tensor computed while capturing")
        if isinstance(value, torch.device | torch.dtype | types.ModuleType | types.CodeType):
            return Known(value)
        return self.wrap(value, Injected(value))

    # --- calls

    def call(self, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call."""
        return self.real(self.real(callee).call(self, args, kwargs))

    def inline(self, function: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the body of a function, or return the generator over it."""
        assert isinstance(function, FunctionValue)
        if function.real is not None:
            original = compiled_original(function.real)
            if original is not None:
                self._require_identity(function)
                return self.call(self.wrap(original, Injected(original)), args, kwargs)
            rule = call_rule(function.real)
            if rule is not None:
                self._require_identity(function)
                return rule(self, args, kwargs)
            if getattr(function.real, "_plumbline_constant", False):
                return Constant(True)
            refused = refusal(function.real)
            if refused is not None:
                raise refused
        code = function.code
        if self.graph_free and len(self.frames) == 1:
            raise Break(DISABLED, f"a call in {self.frames[0].decoded.code.co_name}, which is not compiled")
        require_inlinable(code)
        if len(self.frames) > self.options.inline_depth_limit:
            raise Break(LIMIT, f"more than inline_depth_limit={self.options.inline_depth_limit} nested calls")
        bound = bind_arguments(self, function, args, kwargs)
        frame = self.new_frame(function, bound)
        if code.co_flags & inspect.CO_GENERATOR:
            return self.make_generator(self, frame)
        self.run_frame(self, frame)
        assert frame.returned is not None
        return frame.returned

    def _require_identity(self, function: FunctionValue) -> None:
        """Demand this very function: what is known of it is known of the object, not of its code."""
        if function.source is not None:
            self.guard(function.source, Kind.IDENTITY, function.real)

    def new_frame(self, function: FunctionValue, bound: dict[str, Value]) -> FrameState:
        """Return a frame at the start of the function."""
        parent = self.frames[-1] if self.frames else None
        return FrameState(
            self, decode(function.code), function.namespace, bound, {}, parent, free_cells=list(function.cells)
        )

    def suspendable(self, function: Value, code: types.CodeType, args: dict[str, Value]) -> Value:
        """Return a generator over a frame of the function."""
        assert isinstance(function, FunctionValue)
        return self.make_generator(self, self.new_frame(function, args))

    def throw(self, kind: type[BaseException], *args: object) -> NoReturn:
        """Raise an exception in the evaluated program."""
        raise Raised(ExceptionValue(kind, [self.known(arg) for arg in args]))

    def needs_own_frame(self, what: str) -> NoReturn:
        """Run the root frame eagerly; a called function becomes a unit of its own first, which does the same."""
        if len(self.frames) > 1:
            raise Break(UNSUPPORTED_OPERATION, what)
        raise SkipFrame(UNSUPPORTED_OPERATION, what)

    def equal(self, left: Value, right: Value) -> bool:
        """Evaluate `left is right or left == right`."""
        return equal(self, left, right)

    def less(self, left: Value, right: Value) -> bool:
        """Evaluate `left < right`."""
        return self.real(compare(self, "<", left, right)).truth(self)

    def unpack(self, value: Value) -> list[Value]:
        """Evaluate `list(value)`."""
        return unpack(self, value)

    def class_attr(self, instance: Value, kind: type, name: str) -> Value:
        """Evaluate the part of an attribute lookup that looks into the class."""
        owner, raw = class_lookup(kind, name)
        if owner is None:
            self.throw(AttributeError, f"'{kind.__name__}' object has no attribute '{name}'")
        if isinstance(raw, types.FunctionType | property | classmethod | staticmethod):
            return bind_raw(self, raw, owner, name, instance, kind)
        if name in tuple_fields(kind) or not callable(raw):
            return self.known(raw)
        return MethodOf(instance, name)

    def calling_class_cell(self) -> tuple[Value, Value]:
        """Return what zero-argument super() reads."""
        frame = self.frames[-1]
        cell = frame.cells.get("__class__")
        first = frame.decoded.code.co_varnames[0]
        owner = frame.locals.get(first) or (frame.cells[first].content if first in frame.cells else None)
        if cell is None or owner is None:
            self.throw(RuntimeError, "super(): no arguments")
        return cell.load(self, "__class__"), owner

    # --- effects

    def mutated(self, value: Value) -> None:
        """Note the first change of an object from outside."""
        if value.source is not None and not any(value is seen for seen in self.effects):
            self.effects.append(value)

    def global_value(self, namespace: dict[str, object], name: str) -> Value:
        """Evaluate a global name."""
        key = (id(namespace), name)
        found = self.globals.get(key, _UNTOUCHED)
        if found is None:
            self.throw(NameError, f"name '{name}' is not defined")
        if isinstance(found, Value):
            return self.real(found)
        self.alive.append(namespace)
        place: Source = Item(Injected(namespace), name)
        if name in namespace:
            value = namespace[name]
        else:
            self.guard(Injected(namespace), Kind.LACKS_KEY, name)
            if name not in vars(builtins):
                self.throw(NameError, f"name '{name}' is not defined")
            value, place = vars(builtins)[name], Item(Injected(vars(builtins)), name)
        if isinstance(value, types.FunctionType):
            self.guard(place, Kind.IDENTITY, value)
            place = Injected(value)
        self.globals[key] = made = self.wrap(value, place)
        return made

    def set_global(self, namespace: dict[str, object], name: str, value: Value | None) -> None:
        """Assign or delete a global; replayed after the graph."""
        key = (id(namespace), name)
        if value is None and self.globals.get(key, _UNTOUCHED) is _UNTOUCHED and name not in namespace:
            self.throw(NameError, f"name '{name}' is not defined")
        self.alive.append(namespace)
        self.globals[key] = value
        self.written_globals[key] = (namespace, name)

    def set_state(self, name: str, setter: Callable[..., object], args: tuple[object, ...]) -> None:
        """Change a global state of torch now, for what is captured next, and in the graph."""
        setter(*args)
        self.nesting += int(setter is torch.autocast_increment_nesting)
        self.nesting -= int(setter is torch.autocast_decrement_nesting)
        constants: Any = args  # flags, dtypes and device names
        node = self.graph.call_function(setter, constants)
        node.meta["origin"] = self.here()
        self.changed_states.add(name)

    # --- the graph

    def call_torch(self, kind: str, target: object, args: Arguments, kwargs: Keywords) -> Value:
        """Run an operation on fake tensors and add it to the graph if it gives or changes tensors."""
        if self.graph_free:
            raise Break(DISABLED, f"an operation in {self.frames[0].decoded.code.co_name}, which is not compiled")
        pairs = [to_graph(self, arg) for arg in args]
        named = {name: to_graph(self, value) for name, value in kwargs.items()}
        fake_args = [fake for _, fake in pairs]
        fake_kwargs = {name: fake for name, (_, fake) in named.items()}
        versions = [_version(value) for value in self.inputs]
        result = self._fake_run(kind, target, fake_args, fake_kwargs)
        if any(_version(value) != old for value, old in zip(self.inputs, versions, strict=True)):
            self.mutates_inputs = True
        if target is torch.nn.functional.batch_norm or target is torch.nn.functional.instance_norm:
            self.mutates_inputs = True  # running statistics change without a trace on fake tensors
        if not _has_tensor(result) and result is not None:
            return self.known(result)
        positional: Any = tuple(node for node, _ in pairs)  # what graphs carry: to_graph saw to it
        keywords: Any = {name: node for name, (node, _) in named.items()}
        operation: Any = target
        if len(self.levels) > 1:
            positional, keywords = fx.map_arg((positional, keywords), self._carried)
        node = self.graph.create_node(kind, operation, positional, keywords)
        node.meta["origin"] = self.frames[-1].origin() if self.frames else None
        return self._from_graph(result, node)

    def fake_run(
        self, run: Callable[..., object], args: list[object], kwargs: dict[str, object], what: str
    ) -> object:
        """Run a Python function over fake tensors."""
        run.__name__ = what
        return self._fake_run("call_function", run, args, kwargs)

    def add_call(self, target: Callable[..., object], args: tuple[object, ...], result: object) -> Value:
        """Add a call whose result on fake tensors is known."""
        given: Any = args  # what graphs carry: to_graph saw to it
        node = self.graph.call_function(target, fx.map_arg(given, self._carried))
        node.meta["origin"] = self.frames[-1].origin() if self.frames else None
        return self._from_graph(result, node)

    def evaluate_apart(
        self, function: Value, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[object, fx.GraphModule, tuple[fx.Node, ...]]:
        """Evaluate a call on fake tensors in a graph of its own; see CaptureContext."""
        level = Level(fx.Graph(), {})
        effects, states, globals_before = len(self.effects), set(self.changed_states), len(self.written_globals)
        self.levels.append(level)
        self.graph = level.graph
        try:
            values = [self._entering(arg) for arg in args]
            named = {name: self._entering(value) for name, value in kwargs.items()}
            nodes, fakes = to_graph(self, self.call(function, values, named))
            if len(self.effects) > effects or len(self.written_globals) > globals_before:
                raise Break(UNKNOWN_CALLEE, f"{function.describe()} changes something outside, under a transform")
            if self.changed_states != states:
                raise Break(UNKNOWN_CALLEE, f"{function.describe()} changes a global state, under a transform")
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
            return TupleValue([self._entering(item) for item in value])
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
            raise Break(UNSUPPORTED_OPERATION, "a tensor that has left the transform it was made under")
        outer = self._carried(node, depth - 1)
        if outer not in level.lifted:
            level.lifted[outer] = level.graph.placeholder(f"lifted_{len(level.lifted)}")
            level.lifted[outer].meta.update(outer.meta)
        return level.lifted[outer]

    def evaluate_dry(self, evaluate: Callable[[], None], what: str) -> None:
        """Evaluate for the guards; drop the operations; refuse effects."""
        before, effects, globals_before = set(self.graph.nodes), len(self.effects), len(self.written_globals)
        states = set(self.changed_states)
        evaluate()
        if len(self.effects) > effects or len(self.written_globals) > globals_before or self.changed_states != states:
            raise Break(AUTOGRAD_CALL, f"{what} changes something outside")
        kept = {*self.placeholders, *self.levels[-1].lifted.values()}
        for node in reversed(list(self.graph.nodes)):
            if node not in before and node not in kept:
                self.size_nodes = {text: made for text, made in self.size_nodes.items() if made is not node}
                self.graph.erase_node(node)

    def _fake_run(
        self, kind: str, target: object, args: list[object], kwargs: dict[str, object]
    ) -> object:
        try:
            with self.fake_mode, enable_python_dispatcher() if self.shape_env is not None else nullcontext():
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
                if not _has_tensor(item):
                    items.append(self.known(item))
                    continue
                part = self.graph.call_function(operator.getitem, (node, position))
                part.meta["origin"] = node.meta["origin"]
                items.append(self._from_graph(item, part))
            return ListValue(items) if isinstance(result, list) else TupleValue(items, kind=type(result))
        if result is None:
            return Constant(None)
        raise Break(UNSUPPORTED_OPERATION, f"{node.target} gives a {type(result).__name__}")

    def storage_pattern(self) -> tuple[int, ...]:
        """Return which inputs share storage."""
        return storage_pattern(*(value.real for value in self.inputs if value.real is not None))

    def restore_autocast(self) -> None:
        """Put autocast back to what it was at entry: capture leaves no trace on the thread."""
        if "autocast" not in self.changed_states:
            return
        cpu, cpu_dtype, cuda, cuda_dtype, cache = self.autocast_at_entry
        for device, enabled, dtype in (("cpu", cpu, cpu_dtype), ("cuda", cuda, cuda_dtype)):
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(cache)
        for _ in range(self.nesting):
            torch.autocast_decrement_nesting()
        torch.clear_autocast_cache()

    def autocast_changed(self) -> bool:
        """Return whether autocast is not as it was at entry."""
        return self.autocast_at_entry != autocast_state()

    def step(self) -> None:
        """Count an instruction; raise when the capture grew too long."""
        self.steps += 1
        if self.steps > self.options.instruction_limit:
            raise SkipFrame(LIMIT, f"more than instruction_limit={self.options.instruction_limit} instructions")


_SIZE_OPERATIONS: dict[str, Callable[..., object]] = {
    "Add": operator.add, "Mul": operator.mul, "FloorDiv": operator.floordiv, "CleanDiv": operator.floordiv,
    "Mod": operator.mod, "PythonMod": operator.mod, "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv, "OpaqueUnaryFn_sqrt": math.sqrt, "ToFloat": float,
}


def _size_value(value: torch.SymInt | torch.SymFloat | torch.SymBool) -> Value:
    """Return the value of a symbol; one that is known by now becomes a constant."""
    kind = int if isinstance(value, torch.SymInt) else float if isinstance(value, torch.SymFloat) else bool
    expression = size_expression(value)
    if expression.is_number or expression in (True, False):
        number: Any = value
        return Constant(kind(number))
    return SizeValue(value, kind)


def no_symbols(value: torch.Tensor, source: Source) -> frozenset[int]:
    """Say that no dimension of any input is a symbol."""
    del value, source
    return frozenset()


def _version(value: TensorValue) -> int:
    """Return how often the input was changed; inference tensors do not count."""
    return 0 if value.fake.is_inference() else value.fake._version


def _holds_by_construction(value: object, kind: Kind) -> bool:
    """Return whether a condition on an injected object can never change."""
    if kind is Kind.CODE:  # a user may replace the code of a function; torch and the standard library do not
        root = str(getattr(value, "__module__", "")).partition(".")[0]
        return root == "torch" or (root in sys.stdlib_module_names and root != "__main__")
    return kind in (Kind.TYPE, Kind.IDENTITY) or (kind is Kind.LENGTH and isinstance(value, tuple))


def _has_tensor(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if isinstance(value, tuple | list):
        return any(_has_tensor(item) for item in value)
    if isinstance(value, dict):
        return any(_has_tensor(item) for item in value.values())
    return False


def autocast_state() -> tuple[bool, torch.dtype, bool, torch.dtype, bool]:
    """Return what autocast does now, on the devices that have a kernel for it here."""
    return (
        torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cuda"), torch.is_autocast_cache_enabled(),
    )

