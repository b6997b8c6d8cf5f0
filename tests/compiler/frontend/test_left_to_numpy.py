"""Calls that are too small for compiled code run in NumPy; larger ones are compiled, and the record says which."""

import warnings

import numpy as np
import pytest

import plumbline
from plumbline.compiler.base.events import BackendCalled, Captured, CompilerFailed, FellBack, Recompiled, recording

pytestmark = pytest.mark.cc
WORK = 20_000


def compiled(function, **settings):
    return plumbline.compile(function, options={"numpy_threshold": WORK, "strict": True}, **settings)


def counted(run, *arguments):
    """Return the result, and how many graphs were captured and compiled."""
    with recording() as events:
        result = run(*arguments)
    assert not [event for event in events if isinstance(event, CompilerFailed)]
    return result, *(sum(isinstance(event, kind) for event in events) for kind in (Captured, BackendCalled))


def chain(x):
    return np.sqrt(x * x + 1.0) - x


def test_a_small_call_is_captured_and_runs_in_numpy():
    run, x = compiled(chain), np.linspace(-1, 1, 5)
    with recording() as events:
        run(x)
    assert [event.function for event in events if isinstance(event, Captured)] == ["chain"]
    assert not [event for event in events if isinstance(event, BackendCalled)]
    assert any("numpy_threshold" in event.why for event in events if isinstance(event, FellBack))


def test_further_small_calls_cost_no_capture():
    run = compiled(chain)
    run(np.ones(5))
    for size in (5, 1, 0, 17):
        x = np.linspace(0, 1, size)
        result, *costs = counted(run, x)
        assert costs == [0, 0]
        assert np.array_equal(result, chain(x))


def test_compiled_code_takes_over_where_sizes_grow_and_numpy_where_they_shrink():
    run = compiled(chain)
    assert counted(run, np.ones(4))[1:] == (1, 0)
    assert counted(run, np.ones(50_000))[1:] == (1, 1)
    assert counted(run, np.ones(50_000))[1:] == (0, 0)
    assert counted(run, np.ones(4))[1:] == (0, 0)


@pytest.mark.parametrize("dynamic", [None, True])
def test_what_was_compiled_for_every_size_leaves_small_ones_alone(dynamic):
    """The guards of code for open sizes hold only where there is much work."""
    run = compiled(chain, dynamic=dynamic)
    for size in (50_000, 40_000, 30_000):
        run(np.ones(size))
    result, captured, called = counted(run, np.ones(600))
    assert (captured, called) == (1, 0)
    assert np.array_equal(result, chain(np.ones(600)))
    assert counted(run, np.ones(45_000))[1:] == (0, 0)


def test_sizes_up_to_the_threshold_are_found_in_a_few_captures():
    run, captures = compiled(chain), 0
    for size in range(1, 1200, 7):
        captures += counted(run, np.ones(size))[1]
    assert captures <= 8


def outer(x):
    return np.sum(x[:, None] * x[None, :])


def test_work_counts_what_is_made_inside():
    """A few hundred elements are much work where their outer product is summed."""
    run = compiled(outer)
    assert counted(run, np.ones(20))[1:] == (1, 0)
    assert counted(run, np.ones(150))[1:] == (1, 1)


def gram(x):
    matrix = x.reshape(-1, 4)
    return matrix.T @ matrix


def test_calls_of_libraries_alone_are_left_to_numpy_at_every_size():
    """A matrix product is a call of a library either way: no kernel of ours would be faster."""
    run = compiled(gram)
    for size in (4, 40, 400_000):
        x = np.linspace(0, 1, size)
        result, *costs = counted(run, x)
        assert costs == ([1, 0] if size == 4 else [0, 0])
        assert np.array_equal(result, gram(x))


def long_chain(x):
    for _ in range(6):
        x = x * 0.5 + 1.0
    return x


def test_many_operations_are_much_work_on_any_array():
    assert counted(compiled(long_chain), np.ones(2))[1:] == (1, 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", lambda graph, inputs: graph.forward])
def test_other_backends_run_every_graph(backend):
    assert counted(compiled(chain, backend=backend), np.ones(4))[1:] == (1, 1)


def test_the_threshold_can_be_switched_off():
    run = plumbline.compile(chain, options={"numpy_threshold": 0})
    assert counted(run, np.ones(4))[1:] == (1, 1)


@pytest.mark.parametrize("options", [{"verify": "run"}, {"time_kernels": True}])
def test_who_wants_to_look_at_compiled_code_gets_it(options):
    run = plumbline.compile(chain, options={"numpy_threshold": WORK, **options})
    assert counted(run, np.ones(4))[1:] == (1, 1)


def test_explain_counts_the_graph(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_NUMPY_THRESHOLD", str(WORK))
    report = plumbline.explain(chain, np.ones(4))
    assert (report.graph_count, report.graph_break_count) == (1, 0)


SCALE = np.full(3, 2.0)


def by_a_global(x):
    return x * SCALE + 1


def of_a_list(xs):
    return xs[0] + xs[1]


def of_any_number(*xs):
    return xs[0] + xs[1]


def with_a_break(x):
    y = x + 1
    print(end="")
    return y * 2


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (by_a_global, (np.ones(3),)),
        (of_a_list, ([np.ones(3), np.ones(3)],)),
        (of_any_number, (np.ones(3), np.ones(3))),
        (with_a_break, (np.ones(3),)),
    ],
)
def test_what_the_arguments_do_not_tell_is_compiled(function, arguments):
    run = compiled(function)
    result, _, called = counted(run, *arguments)
    assert called >= 1
    assert np.array_equal(result, function(*arguments))


def steps(x, count, *, how="up"):
    for _ in range(count):
        x = x + 1 if how == "up" else x - 1
    return x


def test_numbers_flags_and_texts_are_told_apart():
    run = compiled(steps)
    x = np.zeros(3)
    for arguments, named in (((x, 2), {}), ((x, 3), {}), ((x, 2), {"how": "down"}), ((x,), {"count": 1, "how": "up"})):
        assert np.array_equal(run(*arguments, **named), steps(*arguments, **named))
    assert counted(run, x, 12)[1:] == (1, 1)  # so many operations are much work
    assert np.array_equal(run(x, 12), steps(x, 12))


def test_defaults_may_be_changed_meanwhile():
    def scaled(x, factor=2.0):
        return x * factor

    run = compiled(scaled)
    assert run(np.ones(2)).tolist() == [2, 2]
    scaled.__defaults__ = (3.0,)
    assert run(np.ones(2)).tolist() == [3, 3]


def test_another_code_takes_effect():
    def function(x):
        return x + 1

    def other(x):
        return x - 1

    run = compiled(function)
    run(np.ones(2))
    function.__code__ = other.__code__
    assert run(np.ones(2)).tolist() == [0, 0]


def test_closures_over_one_code_are_run_with_their_own_cells():
    def make(factor):
        return lambda x: x * factor

    double, triple = compiled(make(2.0)), compiled(make(3.0))
    for _ in range(2):
        assert double(np.ones(2)).tolist() == [2, 2]
        assert triple(np.ones(2)).tolist() == [3, 3]


def test_warnings_and_error_settings_are_numpys():
    run = compiled(lambda x: 1 / x)
    run(np.ones(2))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        run(np.zeros(2))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        run(np.zeros(2))
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(run(np.zeros(2))).all()


def test_written_arguments_are_written_once():
    def doubled(x):
        x *= 2
        return x

    run, x = compiled(doubled), np.ones(3)
    assert run(x) is x
    assert x.tolist() == [2, 2, 2]
    assert run(x) is x
    assert x.tolist() == [4, 4, 4]


def test_reset_forgets_which_calls_are_small():
    run = compiled(chain)
    run(np.ones(4))
    plumbline.reset()
    assert counted(run, np.ones(4))[1:] == (1, 0)


def test_a_frozen_function_still_knows_small_calls():
    run = compiled(chain)
    run(np.ones(4))
    assert np.array_equal(plumbline.run(run)(np.ones(3)), chain(np.ones(3)))


def test_small_captures_take_no_room_of_the_recompile_limit():
    run = plumbline.compile(chain, dynamic=False, options={"numpy_threshold": WORK, "recompile_limit": 1})
    with recording() as events:
        for size in (3, 400, 900, 50_000):
            run(np.ones(size))
    assert sum(isinstance(event, BackendCalled) for event in events) == 1
    assert not [event for event in events if isinstance(event, Recompiled)]
    assert np.array_equal(run(np.ones(3)), chain(np.ones(3)))
