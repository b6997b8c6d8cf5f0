"""What functions and methods in C refuse before they look at an argument: too few, too many, unknown keywords."""

import collections
import functools
import inspect
import types
from typing import Any

from .builtin_arguments import BUILTIN_ARGUMENTS, BuiltinArguments
from .reasons import BUILTIN_METHOD, Break
from .value import Arguments, CaptureContext, Keywords, Value

SlotOrMethod = types.MethodDescriptorType | types.WrapperDescriptorType | types.ClassMethodDescriptorType


def _rows(kind: type, least: int, most: int | None, names: str, keywords: str = "") -> dict[object, BuiltinArguments]:
    form = BuiltinArguments(least, most, frozenset(keywords.split()))
    return {kind.__dict__[name]: form for name in names.split()}


def _of_sets(kind: type, changing: str, changing_many: str) -> dict[object, BuiltinArguments]:
    return {
        **_rows(kind, 1, 1, f"__contains__ isdisjoint issubset issuperset symmetric_difference {changing}"),
        **_rows(kind, 0, None, f"difference intersection union {changing_many}"),
        **_rows(kind, 0, 0, "copy"),
    }


_ANY_KEYWORD = BuiltinArguments(0, 1, None)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.items()))

_WITHOUT_SIGNATURE: dict[object, BuiltinArguments] = {
    **_rows(int, 0, 0, "conjugate __trunc__ __floor__ __ceil__"),
    **_rows(int, 0, 1, "__round__"),
    **_rows(str, 1, 3, "count find index rfind rindex startswith endswith"),
    **_rows(bytes, 1, 3, "count find index rfind rindex startswith endswith"),
    **_rows(list, 1, 1, "__getitem__"),
    **_rows(dict, 0, 0, "keys items values clear copy"),
    **_rows(dict, 1, 1, "__getitem__"),
    **_rows(dict, 1, 2, "pop"),
    dict.__dict__["update"]: _ANY_KEYWORD,
    **_rows(collections.OrderedDict, 0, 0, "keys items values clear copy __reversed__"),
    **_rows(collections.OrderedDict, 1, 2, "pop", "key default"),
    collections.OrderedDict.__dict__["update"]: _ANY_KEYWORD,
    **_rows(collections.defaultdict, 0, 0, "copy __copy__"),
    **_rows(collections.defaultdict, 1, 1, "__missing__"),
    **_of_sets(set, "add discard remove symmetric_difference_update", "difference_update intersection_update update"),
    **_rows(set, 0, 0, "clear pop"),
    **_of_sets(frozenset, "", ""),
    **_rows(collections.deque, 0, 0, "clear __copy__ copy popleft pop reverse __reversed__"),
    **_rows(collections.deque, 1, 1, "append appendleft count extend extendleft remove"),
    **_rows(collections.deque, 1, 3, "index"),
    **_rows(collections.deque, 2, 2, "insert"),
    **_rows(collections.deque, 0, 1, "rotate"),
    **{method: form for kind in _VIEWS for method, form in _rows(kind, 1, 1, "isdisjoint").items()},
    **_rows(types.MappingProxyType, 1, 2, "get"),
    **_rows(types.MappingProxyType, 0, 0, "keys items values copy __reversed__"),
    **_rows(types.GeneratorType, 1, 1, "send"),
    **_rows(types.GeneratorType, 1, 3, "throw"),
    **_rows(types.GeneratorType, 0, 0, "close"),
    **_rows(BaseException, 1, 1, "with_traceback add_note"),
}
"""Methods that do not say themselves which arguments they take."""


@functools.cache
def method_form(method: SlotOrMethod) -> BuiltinArguments | None:
    """Return the form of a method's arguments behind the owner, None where it is not known."""
    known = _WITHOUT_SIGNATURE.get(method)
    if known is not None:
        return known
    try:
        parameters = [*inspect.signature(method).parameters.values()][1:]
    except (ValueError, TypeError):
        return None
    kinds = [parameter.kind for parameter in parameters]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return BuiltinArguments(
        sum(parameter.default is inspect.Parameter.empty for parameter in positional),
        None if inspect.Parameter.VAR_POSITIONAL in kinds else len(positional),
        None if inspect.Parameter.VAR_KEYWORD in kinds else frozenset(by_name),
    )


def demand_arguments(ctx: CaptureContext, function: object, args: Arguments, kwargs: Keywords) -> None:
    """Raise the TypeError of a builtin that does not take arguments of this form; rules look at those they know."""
    form = BUILTIN_ARGUMENTS.get(function) if isinstance(function, type | types.BuiltinFunctionType) else None
    if form is not None and not form.fit(len(args), kwargs):
        _refuse_form(ctx, function, args, kwargs)


def _refuse_form(ctx: CaptureContext, function: Any, args: Arguments, kwargs: Keywords) -> None:
    """Raise the TypeError that Python raises for the form; what stands for the arguments hardly matters."""
    try:
        function(*(_stand_in(ctx, arg) for arg in args), **dict.fromkeys(kwargs))
    except TypeError as error:
        ctx.throw(TypeError, *error.args)


def _stand_in(ctx: CaptureContext, value: Value) -> object:
    try:
        return ctx.realize(value).stand_in()
    except (Exception, Break):  # of a class that cannot be made of nothing, say
        return None


def refuse_arguments(ctx: CaptureContext, function: Any, args: Arguments, kwargs: Keywords) -> None:
    """Raise the TypeError that Python raises for arguments too few, too many or unknown, if it does."""
    try:
        function(*(ctx.realize(arg).stand_in() for arg in args), **dict.fromkeys(kwargs))
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is None:  # of the call, not of what it calls
            ctx.throw(TypeError, *error.args)
    except (Exception, Break):
        return


def demand_method_arguments(
    ctx: CaptureContext, owner: Value, method: object, args: Arguments, kwargs: Keywords, *, bound: bool
) -> None:
    """Raise the TypeError of a method that does not take arguments of this form; rules do not count theirs.

    method: as the class of the owner has it. bound: Python made a bound method of it before the call, which words its
    errors with the owner's own class.
    """
    form = method_form(method) if isinstance(method, SlotOrMethod) else None
    if form is None or form.fit(len(args), kwargs):
        return
    try:
        stand_in = owner.stand_in()
    except Break:
        owner.unsupported("method with arguments of another form", BUILTIN_METHOD)
    if isinstance(method, types.ClassMethodDescriptorType):
        called = method.__get__(None, type(stand_in))
    else:
        assert isinstance(method, SlotOrMethod)
        called = method.__get__(stand_in) if bound else functools.partial(method, stand_in)
    _refuse_form(ctx, called, args, kwargs)
