"""Calls that a compiled function leaves to NumPy: arrays so small that entering compiled code would cost more.

The user's own function is right for every argument, so a test of a call decides about time alone: it looks at nothing
that guards look at but the kinds of the arguments and how many elements the arrays have.  A capture has said that calls
like these are little work; what the test does not take goes to the specialisations and their guards as always.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy

Test = Callable[..., bool]
_VARYING = (float, numpy.float64, numpy.float32)  # numbers of which the work does not depend
_MOST_FORMS = 4  # combinations of kinds that one test tells apart
_MOST_CAPTURES = 16  # of one piece of code; from then on everything else is compiled
_LEAST_BOUND = 8
_LEAST_WORK = 2  # for each element of the arguments: it is read, and a result is written


@dataclass(slots=True)
class _Bounds:
    """Up to where calls of one form are small: elements of all arrays, and whole numbers from -whole to whole."""

    elements: int = 0
    whole: int = 0


@dataclass(slots=True, eq=False)
class SmallCalls:
    """Which calls of one piece of code are small.

    tests: none or one, a function of the parameters; whoever calls the code reads it at every call.  on_trial: the
    capture that goes on is for the sizes of its call alone, to see whether that is small.
    """

    tests: list[Test] = field(default_factory=list)
    on_trial: bool = False
    _in_vain: bool = False
    _forms: dict[tuple[object, ...], _Bounds] = field(default_factory=dict)
    _captures: int = 0

    def takes(self, arguments: Sequence[object]) -> bool:
        """Return whether calls like this one can be told by their arguments, and there is room for one more form."""
        form = _form_of(arguments)
        room = form in self._forms or len(self._forms) < _MOST_FORMS
        return form is not None and room and self._captures < _MOST_CAPTURES

    def may_try(self, arguments: Sequence[object], threshold: int) -> bool:
        """Return whether a call with so few elements is worth a capture of its own, where sizes are open already."""
        return not self._in_vain and self.takes(arguments) and _LEAST_WORK * elements_of(arguments) <= threshold

    def tried(self) -> None:
        """Note that a capture for one call alone was no small one: there is much work, whatever the sizes."""
        self._in_vain = True

    def add(self, arguments: Sequence[object], most: int) -> None:
        """Take this call and those like it for small whose arrays have at most so many elements together."""
        form = _form_of(arguments)
        assert form is not None
        whole = max((abs(value) for value in arguments if type(value) is int), default=0)
        bounds = self._forms.setdefault(form, _Bounds())
        bounds.elements = max(bounds.elements, most, elements_of(arguments))
        if whole > bounds.whole:
            bounds.whole = max(2 * whole, _LEAST_BOUND)
        self._captures += 1
        self.tests[:] = [_test(len(arguments), self._forms)]

    def forget(self) -> None:
        """Take every call for large again."""
        self.tests.clear()
        self._forms.clear()
        self._captures = 0
        self._in_vain = False


def elements_of(arguments: Sequence[object]) -> int:
    """Return how many elements the arrays have together."""
    return sum(value.size for value in arguments if isinstance(value, numpy.ndarray))


def _form_of(arguments: Sequence[object]) -> tuple[object, ...] | None:
    """Return the kind of each argument, of flags and texts the value; None if there is another, or no array."""
    form: list[object] = []
    for value in arguments:
        kind = type(value)
        if kind in (numpy.ndarray, int, *_VARYING):
            form.append(kind)
        elif value is None or kind is bool or kind is str:
            form.append((kind, value))
        else:
            return None
    return tuple(form) if numpy.ndarray in form else None


def _test(count: int, forms: dict[tuple[object, ...], _Bounds]) -> Test:
    """Return the test as one function, which reads each argument's kind once and its size at most once."""
    names = [f"a{position}" for position in range(count)]
    scope: dict[str, object] = {"ndarray": numpy.ndarray, "type": type}
    ways: list[str] = []
    for form, bounds in forms.items():
        kinds, rest, sizes = [], [], []
        for name, kind in zip(names, form, strict=True):
            if isinstance(kind, tuple):
                known = f"k{len(scope)}"
                scope[known] = kind[1]
                same = f"type({name}) is str and {name} == {known}" if kind[0] is str else f"{name} is {known}"
                kinds.append(same)
                continue
            place = "ndarray" if kind is numpy.ndarray else f"k{len(scope)}"
            scope[place] = kind
            kinds.append(f"type({name}) is {place}")
            if kind is numpy.ndarray:
                sizes.append(f"{name}.size")
            elif kind is int:
                rest.append(f"-{bounds.whole} <= {name} <= {bounds.whole}")
        ways.append(" and ".join([*kinds, *rest, f"{' + '.join(sizes)} <= {bounds.elements}"]))
    test: Test = eval(f"lambda {', '.join(names)}: {' or '.join(ways)}", scope)
    return test
