"""Branches on small tensors that are decided at entry: in loops, by min and max, and in torch's own code."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Broke, Captured, RanEagerly, recording
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)


def flags(*positions, length=6):
    values = [0] * length
    for position in positions:
        values[position] = 1
    return lambda: (A.clone(), torch.tensor(values))


def a_third_and_fourth(*makers):
    return tuple((maker, compiles) for maker, compiles in makers)


@program(make=flags(3), then=a_third_and_fourth((flags(1), True), (flags(3), False), (flags(1), False)))
def a_loop_that_ends_on_data(a, ends):
    found = []
    for position in range(ends.shape[0]):
        found.append(a * position)
        if (ends[: position + 1] == 1).all() or bool(ends[position] > 0):
            break
    return torch.stack(found)


@program(make=flags(2), then=a_third_and_fourth((flags(4), True), (flags(), True)))
def a_while_loop(a, ends):
    position = 0
    while position < len(ends) and not ends[position]:
        a, position = a + 1, position + 1
    return a, position


@program(make=flags(2), then=a_third_and_fourth((flags(2, 3), True), (flags(2), False)))
def what_is_written_before_it_is_asked(a, ends):
    for _ in range(3):
        ends += ends
        if ends[3] > 0:
            return a + 1, ends
        ends[2] = 5
    return a - 1, ends


@program(make=lambda: (lambda t: (A.clone(), t, t[1:]))(torch.tensor([0, 1, 0])), graphs=3, breaks=4, stable=False)
def what_is_written_through_another_input(a, ends, rest):
    for position in range(2):
        rest.add_(1)
        if ends[position] > 0:
            a = a + 1
    return a, ends


@program(make=lambda: (A.clone(), torch.tensor([float("nan"), 1.0])), then=((flags(0), True),))
def nan_in_a_loop(a, ends):
    for flag in ends:
        if flag > 0 or flag != flag:
            a = a + 1
    return a


@program(
    make=lambda: (A.clone(), torch.tensor(0.5)),
    then=a_third_and_fourth(
        (lambda: (A.clone(), torch.tensor(-0.5)), True), (lambda: (A.clone(), torch.tensor(0.7)), False)
    ),
)
def extremes(a, limit):
    least, most = min(limit, 0), max(a.sum(), limit)
    return least, most, min(a.sum(), a.mean()) is a, max([limit, a.max()]) is limit


@program(make=lambda: (A.clone(), torch.tensor(float("nan"))))
def extremes_of_nan(a, limit):
    return min(limit, 0), min(0, limit), max(limit, a.max()), max(a.max(), limit)


@program(make=lambda: (A.clone(), torch.tensor(0.5)))
def an_extreme_that_is_written_to(a, limit):
    most = max(limit, 0)
    most += 1
    return limit, most is limit


@program(A, graphs=2, breaks=1)
def a_branch_that_stands_alone_breaks(a):
    if a.sum() > 0:
        return a + 1
    return a - 1


@program(A, graphs=3, breaks=3, stable=False)
def draws_are_not_asked_again(a):
    for _ in range(2):
        if torch.rand(1) > 2:
            return a
    return a + 1


@program(make=lambda: (torch.ones(100, 100),), graphs=3, breaks=3, stable=False)
def large_tensors_are_not_asked(a):
    for _ in range(2):
        if a.sum() < 0:
            return a
    return a + 1


@corpus.parametrize()
def test_program(program):
    check(program)


def costs(events):
    return tuple(sum(isinstance(event, kind) for event in events) for kind in (Captured, Broke, RanEagerly))


def test_code_that_data_takes_many_ways_breaks_in_the_end():
    def way(x):
        for flag in x:
            if flag > 0:
                return flag + 1
        return x.sum()

    run = plumbline.compile(way, backend="eager")
    for position in range(5):
        x = torch.zeros(6)
        x[position] = 1
        assert torch.equal(run(x), way(x))
    with recording() as events:
        x = torch.zeros(6)
        x[5] = 1
        assert torch.equal(run(x), way(x))
    assert costs(events)[2] == 0


OPTIMIZERS = ["Adam", "AdamW", "ASGD", "RAdam", "NAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "Adamax", "SGD"]


def trained(name, compiler, steps=7, groups=1):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    parts = [model[0], model[2]] if groups == 2 else [model]
    optimizer = getattr(torch.optim, name)([{"params": part.parameters()} for part in parts], lr=0.01)
    step = compiler(lambda: optimizer.step())
    for _ in range(steps):
        optimizer.zero_grad()
        model(A).square().sum().backward()
        step()
    state = [list(each.values()) for each in optimizer.state_dict()["state"].values()]
    return [parameter.detach() for parameter in model.parameters()], state


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_step_of_an_optimizer_is_one_graph(name):
    with recording() as events:
        ours = trained(name, lambda step: plumbline.compile(step, backend="eager"))
    torch.testing.assert_close(ours, trained(name, lambda step: step))
    assert costs(events) == ((2 if name == "RAdam" else 1), 0, 0)  # the sixth step of RAdam goes another way


def test_an_optimizer_without_state_costs_another_of_the_same_code_nothing():
    compiled = []

    def step_of(optimizer):
        return lambda: optimizer.step()

    for kind in (torch.optim.SGD, torch.optim.Adam):
        parameter = torch.nn.Parameter(torch.ones(3))
        step = plumbline.compile(step_of(kind([parameter], lr=0.1)), backend="eager")
        with recording() as events:
            for _ in range(3):
                parameter.grad = torch.ones(3)
                step()
        compiled.append(costs(events))
    assert compiled == [(1, 0, 0), (1, 0, 0)]


def test_two_groups_of_parameters():
    ours = trained("Adam", lambda step: plumbline.compile(step, backend="eager"), groups=2)
    torch.testing.assert_close(ours, trained("Adam", lambda step: step, groups=2))


def test_a_step_that_reads_data_for_each_parameter_runs_eagerly():
    with recording() as events:
        ours = trained("Adafactor", lambda step: plumbline.compile(step, backend="eager"))
    torch.testing.assert_close(ours, trained("Adafactor", lambda step: step))
    assert costs(events) == (0, 1, 1)


def test_what_init_group_refuses_is_refused_by_the_step():
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3).to_sparse()
    optimizer = torch.optim.Adam([parameter])
    with pytest.raises(RuntimeError, match="sparse"):
        plumbline.compile(lambda: optimizer.step(), backend="eager")()
    assert not optimizer.state[parameter]


def test_the_state_is_not_made_before_what_the_program_does_first():
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimizer = torch.optim.Adam([parameter])

    def step():
        optimizer.param_groups[0]["lr"] = 0.5
        parameter.grad = None
        optimizer.step()

    plumbline.compile(step, backend="eager")()
    assert not optimizer.state
