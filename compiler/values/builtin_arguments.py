"""How many arguments Python's builtins take, and which keywords: what they refuse before they look at any argument."""

import collections
import itertools
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltinArguments:
    """The positional arguments of a builtin, least and most, and its keywords; None: any number, any keyword."""

    least: int
    most: int | None
    keywords: frozenset[str] | None

    def fit(self, positional: int, keywords: Collection[str]) -> bool:
        """Return whether a call has arguments of this form; what is lacking may be given by keyword."""
        enough = positional >= self.least or bool(keywords)
        few_enough = self.most is None or positional <= self.most
        return enough and few_enough and (self.keywords is None or self.keywords.issuperset(keywords))


def _row(least: int, most: int | None, keywords: str = "") -> BuiltinArguments:
    return BuiltinArguments(least, most, frozenset(keywords.split()))


_ONE = (any, all, len, abs, id, hash, repr, chr, ord, callable, bin, hex, oct, ascii, reversed)

BUILTIN_ARGUMENTS: dict[object, BuiltinArguments] = {
    **dict.fromkeys(_ONE, _row(1, 1)),
    **dict.fromkeys((list, tuple, set, frozenset, bool, vars, dir), _row(0, 1)),
    **dict.fromkeys((isinstance, issubclass, hasattr, divmod, filter, delattr), _row(2, 2)),
    enumerate: _row(1, 2, "iterable start"),
    zip: _row(0, None, "strict"),
    range: _row(1, 3),
    slice: _row(1, 3),
    map: _row(2, None),
    sum: _row(1, 2, "start"),
    min: _row(1, None, "key default"),
    max: _row(1, None, "key default"),
    sorted: _row(1, 1, "key reverse"),
    iter: _row(1, 2),
    next: _row(1, 2),
    getattr: _row(2, 3),
    setattr: _row(3, 3),
    round: _row(1, 2, "number ndigits"),
    format: _row(1, 2),
    object: _row(0, 0),
    **dict.fromkeys((dict, collections.OrderedDict), BuiltinArguments(0, 1, None)),
    collections.deque: _row(0, 2, "iterable maxlen"),
    property: _row(0, 4, "fget fset fdel doc"),
    **dict.fromkeys((itertools.cycle, itertools.pairwise), _row(1, 1)),
    **dict.fromkeys((itertools.takewhile, itertools.dropwhile, itertools.filterfalse, itertools.starmap), _row(2, 2)),
    **dict.fromkeys((itertools.combinations, itertools.combinations_with_replacement), _row(2, 2, "iterable r")),
    itertools.permutations: _row(1, 2, "iterable r"),
    itertools.compress: _row(2, 2, "data selectors"),
    itertools.chain: _row(0, None),
    itertools.islice: _row(2, 4),
    itertools.product: _row(0, None, "repeat"),
    itertools.zip_longest: _row(0, None, "fillvalue"),
    itertools.repeat: _row(1, 2, "object times"),
    itertools.count: _row(0, 2, "start step"),
    itertools.accumulate: _row(1, 2, "iterable func initial"),
    itertools.groupby: _row(1, 2, "iterable key"),
}
"""Builtin -> the form of its arguments.  Rules of those that are left out count by themselves."""
