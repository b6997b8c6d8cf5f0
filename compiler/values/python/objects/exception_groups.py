"""Exception groups: made, split by what `except*` wants, and put together again."""

import sys
from collections.abc import Callable
from typing import Any
from weakref import ReferenceType, ref

from ...constant import Constant
from ...reasons import ATTRIBUTE, UNSUPPORTED_OBJECT
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from ..containers.lists import ListValue
from ..containers.sequences import SequenceValue
from ..containers.tuples import TupleValue
from .attributes import told_name
from .classes import ClassValue
from .exceptions import ExceptionValue, native_of
from .functions import FunctionValue

Matches = Callable[[ExceptionValue], bool]
NONE = Constant(None)


class GroupValue(ExceptionValue):
    """An exception group; members: the exceptions inside, in order.

    tuple_of_members: of a group from outside.  looked_at: the tuple that the program holds of a group made here.  It
    refers to the group, so the group does not hold it: what a handler lets go must be gone at once, as in Python.
    """

    members: tuple[ExceptionValue, ...] = ()
    tuple_of_members: TupleValue | None = None
    looked_at: ReferenceType[TupleValue] | None = None

    def message(self) -> Value:
        """Return the message it was made with, also where `args` has been assigned."""
        return self.constructor_arguments[0][0]

    def exceptions(self) -> TupleValue:
        """Return the tuple of the members, which is the same at every look."""
        known = self.tuple_of_members or (self.looked_at() if self.looked_at is not None else None)
        if known is None:
            known = _Members(self)
            self.looked_at = ref(known)
        return known

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Refuse to set message and members."""
        if name in ("message", "exceptions"):
            ctx.throw(AttributeError, "readonly attribute")
        super().set_attr(ctx, name, value)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give message and members."""
        if name == "message":
            return self.message()
        if name == "exceptions":
            return self.exceptions()
        return super().get_attr(ctx, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate split, subgroup and derive."""
        if name == "derive" and self.method(ctx, "derive") is None:
            return make_group(ctx, BaseExceptionGroup, [self.message(), *args])
        if name == "split":
            return TupleValue([part or NONE for part in split(ctx, self, condition(ctx, args[0]))])
        if name == "subgroup":
            return split(ctx, self, condition(ctx, args[0]), with_rest=False)[0] or NONE
        return super().call_method(ctx, name, args, kwargs)

    def call_native(self, ctx: CaptureContext, method: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the same where the class has been looked into."""
        name = getattr(method, "name", "")
        if name in ("split", "subgroup", "derive"):
            if name == "derive":
                return make_group(ctx, BaseExceptionGroup, [self.message(), *args])
            return self.call_method(ctx, name, args, kwargs)
        if name == "__init__":
            return NONE
        return super().call_native(ctx, method, args, kwargs)


class _Members(TupleValue):
    """The tuple of the members that a group keeps."""

    def __init__(self, group: GroupValue) -> None:
        super().__init__(list(group.members))
        self.group = group

    def rebuild(self, out: Rebuilder) -> str:
        """Take it from the group."""
        name = out.fresh()
        out.line(f"{name} = {out.value(self.group)}.exceptions")
        return name


def make_group(ctx: CaptureContext, kind: type, args: Arguments) -> GroupValue:
    """Evaluate the construction of a group; Python itself checks the arguments."""
    values = [ctx.realize(arg) for arg in args]
    native: Any = native_of(kind)
    checking: Any = kind
    if kind not in (BaseExceptionGroup, ExceptionGroup):
        bases = (native, Exception) if issubclass(kind, Exception) and not issubclass(native, Exception) else (native,)
        checking = type(told_name(kind), bases, {})
    reals: list[object] = [value.stand_in() for value in values]
    inside = list[Value]()
    if len(values) == 2 and isinstance(values[1].contents or values[1], SequenceValue):
        inside = [ctx.realize(item) for item in ctx.unpack(values[1])]
        reals[1] = [_of_the_sort(item) for item in inside]
    try:
        real = native.__new__(checking, *reals)
    except (TypeError, ValueError) as error:
        ctx.throw(type(error), *error.args)
    if len(values) == 2 and len(inside) == 0:
        values[1].unsupported("an exception group of what is not a list or tuple", UNSUPPORTED_OBJECT)
    group = GroupValue(type(real) if kind is native else kind, values)
    group.members = tuple(item for item in inside if isinstance(item, ExceptionValue))
    return group


def _of_the_sort(value: Value) -> object:
    """Return what Python's check of the members of a group takes for such a value."""
    if not isinstance(value, ExceptionValue):
        return value.stand_in()
    return Exception() if issubclass(value.kind, Exception) else BaseException()


def condition(ctx: CaptureContext, classes: Value) -> Matches:
    """Return the test that split and subgroup make of their argument."""
    classes = ctx.realize(classes)
    if isinstance(classes, TupleValue):
        kinds = [_exception_class(ctx, ctx.realize(item)) for item in classes.elements(ctx)]
        return lambda exception: issubclass(exception.kind, tuple(kinds))
    if isinstance(classes, FunctionValue) or (sys.version_info >= (3, 12) and not isinstance(classes, ClassValue)):
        return lambda exception: ctx.realize(ctx.call(classes, [exception], {})).truth(ctx)
    kind = _exception_class(ctx, classes)
    return lambda exception: issubclass(exception.kind, kind)


def _exception_class(ctx: CaptureContext, value: Value) -> type:
    """Return the class that a value is; Python's own TypeError for what is none of exceptions."""
    if isinstance(value, ClassValue) and issubclass(value.kind, BaseException):
        return value.kind
    wrong: Any = (int,)
    try:
        ExceptionGroup("", [ValueError()]).subgroup(wrong)
    except TypeError as error:
        ctx.throw(TypeError, *error.args)
    raise AssertionError("Python took a class that is none of exceptions")


def split(
    ctx: CaptureContext, group: ExceptionValue, matches: Matches, with_rest: bool = True
) -> tuple[ExceptionValue | None, ExceptionValue | None]:
    """Return what matches and what does not, in groups of the same shape; None for nothing.

    What matches as a whole is given as it is. Groups of which only members match are made anew, both halves.
    with_rest: whether what does not match is asked for; if not, no groups are made for it, and None stands for them.
    """
    if matches(group):
        return group, None
    if not isinstance(group, GroupValue):
        return None, group
    parts = [split(ctx, member, matches, with_rest) for member in group.members]
    first = [part for part, _ in parts if part is not None]
    rest = [part for _, part in parts if part is not None]
    return _derived(ctx, group, first), _derived(ctx, group, rest) if with_rest else None


def _derived(ctx: CaptureContext, group: GroupValue, members: list[ExceptionValue]) -> ExceptionValue | None:
    """Return a new group of some members, with what belongs to the exception as a whole taken over."""
    if not members:
        return None
    if group.source is not None:
        group.unsupported("parts of a group from outside", ATTRIBUTE)
    derived = ctx.realize(group.call_method(ctx, "derive", [ListValue(list(members))], {}))
    if not isinstance(derived, GroupValue):
        ctx.throw(TypeError, "derive must return an instance of BaseExceptionGroup")
    derived.raised, derived.raised_at, derived.traced = group.raised, group.raised_at, group.traced
    derived.trace, derived.whole = group.trace, group
    derived.cause, derived.context = group.cause, group.context
    derived.suppressed = True  # Python sets the cause, None too
    notes = group.namespace.entries.get("__notes__")
    if notes is not None:
        derived.namespace.set_item(ctx, notes.key, ListValue(ctx.unpack(notes.value)))
    return derived


def match_group(ctx: CaptureContext, exception: Value, classes: Value) -> tuple[Value, Value]:
    """Return (rest, match) of an `except*` clause."""
    _demand_catchable(ctx, classes)
    if not isinstance(exception, ExceptionValue):
        return NONE, NONE
    matches = condition(ctx, classes)
    if matches(exception):
        if isinstance(exception, GroupValue):
            return NONE, exception
        wrapped = make_group(ctx, BaseExceptionGroup, [Constant(""), TupleValue([exception])])
        wrapped.raised = True
        return NONE, wrapped
    if not isinstance(exception, GroupValue):
        return exception, NONE
    match, rest = split(ctx, exception, matches)
    return (exception, NONE) if match is None else (rest or NONE, match)


def _demand_catchable(ctx: CaptureContext, classes: Value) -> None:
    """Raise what Python raises for classes that no `except*` may name, whatever is raised."""
    classes = ctx.realize(classes)
    named = classes.elements(ctx) if isinstance(classes, TupleValue) else [classes]
    kinds = [one.kind if isinstance(one, ClassValue) else object for one in map(ctx.realize, named)]
    if not all(issubclass(kind, BaseException) for kind in kinds):
        ctx.throw(TypeError, "catching classes that do not inherit from BaseException is not allowed")
    if any(issubclass(kind, BaseExceptionGroup) for kind in kinds):
        ctx.throw(TypeError, "catching ExceptionGroup with except* is not allowed. Use except instead.")


def what_remains(ctx: CaptureContext, original: Value, raised: list[Value]) -> Value:
    """Return what is raised after all `except*` clauses: what no clause took, and what they raised."""
    exceptions = [item for item in raised if isinstance(item, ExceptionValue)]
    if not exceptions:
        return NONE
    if not isinstance(original, GroupValue):
        return exceptions[0]
    again = {id(leaf) for item in exceptions if _is_part(item, original) for leaf in _leaves(item)}
    new: list[Value] = [item for item in exceptions if not _is_part(item, original)]
    rest = split(ctx, original, lambda exception: id(exception) in again, with_rest=False)[0] if again else None
    if not new:
        return rest or NONE
    if rest is not None:
        new.append(rest)
    if len(new) == 1 and not _WRAPS_ONE:
        return new[0]
    together = make_group(ctx, BaseExceptionGroup, [Constant(""), ListValue(new)])
    together.raised = True  # it gets no context from what is handled around it
    return together


def _wraps_one() -> bool:
    """Return whether this Python puts what one clause raised into a group of its own, as 3.11.0 did."""
    try:
        try:
            raise ExceptionGroup("", [ValueError()])
        except* ValueError:
            raise KeyError from None
    except Exception as error:
        return isinstance(error, BaseExceptionGroup)


_WRAPS_ONE = _wraps_one()


def _leaves(exception: ExceptionValue) -> list[ExceptionValue]:
    if not isinstance(exception, GroupValue):
        return [exception]
    return [leaf for member in exception.members for leaf in _leaves(member)]


def _is_part(exception: ExceptionValue, original: GroupValue) -> bool:
    """Return whether an exception is what was left of the original one, or a part that a bare `raise` gave back.

    Python tells by what a part takes over from the whole; `raise part` makes a traceback of its own.
    """
    chained = exception.context is original.context and exception.cause is original.cause
    return isinstance(exception, GroupValue) and chained and exception.trace is original.trace
