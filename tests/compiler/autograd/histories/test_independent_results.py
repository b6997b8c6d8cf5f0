"""Backwards of several results of one graph, one after the other, as eager allows and refuses them."""

import gc
import itertools
import weakref

import pytest
import torch

import plumbline
from plumbline.compiler.autograd.histories.independent_results import independent_results
from support.torch_release import SAVED_TENSORS_ARE_READ_ONE_BY_ONE

TWICE = "Trying to backward through the graph a second time"


def apart(x, w):
    return (x * x).sum(), (w * w * w).sum()


def nothing_saved(x, w):
    return x + 1, w.sum(), x - 2


def shared(x, w):
    square = x * x
    return square.sum(), (square * w).sum(), w.exp()


def shared_without_saving(x, w):
    both = x + w
    return (both * both).sum(), (both**3).sum(), both


def one(x, w):
    return (x + w,)


def both_and_each(x, w):
    a, b = x.exp(), w.exp()
    return a * 1, b * 1, a + b


def one_step_in_some(x, w):
    a, b = x.exp(), w.exp()
    return (a + 1).sum(), (a * b).sum(), b.sum(), x - w


PROGRAMS = [both_and_each, one_step_in_some, apart, nothing_saved, shared, shared_without_saving, one]


def leaves():
    return torch.arange(6.0).requires_grad_(), (torch.arange(6.0) + 0.5).requires_grad_()


def outcome(function, order, retain):
    """Return the gradients after each backward, or the error."""
    given = leaves()
    results, found = function(*given), []
    for place in order:
        try:
            results[place].sum().backward(retain_graph=retain and not found)
            found.append([None if leaf.grad is None else leaf.grad.tolist() for leaf in given])
        except RuntimeError as error:
            return [*found, str(error)]  # what eager has added to gradients until then is not compared
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_backwards_one_after_the_other(program):
    compiled = plumbline.compile(program, backend="aot_eager")
    count = len(program(*leaves()))
    for order, retain in itertools.product(itertools.product(range(count), repeat=3), (False, True)):
        assert outcome(compiled, order, retain) == outcome(program, order, retain), (order, retain)


def groups(*values):
    return [(sorted(places), sorted(spends)) for places, spends in independent_results(values)]


def test_groups_share_steps_that_save():
    x, w = leaves()
    a, b = x * x, w.exp()
    assert groups(a.sum(), b.sum(), (a + 1).sum()) == [([0, 2], [0, 2]), ([1], [1])]
    assert groups(a + b, a, b) == [([0], [0, 1, 2]), ([1], [0, 1]), ([2], [0, 2])]
    assert groups(a, b, a + b, a - 1) == [([0, 3], [0, 2, 3]), ([1], [1, 2]), ([2], [0, 1, 2, 3])]
    assert groups(a, a * b, (a * b).sin()) == [([0, 1, 2], [0, 1, 2])]
    assert groups(x + 1, w.sum(), x * x) == [([0, 1], []), ([2], [2])]
    deep = x
    for _ in range(3000):
        deep = deep + 1
    assert groups(deep, (deep * 2).sum(), deep.sin()) == [([0], []), ([1], [1]), ([2], [2])]


def test_a_part_is_freed_when_its_backward_has_run():
    def program(x, w):
        return x.exp().sum(), w.sigmoid().sum()

    kept = []

    class Noted:
        def __init__(self, tensor):
            self.tensor = tensor
            kept.append(weakref.ref(self))

    def alive():
        gc.collect()
        return len([noted for ref in kept if (noted := ref()) is not None and noted.tensor.numel()])

    with torch.autograd.graph.saved_tensors_hooks(Noted, lambda noted: noted.tensor):
        first, second = plumbline.compile(program, backend="aot_eager")(*leaves())
        whole = alive()
        first.backward()
        assert whole > alive() > 0
        second.backward()
        assert alive() == 0


@pytest.mark.parametrize("before", [True, False], ids=["before", "between"])
def test_what_was_saved_and_then_overwritten_is_refused(before):
    def program(x, w):
        return (x * x).sum(), w.exp(), w.sigmoid().sum()

    def run(function):
        given = leaves()
        results = function(*given)
        if not before:
            results[0].backward()
        with torch.no_grad():
            results[1].add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            results[1].sum().backward()
        if not before:
            results[2].backward()
        return [None if leaf.grad is None else leaf.grad.tolist() for leaf in given]

    assert run(plumbline.compile(program, backend="aot_eager")) == run(program)


def side_by_side(x, w):
    half = x.sin()
    return half.exp(), half * 2, half.tanh() * w, w.exp()


def gradients_until_refused(function, written, order, retain):
    """Return the gradients after each backward up to the first that raises, when a result has been written to."""
    given = leaves()
    results, found = function(*given), []
    with torch.no_grad():
        results[written].add_(1)
    for place in order:
        try:
            results[place].sum().backward(retain_graph=retain)
        except RuntimeError:
            return [*found, "refused"]
        found.append([None if leaf.grad is None else leaf.grad.tolist() for leaf in given])
    return found


@pytest.mark.parametrize("written", range(4))
def test_a_write_to_one_result_leaves_the_others_their_backward(written):
    compiled = plumbline.compile(side_by_side, backend="aot_eager")
    for order, retain in itertools.product(itertools.permutations(range(4), 2), (False, True)):
        mine = gradients_until_refused(compiled, written, order, retain)
        eager = gradients_until_refused(side_by_side, written, order, retain)
        assert mine == eager or (not SAVED_TENSORS_ARE_READ_ONE_BY_ONE and mine == ["refused"]), (order, retain)


def test_a_write_between_the_graphs_of_a_call():
    """Behind a graph break, what a program writes is a result of the graph before it."""

    def program(x, w):
        norm = (x * w).norm()
        positive = x[x > 0]  # breaks the graph
        norm.masked_fill_(norm > 0, -2.5)
        return positive, x.roll(2)

    outcomes = []
    for function in (program, plumbline.compile(program, backend="aot_eager")):
        given = leaves()
        function(*given)[1].sum().backward()
        outcomes.append(given[0].grad)
    assert torch.equal(*outcomes)


def test_what_is_kept_for_a_result_dies_with_it():
    """A loss that a program keeps must not keep what was saved for a result that it has dropped."""
    kept = []

    class Noted:
        def __init__(self, tensor):
            self.tensor = tensor
            kept.append(weakref.ref(self))

    with torch.autograd.graph.saved_tensors_hooks(Noted, lambda noted: noted.tensor):
        loss, other = plumbline.compile(lambda x, w: (x.exp().sum(), w.sigmoid()), backend="aot_eager")(*leaves())
        loss.backward()
        del other
        gc.collect()
        assert loss.grad_fn is not None
        assert [noted for ref in kept if (noted := ref()) is not None and noted.tensor.numel()] == []


def test_results_die_with_what_is_kept_for_them():
    x, w = leaves()
    results = plumbline.compile(lambda x, w: (x.exp(), w.exp()), backend="aot_eager")(x, w)
    refs = [weakref.ref(result) for result in results]
    gc.disable()
    try:
        del results
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def softened_beside_a_product(a, b):
    v = b * 3
    return torch.nn.functional.softplus(a, 3), v, (v * v).sum()


@pytest.mark.parametrize("read", [False, True])
def test_a_write_after_the_backward_of_another_result_counts_where_it_is_read(read):
    """What the first backward leaves for the others is read one by one too."""
    outcomes = []
    for run in (softened_beside_a_product, plumbline.compile(softened_beside_a_product, backend="aot_eager")):
        a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
        first, written, reader = run(a, b)
        first.sum().backward()
        with torch.no_grad():
            written.mul_(-3)
        try:
            (reader if read else written).sum().backward()
        except RuntimeError:
            outcomes.append("refused")
        else:
            outcomes.append(b.grad.tolist())
    mine = outcomes[1]
    assert mine == outcomes[0] or (not SAVED_TENSORS_ARE_READ_ONE_BY_ONE and mine == "refused")
