"""Found by `fuzz programs`: in a frame that runs eagerly, what a name let go of was still held by a frame of ours."""

import collections
import weakref

import pytest
import torch

import plumbline


class Ending:
    def __init__(self, log: list[object]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("ended")


def stale():
    """Return an iterator that cannot be handed over: a frame that has it at a break runs eagerly."""
    queue = collections.deque([1])
    iterator = iter(queue)
    queue.append(2)
    return iterator


async def doubled(value):
    return value


def run(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value


def beside_an_iterator(log, x):
    ending, iterator = Ending(log), stale()
    del ending
    log.append("after")
    return iterator is None


def handed_to(log, ending, iterator):
    del ending
    log.append("after")
    return iterator is None


def in_a_called_frame(log, x):
    result = handed_to(log, Ending(log), stale())
    log.append("returned")
    return result


def in_a_handler(log, x):
    try:
        raise KeyError("k")
    except KeyError as error:
        result = handed_to(log, Ending(log), stale())
        log.append(repr(error))
        return result


def raising(log, iterator):
    ending = Ending(log)
    del ending
    log.append("after")
    if iterator is not None:
        raise KeyError("k")


def caught_by_the_caller(log, x):
    ending = Ending(log)
    try:
        raising(log, stale())
    except KeyError:
        del ending
        log.append("caught")


def of_a_coroutine(log, x):
    known = weakref.ref(run(doubled(torch.zeros(1))))
    log.append(known() is not None)


PROGRAMS = [beside_an_iterator, in_a_called_frame, in_a_handler, caught_by_the_caller, of_a_coroutine]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_objects_end_where_plain_python_ends_them(program) -> None:
    def told(function) -> list[object]:
        log: list[object] = []
        return [function(log, torch.ones(2)), *log]

    assert told(plumbline.compile(program, backend="eager")) == told(program)


async def keywords(first, /, second, *rest, third, fourth=4, **others):
    return first, second, rest, third, fourth, others


def taking(first, /, second, *rest, third, fourth=4, **others):
    iterator = stale()
    print(end="")
    return first, second, rest, third, fourth, others, iterator is None


def test_every_kind_of_parameter_reaches_an_eager_frame() -> None:
    arguments, names = (1, 2, 3, 4), {"third": 5, "more": 6}
    assert plumbline.compile(taking, backend="eager")(*arguments, **names) == taking(*arguments, **names)
    told = run(keywords(*arguments, **names))
    assert run(plumbline.compile(keywords, backend="eager")(*arguments, **names)) == told


def released(ending, log, *, last=None):
    log.append("start")
    iterator = stale()
    print(end="")
    del ending
    log.append("after")
    del last
    log.append("end")
    return iterator is None


def test_arguments_end_where_the_function_lets_go_of_them() -> None:
    def told(function) -> list[object]:
        log: list[object] = []
        function(Ending(log), log, last=Ending(log))
        return log

    assert told(plumbline.compile(released, backend="eager")) == told(released)
