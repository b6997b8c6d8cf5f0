"""What is checked of NumPy's arithmetic: finite results of finite inputs; else what excuses those that are not."""

import warnings

import numpy as np
import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Broke, Captured, RanEagerly, recording

NAN, INF = float("nan"), float("inf")


def chain(x):
    return np.sqrt(x * x + 1.0) - x


def compared(run, function, x):
    """Hold a call to NumPy's, warnings included; returns what was recorded."""
    said = []
    for call in (run, function):
        with warnings.catch_warnings(record=True) as seen, recording() as events:
            warnings.simplefilter("always")
            result = call(x.copy())
        said.append((result, sorted(str(one.message) for one in seen), events))
    assert said[0][1] == said[1][1]
    np.testing.assert_array_equal(said[0][0], said[1][0])
    return said[0][2]


def checks_of(function, x):
    """Return what the results of the graph that the outputs need are asked: (comparisons with infinity, isnan)."""
    (module,) = plumbline.explain(function, x).graphs
    module.graph.eliminate_dead_code()
    return tuple(sum(node.target is asked for node in module.graph.nodes) for asked in (torch.lt, torch.isnan))


def test_the_last_operation_of_a_chain_answers_for_all():
    assert checks_of(chain, np.linspace(-1, 1, 7)) == (1, 0)
    assert checks_of(hidden_in_a_quotient, np.linspace(1, 2, 7)) == (2, 0)
    assert checks_of(chain, np.array([1.0, NAN]))[0] == 0


@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_numbers_that_are_not_finite_cost_one_more_capture(backend):
    run = plumbline.compile(chain, backend=backend)
    finite, excused = np.linspace(-1, 1, 4), np.array([1.0, NAN, 2.0, NAN])
    counts = []
    for x in (finite, excused, excused, finite, excused):
        events = compared(run, chain, x)
        counts.append(sum(isinstance(event, Captured) for event in events))
        assert not [event for event in events if isinstance(event, Broke | RanEagerly)]
    assert counts == [1, 1, 0, 0, 0]


def test_inputs_that_are_not_finite_are_known_at_the_first_call():
    run = plumbline.compile(chain, backend="eager")
    for x in (np.array([NAN, 1.0]), np.array([NAN, NAN]), np.array([3.0, 1.0])):
        compared(run, chain, x)
    assert plumbline.explain(chain, np.array([NAN, 1.0])).graph_count == 1


def kept_by_a_write(x):
    y = 1 / x
    y[0] = 1.0
    return y.sum()


def hidden_in_a_quotient(x):
    return 1 / (1 / x)


def hidden_by_a_choice(x):
    return np.minimum(x * x, 1.0) + 1.0


def without_elements(x):
    return (1 / x)[:, None] * np.zeros((x.size, 0))


def in_place(x):
    y = 1 / x
    y *= 0.5
    y -= y
    return y


PROGRAMS = [chain, kept_by_a_write, hidden_in_a_quotient, hidden_by_a_choice, without_elements, in_place]


@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_warnings_come_wherever_the_number_goes(program, backend):
    run = plumbline.compile(program, backend=backend)
    for first in (2.0, 0.0, 1e200, NAN, INF, -INF, 1.0):
        compared(run, program, np.array([first, 2.0, 3.0]))
