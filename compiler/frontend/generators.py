"""Generators of inlined functions: frames that stop at each yield."""

import sys
import types
import weakref
from dataclasses import replace

from ..values.constant import Constant
from ..values.guard import GuardKind
from ..values.python.objects.classes import ClassValue
from ..values.python.objects.exceptions import ExceptionValue
from ..values.reasons import BUILTIN_METHOD, CANNOT_RESUME, SIDE_EFFECT_CALL, Break
from ..values.source import Attribute
from ..values.type_attributes import type_attribute
from ..values.value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value, defines
from .context.frame import FrameState, SuspendedValue, cleans_up
from .context.kept_generators import State, rebuild_generator, replay_generator, state_of
from .context.recorder import Recorder
from .evaluate import enter_handler, run_frame

_NAMES = ("__name__", "__qualname__")


class GeneratorValue(SuspendedValue):
    """A generator of an inlined function: a frame that stops at each yield."""

    always_true = True

    def __init__(self, ctx: Recorder, frame: FrameState) -> None:
        self.ctx = ctx
        self.frame = frame
        self.started = bool(frame.index)
        self.finished = False
        self.running = False
        self.names = frame.decoded.code.co_name, frame.decoded.code.co_qualname
        ctx.frames.suspended.append(weakref.ref(self))

    def __del__(self) -> None:
        ctx = vars(self).get("ctx")  # all of this is gone at the end of the capture
        frames = vars(ctx).get("frames") if ctx is not None else None
        dropped = vars(frames).get("dropped") if frames is not None else None
        if dropped is not None and self.source is None and self.cleans_up():
            dropped.append(self._end)

    def cleans_up(self) -> bool:
        """Return whether it does something when it is closed."""
        is_suspended = self.started and not self.finished
        return is_suspended and cleans_up(self.frame.decoded, self.frame.index)

    def _end(self) -> None:
        """Close it as Python does where nothing refers to it any more; errors are printed there, by Python itself."""
        try:
            self._close()
        except Raised as raised:
            kind = raised.value.python_type().__name__
            raise Break(SIDE_EFFECT_CALL, f"a dropped generator raises {kind} at its end") from None

    def python_type(self) -> type:
        """Return the generator type."""
        return types.GeneratorType

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def next(self, ctx: CaptureContext) -> Value:
        """Run to the next yield."""
        return self._resume(Constant(None))

    def _resume(self, sent: Value) -> Value:
        if self.running:
            self.ctx.throw(ValueError, "generator already executing")
        if self.finished:
            self.ctx.throw(StopIteration)
        if self.started:
            self.frame.stack.append(sent)
        elif not isinstance(sent, Constant) or sent.value is not None:
            self.ctx.throw(TypeError, "can't send non-None value to a just-started generator")
        self.started = True
        return self._run()

    def _run(self) -> Value:
        if self.source is not None:
            self.ctx.effects.mutated(self)
        self.frame.yielded = None
        self.frame.parent = self.ctx.frames.stack[-1] if self.ctx.frames.stack else None
        self.running = True
        try:
            run_frame(self.ctx, self.frame)
        except Raised as raised:
            self._finish()
            raise self._left(raised) from None
        finally:
            self.running = False
            self.frame.parent = None  # it holds what the caller's names hold
        if self.frame.yielded is not None:
            return self.frame.yielded
        result = self.frame.returned
        assert result is not None
        self._finish()
        is_none = isinstance(result, Constant) and result.value is None
        raise Raised(ExceptionValue(StopIteration, [] if is_none else [result]))

    def throw_in(self, exception: Value) -> Value:
        """Raise an exception at the yield where the generator stands."""
        if self.running:
            self.ctx.throw(ValueError, "generator already executing")
        if isinstance(exception, ExceptionValue):
            exception.entered(None)  # it is not raised here: its context is left to it
        if self.finished or not self.started:
            self.finished = True
            raise Raised(exception)
        inner = self._inner()
        raised = Raised(exception)
        if inner is not None:
            try:
                return self._throw_on(inner, exception)
            except Raised as other:
                if self._goes_on_with(other):
                    return self._run()
                raised = other
        self.frame.parent = self.ctx.frames.stack[-1] if self.ctx.frames.stack else None
        try:
            enter_handler(self.frame, raised)
        except Raised as other:
            self._finish()
            raise self._left(other) from None
        finally:
            del raised  # its traceback holds this frame
            self.frame.parent = None
        return self._run()

    def _finish(self) -> None:
        """Let go of what the frame holds; an exception that has left it may still hold that."""
        self.finished = True
        self.frame.parent = None  # such an exception would hold the caller's names, and may be one of them
        self.frame = replace(self.frame, locals={}, cells={}, free_cells=[], stack=[], parent=None, returned=None)

    def _left(self, raised: Raised) -> Raised:
        """Return what an exception that leaves the generator becomes: a StopIteration is an error there."""
        if not issubclass(raised.value.python_type(), StopIteration):
            return raised
        error = ExceptionValue(RuntimeError, [Constant("generator raised StopIteration")])
        error.cause = error.context = raised.value
        error.suppressed = error.raised = True
        return Raised(error)

    def _inner(self) -> Value | None:
        """Return the iterator that `yield from` stands in, None elsewhere."""
        following = self.frame.decoded.instructions[self.frame.index]
        return self.frame.stack[-1] if following.name == "RESUME" and following.argument & 3 == 2 else None

    def _throw_on(self, inner: Value, exception: Value) -> Value:
        """Throw into the iterator of a `yield from`."""
        if issubclass(exception.python_type(), GeneratorExit):
            if defines(inner.python_type(), "close"):
                inner.call_method(self.ctx, "close", [], {})
            raise Raised(exception)
        if not defines(inner.python_type(), "throw"):
            raise Raised(exception)
        return self.ctx.realize(inner.call_method(self.ctx, "throw", [exception], {}))

    def _goes_on_with(self, raised: Raised) -> bool:
        """Go on behind the `yield from` if its iterator has ended; since 3.12 a handler does so."""
        if sys.version_info >= (3, 12) or not issubclass(raised.value.python_type(), StopIteration):
            return False
        sends = [one for one in self.frame.decoded.instructions[: self.frame.index] if one.name == "SEND"]
        assert sends[-1].target is not None
        self.frame.pop()
        self.frame.push(raised.value.get_attr(self.ctx, "value"))
        self.frame.index = sends[-1].target
        return True

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate send, throw, close and the explicit special methods."""
        if name == "__next__":
            return self.next(ctx)
        if name == "__iter__":
            return self
        if name == "send":
            return self._resume(ctx.realize(args[0]))
        if name == "throw":
            kind, thrown = ctx.realize(args[0]), ctx.realize(args[1]) if len(args) > 1 else Constant(None)
            if isinstance(kind, ClassValue) and not isinstance(thrown, ExceptionValue):
                is_none = isinstance(thrown, Constant) and thrown.value is None
                thrown = ctx.realize(ctx.call(kind, [] if is_none else [thrown], {}))
            exception = thrown if isinstance(thrown, ExceptionValue) else kind
            if isinstance(exception, ExceptionValue):
                return self.throw_in(exception)
        if name == "close":
            return self._close()
        raise Break(BUILTIN_METHOD, f"generator method {name!r}")

    def _close(self) -> Value:
        if self.started and not self.finished:
            try:
                self.throw_in(ExceptionValue(GeneratorExit, []))
            except Raised as raised:
                if not issubclass(raised.value.python_type(), GeneratorExit | StopIteration):
                    raise
            else:
                self.ctx.throw(RuntimeError, "generator ignored GeneratorExit")
        self.finished = True
        return Constant(None)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the names and the methods."""
        if name in _NAMES:  # the generator that is handed over has the same
            known = self.names[_NAMES.index(name)]
            if self.source is not None:
                ctx.guards.add(Attribute(self.source, name), GuardKind.EQUALS, known)
            return Constant(known)
        return type_attribute(ctx, self, name)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Set one of the names."""
        if name not in _NAMES or self.source is not None:
            super().set_attr(ctx, name, value)
            return
        text = ctx.realize(value)
        if not issubclass(text.python_type(), str):
            ctx.throw(TypeError, f"{name} must be set to a string object")
        known = str(text.constant())
        self.names = (known, self.names[1]) if name == "__name__" else (self.names[0], known)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a real generator that stands at the same place."""
        return rebuild_generator(self, self.names, self._state(), out)

    def replay(self, out: Rebuilder) -> list[str]:
        """Move the original, which capture handed over at an earlier break."""
        return replay_generator(self, self._state(), out)

    def _state(self) -> State:
        if self.running:
            self.unsupported("handing over a running generator", CANNOT_RESUME)
        return state_of(self.frame, started=self.started, finished=self.finished)


def make_generator(ctx: Recorder, frame: FrameState) -> SuspendedValue:
    """Return the generator over a fresh frame."""
    return GeneratorValue(ctx, frame)
