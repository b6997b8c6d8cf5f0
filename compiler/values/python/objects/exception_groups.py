"""Exception groups: made, split by what `except*` wants, and put together again."""

from collections.abc import Callable

from ...constant import Constant
from ...value import Arguments, CaptureContext, Keywords, Value
from ..containers.lists import ListValue
from ..containers.tuples import TupleValue
from .classes import ClassValue
from .exceptions import ExceptionValue, native_of
from .functions import BoundMethod, FunctionValue
from .instances import ObjectValue

Matches = Callable[[ExceptionValue], bool]
NONE = Constant(None)


class GroupValue(ExceptionValue):
    """An exception group; members: the exceptions inside, in order."""

    members: tuple[ExceptionValue, ...] = ()

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give message and members."""
        if name == "message":
            return self.args[0]
        if name == "exceptions":
            return TupleValue(list(self.members))
        return super().get_attr(ctx, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate split, subgroup and derive."""
        if name == "derive" and self.method(ctx, "derive") is None:
            return make_group(ctx, BaseExceptionGroup, [self.args[0], *args])
        if name == "split":
            return TupleValue([part or NONE for part in split(ctx, self, condition(ctx, args[0]))])
        if name == "subgroup":
            return split(ctx, self, condition(ctx, args[0]))[0] or NONE
        return super().call_method(ctx, name, args, kwargs)

    def call_native(self, ctx: CaptureContext, method: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the same where the class has been looked into."""
        name = getattr(method, "name", "")
        if name in ("split", "subgroup", "derive"):
            if name == "derive":
                return make_group(ctx, BaseExceptionGroup, [self.args[0], *args])
            return self.call_method(ctx, name, args, kwargs)
        if name == "__init__":
            return NONE
        return super().call_native(ctx, method, args, kwargs)


def make_group(ctx: CaptureContext, kind: type, args: Arguments) -> GroupValue:
    """Evaluate the construction of a group; Python itself checks the arguments."""
    values = [ctx.realize(arg) for arg in args]
    inside = [ctx.realize(item) for item in ctx.unpack(values[1])] if len(values) > 1 else []
    reals: list[object] = [values[0].stand_in() if values else None]
    reals.append(
        [
            native_of(item.python_type())()
            if isinstance(item, ExceptionValue)
            and not isinstance(item, GroupValue)
            and not issubclass(item.kind, UnicodeError)
            else item.stand_in()
            if not isinstance(item, ExceptionValue)
            else Exception()
            for item in inside
        ]
    )
    native = native_of(kind)
    try:
        real = native.__new__(native, *reals[: len(values)])
    except (TypeError, ValueError) as error:
        ctx.throw(type(error), *error.args)
    group = GroupValue(type(real) if kind is native else kind, values)
    group.members = tuple(item for item in inside if isinstance(item, ExceptionValue))
    return group


def condition(ctx: CaptureContext, classes: Value) -> Matches:
    """Return the test that split and subgroup make of their argument."""
    classes = ctx.realize(classes)
    if isinstance(classes, TupleValue):
        tests = [condition(ctx, item) for item in classes.elements(ctx)]
        return lambda exception: any(test(exception) for test in tests)
    if isinstance(classes, ClassValue):
        kind = classes.kind
        return lambda exception: issubclass(exception.kind, kind)
    if isinstance(classes, FunctionValue | BoundMethod | ObjectValue):
        return lambda exception: ctx.realize(ctx.call(classes, [exception], {})).truth(ctx)
    ctx.throw(TypeError, "expected a function, exception type or tuple of exception types")


def split(
    ctx: CaptureContext, group: ExceptionValue, matches: Matches
) -> tuple[ExceptionValue | None, ExceptionValue | None]:
    """Return what matches and what does not, in groups of the same shape; None for nothing."""
    if matches(group):
        return group, None
    if not isinstance(group, GroupValue):
        return None, group
    parts = [split(ctx, member, matches) for member in group.members]
    first = [part for part, _ in parts if part is not None]
    rest = [part for _, part in parts if part is not None]
    return _derived(ctx, group, first), _derived(ctx, group, rest)


def _derived(ctx: CaptureContext, group: GroupValue, members: list[ExceptionValue]) -> ExceptionValue | None:
    if not members:
        return None
    derived = ctx.realize(group.call_method(ctx, "derive", [ListValue(list(members))], {}))
    assert isinstance(derived, ExceptionValue)
    derived.cause, derived.context, derived.suppressed, derived.raised = (
        group.cause,
        group.context,
        group.suppressed,
        group.raised,
    )
    notes = group.namespace.entries.get("__notes__")
    if notes is not None:
        derived.namespace.set_item(ctx, notes.key, ListValue(ctx.unpack(notes.value)))
    return derived


def match_group(ctx: CaptureContext, exception: Value, classes: Value) -> tuple[Value, Value]:
    """Return (rest, match) of an `except*` clause."""
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
    return rest or NONE, match or NONE


def what_remains(ctx: CaptureContext, original: Value, raised: list[Value]) -> Value:
    """Return what is raised after all `except*` clauses: what no clause took, and what they raised."""
    exceptions = [item for item in raised if isinstance(item, ExceptionValue)]
    if not exceptions:
        return NONE
    if not isinstance(original, GroupValue):
        return exceptions[0]
    again = {id(leaf) for item in exceptions if _is_part(item, original) for leaf in _leaves(item)}
    new = [item for item in exceptions if not _is_part(item, original)]
    rest = split(ctx, original, lambda exception: id(exception) in again)[0] if again else None
    if not new:
        return rest or NONE
    return make_group(ctx, BaseExceptionGroup, [Constant(""), ListValue([*new, *([rest] if rest else [])])])


def _leaves(exception: ExceptionValue) -> list[ExceptionValue]:
    if not isinstance(exception, GroupValue):
        return [exception]
    return [leaf for member in exception.members for leaf in _leaves(member)]


def _is_part(exception: ExceptionValue, original: GroupValue) -> bool:
    """Return whether an exception is what was left of the original one, not one that a clause raised."""
    leaves = {id(leaf) for leaf in _leaves(original)}
    same = exception.context is original.context and exception.cause is original.cause
    return same and isinstance(exception, GroupValue) and all(id(leaf) in leaves for leaf in _leaves(exception))
