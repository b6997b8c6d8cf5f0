"""The capture in progress: the context that values talk to, put together from its parts."""

import enum
import types
from collections.abc import Callable
from functools import partial
from typing import NoReturn, TypeGuard

import numpy
import torch

from ...base.fake_mode_start import forget_originals
from ...base.options import Options
from ...base.real_objects.past_methods import is_really, own_namespace
from ...values.constant import LITERAL_TYPES, Constant, Known, MethodOf
from ...values.guard import GuardKind
from ...values.library.cached_functions import CachedFunctionValue
from ...values.library.numpy_values import OpenNumpyScalar
from ...values.library.objects_by_content import KnownByContent
from ...values.python.containers.lists import ListValue
from ...values.python.containers.mappings import DictValue
from ...values.python.containers.sets import SetValue
from ...values.python.containers.tuples import TupleValue, tuple_fields
from ...values.python.objects.attributes import bind_raw, class_lookup, leads_to_template, name_in_errors
from ...values.python.objects.classes import ClassValue
from ...values.python.objects.exceptions import ExceptionValue
from ...values.python.objects.functions import CellValue, FunctionValue
from ...values.python.objects.instances import ObjectValue, OpaqueValue
from ...values.python.operators import compare, equal
from ...values.reasons import (
    ATTRIBUTE,
    CONSTRUCTION,
    LIMIT,
    UNSUPPORTED_TENSOR,
    Break,
    SkipFrame,
)
from ...values.scalar import LARGE
from ...values.source import Attribute, BaseContents, Injected, Item, Source
from ...values.torch.overrides.override_facts import MODES_ASIDE
from ...values.torch.overrides.subclass_values import SubclassValue
from ...values.torch.tensor import TensorValue
from ...values.value import Arguments, CaptureContext, Keywords, Raised, Value
from ...values.wrap import wrap_object
from .attempt import CaptureAttempt
from .call_evaluator import CallEvaluator
from .effect_list import EffectList
from .frame import FrameState, SuspendedValue
from .frame_stack import FrameStack
from .graph_builder import GraphBuilder
from .guard_list import GuardList
from .kept_generators import revived
from .lazy import LazyValue
from .machine_numbers import LARGEST_NUMBER
from .mode_changes import ModeRecord
from .sizes import size_value

_SHARED = (
    *(ListValue, TupleValue, DictValue, SetValue, ObjectValue, TensorValue, CellValue, FunctionValue, OpaqueValue),
    *(KnownByContent, CachedFunctionValue, SubclassValue),
)


def _is_of_numpy(value: object) -> TypeGuard[numpy.generic]:
    return issubclass(type(value), numpy.generic)


class Recorder(CaptureContext):
    """One capture. steps: how many instructions were evaluated."""

    guards: GuardList
    graph: GraphBuilder
    frames: FrameStack
    effects: EffectList
    modes: ModeRecord
    calls: CallEvaluator

    def __init__(
        self,
        options: Options,
        attempt: CaptureAttempt,
        run_frame: Callable[["Recorder", FrameState], None],
        make_generator: Callable[["Recorder", FrameState], SuspendedValue],
    ) -> None:
        self.options = options
        self.attempt = attempt
        self.steps = 0
        self.shared: dict[int, Value] = {}
        self.alive: list[object] = []  # keeps the ids of `shared` unique
        self.unwrapped: list[LazyValue] = []
        self.frames = FrameStack(self)
        self.guards = GuardList(self.frames)
        self.effects = EffectList(self, self.shared)
        self.modes = ModeRecord(self)
        self.graph = GraphBuilder(self, attempt, self.frames, self.effects, self.modes, self.open_number)
        self.sizes = self.graph.sizes
        self.calls = CallEvaluator(self, attempt, self.frames, partial(run_frame, self), partial(make_generator, self))

    def enter_outer_modes(self) -> None:
        """Ask the modes for functions that were entered before the code, which are put aside while it is captured."""
        modes = Attribute(Injected(MODES_ASIDE), "modes")
        self.guards.add(modes, GuardKind.LENGTH, len(MODES_ASIDE.modes))
        for position, mode in enumerate(MODES_ASIDE.modes):
            self.modes.overrides.modes.append(self.wrap(mode, Item(modes, position)))

    def release(self) -> None:
        """End the capture: what the program drops must not live on in cycles of ours.

        The parts refer to each other, and values refer to the recorder. So each part is emptied, and every value that
        holds an object of the program drops it.
        """
        self.frames.release()
        forget_originals(self.graph.fake_mode)
        outside = [value for value in self.shared.values() if value.source is not None]
        for value in (*outside, *self.graph.input_values, *self.unwrapped):
            vars(value).clear()
        for part in (self.graph, self.sizes, self.calls, self.effects, self.modes, self.guards, self.frames, self):
            vars(part).clear()

    def wrap(self, value: object, source: Source) -> Value:
        """Return the value of a real object; one object has one value, however it is reached."""
        if (is_really(value, int) or is_really(value, float)) and self.graph.sizes.is_open_number(value, source):
            self.guards.add(source, GuardKind.TYPE, type(value))
            return self.open_number(value, source)
        if _is_of_numpy(value) and self.graph.sizes.is_open_number(value.item(), source):
            self.guards.add(source, GuardKind.TYPE, type(value))
            number = self.open_number(value.item(), BaseContents(source, numpy.generic.item))
            return OpenNumpyScalar(self, value, number, source)
        known = self.shared.get(id(value))
        if known is not None:
            if known.source is not None and known.source != source and not isinstance(known.source, Injected):
                self.guards.add(source, GuardKind.SAME_AS, id(value), (known.source,))
            elif isinstance(known.source, Injected) and not isinstance(source, Injected):
                self.guards.add(source, GuardKind.IDENTITY, value)
            return known
        wrapped = self.graph.add_input(value, source) if is_really(value, torch.Tensor) else self._object(value, source)
        if isinstance(wrapped, _SHARED) or type(value) is types.GeneratorType:
            self.shared[id(value)] = wrapped
            self.alive.append(value)
        if isinstance(wrapped, ObjectValue):
            self._share_namespace(value, wrapped, source)
        return wrapped

    def open_number(self, value: int | float, source: Source) -> Value:
        """Return a number from outside as a symbol: arithmetic of those knows no NaN and no sign of zero."""
        span = f"0 < abs({{0}}) < {LARGE}" if type(value) is float else f"abs({{0}}) < {LARGEST_NUMBER}"
        self.guards.add(source, GuardKind.EXPRESSION, span)
        return self.graph.sizes.number(value, source)

    def _share_namespace(self, value: object, made: ObjectValue, source: Source) -> None:
        """Give objects that have one `__dict__`, and whoever holds that dictionary, one value of it."""
        namespace, place = own_namespace(value), made.namespace.source
        if type(namespace) is not dict or place is None:
            return
        known = self.shared.setdefault(id(namespace), made.namespace)
        if known is made.namespace:
            self.alive.append(namespace)
        elif isinstance(known, DictValue) and known.source is not None:
            self.guards.add(place, GuardKind.SAME_AS, id(namespace), (known.source,))
            made.namespace = known

    def lazy(self, value: object, source: Source) -> Value:
        """Return a value that is wrapped on first use."""
        known = self.shared.get(id(value))
        if known is not None and known.source == source:
            return known
        pending = LazyValue(self, value, source)
        self.unwrapped.append(pending)
        return pending

    def realize(self, value: Value) -> Value:
        """Return the value itself."""
        return value.realize() if isinstance(value, LazyValue) else value

    def _object(self, value: object, source: Source) -> Value:
        frame = revived(self, value, source) if is_really(value, types.GeneratorType) else None
        if frame is None:
            return wrap_object(self, value, source)
        generator = self.calls.make_generator(frame)
        generator.source = source
        assert isinstance(value, types.GeneratorType)
        generator.names = value.__name__, value.__qualname__
        return generator

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
        if isinstance(value, tuple) and not isinstance(value, enum.Enum):
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
        if kind.__module__ in ("typing", "types") and leads_to_template(value):
            raise Break(CONSTRUCTION, f"{kind.__qualname__} of a class that is made at every call")
        return self.wrap(value, Injected(value))

    def call(self, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call."""
        self.calls.pushed = None
        return self.realize(self.realize(callee).call(self, args, kwargs))

    def throw(self, kind: type[BaseException], *args: object, **fields: object) -> NoReturn:
        """Raise an exception in the evaluated program; fields: what it says besides, as the name of a NameError."""
        exception = ExceptionValue(kind, [self.known(arg) for arg in args])
        exception.of_interpreter = True
        exception.set_fields |= {name: self.known(field) for name, field in fields.items()}
        raise Raised(exception)

    def stand_for(self, real: object, value: Value) -> None:
        """Give a value to whoever wraps the real object."""
        self.shared[id(real)] = value
        self.alive.append(real)

    def same_or_equal(self, left: Value, right: Value) -> bool:
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
            self.throw(AttributeError, f"'{name_in_errors(kind)}' object has no attribute '{name}'")
        if isinstance(raw, types.FunctionType | property | classmethod | staticmethod):
            return bind_raw(self, raw, owner, name, instance, kind)
        if hasattr(type(raw), "__get__") and not callable(raw) and name not in tuple_fields(kind):
            instance.unsupported(f"attribute {name!r}", ATTRIBUTE)
        if name in tuple_fields(kind) or not callable(raw):
            return self.known(raw)
        return MethodOf(instance, name)

    def step(self) -> None:
        """Count an instruction; raise when the capture grew too long."""
        self.steps += 1
        self.graph.sizes.watch(self.frames.user_line)
        if self.steps > self.options.instruction_limit:
            raise SkipFrame(LIMIT, f"more than instruction_limit={self.options.instruction_limit} instructions")
