"""Unit: one piece of code (a function from the start, or from a resume point on) with its specialisations.

Calling a unit tries the specialisations in turn; each checks its own guards and returns MISS if one fails. On a miss
a new one is captured, up to the recompile limit; beyond it the code runs eagerly.
"""

import inspect
import threading
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from sys import is_finalizing
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy
import torch

from ...base.bisecting.applications import gate_for
from ...base.bundle import Failure, record_failure
from ...base.events import RanEagerly, Recompiled, record
from ...base.locks import ForkedLock
from ...base.options import Options, Settings, in_force
from ...base.origin import Origin
from ...base.stack_room import has_room
from ...base.torch_facts import calls_module_plainly, has_foreign_modes, outside_transforms
from ...bytecode.instruction import Decoded, decode
from ...bytecode.resume_chain import Place, make_chain_function
from ...bytecode.resume_code import NULL, VALUE
from ...values.guard import Guard, GuardKind, TensorFacts
from ...values.reasons import FUNCTION_MODE, LIMIT
from ...values.rules import call_rule
from ...values.source import Argument, Source
from ...values.torch.modules import has_global_hooks
from ...values.torch.overrides.override_facts import modes_put_aside, only_foreign_modes
from ...values.traces import add_caller
from ..context.size_marks import has_marks, size_marks
from ..context.sizes import SymbolicDimensions, every_dimension, no_symbols
from ..guards.generated_function import MISS
from ..guards.guard_rules import guard_words
from ..guards.recompile_reasons import failing_guard, measured
from ..skip_rules import compiled_original, frame_disabled, is_disabled, refusal
from .dispatch_template import DEFAULT, handing_over, make_template, parameter_names
from .distributed_module import Distributed, view_with_compiled_module
from .small_calls import SmallCalls


class _Frozen(threading.local):
    """Whether this thread is inside `run()`: use what is compiled, compile nothing."""

    on = False


FROZEN = _Frozen()
_MOST_ANSWERS = 3  # forms of one piece of code that differ in what small tensors hold
_FOR_SPEED = "inductor"
_MOST_SHARES = 8  # times the recompile limit: as many specialisations of one code object are searched at most

Backend = Callable[[torch.fx.GraphModule, list[object]], Callable[..., object]]
CaptureUnit = Callable[["Unit", tuple[object, ...]], "Specialisation"]


@dataclass(frozen=True, slots=True, eq=False)
class Specialisation:
    """One compiled form of a unit: run(*arguments) gives the result or MISS. eager: it only runs the original.

    kept: it is for further calls; else for the one that it was captured of, and others like that are known otherwise.
    """

    run: Callable[..., object]
    guards: tuple[Guard, ...]
    text: str
    eager: bool
    has_graph: bool
    kept: bool = True


class Tail:
    """What a specialisation returns to go on in another unit, or eagerly: its own frames hold nothing any more.

    The function that stands for the compiled one runs these units, one after the other.
    """

    __slots__ = ("_args", "unit")

    def __init__(self, unit: "Callable[..., object]", args: tuple[object, ...]) -> None:
        self.unit = unit
        self._args = args

    def take(self) -> tuple[object, ...]:
        """Return the arguments of the unit, once: what is kept here would outlive the names of the program."""
        args, self._args = self._args, ()
        return args


@dataclass(slots=True, eq=False, weakref_slot=True)
class Family:
    """What all units of `compile()` calls with the same backend and settings share.

    settings: their options, or what gives those in force at each compilation. user_backend: the backend is the
    caller's, so its errors are the caller's too. on_miss: called where no specialisation fits, before anything is done
    about it; it may raise. units: each lives as long as a function that stands for its code.
    """

    backend: Backend
    backend_name: str
    settings: Settings
    capture: CaptureUnit
    fullgraph: bool = False
    dynamic: bool | None = None
    user_backend: bool = False
    on_miss: Callable[["Unit", tuple[object, ...]], None] | None = None
    units: WeakValueDictionary[tuple[types.CodeType, int], "Unit"] = field(default_factory=WeakValueDictionary)
    lock: ForkedLock = field(default_factory=ForkedLock)
    wrappers: WeakKeyDictionary[types.FunctionType, tuple[types.CodeType, weakref.ref[types.FunctionType]]] = field(
        default_factory=WeakKeyDictionary
    )
    views: WeakKeyDictionary[Distributed, Distributed] = field(default_factory=WeakKeyDictionary)

    @property
    def options(self) -> Options:
        """Return the options in force; asked for at each compilation, not at each call."""
        return in_force(self.settings)

    @property
    def small_work(self) -> int:
        """Return up to how much work NumPy's functions are left to NumPy: other backends are for seeing graphs run."""
        return self.options.small_work if self.backend_name == _FOR_SPEED and not self.user_backend else 0

    def unit_of(self, function: types.FunctionType) -> "Unit":
        """Return the unit of a function's code; functions over the same code share it, closures are arguments."""
        key = (function.__code__, id(function.__globals__))
        with self.lock:
            unit = self.units.get(key)
            if unit is None:
                unit = self.units[key] = Unit(self, decode(function.__code__), function.__globals__)
            return unit

    def wrap(self, function: types.FunctionType) -> types.FunctionType:
        """Return a function of the same signature that runs through the unit."""
        wrapper = self.wrappers.get(function)
        known = wrapper[1]() if wrapper is not None and wrapper[0] is function.__code__ else None
        if known is not None:
            if compiled_original(known) is None:  # else the program has it, and may have renamed it itself
                _name_after(known, function)
            return known
        entry = self.entry_of(function)
        self.wrappers[function] = (function.__code__, weakref.ref(entry))  # which holds the function
        return entry

    def entry_of(self, function: types.FunctionType) -> types.FunctionType:
        """Return a new function of the same signature that runs through the unit."""
        defaults = (len(function.__defaults__ or ()), tuple(function.__kwdefaults__ or ()))
        unit = self.unit_of(function)
        key = (id(function.__code__), defaults)  # the template, which asks for this very code, holds it
        with self.lock:
            template = unit.templates.get(key)
            if template is None:
                template = make_template(unit, Tail, function.__code__, *defaults, self.wrap)
                unit.templates[key] = template
        entry = template(function.__closure__ or (), function)
        _name_after(entry, function)
        entry.__defaults__ = (DEFAULT,) * defaults[0] or None
        entry.__kwdefaults__ = dict.fromkeys(defaults[1], DEFAULT) or None
        return entry

    def callee(self, target: object) -> object:
        """Return what to call at a break instead of `target`, so that the callee is compiled too."""
        if not has_room():
            return target
        try:
            return self._callee(target)
        except Exception as error:
            if self.options.strict:
                raise
            record_failure(Failure("entry", getattr(target, "__name__", "callee"), "", error), self.options)
            return target

    def _callee(self, target: object) -> object:
        if isinstance(target, types.FunctionType):
            disabled = frame_disabled(target)
            if disabled is not None and is_suspendable(disabled):
                return target  # no guard is checked where its frame goes on
            if disabled is not None:
                wrapper = self.wrap(disabled)
                self.unit_of(disabled).graph_free = True
                return wrapper
            original = compiled_original(target)
            known = original is not None or call_rule(target) is not None  # by a rule: its body is not looked at
            if known or refusal(target) is not None or is_suspendable(target):
                return target
            if not all(name.isidentifier() for name in parameter_names(target.__code__)):
                return target  # a comprehension: its argument has no name to be written

            return self.wrap(target)
        if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
            function = self.callee(target.__func__)
            return target if function is target.__func__ else types.MethodType(function, target.__self__)  # type: ignore[arg-type]  # a function
        if isinstance(target, Distributed):
            return self._view(target)
        if isinstance(target, torch.nn.Module) and not _has_call_path(target):
            return self.callee(target.forward)
        return target

    def _view(self, wrapper: Distributed) -> Distributed:
        """Return the wrapper with a compiled module inside; one for each wrapper, as long as that lives."""
        with self.lock:
            if wrapper not in self.views:
                self.views[wrapper] = view_with_compiled_module(wrapper, self.module_entry)
            return self.views[wrapper]

    def module_entry(self, module: torch.nn.Module) -> Callable[..., object]:
        """Return what a call of a compiled module runs: its forward, or torch's whole call path if it has hooks."""
        if isinstance(module, Distributed):
            return self._view(module)
        entry = None if _has_call_path(module) else self._own_forward(module)
        return entry or types.MethodType(self.wrap(_CALL_MODULE), module)

    def forward_entry(self, module: torch.nn.Module) -> Callable[..., object]:
        """Return what a call of a compiled module's `forward` runs, whatever hooks it has."""
        return self._own_forward(module) or types.MethodType(self.wrap(_CALL_FORWARD), module)

    def _own_forward(self, module: torch.nn.Module) -> Callable[..., object] | None:
        forward: Any = module.forward
        function = getattr(forward, "__func__", None)
        if not isinstance(function, types.FunctionType) or is_suspendable(function) or is_disabled(function):
            return None
        return types.MethodType(self.wrap(function), forward.__self__)

    def reset(self) -> None:
        """Forget every specialisation."""
        with self.lock:
            units = list(self.units.values())
        for unit in units:  # not under the family's lock, which captures take while they hold their unit's
            unit.forget()


def _name_after(entry: types.FunctionType, function: types.FunctionType) -> None:
    """Give what stands for a function the function's names: Python's errors about its arguments tell them."""
    entry.__name__, entry.__qualname__, entry.__module__ = function.__name__, function.__qualname__, function.__module__


def _has_call_path(module: torch.nn.Module) -> bool:
    """Return whether calling the module does more than calling its forward."""
    hooks = (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or has_global_hooks()
    )
    own_call = not calls_module_plainly(type(module))
    return bool(hooks) or own_call or module._compiled_call_impl is not None


def _call_module(module: Any, /, *args: Any, **kwargs: Any) -> Any:
    return module(*args, **kwargs)


def _call_forward(module: Any, /, *args: Any, **kwargs: Any) -> Any:
    return module.forward(*args, **kwargs)


_CALL_MODULE = types.FunctionType(_call_module.__code__, globals(), "module")
_CALL_FORWARD = types.FunctionType(_call_forward.__code__, globals(), "forward")


def is_suspendable(function: Any) -> bool:
    """Return whether a call of the function makes a generator or coroutine, so that its frame stops and goes on."""
    flags = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
    return bool(function.__code__.co_flags & flags)


class Unit:
    """One piece of code and its specialisations; called with stack values, cells, then locals.

    places: where the frames go on, the innermost first; empty for a function from its start.  The last of them is a
    frame of the unit's own code, the others are what it called.  They are given their values one after the other.
    """

    def __init__(
        self, family: Family, decoded: Decoded, namespace: dict[str, object], places: tuple[Place, ...] = ()
    ) -> None:
        self.family = family
        self.decoded = decoded
        self.namespace = namespace
        self.places = places
        self.entries: list[Specialisation] = []
        self.runs: list[Callable[..., object]] = []
        self.small = SmallCalls()
        self.under_modes: list[Specialisation] = []  # for calls under modes for functions
        self.resumes: dict[tuple[object, ...], Unit] = {}
        self.lock = ForkedLock()
        self.exhausted = False
        self.templates: dict[tuple[object, ...], Callable[..., types.FunctionType]] = {}
        self.shares = 1  # how many `compile()` calls have asked for it: each may have as many forms as the limit says
        self.graph_free = False  # disable(recursive=False): this frame runs in Python, what it calls is compiled
        self.varying: dict[Source, frozenset[int]] = {}  # dimensions that changed from one call to the next
        self.varying_numbers: set[Source] = set()  # whole numbers that changed
        self.static_only = False
        self.may_start = True  # that optimizers' state is made before capture
        self.may_assume = True  # that branches to an error are not taken
        self.may_be_finite = True  # what NumPy's arithmetic gives, where its inputs are
        self.marks = False  # an argument of the call being captured has dimensions marked dynamic
        self._eager: Callable[[list[tuple[object, ...]]], object] | None = None
        code = decoded.code
        self.name = code.co_name
        self.shown = _shown_names(places) if places else (*code.co_freevars, *parameter_names(code))

    @property
    def parameters(self) -> list[str]:
        """Return the names of the arguments in generated code: reserved, so that no user name is shadowed."""
        return [f"_a{position}" for position in range(len(self.shown))]

    @property
    def is_resume(self) -> bool:
        """Return whether the unit starts in the middle of its function."""
        return bool(self.places)

    @property
    def limit(self) -> int:
        """Return how many specialisations it may have."""
        return self.family.options.recompile_limit * self.shares

    def allow_more_forms(self) -> None:
        """Make room for the forms of one more `compile()` call; where there are too many to search, the oldest go."""
        with self.lock:
            units = [self, *self.resumes.values()]
            for unit in units:
                unit.shares = min(unit.shares + bool(unit.entries), _MOST_SHARES)
                unit.exhausted = False
                spare = len(unit.entries) - self.family.options.recompile_limit * (_MOST_SHARES - 1)
                if spare > 0:
                    del unit.entries[:spare]
                    del unit.runs[:spare]

    def resume(self, places: tuple[Place, ...]) -> "Unit":
        """Return the unit that goes on at places of the same code and of what it called."""
        key = tuple(place.key() for place in places)
        with self.family.lock:  # units of one function share the table
            if key not in self.resumes:
                unit = Unit(self.family, self.decoded, self.namespace, places)
                unit.graph_free, unit.shares = self.graph_free, self.shares
                unit.resumes = self.resumes  # one table per function: a resume of a resume starts from its code
                self.resumes[key] = unit
            return self.resumes[key]

    def __call__(self, *args: object) -> object:
        """Run the first specialisation that fits, or capture one."""
        result: object = None
        try:
            for run in self.runs:
                result = run(*args)
                if result is not MISS:
                    return result
            return self.miss(args)
        finally:
            del result, args  # a traceback may know this frame, by the frames that it called

    def miss(self, args: tuple[object, ...]) -> object:
        """Capture a specialisation for these arguments and run it; run eagerly where that is not possible."""
        result: object = None
        try:
            if self.family.on_miss is not None:
                self.family.on_miss(self, args)
            if self.exhausted or FROZEN.on or is_finalizing() or not outside_transforms():
                return self.eager(*args)  # a process that ends cannot import what a capture needs
            if not has_room():
                record(RanEagerly(self.name, LIMIT.id, "the program recurses too deep", LIMIT.hint, self.origin()))
                return self.eager(*args)
            if has_foreign_modes():
                return self._run_under_modes(args)
            tried: list[Callable[..., object]] = []
            while True:
                with self.lock:
                    others = [run for run in self.runs if run not in tried]
                    if not others:
                        specialisation = self._specialise(args)
                        break
                for run in others:  # another thread may have been faster; user code never runs under the lock
                    result = run(*args)
                    if result is not MISS:
                        return result
                tried += others
            if specialisation is None:
                return self.eager(*args)
            result = specialisation.run(*args)
            if result is MISS:  # a guard that its own capture does not pass: never loop over it
                self.exhausted = self.exhausted or len(self.entries) >= self.limit
                return self.eager(*args)
            return result
        finally:
            del result, args  # as in `__call__`

    def _run_under_modes(self, args: tuple[object, ...]) -> object:
        """Run a specialisation that has asked the active modes for functions while it was captured."""
        if not only_foreign_modes() or len(self.under_modes) >= self.limit:
            record(RanEagerly(self.name, FUNCTION_MODE.id, FUNCTION_MODE.what, FUNCTION_MODE.hint, self.origin()))
            return self.eager(*args)
        with modes_put_aside():
            for known in tuple(self.under_modes):
                result = known.run(*args)
                if result is not MISS:
                    return result
            with self.lock:
                self._try_to_note(self._note_marks, args)
                specialisation = self.family.capture(self, args)
                self.under_modes.append(specialisation)
            result = specialisation.run(*args)
        return self.eager(*args) if result is MISS else result

    def _specialise(self, args: tuple[object, ...]) -> Specialisation | None:
        """Capture one more specialisation; None, and none from now on, where there are too many."""
        if self.entries:
            self._try_to_note(self._note_recompile, args)
        else:
            self._try_to_note(self._note_result, args)
        if len(self.entries) >= self.limit:
            self.exhausted = True
            detail = f"recompile_limit={self.family.options.recompile_limit} specialisations are in use"
            record(RanEagerly(self.name, LIMIT.id, detail, LIMIT.hint, self.origin()))
            return None
        if not self._may_capture():
            self.exhausted = True
            return None
        self._try_to_note(self._note_marks, args)
        self.small.on_trial = bool(self.entries) and self.may_be_small(args)
        try:
            specialisation = self.family.capture(self, args)
        finally:
            on_trial, self.small.on_trial = self.small.on_trial, False
        if on_trial and specialisation.kept:
            self.small.tried()
        if specialisation.kept:
            self.entries.append(specialisation)
            self.runs.append(specialisation.run)
        return specialisation

    def may_be_small(self, args: tuple[object, ...]) -> bool:
        """Return whether the arguments are arrays and numbers with so few elements that NumPy may be faster."""
        threshold = 0 if self.places else self.family.small_work
        return bool(threshold) and self.small.may_try(self.own_arguments(args), threshold)

    def own_arguments(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """Return the arguments of the function, without the cells that stand before them."""
        return args[len(self.decoded.code.co_freevars) :]

    def _may_capture(self) -> bool:
        gate = gate_for(self.family.options.bisect, "capture")
        if gate is None:
            return True
        part = f"the rest of {self.name}" if self.is_resume else self.name
        what = f"captured {part}" + (", once more" if self.entries else "")
        return gate.allows("capture", what, rule="capture", place=self.origin().place())

    def symbolic_dimensions(self) -> SymbolicDimensions:
        """Return which dimensions of inputs are to be symbols in the next capture."""
        dynamic = self.family.dynamic if self.family.dynamic is not None else self.family.options.dynamic_shapes
        if dynamic is False or self.static_only or self.small.on_trial:
            return no_symbols
        if dynamic:
            return every_dimension
        varying = self.varying

        def chosen(value: torch.Tensor, source: Source) -> frozenset[int]:
            marks = size_marks(value)
            return (varying.get(source, frozenset()) | marks.opened) - marks.fixed

        numbers = self.varying_numbers or self.family.options.capture_scalar_outputs
        return chosen if varying or self.marks or numbers else no_symbols

    def may_ask(self) -> bool:
        """Return whether branches may be decided at entry by the data: not where that has made several forms."""
        if self.family.fullgraph:
            return True
        return sum(any(map(_reads_data, one.guards)) for one in self.entries) < _MOST_ANSWERS

    def give_up_symbols(self) -> None:
        """Capture with fixed sizes from now on: symbols have failed here."""
        self.static_only = True
        self.varying.clear()
        self.varying_numbers.clear()

    def origin(self) -> Origin:
        """Return the first line of the code."""
        code = self.decoded.code
        return Origin(code.co_filename, code.co_firstlineno, code.co_name)

    def _note_marks(self, args: tuple[object, ...]) -> None:
        """Note which sizes are marked, and which arguments are numbers of NumPy: those mostly vary."""
        self.marks = any(has_marks(arg) for arg in args)
        for name, shown, arg in zip(self.parameters, self.shown, args, strict=True):
            if issubclass(type(arg), numpy.number) and not issubclass(type(arg), numpy.complexfloating):
                self.varying_numbers.add(Argument(name, shown))

    def _try_to_note(self, note: Callable[[tuple[object, ...]], None], args: tuple[object, ...]) -> None:
        """Note something about the arguments; an error of ours in that is on record and changes nothing."""
        try:
            note(args)
        except Exception as error:
            options = self.family.options
            if options.strict:
                raise
            record_failure(Failure("recompile", self.name, self.origin().place(), error), options)

    def _note_result(self, args: tuple[object, ...]) -> None:
        """Take a float that the operation at the break gave for one that varies: a time, a draw, a tensor's item."""
        if not self.places:
            return
        above = sum(kind == VALUE for kind in self.places[0].layout.stack) - 1
        if above >= 0 and type(args[above]) is float:
            self.varying_numbers.add(Argument(self.parameters[above], self.shown[above]))

    def _note_recompile(self, args: tuple[object, ...]) -> None:
        guard, expected, actual = failing_guard(self.entries[-1].guards, self.parameters, args)
        if guard is None:
            return
        for other, now in measured(self.entries[-1].guards, self.parameters, args):
            self._note_varying(other, now)
        record(Recompiled(self.name, guard_words(guard), expected, actual, len(self.entries), guard.origin))

    def _note_varying(self, guard: Guard, actual: object) -> None:
        """Remember the dimensions in which an input differs from what was captured."""
        facts = guard.expected
        assert guard.source is not None
        if guard.kind is GuardKind.EQUALS and type(actual) is type(facts) and actual != facts:
            self.varying_numbers.add(guard.source)
        if not isinstance(facts, TensorFacts):
            return
        if not isinstance(actual, torch.Tensor):
            return
        if len(facts.shape) != actual.dim() or isinstance(actual, torch.nn.Parameter):
            return
        pairs = enumerate(zip(facts.shape, actual.shape, strict=True))
        changed = frozenset(index for index, (old, new) in pairs if old is not None and old != new)
        if changed:
            self.varying[guard.source] = self.varying.get(guard.source, frozenset()) | changed

    def eager(self, *args: object) -> Tail:
        """Return what runs the original code once every frame of ours has let go of the arguments."""
        return Tail(self.run_eagerly, ([args],))

    def run_eagerly(self, handed: list[tuple[object, ...]]) -> object:
        """Run the original code on the one tuple of a list, which is taken out of it."""
        if self._eager is None:
            self._eager = self._make_eager()
        return self._eager(handed)

    def after_wrong_assumption(self, *args: object) -> object:
        """Run the original code; if it does not raise after all, compile it again without assumptions."""
        result = self.run_eagerly([args])
        with self.lock:
            self.may_assume = False
            self.entries.clear()
            self.runs.clear()
        return result

    def after_infinite(self, *args: object) -> Tail:
        """Go on with code that tells what excuses a number that is not finite; results may be such here."""
        with self.lock:
            self.may_be_finite = False
            self.entries.clear()
            self.runs.clear()
        return Tail(self, args)

    def _make_eager(self) -> Callable[[list[tuple[object, ...]]], object]:
        if self.places:
            return make_chain_function(self.places, add_caller)
        code, namespace, cells = self.decoded.code, self.namespace, len(self.decoded.code.co_freevars)
        call = handing_over(code)

        def run(handed: list[tuple[object, ...]]) -> object:
            args = handed.pop()
            function = types.FunctionType(code, namespace, code.co_name, None, args[:cells])  # type: ignore[arg-type]  # cells
            values = [*reversed(args[cells:])]
            del args
            return call(function, values.pop)

        return run

    def forget(self) -> None:
        """Drop every specialisation, here and in resume units."""
        with self.lock:
            self.entries.clear()
            self.runs.clear()
            self.small.forget()
            self.under_modes.clear()
            self.exhausted = False
            for unit in list(self.resumes.values()):
                unit.entries.clear()
                unit.runs.clear()
                unit.under_modes.clear()
                unit.exhausted = False


def _reads_data(guard: Guard) -> bool:
    sources = (guard.source, *guard.others)
    return guard.kind is GuardKind.DATA or any(source is not None and source.reads_data for source in sources)


def _shown_names(places: tuple[Place, ...]) -> tuple[str, ...]:
    """Return for each value that continued frames are given the user's name for it."""
    shown: list[str] = []
    for place in places:
        layout = place.layout
        shown += [f"stack[{position}]" for position, kind in enumerate(layout.stack) if kind != NULL]
        shown += [*layout.cells, *layout.locals]
    return tuple(shown)


__all__ = ["NULL", "Backend", "Family", "Specialisation", "Tail", "Unit", "is_suspendable", "parameter_names"]
