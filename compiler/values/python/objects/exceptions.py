"""Exceptions of the evaluated program: arguments, what their class keeps in fields of its own, causes and contexts."""

import types
from collections.abc import Iterator
from typing import Protocol

from ....base.origin import Origin
from ...constant import Constant
from ...reasons import ATTRIBUTE, UNSUPPORTED_OBJECT, SkipFrame
from ...source import Attribute, Source
from ...traces import give_traceback
from ...value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value
from ..containers.lists import ListValue
from ..containers.tuples import TupleValue
from .attributes import MISSING, NativeMethod, class_lookup, is_native, told_name
from .instances import INSTANCES, ObjectValue

_CHAIN = {"__cause__": "cause", "__context__": "context"}


class TracebackValue(Value):
    """The traceback of an exception; it can be passed on, not looked into."""

    always_true = True

    def __init__(self, exception: Value) -> None:
        self.exception = exception

    def python_type(self) -> type:
        """Return the traceback type."""
        return types.TracebackType

    def rebuild(self, out: Rebuilder) -> str:
        """Take it from the exception."""
        return f"{out.value(self.exception)}.__traceback__"


class LeftFrame(Protocol):
    """A frame that an exception has left."""

    def kept_to_the_end(self) -> list[Value]:
        """Return what its names hold that does something when the exception is let go of."""


class _Holder:
    """Stands for an argument that is not known while Python's own class takes the arguments apart."""


def native_of(kind: type) -> type:
    """Return the builtin class that an exception class derives from."""
    return next(base for base in kind.__mro__ if is_native(base))


class ExceptionValue(ObjectValue):
    """An exception instance. given: what its class written in C was called with; cause, context: as on the object."""

    copies_plainly = False

    def __init__(self, kind: type, args: list[Value], real: object = MISSING, source: Source | None = None) -> None:
        super().__init__(kind, real, source)
        self.args = args
        self.constructor_arguments: tuple[list[Value], Keywords] = (list(args), {})
        self.fields: dict[str, Value] | None = None  # taken apart when asked for
        self.set_fields: dict[str, Value] = {}
        self.cause: Value | None = None
        self.context: Value | None = None
        self.suppressed = False
        self.raised = False
        self.of_interpreter = False  # raised by Python: the name and the object that were looked up are not kept
        self.raised_at: Origin | None = None
        self.frames: list[LeftFrame] = []  # those that it has left: its traceback holds what their names held
        self.traced = 0  # how many frames its traceback shows: from where it was raised to where it was caught
        self.untraced = False  # its traceback was set to None
        self.trace: object = None  # stands for the traceback: another one with every entry
        self.whole: ExceptionValue | None = None  # the group of which it is a part

    def stand_in(self) -> object:
        """Return an exception of the class, or one of a class of the same name."""
        if native_of(self.kind) is not self.kind or issubclass(self.kind, UnicodeError | BaseExceptionGroup):
            return super().stand_in()
        return self.kind()

    def initialise(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate the `__init__` of the class written in C; a new OSError becomes one of the class of its number."""
        if self.source is not None:
            self.unsupported("initialising an exception again", ATTRIBUTE)
        self.args = [ctx.realize(arg) for arg in args]
        self.constructor_arguments, self.fields = (list(self.args), dict(kwargs)), None
        if kwargs or native_of(self.kind) is not self.kind or issubclass(self.kind, OSError | UnicodeError):
            self.native_fields(ctx)

    def looked_up(self, owner: Value, name: str) -> None:
        """Note that a look-up ended by this: where the program named neither, Python enters the name and the object."""
        given = {*self.constructor_arguments[1], *self.set_fields}
        if issubclass(self.kind, AttributeError) and not given & {"name", "obj"} and self.source is None:
            self.set_fields |= {"name": Constant(name), "obj": owner}

    def native_fields(self, ctx: CaptureContext) -> dict[str, Value]:
        """Return what the class written in C keeps of its arguments; Python's own class takes them apart."""
        if self.fields is not None:
            return self.fields
        holders: dict[int, Value] = {}

        def real(value: Value) -> object:
            value = ctx.realize(value)
            if value.is_constant():
                return value.constant()
            holder = _Holder()
            holders[id(holder)] = value
            stand_ins.append(holder)
            return holder

        stand_ins: list[object] = []
        native = native_of(self.kind)
        try:
            instance = native(
                *map(real, self.constructor_arguments[0]),
                **{name: real(value) for name, value in self.constructor_arguments[1].items()},
            )
        except TypeError as error:
            ctx.throw(TypeError, *(str(arg).replace(native.__name__, told_name(self.kind)) for arg in error.args))
        if type(instance) is not native and self.kind is native:
            self.kind = type(instance)
        if isinstance(instance, OSError):
            self.args = [holders[id(arg)] if id(arg) in holders else ctx.known(arg) for arg in instance.args]
        fields = {name: getattr(instance, name, None) for name in _field_names(native)}
        self.fields = {
            name: holders[id(value)] if id(value) in holders else ctx.known(value) for name, value in fields.items()
        }
        return self.fields

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give args, the chain and the fields of the class, else look up as for any object."""
        if self.of_interpreter and name in ("name", "obj") and name not in self.set_fields:
            raise SkipFrame(ATTRIBUTE, f"attribute {name!r} of an error that Python itself raised")
        if name == "args":
            return TupleValue(list(self.args))
        if self.real is not MISSING:
            if name in _CHAIN and getattr(self, _CHAIN[name]) is None and self.source is not None:
                return ctx.realize(ctx.wrap(getattr(self.real, name), Attribute(self.source, name)))
            if name in ("__traceback__", "__suppress_context__"):
                self.unsupported(f"attribute {name!r}", ATTRIBUTE)
        if name in _CHAIN:
            return getattr(self, _CHAIN[name]) or Constant(None)
        if name == "__suppress_context__":
            return Constant(self.suppressed)
        if name == "__traceback__":
            return TracebackValue(self) if self.raised and not self.untraced else Constant(None)
        if name in self.set_fields:
            return ctx.realize(self.set_fields[name])
        if self.real is MISSING and name in _field_names(native_of(self.kind)):
            return self.native_fields(ctx)[name]
        return super().get_attr(ctx, name)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Keep chain and fields; a traceback is made again by whoever raises."""
        if name in ("__traceback__", *_CHAIN, "__suppress_context__", "args") and self.source is not None:
            self.unsupported(f"setting attribute {name!r}", ATTRIBUTE)
        if name in _CHAIN:
            linked = ctx.realize(value)
            is_none = linked.python_type() is type(None)
            if not is_none and not issubclass(linked.python_type(), BaseException):
                what = _CHAIN[name]
                ctx.throw(TypeError, f"exception {what} must be None or derive from BaseException")
            setattr(self, _CHAIN[name], None if is_none else linked)
            self.suppressed = self.suppressed or name == "__cause__"
        elif name == "__suppress_context__":
            self.suppressed = ctx.realize(value).truth(ctx)
        elif name == "args":
            self.args = list(ctx.unpack(value))
        elif name in _field_names(native_of(self.kind)) and self.source is None:
            self.set_fields[name] = value
        elif name == "__traceback__":
            self.take_traceback(ctx, value)
        else:
            super().set_attr(ctx, name, value)

    def take_traceback(self, ctx: CaptureContext, value: Value) -> None:
        """Set the traceback: to None or its own, which whoever raises it makes again; Break for another's."""
        given = ctx.realize(value)
        if given.python_type() is type(None):
            self.trace, self.untraced = None, True
        elif not issubclass(given.python_type(), types.TracebackType):
            ctx.throw(TypeError, "__traceback__ must be a traceback or None")
        elif not isinstance(given, TracebackValue) or given.exception is not self:
            self.unsupported("setting a traceback", ATTRIBUTE)

    def passes(self, origin: Origin, *, again: bool = False) -> None:
        """Note that it leaves a line, or is caught around it; the first is where it was raised.

        again: by what raises it once more, which adds nothing to its traceback.
        """
        self.untraced = False
        if not again:
            self.trace = object()
        if self.raised_at is None:
            self.raised_at = origin
        self.traced = max(self.traced, len(self.raised_at.chain()) - len(origin.chain()) + 1)

    def entered(self, handled: Value | None) -> None:
        """Note that the exception is raised while another one is handled, which becomes its context."""
        self.raised = True
        if handled is None or handled is self or not isinstance(handled, ExceptionValue):
            return
        before: Value = handled
        seen = set[int]()
        while isinstance(before, ExceptionValue) and id(before) not in seen:  # a program may have closed the chain
            if before.source is not None and self.source is not None:
                before.unsupported(
                    "raising an exception that may be in the context of the one handled", UNSUPPORTED_OBJECT
                )
            if before.context is None:
                break
            if before.context is self:  # Python cuts the chain where it would close
                before.context = None
                break
            seen.add(id(before))
            before = before.context
        self.context = handled

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `with_traceback`."""
        if name == "with_traceback" and len(args) == 1:
            self.take_traceback(ctx, args[0])
            return self
        return super().call_method(ctx, name, args, kwargs)

    def call_native(self, ctx: CaptureContext, method: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `BaseException.__init__`, which sets the arguments, and notes."""
        assert isinstance(method, NativeMethod)
        if method.name == "__init__":
            self.initialise(ctx, args, kwargs)
            return Constant(None)
        if method.name == "with_traceback" and len(args) == 1:
            self.take_traceback(ctx, args[0])
            return self
        if method.name == "add_note" and len(args) == 1:
            if not issubclass(ctx.realize(args[0]).python_type(), str):
                kind = told_name(ctx.realize(args[0]).python_type())
                ctx.throw(TypeError, f"note must be a str, not '{kind}'")
            notes = self.namespace.find(ctx, Constant("__notes__"))
            if notes is None:
                notes = ListValue([])
                self.namespace.set_item(ctx, Constant("__notes__"), notes)
            notes.call_method(ctx, "append", args, {})
            return Constant(None)
        return super().call_native(ctx, method, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the exception."""
        name = out.fresh()
        native = out.inject(native_of(self.kind))
        args = "".join(f", {out.value(arg)}" for arg in self.constructor_arguments[0])
        named = "".join(f", {key}={out.value(value)}" for key, value in self.constructor_arguments[1].items())
        out.line(f"{name} = {native}.__new__({out.class_name(self.kind)}{args})")
        out.bind(self, name)
        out.line(f"{native}.__init__({name}{args}{named})")
        if self.args != self.constructor_arguments[0]:
            out.line(f"{name}.args = ({''.join(f'{out.value(arg)}, ' for arg in self.args)})")
        for key, value in self.set_fields.items():
            out.line(f"{name}.{key} = {out.value(value)}")
        for word, attribute in _CHAIN.items():
            linked = getattr(self, attribute)
            if linked is not None:
                out.line(f"{name}.{word} = {out.value(linked)}")
        if self.suppressed or self.cause is not None:
            out.line(f"{name}.__suppress_context__ = {self.suppressed}")
        for entry in self.namespace.entries.values():
            out.line(f"{name}.__dict__[{out.value(entry.key)}] = {out.value(entry.value)}")
        if self.raised_at is not None:
            self._rebuild_traceback(name, self.raised_at, out)
        return name

    def _rebuild_traceback(self, name: str, raised_at: Origin, out: Rebuilder) -> None:
        if self.whole is not None and self.trace is self.whole.trace:  # Python knows a part by its traceback
            out.line(f"{name}.__traceback__ = {out.value(self.whole)}.__traceback__")
            return
        places = raised_at.chain()[-self.traced :]
        kept = dict.fromkeys(out.value(value) for frame in self.frames for value in frame.kept_to_the_end())
        held = "".join(f", {value}" for value in kept)
        out.line(f"{out.inject(give_traceback)}({name}, {out.inject(places)}{held})")


def _field_names(native: type) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names(native)))


def _names(native: type) -> Iterator[str]:
    for base in native.__mro__:
        for name, raw in base.__dict__.items():
            field = isinstance(raw, types.MemberDescriptorType | types.GetSetDescriptorType)
            if field and not name.startswith("__") and name != "args":
                yield name


def make_exception(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate the construction of an exception."""
    maker = class_lookup(kind, "__new__")[1]
    init = class_lookup(kind, "__init__")[1]
    function = maker.__func__ if isinstance(maker, staticmethod) else None
    if isinstance(function, types.FunctionType):
        exception = ctx.call(ctx.known(function), [ctx.known(kind), *args], kwargs)
        if not isinstance(exception, ExceptionValue) or not issubclass(exception.kind, kind):
            return exception
    else:
        exception = ExceptionValue(kind, [ctx.realize(arg) for arg in args])
    if isinstance(init, types.FunctionType):
        ctx.call(ctx.known(init), [exception, *args], kwargs)
    else:
        exception.initialise(ctx, args, kwargs)
    return exception


INSTANCES[BaseException] = lambda kind: ExceptionValue(kind, [])


def attribute_of(ctx: CaptureContext, owner: Value, name: str) -> Value:
    """Evaluate `owner.name`; an error that the program raises there for want of an attribute is the look-up's."""
    try:
        return owner.get_attr(ctx, name)
    except Raised as raised:
        if isinstance(raised.value, ExceptionValue):
            raised.value.looked_up(owner, name)
        raise
