"""The tables that the rule modules fill: callable -> rule for calling it, type -> rule for wrapping a real object.

A rule belongs to exactly one entry: registering a second one fails. `rules.py` lists the modules that fill the tables.
"""

from collections.abc import Callable

from .source import Source
from .value import Arguments, CaptureContext, Keywords, Value

CallRule = Callable[[CaptureContext, Arguments, Keywords], Value]
CallFamily = Callable[[object], CallRule | None]  # gives the rule of a callable that it knows by its kind
CALL_RULES: dict[int, tuple[object, CallRule]] = {}  # id of a builtin -> (the builtin, kept alive; its rule)

WrapRule = Callable[[CaptureContext, object, Source], Value]
WRAP_RULES: dict[type, WrapRule] = {}


def calls(*functions: object) -> Callable[[CallRule], CallRule]:
    """Register the rule for calling some builtins."""

    def register(rule: CallRule) -> CallRule:
        for function in functions:
            assert id(function) not in CALL_RULES, function
            CALL_RULES[id(function)] = (function, rule)
        return rule

    return register


def wraps_type(*kinds: type) -> Callable[[WrapRule], WrapRule]:
    """Register the rule for making values of real objects of these exact types."""

    def register(rule: WrapRule) -> WrapRule:
        for kind in kinds:
            assert kind not in WRAP_RULES, kind
            WRAP_RULES[kind] = rule
        return rule

    return register
