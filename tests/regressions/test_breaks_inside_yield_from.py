"""A frame with a live generator that stood in a `yield from` ran eagerly at a break, as loops over parameters do."""

import pytest
import torch

import plumbline

MODEL = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))


def steps(start, log):
    try:
        got = yield start
        log.append(("got", got))
        yield start + 1
    except KeyError:
        log.append("caught")
        yield 77
    finally:
        log.append("inner ends")
    return "value"


def delegating(start, log):
    try:
        result = yield from steps(start, log)
    finally:
        log.append("outer ends")
    log.append(result)
    yield 5


def over(items):
    yield from items
    yield 9


def looped(x, log):
    for number in delegating(1, log):
        print(number)
        x = x + number
    return x


def sent_to(x, log):
    moved = delegating(1, log)
    next(moved)
    print("break")
    log.append(moved.send(4))
    print("break")
    return x * 2, list(moved)


def thrown_into(x, log):
    moved = delegating(1, log)
    next(moved)
    print("break")
    log.append(moved.throw(KeyError("k")))
    print("break")
    return x * 2, list(moved)


def another_thrown_into(x, log):
    moved = delegating(1, log)
    next(moved)
    print("break")
    try:
        moved.throw(ValueError("v"))
    except ValueError as error:
        log.append(repr(error))
    return x * 2, list(moved)


def thrown_past_a_list(x, log):
    moved = over([1, 2])
    next(moved)
    print("break")
    try:
        moved.throw(KeyError("k"))
    except KeyError as error:
        log.append(repr(error))
    return list(moved)


def closed(x, log):
    moved = delegating(1, log)
    next(moved)
    print("break")
    moved.close()
    return x * 2


def dropped(x, log):
    moved = delegating(1, log)
    next(moved)
    print("break")
    moved = None
    log.append("dropped")
    return x * 2


def over_builtin_iterators(x, log):
    for items in ([1, 2, 3], "ab", range(2), zip([1, 2], [3, 4], strict=True), {1: 2}.items()):
        for item in over(items):
            print(item)
            log.append(item)
    return x * 2


def over_parameters(x, log):
    for name, parameter in MODEL.named_parameters():
        print(name)
        x = x + parameter.sum()
    return x


PROGRAMS = [
    looped,
    sent_to,
    thrown_into,
    another_thrown_into,
    thrown_past_a_list,
    closed,
    dropped,
    over_builtin_iterators,
    over_parameters,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_goes_on_where_it_stood(program, capsys) -> None:
    def told(function) -> list[str]:
        log: list[object] = []
        return [repr(function(torch.ones(2), log)), repr(log), capsys.readouterr().out]

    compiled = plumbline.compile(program, backend="eager")
    plain = told(program)
    assert [told(compiled), told(compiled)] == [plain, plain]


def test_no_frame_runs_eagerly(capsys) -> None:
    assert "eagerly" not in str(plumbline.explain(over_parameters)(torch.ones(2), []))


def given_out(log):
    moved = delegating(1, log)
    next(moved)
    return moved


@pytest.mark.parametrize("error", [KeyError("k"), ValueError("v"), GeneratorExit()], ids=repr)
def test_plain_python_throws_into_what_was_handed_over(error) -> None:
    def told(function) -> list[str]:
        log: list[object] = []
        moved = function(log)
        try:
            log.append(moved.throw(error))
        except BaseException as raised:
            log.append(repr(raised))
        return [*map(repr, moved), *map(repr, log)]

    assert told(plumbline.compile(given_out, backend="eager")) == told(given_out)
