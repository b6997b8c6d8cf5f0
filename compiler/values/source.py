"""Source: the expression by which a run-time value can be fetched again at the entry of the compiled code."""

from collections.abc import Callable
from dataclasses import dataclass

Inject = Callable[[object], str]  # gives a constant object a name in the generated code


class Source:
    """How a value is reached from the arguments of a compiled unit; prints as Python."""

    __slots__ = ()

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

    def base(self) -> Source:
        """Return the container."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `base[key]`; keys that have no literal are injected."""
        literal = type(self.key) in (int, str, bool, type(None))
        return f"{base}[{self.key!r}]" if literal else f"{base}[{inject(self.key)}]"


@dataclass(frozen=True, slots=True)
class Listed(Source):
    """The members of a set in their order: `tuple(of)`."""

    of: Source

    def base(self) -> Source:
        """Return the set."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `tuple(base)`."""
        return f"{inject(tuple)}({base})"


@dataclass(frozen=True, slots=True)
class ListedItem(Source):
    """The value at a position of an unindexable container: `list(of)[position]`."""

    of: Source
    position: int

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

    def base(self) -> Source:
        """Return the dictionary."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `list(base.values())[position]`."""
        return f"{inject(list)}({inject(dict.values)}({base}))[{self.position}]"


@dataclass(frozen=True, slots=True)
class Plain(Source):
    """What an instance of a subclass of a builtin type holds, made without its methods: `convert(of)`."""

    of: Source
    convert: Callable[..., object]

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

    def base(self) -> Source:
        """Return the container."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `kind.__getitem__(base, key)`."""
        return f"{inject(self.kind)}.__getitem__({base}, {inject(self.key)})"


def shortened(value: object) -> str:
    """Return a constant for people: the name of what has one, else its text if that is short."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(value, dict) and "__name__" in value:
        return f"globals({value['__name__']})"
    text = repr(value)
    return text if len(text) <= 40 else f"<{type(value).__name__}>"
