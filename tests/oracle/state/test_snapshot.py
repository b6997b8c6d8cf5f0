"""Snapshots: whatever a call may change is put back exactly, and nothing else is touched."""

import collections
import random
import types
import unittest.mock

import numpy
import pytest
import torch

from plumbline.oracle.state.snapshot import Snapshot

counter = 0
settings = {"scale": 1.0}


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = 1


class Holder:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AssertionError("rewinding runs no user code")


def set_item(x: dict) -> None:
    x["new"] = 3
    x["a"] = None
    x.pop("b")


def delete_slot(x: Slotted) -> None:
    del x.a
    x.b = 5


@pytest.mark.parametrize(
    ("make", "change", "view"),
    [
        (lambda: [1, 2], lambda x: x.append(3), list),
        (lambda: [1, 2], lambda x: x.reverse(), list),
        (lambda: {"a": 1, "b": 2}, set_item, lambda x: list(x.items())),
        (lambda: collections.OrderedDict(a=1, b=2), lambda x: x.move_to_end("a"), lambda x: list(x.items())),
        (lambda: collections.defaultdict(list, a=[1]), lambda x: x["b"].append(1), lambda x: list(x.items())),
        (lambda: {1, 2}, lambda x: x.discard(1), set),
        (lambda: collections.deque([1, 2], maxlen=2), lambda x: x.append(3), list),
        (lambda: bytearray(b"ab"), lambda x: x.extend(b"c"), bytes),
        (lambda: numpy.arange(4), lambda x: x.__setitem__(1, 9), lambda x: x.tolist()),
        (lambda: Holder(a=1), lambda x: vars(x).update(a=2, b=3), lambda x: dict(vars(x))),
        (Slotted, delete_slot, lambda x: (getattr(x, "a", None), hasattr(x, "b"))),
        (lambda: [[1], [2]], lambda x: x[0].append(5), lambda x: [list(y) for y in x]),
        (lambda: types.SimpleNamespace(n=0), lambda x: setattr(x, "n", 1), lambda x: x.n),
    ],
)
def test_containers_and_objects_come_back(make, change, view):
    value = make()
    before = view(value)
    snapshot = Snapshot.take({"x": value})
    change(value)
    assert view(value) != before
    snapshot.rewind()
    assert view(value) == before


def test_tensor_bytes_come_back_without_touching_the_version_counter():
    x = torch.arange(6.0)
    y = x[2:]
    snapshot = Snapshot.take({"y": y})
    x.mul_(2)
    version = x._version
    snapshot.rewind()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert x._version == version


def test_a_graph_saved_before_still_runs_backward_after_a_rewind():
    w = torch.ones(3, requires_grad=True)
    buffer = torch.full((3,), 2.0)
    y = w * buffer
    snapshot = Snapshot.take({"buffer": buffer})
    snapshot.rewind()
    y.sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_resized_moved_and_regraded_tensors_come_back():
    x, p = torch.ones(4), torch.nn.Parameter(torch.ones(2))
    snapshot = Snapshot.take({"x": x, "p": p})
    x.resize_(9).fill_(5)
    p.data = torch.zeros(3)
    p.requires_grad_(False)
    p.grad = torch.ones(3)
    snapshot.rewind()
    assert x.shape == (4,)
    assert x.tolist() == [1, 1, 1, 1]
    assert p.tolist() == [1, 1]
    assert p.requires_grad
    assert p.grad is None


def test_a_buffer_written_with_gradients_becomes_a_leaf_again():
    cache, w = torch.zeros(3), torch.ones(3, requires_grad=True)
    snapshot = Snapshot.take({"cache": cache})
    cache[0] = w[0]
    snapshot.rewind()
    assert cache.is_leaf
    assert not cache.requires_grad
    assert cache.tolist() == [0, 0, 0]


def test_gradients_accumulated_in_place_come_back():
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    grad = p.grad
    snapshot = Snapshot.take({"p": p})
    (p * 3).sum().backward()
    snapshot.rewind()
    assert p.grad is grad
    assert grad.tolist() == [1, 1]


def test_module_buffers_flags_hooks_and_attributes_come_back():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    snapshot = Snapshot.take({"model": model})
    model(torch.randn(4, 2))
    model.eval()
    model.extra = 1
    model[0].register_forward_hook(lambda *a: None)
    model[0].weight = torch.nn.Parameter(torch.zeros(2, 2))
    snapshot.rewind()
    assert model[1].num_batches_tracked == 0
    assert model[1].running_mean.tolist() == [0, 0]
    assert model.training
    assert model[1].training
    assert not hasattr(model, "extra")
    assert not model[0]._forward_hooks
    assert model[0].weight.abs().sum() > 0


def test_closure_cells_globals_defaults_and_class_attributes_come_back():
    class Config:
        factor = 1

    total = 0

    def function(x: object, seen: list = []) -> None:  # noqa: B006  # the mutable default is what is tested
        nonlocal total
        global counter
        total += 1
        counter += 1
        settings["scale"] *= 2
        seen.append(x)
        Config.factor = 7
        Config.added = 1

    snapshot = Snapshot.take({"function": function})
    function(1)
    assert (total, counter, settings["scale"], Config.factor) == (1, 1, 2.0, 7)
    snapshot.rewind()
    assert (total, counter, settings["scale"], Config.factor) == (0, 0, 1.0, 1)
    assert not hasattr(Config, "added")
    assert function.__defaults__ == ([],)


def test_a_global_made_by_the_function_is_unbound_again():
    def function() -> None:
        global made_here
        made_here = 1

    snapshot = Snapshot.take({"function": function})
    function()
    assert "made_here" in globals()
    snapshot.rewind()
    assert "made_here" not in globals()


def test_generators_and_modes_come_back():
    own = torch.Generator().manual_seed(3)
    snapshot = Snapshot.take({"own": own})
    first = (torch.rand(1), numpy.random.rand(), random.random(), torch.rand(1, generator=own))
    torch.set_grad_enabled(False)
    snapshot.rewind()
    assert torch.is_grad_enabled()
    assert first == (torch.rand(1), numpy.random.rand(), random.random(), torch.rand(1, generator=own))


def test_generators_of_the_users_own_come_back():
    owned = [torch.Generator().manual_seed(1), random.Random(2), numpy.random.default_rng(3)]
    owned.append(numpy.random.RandomState(4))

    def draw():
        return [float(torch.rand(1, generator=owned[0])), owned[1].random(), owned[2].random(), owned[3].rand()]

    snapshot = Snapshot.take({"owned": owned})
    first = draw()
    assert draw() != first
    snapshot.rewind()
    assert draw() == first


def test_calls_of_a_mock_are_forgotten():
    mock = unittest.mock.MagicMock()
    snapshot = Snapshot.take({"mock": mock})
    mock(1)
    mock.method(2)
    snapshot.rewind()
    assert mock.call_count == 0
    mock.assert_not_called()
    mock.method.assert_not_called()
