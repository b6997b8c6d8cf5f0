"""The settings of the process, as attributes: `plumbline.config`.

They stand between the environment and the arguments of a `compile` call, and are read at each compilation.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from .borrowed.stock_settings import SECTIONS, in_our_names, is_stock_name, read_stock, stock_names
from .locks import ForkedLock
from .options import Options, options_from_environment, unknown_option


@dataclass(slots=True)
class _Assigned:
    """What was assigned in this process: option -> value; replaced as a whole, never changed."""

    changes: dict[str, object] = field(default_factory=dict)
    lock: ForkedLock = field(default_factory=ForkedLock)


_ASSIGNED = _Assigned()


class Section:
    """A group of torch's settings that has a name of its own, such as `triton`, where `cudagraphs` is."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(CONFIG, f"{self._name}.{name}")

    def __setattr__(self, name: str, value: object) -> None:
        setattr(CONFIG, f"{self._name}.{name}", value)

    def __dir__(self) -> list[str]:
        """Return the settings."""
        return [name.partition(".")[2] for name in stock_names() if name.startswith(f"{self._name}.")]


class Config:
    """Every option as an attribute; assigning one holds for what is compiled from then on.

    Names of torch's settings that mean the same are taken too, those of its sections as attributes of the section.
    Reading gives what holds now: what was assigned, else the environment's value, else the default.  Raises
    UnknownOption, which is also an AttributeError, for an unknown name; UserError for a value of the wrong type.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in SECTIONS:
            return Section(name)
        if is_stock_name(name):
            return read_stock(name, lambda ours: getattr(self, ours))
        if name not in _NAMES:
            raise unknown_option(name)
        return getattr(self.apply(options_from_environment()), name)

    def _in_our_names(self, changes: Mapping[str, object]) -> dict[str, object]:
        return in_our_names(changes, lambda ours: getattr(self, ours))

    def __setattr__(self, name: str, value: object) -> None:
        """Set an option for the process."""
        changes = self._in_our_names({name: value})
        Options().replace(**changes)
        with _ASSIGNED.lock:
            _ASSIGNED.changes = {**_ASSIGNED.changes, **changes}

    def __delattr__(self, name: str) -> None:
        """Forget what was assigned: the environment's value holds again."""
        forgotten = self._in_our_names({name: getattr(self, name)})
        with _ASSIGNED.lock:
            _ASSIGNED.changes = {key: value for key, value in _ASSIGNED.changes.items() if key not in forgotten}

    def __reduce__(self) -> str:
        """There is one in a process: copies and pickles are the one."""
        return "CONFIG"

    def __dir__(self) -> list[str]:
        """Return the options and `patch`."""
        return [*_NAMES, "patch"]

    def __repr__(self) -> str:
        return f"plumbline.config({', '.join(f'{name}={getattr(self, name)!r}' for name in _NAMES)})"

    @contextmanager
    def patch(
        self, changes: Mapping[str, object] | str | None = None, value: object = None, /, **named: object
    ) -> Iterator["Config"]:
        """Set options inside a block or, as a decorator, in each call of a function.

        `patch(recompile_limit=2)`, `patch({"recompile_limit": 2})` and `patch("recompile_limit", 2)` do the same.
        """
        first = {changes: value} if isinstance(changes, str) else dict(changes or {})
        patched = self._in_our_names({**first, **named})
        Options().replace(**patched)
        with _ASSIGNED.lock:
            before = _ASSIGNED.changes
            _ASSIGNED.changes = {**before, **patched}
        try:
            yield self
        finally:
            with _ASSIGNED.lock:
                others = {key: old for key, old in _ASSIGNED.changes.items() if key not in patched}
                _ASSIGNED.changes = others | {key: old for key, old in before.items() if key in patched}

    def apply(self, options: Options) -> Options:
        """Return options with what was assigned put over them."""
        changes = _ASSIGNED.changes
        return options.replace(**changes) if changes else options

    def over_environment(self, arguments: Mapping[str, object] | None = None) -> Callable[[], Options]:
        """Return what gives the options in force: the environment's as of now, what is assigned then, the arguments."""
        environment, last = options_from_environment(), dict(arguments or {})
        environment.replace(**last)
        return lambda: self.apply(environment).replace(**last)


_NAMES = tuple(field.name for field in dataclasses.fields(Options))
CONFIG = Config()
