"""Which keys an iterator over a dictionary that changes gives next: a real dictionary with the same history says so.

The rules for that are Python's own, and differ between its versions, between dictionaries and ordered ones, and with
the direction: an iterator that has ended stays ended, one that refused goes on refusing, or ends. So the evaluated
iterator asks a real one, over a real dictionary that has had every change.
"""

import collections
from collections.abc import Iterable
from typing import Any

_UNMOVED = 5  # a table without gaps gives every key the next place, until it has had so many


class KeyTable:
    """A real dictionary of entries, which is told of every key that is added, removed or moved.

    exact: the places of the evaluated keys are known: none has been removed from among them.
    """

    def __init__(self, *, ordered: bool, entries: Iterable[Any], exact: bool) -> None:
        self.real: Any = collections.OrderedDict() if ordered else {}
        self.ordered = ordered
        self.exact = exact
        self.changes = 0
        self._used = 0
        self._kinds: set[bool] = set()
        for entry in entries:
            self.add(entry)

    def add(self, entry: Any) -> None:
        """Note a new key. Keys are told apart by their entries: comparing them again would call the program."""
        self.changes += 1
        self._used += 1
        self._kinds.add(entry.key.python_type() is str)
        self.real[id(entry)] = entry

    def remove(self, entry: Any) -> None:
        """Note that a key is gone."""
        self.changes += 1
        self.real.pop(id(entry), None)

    def remove_last(self) -> None:
        """Note a popitem(), which frees the last place, as removing its key does not."""
        self.changes += 1
        self.real.popitem()

    def clear(self) -> None:
        """Note that all keys are gone."""
        self.changes += 1
        self._used = 0
        self._kinds = set()
        self.exact = True
        self.real.clear()

    def move(self, entry: Any, *, last: bool) -> None:
        """Note a move_to_end()."""
        self.changes += 1
        self.real.move_to_end(id(entry), last)

    def says_what_follows(self) -> bool:
        """Return whether an iterator that has seen other keys goes on as one over the real dictionary does.

        Where Python has to make room it closes the gaps under the iterator: when the places are used up, and when the
        first key comes that is no text.
        """
        return self.ordered or (self.exact and self._used <= _UNMOVED and len(self._kinds) < 2)
