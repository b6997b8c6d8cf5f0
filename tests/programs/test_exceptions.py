"""Exceptions and with blocks: try, finally, raise, contextlib, blocks of torch. PYTEST_DONT_REWRITE (asserts)"""

import contextlib
from contextlib import ExitStack, contextmanager, nullcontext, suppress

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
LOG = []
MODE = {"depth": 0}


class Problem(Exception):
    def __init__(self, code, *, extra=None):
        super().__init__(f"problem {code}")
        self.code, self.extra = code, extra


class Worse(Problem):
    pass


class Block:
    def __init__(self, log, swallow=()):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append("exit" if kind is None else kind.__name__)
        return kind is not None and issubclass(kind, self.swallow)


@contextmanager
def deeper():
    MODE["depth"] += 1
    try:
        yield MODE["depth"]
    finally:
        MODE["depth"] -= 1


@contextmanager
def swallowing(log):
    log.append("in")
    try:
        yield
    except KeyError as error:
        log.append(error.args[0])
    else:
        log.append("fine")


def checked(x, limit):
    if x.shape[0] > limit:
        raise Problem(limit, extra=x.shape)
    return x * 2


def finally_order(log, fail):
    try:
        log.append("try")
        if fail:
            raise Problem(1)
        return "returned"
    except Problem:
        log.append("except")
        return "handled"
    else:
        log.append("else")
    finally:
        log.append("finally")


@program(A)
def user_exception_with_attributes(a):
    try:
        checked(a, 1)
    except Problem as problem:
        return a * problem.code, problem.extra[0], str(problem), problem.args


@program(A)
def subclasses_are_caught(a):
    for kind in (Problem, Worse):
        try:
            raise kind(2)
        except Worse:
            a = a * 3
        except (ValueError, Problem):
            a = a + 1
    return a


@program(A, graphs=0)
def order_of_finally(a):
    log = []
    return a, finally_order(log, True), finally_order(log, False), log


@program(A)
def return_in_finally_wins(a):
    def f():
        try:
            raise Problem(1)
        finally:
            return 5  # noqa: B012 - what is tested

    return a * f()


@program(A, graphs=0)
def break_and_continue_in_finally_loops(a):
    log = []
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            log.append(i)
        finally:
            log.append(-i)
    return a, log


@program(A)
def exception_name_is_deleted(a):
    error = 1
    try:
        raise Problem(1)
    except Problem as error:
        pass
    try:
        error  # noqa: B018 - what is tested
    except UnboundLocalError:
        return a + 1
    return a


@program(A)
def bare_raise(a):
    log = []
    try:
        try:
            raise Problem(3)
        except Problem:
            log.append("inner")
            raise
    except Problem as problem:
        return a * problem.code, log


@program(A, graphs=0)
def causes_and_contexts(a):
    try:
        try:
            {}["k"]
        except KeyError as error:
            raise Problem(1) from error
    except Problem as problem:
        first = type(problem.__cause__).__name__
    try:
        try:
            {}["k"]
        except KeyError:
            raise Problem(1)  # noqa: B904 - what is tested
    except Problem as problem:
        second = type(problem.__context__).__name__
    try:
        raise Problem(1) from None
    except Problem as problem:
        third = problem.__suppress_context__
    return a, first, second, third


@program(A)
def raising_a_class(a):
    try:
        raise ValueError
    except ValueError as error:
        return a + len(error.args)


@program(A)
def raise_through_three_frames(a):
    def inner(x):
        raise Problem(int(x.shape[1]))

    def middle(x):
        try:
            return inner(x)
        finally:
            seen.append("middle")

    seen = []
    try:
        middle(a)
    except Problem as problem:
        return a * problem.code, seen


@program(A, graphs=0)
def errors_of_builtins(a):
    seen = []
    attempts = [
        lambda: [1][5],
        lambda: {}["k"],
        lambda: int("x"),
        lambda: 1 / 0,
        lambda: None.x,
        lambda: len(3),
        lambda: "a" + 1,
        lambda: next(iter([])),
        lambda: [].remove(1),
        lambda: {1: 2}.pop(3),
        lambda: (1, 2).index(5),
    ]
    for attempt in attempts:
        try:
            attempt()
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
    return a, seen


@program(A)
def assertion_with_message_is_caught(a):
    try:
        assert a.dim() == 3, f"dim is {a.dim()}"
    except AssertionError as error:
        return a * 2, str(error)


@program(A)
def try_else(a):
    try:
        n = int("3")
    except ValueError:
        return a
    else:
        a = a * n
    finally:
        a = a + 1
    return a


@program(A, graphs=0)
def nested_handlers(a):
    log = []
    try:
        try:
            raise KeyError("one")
        except KeyError:
            try:
                raise ValueError("two")
            except ValueError as error:
                log.append(str(error))
            raise
    except KeyError as error:
        log.append(error.args[0])
    return a, log


@program(A, graphs=0)
def exception_group(a):
    caught = []
    try:
        raise ExceptionGroup("many", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        caught.append(len(group.exceptions))
    except* KeyError:
        caught.append("key")
    return a, caught


@program(A, graphs=1, breaks=1)
def shape_error_is_caught(a):
    try:
        return a @ a
    except RuntimeError:
        return a @ a.T


@program(A, graphs=0, eager=1, state=lambda: LOG)
def escaping_exception_keeps_state(a):
    LOG.append(1)
    b = a * 2
    LOG.append(b.sum())
    raise Problem(7)


@program(make=lambda: (A.clone(), [1], {"k": A.clone()}), graphs=0, eager=1)
def escaping_exception_keeps_argument_state(a, xs, d):
    a.add_(1)
    xs.append(a)
    d["k"].mul_(2)
    d["new"] = 1
    return xs[7]


@program(A, graphs=1)
def block_swallows(a):
    log = []
    with Block(log, Problem):
        a = a + 1
        raise Problem(1)
    return a, log


@program(A, graphs=0, eager=1, state=lambda: LOG)
def block_does_not_swallow(a):
    with Block(LOG, Worse):
        a = a + 1
        raise Problem(1)


@program(A, graphs=0)
def two_blocks_in_one_with(a):
    log = []
    with Block(log) as x, Block(log, KeyError) as y:
        log.append(x is y)
        {}["k"]
    return a, log


@program(A)
def return_inside_with(a):
    log = []

    def f():
        with Block(log):
            return a * 2

    return f(), log


@program(A)
def break_inside_with_in_a_loop(a):
    log = []
    for i in range(3):
        with Block(log):
            if i == 1:
                break
            a = a + 1
    return a, log


@program(A, state=lambda: MODE)
def generator_context_manager(a):
    with deeper() as d, deeper() as e:
        a = a * d + e
    return a * MODE["depth"] + 1


@program(A)
def generator_context_manager_catches(a):
    log = []
    with swallowing(log):
        raise KeyError("key")
    with swallowing(log):
        a = a + 1
    return a, log


@program(A, state=lambda: MODE)
def generator_context_manager_as_a_decorator(a):
    @deeper()
    def f(x):
        return x * MODE["depth"]

    return f(a)


@program(A)
def suppress_and_nullcontext(a):
    with suppress(KeyError, IndexError):
        [][1]
    with nullcontext(3) as n:
        a = a * n
    return a


@program(A)
def exit_stack(a):
    log = []
    with ExitStack() as stack:
        stack.enter_context(Block(log))
        stack.callback(log.append, "called")
        stack.enter_context(Block(log, KeyError))
        a = a * 2
        {}["k"]
    return a, log


@program(A)
def closing_and_redirecting(a):
    class Thing:
        closed = False

        def close(self):
            self.closed = True

    thing = Thing()
    with contextlib.closing(thing) as t:
        a = a + 1
    return a, t.closed


@program(A)
def manager_chosen_at_run_time(a):
    for on in (True, False):
        with torch.no_grad() if on else nullcontext():
            a = a * 2
    return a


@program(make=lambda: (A.clone().requires_grad_(),))
def no_grad_function_and_back(a):
    @torch.no_grad()
    def f(x):
        return x * 2

    @torch.enable_grad()
    def g(x):
        return x * 3

    with torch.no_grad():
        inside = g(a)
    return f(a), inside, torch.is_grad_enabled()


@program(make=lambda: (A.clone().requires_grad_(),))
def set_grad_enabled_forms(a):
    with torch.set_grad_enabled(False):
        b = a * 2
    previous = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    c = a * 3
    torch.set_grad_enabled(previous)
    return b, c, a * 4


@program(make=lambda: (A.clone().requires_grad_(),))
def grad_mode_is_restored_after_a_caught_exception(a):
    try:
        with torch.no_grad():
            raise Problem(1)
    except Problem:
        b = a * 2
    return b, torch.is_grad_enabled()


@program(make=lambda: (A.clone().requires_grad_(),), graphs=0, eager=1)
def grad_mode_is_restored_after_an_escaping_exception(a):
    with torch.no_grad():
        a = a * 2
        raise Problem(1)


@program(A)
def inference_mode(a):
    with torch.inference_mode():
        b = a * 2
    return b.is_inference(), torch.is_inference_mode_enabled()


@program(A)
def autocast(a):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = a @ a.T
        with torch.autocast("cpu", enabled=False):
            c = a @ a.T
    return b, c, a @ a.T, torch.is_autocast_enabled("cpu")


@program(A)
def autocast_as_a_decorator(a):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def f(x):
        return x @ x.T

    return f(a)


@program(A)
def device_block(a):
    with torch.device("cpu"):
        b = torch.zeros(2, 3)
    with torch.device("meta"):
        c = torch.zeros(2, 3)
    return a + b, c.device


@program(A)
def default_dtype_is_changed_and_restored(a):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    b = torch.ones(3)
    torch.set_default_dtype(before)
    return a + b, b.dtype


@program(A, graphs=2, breaks=1)
def block_across_a_break(a):
    log = []
    with Block(log):
        a = a * 2
        print("inside")
        a = a + 1
    return a, log


@program(A, graphs=2, breaks=1)
def block_across_a_break_swallows_later(a):
    log = []
    with Block(log, Problem):
        a = a * 2
        print("inside")
        a = a + 1
        raise Problem(1)
    return a, log


@program(A, graphs=2, breaks=1, state=lambda: MODE)
def generator_block_across_a_break(a):
    with deeper() as d:
        a = a * d
        print("inside", MODE["depth"])
        a = a + MODE["depth"]
    return a


@program(A, graphs=2, breaks=1)
def autocast_across_a_break(a):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = a @ a.T
        print(torch.is_autocast_enabled("cpu"))
        c = a @ a.T
    return b, c, a @ a.T


@program(A, graphs=2, breaks=1)
def inference_mode_across_a_break(a):
    with torch.inference_mode():
        b = a * 2
        print(torch.is_inference_mode_enabled())
        c = b + 1
    return c.is_inference()


@program(A, graphs=2, breaks=1)
def device_block_across_a_break(a):
    with torch.device("cpu"):
        b = a + torch.zeros(3)
        print("x")
        c = b + torch.ones(3)
    return c


@program(A, graphs=2, breaks=1)
def handler_around_a_break(a):
    try:
        b = a * 2
        print("before")
        raise Problem(2)
    except Problem as problem:
        return b * problem.code


@program(A, graphs=2, breaks=1)
def break_inside_a_handler(a):
    try:
        raise Problem(2)
    except Problem as problem:
        b = a * problem.code
        print(problem)
        b = b + 1
    return b


@program(A, graphs=2, breaks=1)
def break_inside_a_finally(a):
    log = []
    try:
        b = a * 2
    finally:
        log.append("finally")
        print("finally")
        log.append("after")
    return b + 1, log


@program(A, graphs=2, breaks=2)
def break_inside_nested_blocks(a):
    log = []
    with Block(log), torch.no_grad():
        for i in range(2):
            with Block(log):
                a = a + i
                if i == 1:
                    print("deep")
                a = a * 2
    return a, log


@program(A, graphs=2, breaks=1)
def exception_in_a_callee_after_its_break(a):
    def f(x):
        x = x * 2
        print("in f")
        raise Problem(3)

    try:
        f(a)
    except Problem as problem:
        return a * problem.code


@corpus.parametrize()
def test_program(program):
    check(program)
