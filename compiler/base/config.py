"""The settings of the process, as attributes: `plumbline.config`.

They stand between the environment and the arguments of a `compile` call, and are read at each compilation.
"""

import dataclasses
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from .options import Options, Settings, options_from_environment, unknown_option


class Config:
    """Every option as an attribute; assigning one holds for what is compiled from then on.

    Reading gives what holds now: what was assigned, else the environment's value, else the default.  Raises
    UnknownOption, which is an AttributeError too, for a name that is no option; UserError for a value of another type.
    """

    __slots__ = ("_changes", "_lock")

    def __init__(self) -> None:
        object.__setattr__(self, "_changes", {})
        object.__setattr__(self, "_lock", threading.Lock())

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in _NAMES:
            raise unknown_option(name)
        return getattr(self.apply(options_from_environment()), name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an option for the process."""
        Options().replace(**{name: value})
        with self._lock:
            object.__setattr__(self, "_changes", {**self._changes, name: value})

    def __delattr__(self, name: str) -> None:
        """Forget what was assigned: the environment's value holds again."""
        if name not in _NAMES:
            raise unknown_option(name)
        with self._lock:
            object.__setattr__(self, "_changes", {key: kept for key, kept in self._changes.items() if key != name})

    def __reduce__(self) -> str:
        """There is one in a process: copies and pickles are the one."""
        return "CONFIG"

    def __dir__(self) -> list[str]:
        """Return the options and `patch`."""
        return [*_NAMES, "patch"]

    def __repr__(self) -> str:
        return f"plumbline.config({', '.join(f'{name}={getattr(self, name)!r}' for name in _NAMES)})"

    @contextmanager
    def patch(self, changes: Mapping[str, object] | str | None = None, value: object = None,
              /, **named: object) -> Iterator["Config"]:  # fmt: skip
        """Set options inside a block or, as a decorator, in each call of a function.

        `patch(recompile_limit=2)`, `patch({"recompile_limit": 2})` and `patch("recompile_limit", 2)` do the same.
        """
        first = {changes: value} if isinstance(changes, str) else dict(changes or {})
        wanted = {**first, **named}
        Options().replace(**wanted)
        with self._lock:
            before = self._changes
            object.__setattr__(self, "_changes", {**before, **wanted})
        try:
            yield self
        finally:
            with self._lock:
                restored = {key: kept for key, kept in self._changes.items() if key not in wanted}
                restored.update({key: kept for key, kept in before.items() if key in wanted})
                object.__setattr__(self, "_changes", restored)

    def apply(self, options: Options) -> Options:
        """Return options with what was assigned put over them."""
        changes: dict[str, object] = self._changes
        return options.replace(**changes) if changes else options

    def over_environment(self, arguments: Mapping[str, object] | None = None) -> Settings:
        """Return what gives the options in force: the environment's as of now, what is assigned then, the arguments."""
        environment, last = options_from_environment(), dict(arguments or {})
        environment.replace(**last)
        return lambda: self.apply(environment).replace(**last)


_NAMES = tuple(field.name for field in dataclasses.fields(Options))
CONFIG = Config()
