"""The capture in progress: owns the graph, the guards and the side effects; the context that values talk to."""

import builtins
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

from ..base.dense_order import dense_order
from ..base.options import Options
from ..base.origin import Origin
from ..base.torch_facts import (
    any_autocast_enabled,
    function_mode_depth,
    make_fake,
    make_symbolic_fake,
    outside_transforms,
    set_grad_mode,
    without_transforms,
)
from ..bytecode.instruction import decode
from ..values.constant import LITERAL_TYPES, Constant, Known, MethodOf
from ..values.guard import Guard, GuardKind, TensorFacts
from ..values.python.containers.lists import ListValue
from ..values.python.containers.mappings import DictValue
from ..values.python.containers.sets import SetValue
from ..values.python.containers.tuples import TupleValue, tuple_fields
from ..values.python.objects.attributes import CAPTURED_CLASSES, bind_raw, class_lookup
from ..values.python.objects.classes import ClassValue
from ..values.python.objects.exceptions import ExceptionValue
from ..values.python.objects.functions import CellValue, FunctionValue, bind_arguments, require_inlinable
from ..values.python.objects.instances import ObjectValue, OpaqueValue
from ..values.python.operators import compare, equal
from ..values.reasons import DISABLED, FRAME_ACCESS, LIMIT, UNSUPPORTED_TENSOR, Break, SkipFrame
from ..values.rule_tables import CallRule
from ..values.rules import call_rule
from ..values.source import Attribute, Injected, Item, Source
from ..values.torch.tensor import TensorValue
from ..values.torch.torch_calls import is_graph_break_mark
from ..values.value import Arguments, Keywords, Raised, Value
from ..values.wrap import wrap_object
from .autocast import autocast_depth, autocast_state, put_autocast
from .frame import FrameState, handled_in
from .graph_building import GraphBuilding
from .kept_generators import revived
from .lazy import LazyValue
from .sizes import LARGE, SymbolicDimensions, size_value, stride_text
from .skip_rules import compiled_original, is_torch_file, refusal

_SHARED = (ListValue, TupleValue, DictValue, SetValue, ObjectValue, TensorValue, CellValue, FunctionValue, OpaqueValue)
_UNTOUCHED = object()
_BREAKS_FOR_STOCK = ("torch.optim.optimizer",)  # its graph_break() is for the speed of stock's own code

RunFrame = Callable[["Recorder", FrameState], None]
MakeGenerator = Callable[["Recorder", FrameState], Value]


class Recorder(GraphBuilding):
    """One capture."""

    def __init__(
        self, options: Options, run_frame: RunFrame, make_generator: MakeGenerator, symbolic: SymbolicDimensions
    ) -> None:
        super().__init__(symbolic)
        self.options = options
        self.run_frame = run_frame
        self.make_generator = make_generator
        self.guards: list[Guard] = []
        self.guard_keys: set[object] = set()
        self.shared: dict[int, Value] = {}
        self.alive: list[object] = []  # keeps the ids of `shared` and `by_fake` unique
        self.globals: dict[tuple[int, str], Value | None] = {}
        self.entered: list[FrameState] = []  # the frames that the unit goes on with
        self.steps = 0
        self.class_changes = {}
        self.hashed: dict[int, Value] = {}  # objects from outside that were told apart by identity
        self.stop_at = -1
        self.stopped_by: BaseException | None = None  # the last Break or SkipFrame, and the frames it came from
        self.stopped: tuple[FrameState, ...] = ()
        self.instead: Value | None = None  # it pushes this for what the callee returns
        self.pushed: Value | None = None  # the running instruction pushes what a call of this gives, nothing else
        self.grad_at_entry = torch.is_grad_enabled()
        self.autocast_at_entry, self.autocast_depth_at_entry = autocast_state(), autocast_depth()
        self.guard_global_state()

    # --- guards and values from outside

    def guard_global_state(self) -> None:
        """Hold the global state of torch that captured code may read or that changes what operations do."""
        for function in (
            torch.is_grad_enabled,
            torch.is_inference_mode_enabled,
            torch.get_default_dtype,
            any_autocast_enabled,
            function_mode_depth,
            torch.are_deterministic_algorithms_enabled,
        ):
            self.guard(None, GuardKind.STATE, (function, function()))
        self.guard(None, GuardKind.STATE, (outside_transforms, True))
        if function_mode_depth():
            self.guard(None, GuardKind.STATE, (torch.get_default_device, torch.get_default_device()))
        if any_autocast_enabled():
            self.guard(None, GuardKind.STATE, (autocast_state, autocast_state()))

    def user_line(self) -> Origin | None:
        """Return the innermost line that is not torch's own."""
        outside = (frame for frame in reversed(self.frames) if not is_torch_file(frame.decoded.code.co_filename))
        frame = next(outside, None)
        if frame is None:
            return self.here()
        code = frame.decoded.code
        return Origin(code.co_filename, frame.current().line or code.co_firstlineno, code.co_name)

    def guard(self, source: Source | None, kind: GuardKind, expected: object, others: tuple[Source, ...] = ()) -> None:
        """Demand a condition at entry, once; identities of injected objects hold by construction."""
        if isinstance(source, Injected) and _holds_by_construction(source.value, kind):
            return
        if CAPTURED_CLASSES and source is not None and _of_captured_class(source):
            return
        guard = Guard(source, kind, expected, self.user_line(), others)
        key = (guard.key(), others)
        if key not in self.guard_keys:
            self.guard_keys.add(key)
            self.guards.append(guard)

    def wrap(self, value: object, source: Source) -> Value:
        """Return the value of a real object; one object has one value, however it is reached."""
        if isinstance(value, int | float) and self.sizes.is_open_number(value, source):
            self.guard(source, GuardKind.TYPE, type(value))
            if type(value) is float:  # arithmetic of symbols knows no NaN and no sign of zero
                self.guard(source, GuardKind.EXPRESSION, f"0 < abs({{0}}) < {LARGE}")
            return self.sizes.number(value, source)
        known = self.shared.get(id(value))
        if known is not None:
            if known.source is not None and known.source != source and not isinstance(known.source, Injected):
                self.guard(source, GuardKind.SAME_AS, id(value), (known.source,))
            elif isinstance(known.source, Injected) and not isinstance(source, Injected):
                self.guard(source, GuardKind.IDENTITY, value)
            return known
        made = self._input(value, source) if isinstance(value, torch.Tensor) else self._object(value, source)
        if isinstance(made, _SHARED) or type(value) is types.GeneratorType:
            self.shared[id(value)] = made
            self.alive.append(value)
        if isinstance(made, ObjectValue):
            self._share_namespace(value, made, source)
        return made

    def _share_namespace(self, value: object, made: ObjectValue, source: Source) -> None:
        """Give objects that have one `__dict__`, and whoever holds that dictionary, one value of it."""
        namespace = getattr(value, "__dict__", None)
        if type(namespace) is not dict:
            return
        known = self.shared.setdefault(id(namespace), made.namespace)
        if known is made.namespace:
            self.alive.append(namespace)
        elif isinstance(known, DictValue) and known.source is not None:
            self.guard(Attribute(source, "__dict__"), GuardKind.SAME_AS, id(namespace), (known.source,))
            made.namespace = known

    def lazy(self, value: object, source: Source) -> Value:
        """Return a value that is wrapped on first use."""
        known = self.shared.get(id(value))
        if known is not None and known.source == source:
            return known
        return LazyValue(self, value, source)

    def realize(self, value: Value) -> Value:
        """Return the value itself."""
        return value.realize() if isinstance(value, LazyValue) else value

    def _object(self, value: object, source: Source) -> Value:
        frame = revived(self, value, source) if isinstance(value, types.GeneratorType) else None
        if frame is None:
            return wrap_object(self, value, source)
        made = self.make_generator(self, frame)
        made.source = source
        return made

    def _input(self, value: torch.Tensor, source: Source) -> Value:
        kind = type(value)
        plain = kind is torch.Tensor or kind is torch.nn.Parameter or kind is getattr(torch.nn, "Buffer", None)
        if not plain or value.layout is not torch.strided or value.is_quantized or value.is_nested:
            self.guard(source, GuardKind.TYPE, kind)
            raise Break(UNSUPPORTED_TENSOR, f"an input of type {kind.__name__}, layout {value.layout}")
        bits = (value.is_conj(), value.is_neg(), value.is_inference())
        varying = self.sizes.varying(value, source)
        shape = tuple(None if index in varying else size for index, size in enumerate(value.shape))
        strides = (None,) * value.dim() if varying else tuple(value.stride())
        facts = TensorFacts(kind, value.dtype, value.device, shape, strides, value.requires_grad, bits, value.is_leaf)
        self.guard(source, GuardKind.TENSOR, facts)
        if varying:
            order = dense_order(value.shape, value.stride())
            assert order is not None  # or nothing would vary
            self.guard(source, GuardKind.EXPRESSION, stride_text(order))
            with without_transforms():
                fake = make_symbolic_fake(self.fake_mode, value, varying, order)
        else:
            with without_transforms():
                fake = make_fake(self.fake_mode, value)
        node = self.levels[0].graph.placeholder(f"input_{len(self.inputs)}")
        node.meta.update(example_value=fake, val=fake, source=source.words(), origin=self.here())
        made = TensorValue(node, fake, kind, source, value)
        self.inputs.append(made)
        self.by_fake[id(fake)] = made
        self.placeholders[node] = (source, value)
        self.happens.note_input(fake, node)
        self.sizes.note_input(fake, varying, source, node, value)
        return made

    def known(self, value: object) -> Value:
        """Return the value of an object computed while evaluating."""
        kind = type(value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return size_value(value)
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
            return SetValue.like(self, value)
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
        self.pushed = None
        return self.realize(self.realize(callee).call(self, args, kwargs))

    def call_and_push(self, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call whose result the running instruction pushes, doing nothing else with it."""
        callee = self.realize(callee)
        self.pushed = callee
        try:
            return self.realize(callee.call(self, args, kwargs))
        finally:
            self.pushed = None

    def initialise(self, made: Value, init: Value, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate the `__init__` of a new object."""
        is_pushed = isinstance(self.pushed, ClassValue) and self.pushed.kind is made.python_type()
        self.instead = made if is_pushed else None
        (self.call_and_push if is_pushed else self.call)(init, [made, *args], kwargs)

    def call_rule(self, function: object) -> CallRule | None:
        """Return the rule for calling a known object, None if there is none."""
        return call_rule(function)

    def hand_on(self, caller: Value, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call whose result is the result of calling `caller`."""
        return (self.call_and_push if self.pushed is caller else self.call)(callee, args, kwargs)

    def inline(self, function: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the body of a function, or return the generator over it."""
        assert isinstance(function, FunctionValue)
        transparent, self.pushed = self.pushed is function, None
        instead, self.instead = self.instead, None
        if function.real is not None:
            original = compiled_original(function.real)
            if original is not None:
                self._require_identity(function)
                callee = self.wrap(original, Injected(original))
                return self.call_and_push(callee, args, kwargs) if transparent else self.call(callee, args, kwargs)
            rule = call_rule(function.real)
            if rule is not None:
                self._require_identity(function)
                return rule(self, args, kwargs)
            if getattr(function.real, "_plumbline_constant", False):
                return Constant(True)
            if is_graph_break_mark(function.real) and self.frames[-1].namespace.get("__name__") in _BREAKS_FOR_STOCK:
                return Constant(None)
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
        frame.transparent, frame.instead = transparent, instead if transparent else None
        self.run_frame(self, frame)
        assert frame.returned is not None
        return frame.returned

    def _require_identity(self, function: FunctionValue) -> None:
        """Demand this very function: what is known of it is known of the object, not of its code."""
        if function.source is not None:
            self.guard(function.source, GuardKind.IDENTITY, function.real)

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
        made = ExceptionValue(kind, [self.known(arg) for arg in args])
        made.of_interpreter = True
        raise Raised(made)

    def stand_for(self, real: object, value: Value) -> None:
        """Give a value to whoever wraps the real object."""
        self.shared[id(real)] = value
        self.alive.append(real)

    def class_body(self, function: Value) -> dict[str, Value]:
        """Evaluate a frame whose locals are the names of a class."""
        assert isinstance(function, FunctionValue)
        frame = self.new_frame(function, {})
        self.run_frame(self, frame)
        return frame.locals

    def calling_namespace(self) -> dict[str, object]:
        """Return the globals of the innermost frame."""
        return self.frames[-1].namespace

    def calling_locals(self) -> dict[str, Value]:
        """Return the locals of the innermost frame in the order of its code, then what its closure holds."""
        frame = self.frames[-1]
        if frame.resumed:
            self.needs_own_frame("locals() after a break, where not all of them are kept")
        code, found = frame.decoded.code, dict(frame.locals)
        held = {name: cell.content for name, cell in frame.cells.items() if cell.content is not None}
        order = dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
        return {name: self.realize(value) for name in order if (value := found.get(name, held.get(name))) is not None}

    def told_apart(self, value: Value) -> None:
        """Note an object from outside whose identity the program relies on."""
        if value.source is not None:
            self.hashed[id(value)] = value

    def handled_exception(self) -> Value | None:
        """Return the exception that is being handled."""
        return handled_in(self.frames)

    def needs_own_frame(self, what: str) -> NoReturn:
        """Run the root frame eagerly; a called function becomes a unit of its own first, which does the same."""
        if len(self.frames) > 1:
            self.frames[-1].transparent = False
            raise Break(FRAME_ACCESS, what)
        raise SkipFrame(FRAME_ACCESS, what)

    def equal(self, left: Value, right: Value) -> bool:
        """Evaluate `left is right or left == right`."""
        return equal(self, left, right)

    def less(self, left: Value, right: Value) -> bool:
        """Evaluate `left < right`."""
        return self.realize(compare(self, "<", left, right)).truth(self)

    def unpack(self, value: Value) -> list[Value]:
        """Evaluate `list(value)`."""
        return self.realize(value).unpacked(self)

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
            return self.realize(found)
        self.alive.append(namespace)
        place: Source = Item(Injected(namespace), name)
        if name in namespace:
            value = namespace[name]
        else:
            self.guard(Injected(namespace), GuardKind.LACKS_KEY, name)
            if name not in vars(builtins):
                self.throw(NameError, f"name '{name}' is not defined")
            value, place = vars(builtins)[name], Item(Injected(vars(builtins)), name)
        if isinstance(value, types.FunctionType):
            self.guard(place, GuardKind.IDENTITY, value)
            place = Injected(value)
        self.globals[key] = made = self.wrap(value, place)
        return made

    def own_global(self, namespace: dict[str, object], name: str) -> Value | None:
        """Return what a namespace has under a name, builtins left out; None if nothing."""
        found = self.globals.get((id(namespace), name), _UNTOUCHED)
        if found is None:
            return None
        if found is _UNTOUCHED and name not in namespace:
            self.guard(Injected(namespace), GuardKind.LACKS_KEY, name)
            return None
        return self.global_value(namespace, name)

    def calling_frame(self, depth: int) -> tuple[types.CodeType, int]:
        """Return code and line of a frame that is evaluated here; see CaptureContext."""
        if depth >= len(self.frames):
            self.needs_own_frame("a frame outside the compiled function")
        frame = self.frames[-1 - depth]
        return frame.decoded.code, frame.current().line or frame.decoded.code.co_firstlineno

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
        if setter in (torch.autocast_increment_nesting, torch.autocast_decrement_nesting):
            self.guard(None, GuardKind.STATE, (autocast_depth, self.autocast_depth_at_entry))
        constants: Any = args  # flags, dtypes and device names
        node = self.graph.call_function(setter, constants)
        node.meta["origin"] = self.here()
        self.changed_states.add(name)

    def restore_autocast(self) -> None:
        """Put autocast back to what it was at entry: capture leaves no trace on the thread."""
        if "autocast" in self.changed_states:
            put_autocast(self.autocast_at_entry, self.autocast_depth_at_entry)
            torch.clear_autocast_cache()  # of casts of fake tensors

    @contextmanager
    def state_at_entry(self) -> Iterator[None]:
        """Return a context with the grad mode and autocast that the graph will be called under."""
        grad, autocast, depth = torch.is_grad_enabled(), autocast_state(), autocast_depth()
        set_grad_mode(self.grad_at_entry)
        if "autocast" in self.changed_states:
            put_autocast(self.autocast_at_entry, self.autocast_depth_at_entry)
        try:
            yield
        finally:
            set_grad_mode(grad)
            if "autocast" in self.changed_states:
                put_autocast(autocast, depth)

    def autocast_blocks(self) -> int:
        """Return how many more autocast blocks are open than at entry."""
        return autocast_depth() - self.autocast_depth_at_entry

    def autocast_changed(self) -> bool:
        """Return whether autocast is not as it was at entry."""
        return self.autocast_at_entry != autocast_state() or self.autocast_blocks() != 0

    def release(self) -> None:
        """Let go of the program's objects: what it drops must not live on in cycles of ours."""
        for frame in self.entered:
            frame.locals.clear()
            frame.cells.clear()
            frame.stack.clear()
        self.alive.clear()
        self.shared.clear()
        self.frames.clear()
        self.stopped, self.stopped_by = (), None

    def step(self) -> None:
        """Count an instruction; raise when the capture grew too long."""
        self.steps += 1
        self.sizes.watch(self.user_line)
        if self.steps > self.options.instruction_limit:
            raise SkipFrame(LIMIT, f"more than instruction_limit={self.options.instruction_limit} instructions")


def _of_captured_class(source: Source) -> bool:
    """Return whether something is read from the template of a class that the program makes: it is new in every call."""
    base: Source | None = source
    while base is not None and not isinstance(base, Injected):
        base = base.base()
    return base is not None and isinstance(base.value, type) and base.value in CAPTURED_CLASSES


def _holds_by_construction(value: object, kind: GuardKind) -> bool:
    """Return whether a condition on an injected object can never change."""
    if kind is GuardKind.CODE:  # a user may replace the code of a function; torch and the standard library do not
        root = str(getattr(value, "__module__", "")).partition(".")[0]
        return root == "torch" or (root in sys.stdlib_module_names and root != "__main__")
    return kind in (GuardKind.TYPE, GuardKind.IDENTITY) or (kind is GuardKind.LENGTH and isinstance(value, tuple))
