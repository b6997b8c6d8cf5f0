"""`issubclass` of two of typing's aliases was refused, and `typing.List[int] | int` was a union of no types."""

import pytest

from support.played_programs import difference_of


@pytest.mark.parametrize("alias", ["List", "Callable", "Dict", "Iterable", "List[int]", "Union[int, str]", "Any"])
def test_questions_to_an_alias(alias):
    assert not difference_of(
        f"""
import typing
alias = typing.{alias}
def words(action):
    try:
        return action()
    except Exception as error:
        return repr(error)
def step(x):
    log = [words(lambda: issubclass(one, alias)) for one in (typing.List, typing.Iterable, alias, list, 3)]
    log += [words(lambda: issubclass(alias, one)) for one in (list, object, (int, str), typing.Iterable)]
    log += [words(lambda: isinstance([], alias)), words(lambda: isinstance(x, (int, alias)))]
    return [*log, repr(alias | int), repr(int | alias), repr(alias | None), x + 1]
"""
    )
