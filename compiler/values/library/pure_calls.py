"""Functions of the standard library that are run while capturing: pure, called with arguments that are known."""

import cmath
import os
import pickle
import posixpath
import re
import string
import textwrap
import types
from collections.abc import Callable
from typing import Any

from ..constant import MadeObject, fold
from ..python.containers.iterators import matches
from ..python.containers.tuples import TupleValue
from ..reasons import ARGUMENT_NOT_KNOWN, SIDE_EFFECT_CALL, Break
from ..rule_tables import CallRule, calls
from ..value import Arguments, CaptureContext, Keywords, Value
from .conversion_calls import folded, known_argument

_PURE: list[Callable[..., object]] = [
    *(function for name, function in vars(cmath).items() if callable(function) and not name.startswith("_")),
    re.match,
    re.search,
    re.fullmatch,
    re.sub,
    re.subn,
    re.split,
    re.findall,
    re.compile,
    re.escape,
    posixpath.join,
    posixpath.basename,
    posixpath.dirname,
    posixpath.split,
    posixpath.splitext,
    posixpath.normpath,
    posixpath.isabs,
    posixpath.commonprefix,
    string.capwords,
    textwrap.dedent,
    textwrap.indent,
    textwrap.fill,
    textwrap.shorten,
    os.fspath,
    str.maketrans,
    bytes.maketrans,
]
_BOUND = {
    (bytes, "fromhex"),
    (int, "from_bytes"),
    (float, "fromhex"),
}  # class methods written in C: a new object at every look-up
_FROZEN = (re.Pattern, re.Match)  # objects without state that changes; their methods are pure


def _demand_plain(ctx: CaptureContext, value: Value, what: str) -> None:
    """Raise Break for an instance of a subclass, which the result may hold."""
    value = ctx.realize(value)
    if value.contents is not None:
        raise Break(ARGUMENT_NOT_KNOWN, f"{what} of {value.describe()}")


def _is_debug_flag(value: Value) -> bool:
    known = value.constant() if value.is_constant() else None
    return isinstance(known, re.RegexFlag) and bool(known & re.DEBUG)


def _rule(function: Callable[..., object]) -> CallRule:
    name = getattr(function, "__name__", "call")

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        for value in (*args, *kwargs.values()):
            _demand_plain(ctx, value, name)
        given = map(ctx.realize, (*args, *kwargs.values()))
        if function.__module__ == "re" and any(map(_is_debug_flag, given)):
            raise Break(SIDE_EFFECT_CALL, f"re.{name} with re.DEBUG, which prints")
        return folded(ctx, function, args, kwargs)

    return rule


def _iterator_rule(function: Callable[..., Any]) -> CallRule:
    """Return the rule of a function that gives an iterator: a new one at every call, over what is found now."""
    name = getattr(function, "__name__", "call")

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        for value in (*args, *kwargs.values()):
            _demand_plain(ctx, value, name)
        known = [known_argument(ctx, arg, name) for arg in args]
        named = {key: known_argument(ctx, value, name) for key, value in kwargs.items()}

        def make() -> tuple[object, ...]:
            return tuple(function(*known, **named))

        given = ctx.realize(fold(ctx, make))
        found = tuple(ctx.realize(part).constant() for part in ctx.unpack(given))
        return matches(ctx, TupleValue([MadeObject(part, make, place) for place, part in enumerate(found)]))

    return rule


calls(re.finditer)(_iterator_rule(re.finditer))
for _function in {id(function): function for function in _PURE}.values():
    calls(_function)(_rule(_function))


@calls(pickle.dumps)
def _dumps(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Pickle one number, text or empty container; of more, the bytes tell which parts are one object."""
    value = ctx.realize(args[0]) if len(args) == 1 and not kwargs else None
    known = value.constant() if value is not None and value.contents is None and value.is_constant() else ...
    if type(known) not in _PICKLED or (isinstance(known, _SIZED) and known):
        raise Break(ARGUMENT_NOT_KNOWN, "pickle.dumps of more than one number, text or empty container")
    return fold(ctx, pickle.dumps, known)


_SIZED = (dict, list, tuple)
_PICKLED = (*_SIZED, int, float, bool, str, bytes, type(None))


def pure_method_rule(function: object) -> CallRule | None:
    """Give the rule of a method in C that is bound to an immutable object: a pattern, a date, a class."""
    if not isinstance(function, types.BuiltinFunctionType):
        return None
    owner = function.__self__
    if isinstance(owner, re.Pattern) and function.__name__ in ("finditer", "scanner"):
        return _iterator_rule(function) if function.__name__ == "finditer" else None
    if function.__name__ == "mro" and isinstance(owner, type):
        return _rule(function)
    if isinstance(owner, _FROZEN) or (isinstance(owner, type) and (owner, function.__name__) in _BOUND):
        return _rule(function)
    return None
