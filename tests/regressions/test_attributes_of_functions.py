"""`vars(f)` and `dir(f)` forgot attributes that the call had given to the function."""

import pytest

import plumbline


def given():
    pass


def holding():
    pass


holding.old = 1


def of_existing(x):
    given.fresh = x
    return sorted(vars(given)), sorted(given.__dict__), hasattr(given, "fresh"), "fresh" in dir(given)


def of_one_that_has_some(x):
    holding.fresh = x
    return sorted(vars(holding)), "old" in dir(holding), "fresh" in dir(holding)


def that_is_only_read(x):
    return sorted(vars(holding)), "old" in dir(holding), "__name__" in dir(given), x


def of_made(x):
    def made():
        pass

    made.first, made.second = 1, x
    del made.first
    return sorted(vars(made)), "first" in dir(made), "second" in dir(made), "__call__" in dir(made)


@pytest.mark.parametrize("program", [of_existing, of_one_that_has_some, that_is_only_read, of_made])
def test_they_are_listed(program):
    results = []
    for call in (program, plumbline.compile(program, backend="eager")):
        for function in (given, holding):
            vars(function).pop("fresh", None)
        results.append([call(1), call(1)])
    assert results[0] == results[1]
