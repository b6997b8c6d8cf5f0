"""locals() gave a new dictionary every time: before Python 3.13 a frame has one, which each call brings up to date."""

import pytest
import torch

import plumbline


def changed_across_a_break(x):
    given = locals()
    y = x + 1
    print(end="")
    given["z"] = 3
    return y.sum().item(), sorted(given), sorted(locals())


def same_object(x):
    given = locals()
    y = x * 2
    return y.sum().item(), given is locals(), sorted(given)


def same_object_across_a_break(x):
    given = locals()
    print(end="")
    return given is locals(), (x + 1).sum().item()


def changed_and_asked_again(x):
    given = locals()
    given["other"] = x.shape
    return sorted(locals()), given is locals()


def brought_up_to_date(x):
    y = x + 1
    given = locals()
    y = x + 2
    again = locals()
    print(end="")
    return given["y"].sum().item(), again["y"].sum().item()


def not_asked_again(x):
    y = x + 1
    given = locals()
    y = x + 2
    print(end="")
    return given["y"].sum().item(), y.sum().item()


def of_deleted_names(x):
    y = x + 1
    before = locals()
    names = sorted(before)
    del y
    return names, sorted(locals()), before is locals()


def in_a_loop(x):
    sizes = []
    for _ in range(3):
        given = locals()
        print(end="")
        given["seen"] = True
        sizes.append(len(given))
    return sizes, x.sum().item()


def by_vars(x):
    vars()["new"] = x.shape
    print(end="")
    return "new" in locals()


def asking_itself_for_names(x):
    y = x + 1
    print(end="")
    return sorted(dir()), sorted(vars()), y.sum().item()


PROGRAMS = [
    changed_across_a_break,
    same_object,
    same_object_across_a_break,
    changed_and_asked_again,
    brought_up_to_date,
    not_asked_again,
    of_deleted_names,
    in_a_loop,
    by_vars,
    asking_itself_for_names,
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_locals(program, backend, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")
    run = plumbline.compile(program, backend=backend)
    for _ in range(2):
        assert run(torch.ones(3)) == program(torch.ones(3))


def test_a_dictionary_that_nobody_asks_for_again_does_not_keep_the_frame_from_breaking():
    report = plumbline.explain(not_asked_again)(torch.ones(3))
    assert report.graph_break_count == 3  # print() and two numbers that are read
