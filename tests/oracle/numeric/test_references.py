"""No more of the program is run than the answer needs."""

from dataclasses import replace

import pytest
import torch

from plumbline.oracle import VerdictKind, check, cotangents, judge
from plumbline.oracle.numeric import full_lanes, light_replicas, references


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(48, 64), torch.nn.Linear(64, 40)
        self.norm = torch.nn.LayerNorm(40)

    def forward(self, x):
        return self.norm(self.second(torch.nn.functional.gelu(self.first(x))))

    def otherwise(self, x):
        y = x @ self.first.weight.t() + self.first.bias
        y = 0.5 * y * (1 + torch.erf(y * 0.5**0.5))
        y = y[:, :32] @ self.second.weight[:, :32].t() + y[:, 32:] @ self.second.weight[:, 32:].t() + self.second.bias
        y = y - y.mean(-1, keepdim=True)
        return y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt() * self.norm.weight + self.norm.bias

    def faulty(self, x):
        return self.otherwise(x * 1.001)


@pytest.fixture
def ran(monkeypatch):
    """What was run for the references: `light`, `wide`, `replicas`, or the number of lanes of a shadow run."""
    order = []

    class Shadow(full_lanes.ShadowRun):
        def __init__(self, **options):
            super().__init__(**options)
            order.append(self.plan.count)

    class Light(references.LightLane):
        def __init__(self, *plan, **options):
            super().__init__(*plan, **options)
            order.append("wide" if self.plan.wide else "replicas" if self.plan.replicas else "light")

    monkeypatch.setattr(full_lanes, "ShadowRun", Shadow)
    monkeypatch.setattr(references, "LightLane", Light)
    monkeypatch.setattr(light_replicas, "LightLane", Light)
    return order


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    monkeypatch.setattr(judge, "LARGE_CALL", 0 if request.param == "large" else 1 << 60)
    if request.param == "large":
        monkeypatch.setattr(cotangents, "LARGEST_FOR_DOUBLE", 0)
    return request.param


def test_equal_bits_need_no_reference(ran, size):
    net = Net()
    assert check(net, (torch.randn(70, 48),), compiled=net.forward).kind is VerdictKind.EQUAL
    assert ran == []


def test_legitimate_rounding_needs_one_light_run_and_one_for_gradients_of_gradients(ran, size):
    net = Net()
    verdict = check(net, (torch.randn(70, 48),), compiled=net.otherwise)
    assert verdict.kind in (VerdictKind.NOISE, VerdictKind.BETTER)
    assert len(verdict.findings) >= 5
    if size == "large":
        assert ran == ["light"]
    else:
        assert ran.count("light") == 2
        assert 9 not in ran  # where replicas are needed, two of them are enough


@pytest.mark.parametrize("accepts", [True, False])
def test_what_the_screen_accepted_for_the_first_cotangent_speaks_for_later_ones(monkeypatch, accepts):
    asked = []

    def screened(actual, eager, exact, *, later=False):
        found = screen(actual, eager, exact, later=later)
        asked.append(later)
        return found if accepts else replace(found, decision=None)

    screen = references.screened
    monkeypatch.setattr(references, "screened", screened)
    net = Net()
    verdict = check(net, (torch.randn(70, 48),), compiled=net.otherwise)
    assert verdict.kind in (VerdictKind.NOISE, VerdictKind.BETTER)
    assert any(asked) is accepts
    assert not asked[0]


def test_a_gross_fault_of_a_large_call_needs_no_replicas(ran, monkeypatch):
    monkeypatch.setattr(judge, "LARGE_CALL", 0)
    monkeypatch.setattr(cotangents, "LARGEST_FOR_DOUBLE", 0)
    net = Net()
    verdict = check(net, (torch.randn(70, 48),), compiled=net.faulty)
    assert verdict.kind is VerdictKind.WRONG
    assert verdict.worst.numbers.margin > 1
    assert ran == ["light", "wide", "wide"]


def test_a_fault_of_a_small_call_is_judged_in_full(ran, monkeypatch):
    monkeypatch.setattr(judge, "LARGE_CALL", 1 << 60)
    net = Net()
    assert check(net, (torch.randn(70, 48),), compiled=net.faulty).kind is VerdictKind.WRONG
    lanes = [entry for entry in ran if isinstance(entry, int)]  # exact and 8 replicas; exact, 4 wide, 4 rounded
    assert set(lanes) == {9}
    assert 4 <= lanes.count(9) <= 6  # for the output, for all backwards together, and for gradients of those


def test_in_a_large_call_few_lanes_run_at_a_time(ran, monkeypatch):
    monkeypatch.setattr(judge, "LARGE_CALL", 0)
    monkeypatch.setattr(cotangents, "LARGEST_FOR_DOUBLE", 0)
    monkeypatch.setattr(references, "GROSS", 1e9)

    def program(x):
        return torch.relu((x @ x.t()).softmax(-1) - 0.01)

    verdict = check(program, (torch.randn(70, 48),), compiled=lambda x: program(x) * (1 + 3e-6))
    assert verdict.kind is VerdictKind.WRONG
    lanes = [entry for entry in ran if isinstance(entry, int)]
    assert lanes.count(2) >= 4 + 4  # eight replicas and the exact one; four of wide noise, each beside a rounded one
    assert max(lanes) == 2


def test_numbers_that_were_accepted_are_not_judged_again_where_the_program_is_told_that_it_is_compiled(ran):
    net, x = Net(), torch.randn(70, 48)

    def plain(x, log):
        if torch.compiler.is_compiling():
            log.append("compiled")
        return net(x)

    def compiled(x, log):
        log.append("compiled")
        return net.otherwise(x)

    check(net, (x,), compiled=net.otherwise)
    once = list(ran)
    ran.clear()
    assert check(plain, (x, []), compiled=compiled).kind is VerdictKind.DESIGN
    assert ran == once


def test_a_jump_is_not_called_wrong_however_far_it_goes(size):
    def steps(x):
        return (x @ x.t() * 1e3).floor()

    x = torch.randn(40, 400)
    verdict = check(
        steps, (x,), compiled=lambda x: (x[:, :200] @ x[:, :200].t() + x[:, 200:] @ x[:, 200:].t()).mul(1e3).floor()
    )
    assert verdict.kind is not VerdictKind.WRONG


def test_a_fault_of_the_backward_alone_is_found_for_every_cotangent(size):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, tail):
            ctx.tail = tail
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            grad = grad * 2
            if ctx.tail:
                grad[-1] = 0
            return grad, None

    x = torch.randn(70, 48, requires_grad=True)
    verdict = check(lambda x: Twice.apply(x, False).exp(), (x,), compiled=lambda x: Twice.apply(x, True).exp())
    assert verdict.kind is VerdictKind.WRONG
    assert all(finding.aspect == "gradients" for finding in verdict.findings)


def test_gradients_that_cancel_to_nothing_are_noise():
    def program(x):
        return torch.softmax(x, -1)

    def otherwise(x):
        weights = (x - x.amax(-1, keepdim=True).detach()).exp()
        return weights / weights.sum(-1, keepdim=True)

    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for seed in range(4):
            x = torch.randn(24, 40, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()
            assert not check(program, (x,), compiled=lambda x: otherwise(x.float()).to(x.dtype)).failed


class Keys(torch.nn.Module):
    """Attention whose keys have a bias; the softmax takes it away, and its gradient is nothing but rounding."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

    def forward(self, x):
        return torch.softmax(self.query(x) @ self.key(x).t(), -1) @ x

    def otherwise(self, x):
        scores = self.query(x) @ self.key(x).t()
        weights = (scores - scores.amax(-1, keepdim=True).detach()).exp()
        return weights @ x / weights.sum(-1, keepdim=True)

    def wrong(self, x):
        result = self.otherwise(x)
        return result + 1e-4 * (self.key.bias - self.key.bias.detach()).sum()


def test_a_gradient_of_nothing_but_rounding_needs_no_rounded_lanes(ran):
    net = Keys()
    x = torch.randn(24, 32)
    verdict = check(net, (x,), compiled=net.otherwise)
    assert verdict.kind in (VerdictKind.NOISE, VerdictKind.BETTER)
    assert "gradient of self.key.bias" in [finding.where for finding in verdict.findings]
    assert 9 not in ran
    wrong = check(net, (x,), compiled=net.wrong)
    assert [finding.where for finding in wrong.findings if finding.kind.fails] == ["gradient of self.key.bias"]


def test_lanes_are_run_for_the_backward_that_needs_them(monkeypatch):
    asked = []
    make = full_lanes.FullLanes._make

    def noted(self, depth, path, cotangent, **options):
        make(self, depth, path, cotangent, **options)
        asked.append((depth, cotangent, {key for at, key in self._made if at == depth and key is not None}))

    monkeypatch.setattr(full_lanes.FullLanes, "_make", noted)
    monkeypatch.setattr(references.References, "_light", lambda *tensor: None)
    monkeypatch.setattr(references, "judge_values", _unclear(references.judge_values))
    net = Keys()
    assert not check(net, (torch.randn(24, 32),), compiled=net.otherwise).failed
    few = [(cotangent, keys) for depth, cotangent, keys in asked if depth == "few" and cotangent is not None]
    assert few[0] == ("random", {"random"})
    assert few[1] == ("one-hot", {"random", "one-hot", "ones"})


def _unclear(judge_values):
    """Return the judgement without what a single float64 run decides."""

    def judged(actual, eager, lanes):
        if lanes is not None and lanes.replicas is None and lanes.rounded is None and lanes.exact is not None:
            return references.OpenDecision(references.Need.REPLICAS, None, "not decided")
        return judge_values(actual, eager, lanes)

    return judged


def test_a_gradient_that_one_backward_returns_and_the_next_one_uses_keeps_its_exact_value(ran, monkeypatch):
    monkeypatch.setattr(judge, "LARGE_CALL", 1 << 60)

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, otherwise):
            ctx.slope = torch.sigmoid(x) if not otherwise else 1 / (1 + (-x).exp())
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            ctx.slope.mul_(1)  # written in place: it is one tensor in all backwards
            return ctx.slope, None

    x = torch.randn(70, 48, requires_grad=True)
    verdict = check(lambda x: Kept.apply(x, False), (x,), compiled=lambda x: Kept.apply(x, True))
    assert verdict.kind in (VerdictKind.NOISE, VerdictKind.BETTER)
    assert ran == ["light"]
