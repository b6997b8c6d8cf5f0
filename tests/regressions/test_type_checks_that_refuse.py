"""Dispatch and type checks that refuse: an ambiguous dispatch was an error of ours, `list[int]` named otherwise."""

from support.played_programs import difference_of


def test_two_implementations_fit():
    program = """
import collections.abc, functools
@functools.singledispatch
def shown(value): return 'object'
shown.register(collections.abc.Sized, lambda value: 'sized')
shown.register(collections.abc.Iterable, lambda value: 'iterable')
class Both:
    def __len__(self): return 1
    def __iter__(self): return iter([])
calls = []
def words(value):
    try:
        return shown(value)
    except RuntimeError as error:
        return str(error)
def step(x):
    calls.append(1)
    before = words(Both())
    if len(calls) == 2:
        shown.register(Both, lambda value: 'both')
    return before, words(Both()), x + 1
"""
    assert not difference_of(program)


_CHECKS = """
import typing
class Always(type):
    def __subclasscheck__(cls, kind): return True
class Asked(metaclass=Always): pass
class Answers:
    def __instancecheck__(self, value): return 'yes'
    def __subclasscheck__(self, kind): return 1
class ActsAsClass:
    __bases__ = (int,)
kinds = [int, list[int], int | list[int], 3, (int, 3), (3, int), typing.List[int], typing.Any, typing.Sequence, 'int']
kinds += [Answers(), ActsAsClass(), (), Asked, (Asked, 3), None, typing.Optional[int], typing.Literal[1]]
kinds += [(int, list[int])]
subjects = [3, int, list[int], 'a', None, x0, [1], ActsAsClass(), Answers(), int | str, Asked]
def words(check, subject, kind):
    try:
        return check(subject, kind)
    except TypeError as error:
        return str(error)
"""


def test_checks():
    step = "def step(x, kind):\n    return [words({0}, one, kind) for one in subjects], x + 1\n"
    history = [f"r{number} = step(x0, kinds[{number}])" for number in range(19)]
    for number in range(len(history)):  # each is played by itself: calls beyond the recompile limit would run eagerly
        for check in ("isinstance", "issubclass"):
            assert not difference_of(_CHECKS + step.format(check), (history[number],))
