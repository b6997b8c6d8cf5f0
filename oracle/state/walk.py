"""What a call can reach: a walk over Python objects from named roots, each once, with a path as a user would write it.

The walk knows kinds of objects, not their use: snapshots rewind what it visits, records describe it.
"""

import contextvars
import dis
import functools
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .children import children_of, class_attributes, special_methods
from .kinds import is_library_class, is_library_file, is_library_module, kind_of, place_of_count

LARGEST_WALK = 60_000
"""Objects visited at most; the state of a test is far smaller, an application object it refers to may not be."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One object the call can reach.

    path: as the user would write it (`x`, `self.cache[0]`).  kind: one of the words of `kind_of`.
    """

    path: str
    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Binding:
    """A name in a module's globals that reached code reads or writes; `present` is False for a name not bound yet."""

    path: str
    namespace: dict[str, Any]
    name: str


@dataclass(frozen=True, slots=True)
class Walk:
    """Everything reached from the roots, in the order of the visit.

    bindings: global names that may be rebound.  forward_only: paths of objects that cannot be rewound.
    truncated: the walk hit its limit.  variables: context variables.
    """

    visits: tuple[Visit, ...]
    bindings: tuple[Binding, ...]
    forward_only: tuple[str, ...]
    truncated: bool
    variables: "frozenset[contextvars.ContextVar[Any]]" = frozenset()


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> frozenset[str]:
    """Return every global or attribute name that this code, or code nested in it, mentions."""
    nested = (names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*nested)


class _Walker:
    """Depth-first, each object once; a class because a visit needs the state of the whole walk."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.bindings: dict[tuple[int, str], Binding] = {}
        self.forward_only: list[str] = []
        self.seen: set[int] = set()
        self.alive: list[object] = []  # temporary objects (bound methods) must stay alive: ids would be reused
        self.truncated = False
        self.variables: set[contextvars.ContextVar[Any]] = set()

    def walk(self, roots: Mapping[str, object]) -> Walk:
        stack = [(path, value) for path, value in reversed(list(roots.items()))]
        while stack:
            path, value = stack.pop()
            if id(value) in self.seen:
                continue
            if len(self.visits) >= LARGEST_WALK:
                self.truncated = True
                break
            kind = kind_of(value)
            if isinstance(value, contextvars.ContextVar):
                self.variables.add(value)
            if kind in ("atom", "closed"):
                continue
            self.seen.add(id(value))
            self.alive.append(value)
            if kind == "forward-only":
                self.forward_only.append(path)
                continue
            self.visits.append(Visit(path, kind, value))
            stack.extend(reversed(list(self.children(path, kind, value))))
        return Walk(
            tuple(self.visits),
            tuple(self.bindings.values()),
            tuple(self.forward_only),
            self.truncated,
            frozenset(self.variables),
        )

    def children(self, path: str, kind: str, value: Any) -> Iterator[tuple[str, object]]:
        if kind == "function":
            yield from self.function(path, value)
        elif kind == "class":
            yield from ((f"{path}.{name}", member) for name, member in class_attributes(value))
            yield from ((f"{path}.{name}", _unwrapped(member)) for name, member in class_attributes(value))
            yield from ((f"{path}.{name}", method) for name, method in special_methods(value))
            yield from self.class_of(value)
        else:
            yield from children_of(path, kind, value)
            if type(value).__module__ not in _PLAIN:  # subclasses of tensors and containers have state as well
                yield from self.class_of(value)

    def class_of(self, value: object) -> Iterator[tuple[str, object]]:
        """Yield the user classes of an instance: attributes are read through it, and methods run on it."""
        for base in type(value).__mro__:
            if not is_library_class(base):
                yield base.__name__, base

    def function(self, path: str, function: types.FunctionType) -> Iterator[tuple[str, object]]:
        yield from children_of(path, "function", function)
        code = function.__code__
        if is_library_file(code.co_filename) or is_library_module(function.__globals__.get("__name__")):
            return
        names = names_in(code)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if not isinstance(value, types.ModuleType):
                self.bind(name, function.__globals__, name)
                if place_of_count(value) is None:  # the name is bound to another count instead of rewinding this one
                    yield name, value
            elif not is_library_module(value.__name__) and not is_library_file(getattr(value, "__file__", None) or "<"):
                for attribute in sorted(names & vars(value).keys()):
                    self.bind(f"{name}.{attribute}", vars(value), attribute)
                    yield f"{name}.{attribute}", vars(value)[attribute]
        for name in sorted(_stored_globals(code) - function.__globals__.keys()):
            self.bind(name, function.__globals__, name)

    def bind(self, path: str, namespace: dict[str, Any], name: str) -> None:
        self.bindings.setdefault((id(namespace), name), Binding(path, namespace, name))


_PLAIN = frozenset({"builtins", "collections", "torch", "torch.nn.parameter", "numpy"})


def _unwrapped(member: object) -> object:
    if isinstance(member, (staticmethod, classmethod)):
        return member.__func__
    return member.fget if isinstance(member, property) else member


_REBINDING = frozenset({dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]})


@functools.lru_cache(maxsize=4096)
def _stored_globals(code: types.CodeType) -> frozenset[str]:
    own: set[str] = set()
    if not _REBINDING.isdisjoint(code.co_code[::2]):  # the bytes first: decoding costs more than most tests
        own = {str(i.argval) for i in dis.get_instructions(code) if i.opcode in _REBINDING}
    nested = (_stored_globals(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(own).union(*nested)


def walk(roots: Mapping[str, object]) -> Walk:
    """Visit everything the roots reach; `roots` maps the path of a root to the object."""
    return _Walker().walk(roots)
