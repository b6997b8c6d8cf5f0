"""State that outlives one variant of a test: what it is, and when it is saved and restored."""

from typing import Any

from .judge_access import StateScope, take_state


def wide_roots(item: Any) -> dict[str, object]:
    """Return what a test shares with its siblings: fixtures of wider scope, parameters, its class, its globals.

    The test function stands for the globals and cells that its code reaches.
    """
    roots = {name: value for name, scope, value in _fixture_values(item) if scope != "function"}
    roots |= getattr(getattr(item, "callspec", None), "params", {})
    return roots | _code_roots(item)


def all_roots(item: Any) -> dict[str, object]:
    """Return everything a test body can reach: all fixtures, its instance, class and globals."""
    roots = {name: value for name, _, value in _fixture_values(item)}
    roots |= {name: value for name, value in (item.funcargs or {}).items() if name not in roots}
    if item.instance is not None:
        roots["self"] = item.instance
    return roots | _code_roots(item)


def _code_roots(item: Any) -> dict[str, object]:
    roots: dict[str, object] = {item.originalname: item.function}
    if item.cls is not None:
        roots[item.cls.__name__] = item.cls
    return roots


def _fixture_values(item: Any) -> list[tuple[str, str, object]]:
    # Fixtures asked for at run time (getfixturevalue) are in no public list.
    definitions = getattr(getattr(item, "_request", None), "_fixture_defs", None) or {}
    values = []
    for name, definition in definitions.items():
        cached = getattr(definition, "cached_result", None)
        if name != "request" and cached is not None and cached[2] is None:
            values.append((name, str(definition.scope), cached[0]))
    return values


class SharedState:
    """The shared state of a test, as it was before its own fixtures and body could touch it.

    All variants of a test that run one after another use the same one: after each it is restored.
    """

    def __init__(self, test_id: str) -> None:
        self.test_id = test_id
        self.rewound = False
        self._states: list[StateScope] = []
        self._fixtures: set[str] = set()

    def save_before_own_fixtures(self, item: Any) -> None:
        """Save everything shared that exists by now; the first call counts."""
        if not self._states:
            roots = wide_roots(item)
            self._fixtures |= roots.keys()
            self._states.append(take_state(roots))

    def save_late(self, name: str, value: object) -> None:
        """Save a shared fixture that is set up after the first save; before it there is nothing to do."""
        if self._states:
            self._fixtures.add(name)
            self._states.append(take_state({name: value}))

    def save_rest(self, item: Any) -> None:
        """Save, after set-up, shared fixtures that existed and that a fixture asked for at run time."""
        self.save_before_own_fixtures(item)
        rest = {name: value for name, value in wide_roots(item).items() if name not in self._fixtures}
        if rest:
            self._fixtures |= rest.keys()
            self._states.append(take_state(rest))

    def rewind(self) -> None:
        """Restore everything, latest first."""
        for state in reversed(self._states):
            state.rewind()
        self.rewound = True
