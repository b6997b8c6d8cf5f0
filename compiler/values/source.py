"""Source: the expression by which a run-time value can be fetched again at the entry of the compiled code."""

import functools
import sys
import types
from collections.abc import Callable, Sized
from dataclasses import dataclass

from ..base.real_objects.past_methods import is_really, own_namespace

Inject = Callable[[object], str]  # gives a constant object a name in the generated code


class Source:
    """How a value is reached from the arguments of a compiled unit; prints as Python."""

    __slots__ = ("_hashed",)
    __match_args__: tuple[str, ...] = ()  # the fields of a kind
    _hashed: int
    in_suspended_frame = False  # it leads into the frame of a generator
    reads_data = False  # of tensors

    def __hash__(self) -> int:
        """Return the hash of the fields, which is kept: a path is as long as a model is deep."""
        try:
            return self._hashed
        except AttributeError:
            hashed = hash((type(self), *(getattr(self, name) for name in self.__match_args__)))
            object.__setattr__(self, "_hashed", hashed)  # it is frozen
            return hashed

    def base(self) -> "Source | None":
        """Return the source this one starts from, None for a root."""
        return None

    def text(self, base: str, inject: Inject) -> str:
        """Return the expression, given the text of the base."""
        raise NotImplementedError

    def words(self) -> str:
        """Return the expression for people: no injected names."""
        start = self.base()
        return self.text(start.words() if start is not None else "", lambda value: shortened(value))


@dataclass(frozen=True, slots=True)
class Argument(Source):
    """An argument of the unit: a parameter, a live local or a stack value; name: in the generated code."""

    name: str
    shown: str

    def text(self, base: str, inject: Inject) -> str:
        """Return the name."""
        return self.name

    def words(self) -> str:
        """Return the user's name."""
        return self.shown


@dataclass(frozen=True, slots=True, eq=False)
class Injected(Source):
    """An object that cannot change identity for the life of the compiled code: a globals dict, a class, a cell."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Injected) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def text(self, base: str, inject: Inject) -> str:
        """Return the injected name."""
        return inject(self.value)


@dataclass(frozen=True, slots=True)
class Attribute(Source):
    """`of.name`, for attributes that cannot run user code: slots, tensor fields, function fields."""

    of: Source
    name: str
    __hash__ = Source.__hash__

    def base(self) -> Source:
        """Return the owner."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `base.name`."""
        return f"{base}.{self.name}"


@dataclass(frozen=True, slots=True)
class Item(Source):
    """`of[key]` with a constant key."""

    of: Source
    key: object
    __hash__ = Source.__hash__

    def base(self) -> Source:
        """Return the container."""
        return self.of

    def words(self) -> str:
        """Return what the user wrote: entries of a `__dict__` as attributes, globals by their name."""
        key, holder = self.key, self.of
        named = isinstance(key, str) and key.isidentifier()
        if named and isinstance(holder, Injected) and isinstance(holder.value, dict) and "__name__" in holder.value:
            return str(key)
        owner = _owner_of_namespace(holder)
        if owner is not None and named:
            return f"{owner.words()}.{key}"
        registry = _owner_of_namespace(holder.of) if isinstance(holder, Item) and holder.key in _REGISTRIES else None
        if registry is not None:
            return f"{registry.words()}.{key}" if named else f"{registry.words()}[{key}]"
        return Source.words(self)

    def text(self, base: str, inject: Inject) -> str:
        """Return `base[key]`; keys that have no literal are injected."""
        literal = type(self.key) in (int, str, bool, type(None))
        return f"{base}[{self.key!r}]" if literal else f"{base}[{inject(self.key)}]"


@dataclass(frozen=True, slots=True)
class NumberAtEntry(Source):
    """What a pure function gives for numbers of one input: `function(...)`; arguments: text with {1} for the input."""

    of: Source
    function: Callable[..., object]
    arguments: str
    __hash__ = Source.__hash__

    def base(self) -> Source:
        """Return the input."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return the call."""
        return f"{inject(self.function)}({self.arguments.format('', base)})"

    def words(self) -> str:
        """Return the call as a person would write it."""
        name = getattr(self.function, "__name__", str(self.function))
        return f"{name}({self.arguments.format('', self.of.words())})"


@dataclass(frozen=True, slots=True)
class SetOrder(Source):
    """The members of a set in their order: `tuple(of)`."""

    of: Source

    def base(self) -> Source:
        """Return the set."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `tuple(base)`."""
        return f"{inject(tuple)}({base})"


_REGISTRIES = ("_parameters", "_buffers", "_modules")  # where a module keeps what is read as its attributes


def _owner_of_namespace(source: Source) -> Source | None:
    """Return what a source is the `__dict__` of, None if it is something else."""
    if isinstance(source, BaseContents):
        return source.of if source.convert is own_namespace else None
    return source.of if isinstance(source, Attribute) and source.name == "__dict__" else None


@dataclass(frozen=True, slots=True)
class ListedItem(Source):
    """The value at a position of an unindexable container: `list(of)[position]`."""

    of: Source
    position: int
    __hash__ = Source.__hash__

    def base(self) -> Source:
        """Return the container."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `list(base)[position]`."""
        return f"{inject(list)}({base})[{self.position}]"


@dataclass(frozen=True, slots=True)
class ListedValue(Source):
    """The value at a position of a dictionary whose keys are objects: `list(of.values())[position]`."""

    of: Source
    position: int
    __hash__ = Source.__hash__

    def base(self) -> Source:
        """Return the dictionary."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `list(base.values())[position]`."""
        return f"{inject(list)}({inject(dict.values)}({base}))[{self.position}]"


@dataclass(frozen=True, slots=True)
class BaseContents(Source):
    """What an instance of a subclass of a builtin type holds, made without its methods: `convert(of)`."""

    of: Source
    convert: Callable[..., object]
    __hash__ = Source.__hash__

    def base(self) -> Source:
        """Return the instance."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `convert(base)`."""
        return f"{inject(self.convert)}({base})"


@dataclass(frozen=True, slots=True)
class Referent(Source):
    """What a weak reference leads to: `of()`."""

    of: Source

    def base(self) -> Source:
        """Return the reference."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `base()`."""
        return f"{base}()"


@dataclass(frozen=True, slots=True)
class BaseItem(Source):
    """An item of a container subclass, fetched without running the subclass's methods."""

    of: Source
    kind: type
    key: object
    __hash__ = Source.__hash__

    def base(self) -> Source:
        """Return the container."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `kind.__getitem__(base, key)`; that of dictionaries would ask `__missing__` of the subclass."""
        if issubclass(self.kind, dict):
            return f"{inject(_entry)}({base}, {inject(self.key)})"
        return f"{inject(self.kind)}.__getitem__({base}, {inject(self.key)})"


def _entry(table: dict[object, object], key: object) -> object:
    found = dict.get(table, key, _entry)
    if found is _entry:
        raise KeyError(key)
    return found


def shortened(value: object) -> str:
    """Return a value for people: the name of what has one, a literal if it is short, else what kind of thing it is."""
    if is_really(value, types.ModuleType):
        return str((own_namespace(value) or {}).get("__name__"))
    if issubclass(type(value), _NAMED) and isinstance(getattr(value, "__name__", None), str):
        return str(getattr(value, "__name__", None))
    if is_really(value, dict) and "__name__" in value:
        return f"globals({value['__name__']})"
    if hasattr(type(value), "untyped_storage"):  # a tensor; this file knows no torch
        sizes = ", ".join(map(str, getattr(value, "shape", ())))
        return f"{type(value).__name__} {str(getattr(value, 'dtype', '')).removeprefix('torch.')}[{sizes}]"
    if value is sys.modules:
        return "sys.modules"
    plain = type(value).__repr__ is object.__repr__
    text = "" if plain or _is_long(value) else _safe_text(value)
    return text if 0 < len(text) <= _LONGEST and "\n" not in text else f"<{type(value).__name__}>"


_NAMED = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    functools._lru_cache_wrapper,
)
_LONGEST = 60


def _is_long(value: object) -> bool:
    sized = issubclass(type(value), dict | list | set | frozenset | tuple)
    return sized and isinstance(value, Sized) and len(value) > _LONGEST // len("0, ")


def _safe_text(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # the user's own __repr__
        return ""
