"""`functools.partial` objects: a function, a tuple and a dictionary, each of which a program may look at and keep."""

import functools
from typing import Any

from ...constant import Constant, MethodOf
from ...guard import GuardKind
from ...reasons import ATTRIBUTE
from ...source import BaseContents, Source
from ...type_attributes import require_attribute
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from ..containers.mapping_views import Entry
from ..containers.mappings import DictValue
from ..containers.tuples import TupleValue
from .attributes import class_lookup


class PartialValue(Value):
    """A `functools.partial` object; keywords: its own dictionary, which the program may change."""

    always_true = True
    equal_by_identity = True

    def __init__(self, function: Value, args: TupleValue, keywords: Value, source: Source | None = None) -> None:
        self.function = function
        self.args = args
        self.keywords = keywords
        self.source = source
        self.attributes: dict[str, Value] = {}
        self.has_dictionary = False  # whether it has had attributes of its own

    def named(self, ctx: CaptureContext) -> Keywords:
        """Return the stored keyword arguments as they are now."""
        self.keywords = keywords = ctx.realize(self.keywords)
        assert isinstance(keywords, DictValue)
        entries = keywords.read_all(ctx).values()
        return {_name_of(entry): entry.value for entry in entries}

    def python_type(self) -> type:
        """Return functools.partial."""
        return functools.partial

    def stand_in(self) -> object:
        """Return a partial."""
        return functools.partial(_not_called)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Call the function with the stored arguments in front."""
        stored = self.args.elements(ctx)
        return ctx.calls.hand_on(self, self.function, [*stored, *args], {**self.named(ctx), **kwargs})

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Keep an attribute of a partial made here."""
        if self.source is not None or name in ("func", "args", "keywords", "__dict__", "__class__"):
            self.unsupported(f"setting attribute {name!r}", ATTRIBUTE)
        self.attributes[name] = value
        self.has_dictionary = True

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Delete an attribute that was set here; others the partial may have from outside."""
        if self.source is not None:
            self.unsupported(f"deleting attribute {name!r}", ATTRIBUTE)
        if self.attributes.pop(name, None) is None:
            super().del_attr(ctx, name)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give func, args and keywords, and attributes set here."""
        if name in self.attributes:
            return ctx.realize(self.attributes[name])
        if name in ("func", "args", "keywords"):
            return ctx.realize({"func": self.function, "args": self.args, "keywords": self.keywords}[name])
        require_attribute(ctx, self, name)
        if name == "__call__":
            return MethodOf(self, name)
        if name == "__class__":
            return ctx.known(functools.partial)
        self.unsupported(f"attribute {name!r}", ATTRIBUTE)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate an explicit `__call__`; look others up."""
        return self.call(ctx, args, kwargs) if name == "__call__" else super().call_method(ctx, name, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new partial; its dictionary is filled afterwards, as it may hold the partial itself."""
        parts = [out.value(self.function), *(out.value(arg) for arg in self.args.items)]
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.python_type())}({', '.join(parts)})")
        out.bind(self, name)
        assert isinstance(self.keywords, DictValue)
        for entry in self.keywords.entries.values():
            out.line(f"{name}.keywords[{out.value(entry.key)}] = {out.value(entry.value)}")
        for key, value in self.attributes.items():
            out.line(f"{out.inject(setattr)}({name}, {key!r}, {out.value(value)})")
        return name


class _StoredArguments(TupleValue):
    """The tuple that a partial made here holds."""

    owner: PartialValue

    def rebuild(self, out: Rebuilder) -> str:
        """Take it from the partial."""
        name = out.fresh()
        out.line(f"{name} = {out.value(self.owner)}.args")
        return name


class _StoredKeywords(DictValue):
    """The dictionary that a partial made here holds."""

    owner: PartialValue

    def rebuild(self, out: Rebuilder) -> str:
        """Take it from the partial."""
        name = out.fresh()
        out.line(f"{name} = {out.value(self.owner)}.keywords")
        return name


def make_partial(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `functools.partial(...)`: one around another without a `__dict__` becomes one around its function."""
    function, rest = ctx.realize(args[0]), list(args[1:])
    if class_lookup(function.python_type(), "__call__")[0] is None:
        ctx.throw(TypeError, "the first argument must be callable")
    named: Keywords = dict(kwargs)
    if isinstance(function, PartialValue) and function.source is not None:
        asked = BaseContents(function.source, holds_dictionary)
        ctx.guards.add(asked, GuardKind.EQUALS, function.has_dictionary)
    if isinstance(function, PartialValue) and not function.has_dictionary:
        rest = [*function.args.elements(ctx), *rest]
        named = {**function.named(ctx), **kwargs}
        function = function.function
    stored = _StoredArguments(rest)
    keywords = _StoredKeywords()
    for key, value in named.items():
        keywords.entries[key] = Entry(Constant(key), value)
    stored.owner = keywords.owner = partial = PartialValue(function, stored, keywords)
    return partial


def holds_dictionary(partial: Any) -> bool:
    """Return whether a partial has a `__dict__`, without giving it one."""
    return partial.__reduce__()[2][3] is not None


def _name_of(entry: Entry) -> str:
    key = entry.key
    if not isinstance(key, Constant) or not isinstance(key.value, str):
        key.unsupported("a keyword that is not a text", ATTRIBUTE)
    return key.value


def _not_called() -> None:
    """Stand in for the function of a partial."""
