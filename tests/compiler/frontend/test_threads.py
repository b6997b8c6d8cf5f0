"""Threads that share compiled functions get eager's answers, without deadlock and without needless work."""

import faulthandler
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Captured, CompilerFailed, Event, recording
from support.programs import compiled

THREADS, SECONDS = 6, 60


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Let threads take turns far more often than they do by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """Run work(number) in threads that start together; return the results, raise what a thread raised.

    A thread that waits for another gives up at a deadline: what is left running would hold up every later test.
    """
    ready, results, errors = threading.Barrier(count), [None] * count, list[BaseException]()

    def run(number: int) -> None:
        try:
            ready.wait(SECONDS)
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    last = deadline()
    for thread in threads:
        thread.join(max(last - time.monotonic(), 0))
    stuck = any(thread.is_alive() for thread in threads)
    if stuck:
        faulthandler.dump_traceback()
    if errors:
        raise errors[0]
    assert not stuck, "deadlock"
    return results


def deadline() -> float:
    """Return the time at which threads that have not ended count as stuck."""
    return time.monotonic() + SECONDS


def graphs(events: list[Event]) -> int:
    """Return how many graphs were captured; no error of ours may be among the events."""
    failed = [event.error for event in events if isinstance(event, CompilerFailed)]
    assert not failed
    return sum(isinstance(event, Captured) for event in events)


def body(x: torch.Tensor, k: int = 2) -> torch.Tensor:
    """Be compiled: a branch on a size, a number, a global."""
    y = torch.sin(x) * k
    if x.shape[0] > 3:
        y = y + torch.get_default_dtype().itemsize
    return y.relu() + len(NAMES)


NAMES = ["a", "b"]


def broken(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
    """Break twice, in a loop and in a callee."""
    for step in range(2):
        x = x + 1
        log.append(step)
        plumbline.graph_break()
        x = inner(x)
    return x * 2


def inner(x: torch.Tensor) -> torch.Tensor:
    """Break inside."""
    y = x.cos()
    plumbline.graph_break()
    return y + x


@pytest.mark.parametrize("round_", range(5))
def test_first_calls_at_once_make_one_specialisation(round_: int) -> None:
    run, x = compiled(body), torch.arange(4.0)
    with recording() as events:
        results = in_threads(lambda number: [run(x + number) for _ in range(5)])
    for number, result in enumerate(results):
        assert all(torch.equal(found, body(x + number)) for found in result)
    assert graphs(events) == 1


@pytest.mark.parametrize("round_", range(3))
def test_other_shapes_in_each_thread(round_: int) -> None:
    run = compiled(body, dynamic=False, recompile_limit=64)

    def work(number: int) -> bool:
        inputs = [torch.arange(float(size)) for size in (number + 1, 3, number + 2)] * 3
        return all(torch.equal(run(x, number % 3), body(x, number % 3)) for x in inputs)

    with recording() as events:
        assert all(in_threads(work))
    needed = {(size, n % 3) for n in range(THREADS) for size in (n + 1, 3, n + 2)}
    assert graphs(events) == len(needed)


@pytest.mark.parametrize("round_", range(3))
def test_sizes_become_symbols_while_others_run(round_: int) -> None:
    run = compiled(body)

    def work(number: int) -> bool:
        return all(torch.equal(run(x), body(x)) for x in map(torch.arange, map(float, range(1, 12))))

    with recording() as events:
        assert all(in_threads(work))
    assert graphs(events) <= 12


@pytest.mark.parametrize("round_", range(5))
def test_breaks_and_resume_units(round_: int) -> None:
    x = torch.arange(4.0)

    def work(run: Callable[..., Any], number: int) -> bool:
        right = True
        for _ in range(4):
            logs: tuple[list[Any], list[Any]] = ([], [])
            right = right and torch.equal(run(x * number, logs[0]), broken(x * number, logs[1])) and logs[0] == logs[1]
        return right

    with recording() as alone:
        assert work(compiled(broken), 1)
    run = compiled(broken)
    with recording() as events:
        assert all(in_threads(lambda number: work(run, number)))
    assert graphs(events) == graphs(alone)


def test_reset_while_others_run() -> None:
    run, done = plumbline.compile(body, backend="eager"), [0] * THREADS

    def work(number: int) -> bool:
        if number == 0:
            last = deadline()
            while min(done[1:]) < 20 and time.monotonic() < last:
                plumbline.reset()
            return True
        right, x = True, torch.arange(4.0)
        for _ in range(20):
            right = right and torch.equal(run(x, number), body(x, number))
            done[number] += 1
        done[number] = 20
        return right

    with recording() as events:
        assert all(in_threads(work))
    assert graphs(events) >= 1


def test_user_code_at_a_break_may_wait_for_other_threads() -> None:
    """Three threads meet at a break: none may hold what another needs to get there."""
    meeting = threading.Barrier(3)

    def meet(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        meeting.wait(SECONDS / 4)
        return y * 2

    run, x = compiled(meet), torch.ones(2)
    for _ in range(3):
        assert all(torch.equal(found, x * 4) for found in in_threads(lambda number: run(x), 3))


def test_modes_are_each_threads_own() -> None:
    run = compiled(body)
    weight = torch.arange(4.0, requires_grad=True)

    def work(number: int) -> bool:
        right = True
        for _ in range(10):
            with torch.set_grad_enabled(number % 2 == 0), torch.autocast("cpu", torch.bfloat16, number % 3 == 0):
                found, expected = run(weight), body(weight)
            right = right and torch.equal(found, expected) and found.requires_grad is (number % 2 == 0)
        return right

    with recording() as events:
        assert all(in_threads(work))
    assert graphs(events) == 4


def test_frozen_in_one_thread_only() -> None:
    run, x = plumbline.compile(body, backend="eager"), torch.arange(4.0)
    frozen = plumbline.run(run)

    def work(number: int) -> int:
        function = frozen if number == 0 else run
        with recording():
            results = [torch.equal(function(x, k), body(x, k)) for k in range(6)]
        return sum(results)

    with recording() as events:
        assert in_threads(work) == [6] * THREADS
    assert graphs(events) <= 6
    frozen(x, 99)
    with recording() as events:
        frozen(x, 100)
    assert graphs(events) == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_backward_in_other_threads(backend: str) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def work(number: int) -> bool:
        x = torch.full((2, 3), float(number + 1), requires_grad=True)
        (found,) = torch.autograd.grad(run(x).sum(), x)
        (expected,) = torch.autograd.grad(net(x).sum(), x)
        return bool(torch.allclose(found, expected))

    for _ in range(5):  # the first backward of all is compiled in whichever thread gets there
        run = plumbline.compile(net, backend=backend)
        make = functools.partial(torch.full, (2, 3), requires_grad=True)
        outputs = in_threads(lambda number, run=run, make=make: run(make(float(number))).sum())
        in_threads(lambda number, outputs=outputs: outputs[number].backward())
        assert all(in_threads(work))


def test_one_compiles_the_other_while_both_are_compiled() -> None:
    """A backend that calls another compiled function, in two threads that do so the other way round."""
    slots: dict[str, Any] = {}

    def calling(name: str) -> Callable[..., Any]:
        def backend(graph: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
            slots[name](torch.ones(2))
            return graph.forward

        return backend

    for _ in range(5):
        slots["sin"] = compiled(lambda x: x.sin() + 1)
        slots["cos"] = compiled(lambda x: x.cos() + 1)
        first, second = compiled(lambda x: x * 2, calling("sin")), compiled(lambda x: x * 3, calling("cos"))
        slots["sin"], slots["cos"] = second, first
        third, fourth = compiled(lambda x: x * 4, calling("sin")), compiled(lambda x: x * 5, calling("cos"))
        slots["sin"], slots["cos"] = compiled(lambda x: x.sin(), calling("cos")), compiled(lambda x: x + 1)
        x = torch.ones(2)

        def work(number: int, runs: Any = (first, second, third, fourth), x: Any = x) -> float:
            return float(runs[number](x).sum())

        assert in_threads(work, 4) == [4.0, 6.0, 8.0, 10.0]


def test_capture_in_one_thread_does_not_touch_the_others() -> None:
    """Grad mode, random draws and what is being captured belong to the thread."""
    stop = threading.Event()

    def drawing(x: torch.Tensor, k: int) -> torch.Tensor:
        with torch.no_grad():
            y = x * k
        return y + torch.rand(2)

    def work(number: int) -> bool:
        if number == 0:
            try:
                run, x = compiled(drawing, dynamic=False, recompile_limit=64), torch.ones(2, requires_grad=True)
                for k in range(40):
                    run(x, k)
            finally:
                stop.set()
            return True
        right = True
        while not stop.is_set():
            right = right and torch.is_grad_enabled() and (torch.ones(1, requires_grad=True) * 2).requires_grad
        return right

    assert all(in_threads(work, 3))
