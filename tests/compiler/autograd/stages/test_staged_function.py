import gc
import weakref

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import plumbline
from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.base.events import Artifact, recording

pytestmark = pytest.mark.skipif(not distributed.is_available(), reason="torch was built without distributed")
LAYER = 64 * 65 * 4  # bytes


@pytest.fixture(autouse=True)
def one_process():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def layers(count=4, width=64):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(count)))


def wrapped(model, capacity=LAYER, **options):
    return DistributedDataParallel(model, bucket_cap_mb=capacity / 2**20, **options)


def order_of_events(model, make, steps=3):
    """Return when gradients of layers came and when buckets were sent, in the last of some steps."""
    events = []
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: events.append(int(name.split(".")[0])))
    ddp = make(model)

    def send(state, bucket):
        events.append("send")
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp.register_comm_hook(None, send)
    for _ in range(steps):
        events.clear()
        ddp(torch.ones(2, 64)).sum().backward()
    return events


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_buckets_are_sent_while_backward_runs(backend):
    events = order_of_events(layers(), lambda model: wrapped(plumbline.compile(model, backend=backend)))
    assert [set(events[place : place + 3]) - {"send"} for place in (0, 9)] == [{3}, {0}]
    assert events.index("send") < 4  # the first before the gradients of the second layer


def test_a_process_that_finds_the_graph_on_disk_has_stages_too(tmp_path):
    options = {"cache_directory": str(tmp_path), "graph_cache": True}
    found = []
    for _ in range(2):
        plumbline.reset()
        found.append(order_of_events(layers(), lambda model: wrapped(plumbline.compile(model, options=options))))
    assert found[0] == found[1]
    assert found[1].index("send") < 4


@pytest.mark.parametrize(("capacity", "stages"), [(LAYER, 4), (2 * LAYER, 2), (LAYER + 1, 3), (9 * LAYER, 0)])
def test_stages_end_where_buckets_are_full(capacity, stages):
    assert stages_of(layers(), capacity) == stages
    assert stages_of(layers(), capacity, ddp_stages=False) == 0


def stages_of(model, capacity, **options):
    with recording() as events:
        wrapped(plumbline.compile(model, backend="aot_eager", options=options), capacity)(torch.ones(2, 64))
    return sum(isinstance(event, Artifact) and "backward stage" in event.name for event in events)


def test_a_module_compiled_before_it_was_wrapped_gets_stages_then():
    compiled = plumbline.compile(layers(), backend="aot_eager")
    compiled(torch.ones(2, 64))
    with recording() as events:
        wrapped(compiled)(torch.ones(2, 64))
    assert sum(isinstance(event, Artifact) and "backward stage" in event.name for event in events) == 4


def both(backend="aot_eager"):
    eager = layers(3)
    compiled = layers(3)
    return eager, compiled, wrapped(plumbline.compile(compiled, backend=backend, fullgraph=True))


def test_history_that_is_kept_runs_again_and_else_raises():
    eager, compiled, ddp = both()
    x = torch.randn(2, 64)
    for model in (eager, ddp):
        value = model(x).sum()
        value.backward(retain_graph=True)
        value.backward()
        with pytest.raises(RuntimeError, match="second time"):
            value.backward()
    for one, other in zip(eager.parameters(), compiled.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)


def test_a_gradient_of_one_parameter_and_of_an_input():
    eager, compiled, ddp = both()
    x = torch.randn(2, 64, requires_grad=True)
    for place in range(6):
        ours, theirs = (
            torch.autograd.grad(run(x).sum(), [list(model.parameters())[place], x])
            for run, model in ((ddp, compiled), (eager, eager))
        )
        assert all(map(torch.equal, ours, theirs))


class _Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = layers(3)

    def forward(self, x):
        y = self.body(x)
        return y.sin(), (y * y).sum()


@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)])
def test_a_part_of_the_results_has_a_gradient(which):
    model = _Two()
    ddp = wrapped(plumbline.compile(model, backend="aot_eager"))
    x = torch.randn(2, 64)
    gradients = []
    for run in (ddp, model):
        model.zero_grad()
        results = run(x)
        sum(results[place].sum() for place in which).backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(map(torch.equal, *gradients))


class _Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = layers(3)

    def forward(self, x):
        y = self.body(x)
        return y, (y * y).sum()


def test_a_retained_gradient_is_whole_and_a_hook_is_refused():
    model = _Inner()
    ddp = wrapped(plumbline.compile(model, backend="aot_eager"))
    x, retained = torch.randn(2, 64), []
    for run in (ddp, model):
        inner, loss = run(x)
        inner.retain_grad()
        (loss + inner.sum()).backward()
        retained.append(inner.grad)
    torch.testing.assert_close(*retained)
    inner, loss = ddp(x)
    inner.register_hook(lambda gradient: gradient * 2)
    with pytest.raises(Unsupported, match="has hooks"):
        (loss + inner.sum()).backward()


def test_gradients_are_differentiated_again():
    eager, _, ddp = both()
    x = torch.randn(2, 64, requires_grad=True)
    found = []
    for model in (eager, ddp):
        (gradient,) = torch.autograd.grad(model(x).sin().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(gradient.square().sum(), x)[0])
    torch.testing.assert_close(*found)


def test_a_parameter_that_was_written_to_raises():
    _, compiled, ddp = both()
    value = ddp(torch.randn(2, 64)).sum()
    with torch.no_grad():
        compiled[1][0].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


FACTOR = 2.0


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * FACTOR


class EndsScaled(nn.Sequential):
    def forward(self, x):
        return Scaled.apply(super().forward(x))


def test_a_constant_of_the_backward_that_was_assigned_raises(monkeypatch):
    ddp = wrapped(plumbline.compile(EndsScaled(*layers()), backend="aot_eager"))
    ddp(torch.randn(2, 64)).sum().backward()
    value = ddp(torch.randn(2, 64)).sum()
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    with pytest.raises(Unsupported, match="'FACTOR', which the backward of an autograd function reads"):
        value.backward()


def test_results_are_freed_without_backward():
    ddp = both()[2]
    value = ddp(torch.randn(2, 64))
    reference = weakref.ref(value)
    del value
    gc.collect()
    assert reference() is None


def clear(parameter):
    parameter.grad.zero_()


def test_a_gradient_that_is_written_to_at_once_disturbs_no_later_stage():
    eager, compiled, ddp = both()
    for model in (eager, compiled):
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(clear)
    x = torch.randn(2, 64, requires_grad=True)
    found = []
    for model in (eager, ddp):
        x.grad = None
        model(x).sum().backward()
        found.append(x.grad)
    assert torch.equal(*found)


def test_a_compiled_wrapper_inside_a_function_breaks_twice_at_most():
    ddp = wrapped(layers(2))

    def loss(x):
        return ddp(x * 2).square().sum()

    report = plumbline.explain(loss, torch.ones(2, 64))
    assert report.graph_count == 3
    assert "distributed-wrapper" in str(report)


def test_the_wrapper_keeps_its_state_and_its_type():
    model = layers(2)
    ddp = plumbline.compile(wrapped(model), backend="aot_eager", fullgraph=True)
    with ddp.no_sync():
        ddp(torch.ones(2, 64)).sum().backward()
    assert ddp.module is model
    assert ddp._lazy_init_ran
    assert ddp.require_backward_grad_sync
