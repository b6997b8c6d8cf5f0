"""Programs that change parameters: parametrizations, tied and pruned weights; saved tensors, errors."""

import contextlib
import copy

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

from .registry import Registry, gradients, inputs

PARAMETERS = Registry()


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


@PARAMETERS
def parameters_changed_under_no_grad(call):
    model = _model()

    def renormalised(x):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.div_(parameter.norm() + 1)
        return model(x)

    call(renormalised, inputs()).sum().backward()
    return model


@PARAMETERS
def parameters_frozen_in_the_call(call):
    model = _model()

    def frozen(x):
        model[0].requires_grad_(False)
        return model(x)

    call(frozen, inputs()).sum().backward()
    return gradients(model), [p.requires_grad for p in model.parameters()]


@PARAMETERS
def weight_norm(call):
    model = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    call(model, inputs()).sum().backward()
    return model.state_dict(), gradients(model)


@PARAMETERS
def weight_norm_by_hooks(call):
    model = nn.utils.weight_norm(nn.Linear(4, 3))
    outs = [call(model, inputs()) for _ in range(2)]
    outs[-1].sum().backward()
    return outs, gradients(model)


@PARAMETERS
def spectral_norm(call):
    model = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))
    outs = [call(model, inputs()) for _ in range(2)]
    outs[-1].sum().backward()
    return outs, model.state_dict(), gradients(model)


@PARAMETERS
def spectral_norm_by_hooks(call):
    model = nn.utils.spectral_norm(nn.Linear(4, 3))
    outs = [call(model, inputs()) for _ in range(2)]
    outs[-1].sum().backward()
    return outs, model.state_dict(), gradients(model)


@PARAMETERS
def orthogonal_weights(call):
    model = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4).float())
    call(model, inputs().float()).sum().backward()
    return model.state_dict(), gradients(model)


@PARAMETERS
def parametrization_of_the_users(call):
    class Symmetric(nn.Module):
        def forward(self, weight):
            return weight.triu() + weight.triu(1).t()

    model = nn.Linear(4, 4)
    nn.utils.parametrize.register_parametrization(model, "weight", Symmetric())

    def cached(x):
        with nn.utils.parametrize.cached():
            return model(x) + model(x)

    call(cached, inputs()).sum().backward()
    return gradients(model)


@PARAMETERS
def pruned_weights(call):
    model = nn.Linear(4, 4)
    prune.l1_unstructured(model, "weight", amount=0.5)
    outs = [call(model, inputs()) for _ in range(2)]
    outs[-1].sum().backward()
    return outs, gradients(model), model.state_dict()


@PARAMETERS
def tied_weights(call):
    encoder, decoder = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
    decoder.weight = encoder.weight
    model = nn.Sequential(encoder, decoder)
    call(model, torch.tensor([[1, 2], [3, 1]])).sum().backward()
    return gradients(model), model


@PARAMETERS
def embedding_renormalised(call):
    table = nn.Embedding(6, 4, max_norm=0.5)
    call(table, torch.tensor([1, 2, 1])).sum().backward()
    return table


@PARAMETERS
def adversarial_step(call):
    model = _model()

    def attacked(x):
        x = x.detach().requires_grad_()
        model(x).sum().backward()
        adversary = (x + 0.1 * x.grad.sign()).detach()
        model.zero_grad()
        return model(adversary)

    out = call(attacked, inputs())
    out.sum().backward()
    return out, gradients(model)


@PARAMETERS
def two_models_in_turns(call):
    maker, critic = nn.Linear(4, 4), nn.Linear(4, 1)
    first, second = (torch.optim.Adam(m.parameters(), lr=0.1) for m in (maker, critic))

    def step(x):
        made = maker(x)
        second.zero_grad()
        (critic(made.detach()).mean() - critic(x).mean()).backward()
        second.step()
        first.zero_grad()
        (-critic(made).mean()).backward()
        first.step()
        return made.detach()

    return [call(step, inputs()) for _ in range(2)], maker, critic


@PARAMETERS
def teacher_and_student(call):
    student = _model()
    teacher = copy.deepcopy(student).requires_grad_(False)

    def step(x):
        loss = functional.mse_loss(student(x), teacher(x).detach() + 1)
        loss.backward()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
        return loss.detach()

    return [call(step, inputs()) for _ in range(2)], student, teacher


@PARAMETERS
def saved_tensor_hooks(call):
    log = []

    def packed(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append("pack"), t)[1], lambda t: t):
            return (x * x).sin()

    x = inputs().requires_grad_()
    call(packed, x).sum().backward()
    return x, log


@PARAMETERS
def saved_on_the_cpu(call):
    def packed(x):
        with torch.autograd.graph.save_on_cpu():
            return (x * x).sin()

    x = inputs().requires_grad_()
    call(packed, x).sum().backward()
    return x


@PARAMETERS
def anomaly_detection(call):
    def watched(x):
        with torch.autograd.detect_anomaly(check_nan=False):
            return x.sin().sum()

    x = inputs().requires_grad_()
    call(watched, x).backward()
    return x


@PARAMETERS
def deterministic_inside(call):
    def exact(x):
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True)
        try:
            return x.cumsum(0)
        finally:
            torch.use_deterministic_algorithms(before)

    return call(exact, inputs())


@PARAMETERS
def error_in_the_middle(call):
    state, log = torch.zeros(4), []

    def fails(x):
        state.add_(1)
        log.append("before")
        if x.sum() < 1e9:
            raise ValueError("too small")
        return x

    for _ in range(2):
        with contextlib.suppress(ValueError):
            call(fails, inputs())
    return state, log


@PARAMETERS
def error_in_the_backward(call):
    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("no gradient here")

    x = inputs().requires_grad_()
    y = call(Refuses.apply, x)
    try:
        y.sum().backward()
    except ValueError as error:
        return y, str(error)


@PARAMETERS
def nan_and_infinities(call):
    x = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0]).requires_grad_()
    y = call(lambda x: (x.log(), x / 0, x.sqrt(), x.sign(), x.softmax(0)), x)
    sum(one.sum() for one in y).backward()
    return y, x
