"""CallEvaluator: Python functions that are evaluated where they are called."""

import functools
import inspect
import itertools
from collections.abc import Callable
from types import CodeType

from ...base.function_marks import own_mark
from ...bytecode.instruction import decode
from ...values.constant import Constant
from ...values.guard import GuardKind
from ...values.python.objects.attributes import told_name
from ...values.python.objects.classes import ClassValue
from ...values.python.objects.functions import FunctionValue, bind_arguments, require_inlinable
from ...values.reasons import (
    DISABLED,
    LIMIT,
    Break,
)
from ...values.rule_tables import CallRule
from ...values.rules import call_rule
from ...values.source import Injected
from ...values.torch.optimizer_state import demand_state
from ...values.torch.overrides.override_calls import mode_rule
from ...values.torch.torch_calls import is_graph_break_mark
from ...values.value import Arguments, CallEvaluation, CaptureContext, Keywords, Value
from ..skip_rules import compiled_original, refusal
from .attempt import CaptureAttempt
from .frame import FrameState, SuspendedValue
from .frame_stack import FrameStack

_BREAKS_FOR_STOCK = ("torch.optim.optimizer",)  # its graph_break() is for the speed of stock's own code

# Made to record operations one by one: a frame with such a block runs as it is, and what it calls is compiled.
_RECORDING = ("torch.profiler.profiler.profile.__init__", "torch.autograd.profiler.profile.__init__")

_RETURNS = ("RETURN_VALUE", "RETURN_CONST")
_CONSTANTS = ("LOAD_CONST", "RETURN_CONST")

RunFrame = Callable[[FrameState], None]
MakeGenerator = Callable[[FrameState], SuspendedValue]


@functools.cache
def _gives_none(code: CodeType) -> bool:
    """Return whether a function visibly returns None, wherever it returns."""
    pairs = itertools.pairwise(decode(code).instructions)
    returned = [before if one.name == "RETURN_VALUE" else one for before, one in pairs if one.name in _RETURNS]
    plain = not code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    return plain and all(one.name in _CONSTANTS and one.value is None for one in returned)


class CallEvaluator(CallEvaluation):
    """The calls of one capture.

    pushed: the running instruction pushes what a call of this gives, and does nothing else with it. instead: it pushes
    this for what the callee returns.
    """

    def __init__(
        self,
        ctx: CaptureContext,
        attempt: CaptureAttempt,
        frames: FrameStack,
        run_frame: RunFrame,
        make_generator: MakeGenerator,
    ) -> None:
        self.ctx, self.attempt, self.frames = ctx, attempt, frames
        self.run_frame = run_frame
        self.make_generator = make_generator
        self.pushed: Value | None = None
        self.instead: Value | None = None

    def call_rule(self, function: object) -> CallRule | None:
        """Return the rule for calling a known object, None if there is none; modes are asked first."""
        return mode_rule(self.ctx, function) or call_rule(function)

    def call_and_push(self, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call whose result the running instruction pushes, doing nothing else with it."""
        callee = self.ctx.realize(callee)
        self.pushed = callee
        try:
            return self.ctx.realize(callee.call(self.ctx, args, kwargs))
        finally:
            self.pushed = None

    def initialise(self, made: Value, init: Value, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate the `__init__` of a new object."""
        is_pushed = isinstance(self.pushed, ClassValue) and self.pushed.kind is made.python_type()
        is_pushed = is_pushed and isinstance(init, FunctionValue) and _gives_none(init.code)
        self.instead = made if is_pushed else None
        answer = (self.call_and_push if is_pushed else self.ctx.call)(init, [made, *args], kwargs)
        if answer.python_type() is not type(None):
            self.ctx.throw(TypeError, f"__init__() should return None, not '{told_name(answer.python_type())}'")

    def hand_on(self, caller: Value, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call whose result is the result of calling `caller`."""
        return (self.call_and_push if self.pushed is caller else self.ctx.call)(callee, args, kwargs)

    def inline(self, function: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the body of a function, or return the generator over it."""
        assert isinstance(function, FunctionValue)
        transparent, self.pushed = self.pushed is function, None
        instead, self.instead = self.instead, None
        if function.real is not None:
            original = compiled_original(function.real)
            if original is not None:
                self._require_identity(function)
                callee = self.ctx.wrap(original, Injected(original))
                return self.call_and_push(callee, args, kwargs) if transparent else self.ctx.call(callee, args, kwargs)
            rule = self.call_rule(function.real)
            if rule is not None:
                self._require_identity(function)
                return rule(self.ctx, args, kwargs)
            if own_mark(function.real, "_plumbline_constant"):
                return Constant(True)
            if (
                is_graph_break_mark(function.real)
                and self.frames.stack[-1].namespace.get("__name__") in _BREAKS_FOR_STOCK
            ):
                return Constant(None)
            demand_state(self.ctx, function.real, args, kwargs)
            refused = refusal(function.real)
            if refused is not None and refused.detail in _RECORDING:
                self.frames.needs_own_frame("a profile, which records what runs in its block")
            if refused is not None:
                raise refused
        code = function.code
        if self.attempt.graph_free and len(self.frames.stack) == 1:
            raise Break(DISABLED, f"a call in {self.frames.stack[0].decoded.code.co_name}, which is not compiled")
        require_inlinable(code)
        if len(self.frames.stack) > self.ctx.options.inline_depth_limit:
            raise Break(LIMIT, f"more than inline_depth_limit={self.ctx.options.inline_depth_limit} nested calls")
        bound = bind_arguments(self.ctx, function, args, kwargs)
        frame = self.new_frame(function, bound)
        if code.co_flags & inspect.CO_GENERATOR:
            generator = self.make_generator(frame)
            generator.names = function.name, function.qualified_name
            return generator
        frame.transparent, frame.instead = transparent, instead if transparent else None
        self.run_frame(frame)
        assert frame.returned is not None
        return frame.returned

    def _require_identity(self, function: FunctionValue) -> None:
        """Demand this very function: what is known of it is known of the object, not of its code."""
        if function.source is not None:
            self.ctx.guards.add(function.source, GuardKind.IDENTITY, function.real)

    def new_frame(self, function: FunctionValue, bound: dict[str, Value]) -> FrameState:
        """Return a frame at the start of the function."""
        parent = self.frames.stack[-1] if self.frames.stack else None
        return FrameState(
            self.ctx, decode(function.code), function.namespace, bound, {}, parent, free_cells=list(function.cells)
        )

    def class_body(self, function: Value) -> dict[str, Value]:
        """Evaluate a frame whose locals are the names of a class."""
        assert isinstance(function, FunctionValue)
        frame = self.new_frame(function, {})
        self.run_frame(frame)
        return frame.locals
