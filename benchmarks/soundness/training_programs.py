"""Programs that train: optimizers inside the call, hooks of every kind, backward inside, scalers, checkpoints."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from .registry import Registry, gradients, inputs

TRAINING = Registry()


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def _step_with(kind, **settings):
    def play(call):
        model = _model()
        optimizer = kind(model.parameters(), **settings)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return [call(step, inputs()) for _ in range(3)], model, optimizer.state_dict()

    return play


OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {}),
    "adamw_amsgrad": (torch.optim.AdamW, {"amsgrad": True}),
    "adam_fused": (torch.optim.Adam, {"fused": True}),
    "adam_one_by_one": (torch.optim.Adam, {"foreach": False}),
    "adagrad": (torch.optim.Adagrad, {}),
    "adadelta": (torch.optim.Adadelta, {}),
    "adamax": (torch.optim.Adamax, {}),
    "nadam": (torch.optim.NAdam, {}),
    "radam": (torch.optim.RAdam, {}),
    "rmsprop": (torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
    "rprop": (torch.optim.Rprop, {}),
    "asgd": (torch.optim.ASGD, {}),
}
for _name, (_kind, _settings) in OPTIMIZERS.items():
    _play = _step_with(_kind, **_settings)
    _play.__name__ = f"step_of_{_name}"
    TRAINING(_play)


@TRAINING
def step_of_lbfgs(call):
    model, x = _model(), inputs()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return [call(optimizer.step, closure) for _ in range(2)], model


@TRAINING
def step_of_sparse_adam(call):
    table = nn.Embedding(6, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())

    def step(ids):
        optimizer.zero_grad()
        table(ids).sum().backward()
        optimizer.step()
        return table(ids)

    return [call(step, torch.tensor([1, 2, 1])) for _ in range(2)], table


@TRAINING
def step_outside_the_call(call):
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = call(model, inputs()).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses, model, optimizer.state_dict()


@TRAINING
def only_the_step_is_compiled(call):
    model = _model()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        model(inputs()).sum().backward()
        call(optimizer.step)
        call(optimizer.zero_grad)
    return model, optimizer.state_dict()


@TRAINING
def gradients_accumulated(call):
    model = _model()
    for _ in range(3):
        call(model, inputs()).sum().backward()
    return gradients(model)


@TRAINING
def gradients_accumulated_inside(call):
    model = _model()
    model(inputs()).sum().backward()

    def more(x):
        model(x).sum().backward()
        return x

    return [call(more, inputs()) for _ in range(2)], gradients(model)


@TRAINING
def learning_rate_schedule(call):
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=2),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4),
        ],
        milestones=[2],
    )

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss, schedule.get_last_lr()

    return [call(step, inputs()) for _ in range(3)], model, schedule.last_epoch


@TRAINING
def schedule_on_a_plateau(call):
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)

    def step(x):
        loss = model(x).sum()
        schedule.step(loss.item())
        return loss

    return [call(step, inputs()) for _ in range(3)], optimizer.param_groups[0]["lr"]


@TRAINING
def gradient_scaler(call):
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return [call(step, inputs()) for _ in range(3)], model, scaler.get_scale()


@TRAINING
def gradients_clipped(call):
    model = _model()

    def step(x):
        model.zero_grad()
        model(x).sum().backward()
        return nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    return call(step, inputs()), gradients(model)


@TRAINING
def gradients_set_to_none_and_filled(call):
    model = _model()
    model(inputs()).sum().backward()

    def reset(x):
        model[0].zero_grad(set_to_none=True)
        model[2].weight.grad.zero_()
        model[2].bias.grad = torch.ones(2)
        return model(x)

    return call(reset, inputs()), gradients(model)


@TRAINING
def autocast_inside_and_outside(call):
    model = _model()

    def inside(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    first = call(inside, inputs())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        second = call(model, inputs())
    (first.float().sum() + second.float().sum()).backward()
    return first, second, gradients(model)


@TRAINING
def modes_inside(call):
    model = _model()

    def inside(x):
        with torch.no_grad():
            a = model(x)
        with torch.inference_mode():
            b = model(x)
        with torch.enable_grad():
            c = model(x)
        return a, b.clone(), c, torch.is_grad_enabled()

    return call(inside, inputs())


@TRAINING
def inference_mode_outside(call):
    model = _model()
    with torch.inference_mode():
        return call(model, inputs())


@TRAINING
def no_grad_outside(call):
    model, total = _model(), torch.zeros(2)
    with torch.no_grad():
        return call(lambda x: total.add_(model(x).sum(0)), inputs()), total


@TRAINING
def hooks_of_modules(call):
    model, log = _model(), []
    model[0].register_forward_pre_hook(lambda module, args: log.append("before") or (args[0] * 2,))
    model[0].register_forward_hook(lambda module, args, out: log.append("after") or out + 1)
    model[2].register_forward_hook(lambda module, args, kwargs, out: log.append(out.mean().item()), with_kwargs=True)
    model.register_full_backward_hook(lambda module, gin, gout: log.append("full backward"))
    model[0].register_full_backward_pre_hook(lambda module, gout: log.append("backward pre") or gout)
    out = [call(model, inputs().requires_grad_()) for _ in range(2)]
    out[-1].sum().backward()
    return out, log, gradients(model)


@TRAINING
def hook_that_changes_the_gradient(call):
    model = _model()
    model[0].weight.register_hook(lambda gradient: gradient * 2)
    model[2].register_full_backward_hook(lambda module, gin, gout: (gin[0] * 3,))
    call(model, inputs()).sum().backward()
    return gradients(model)


@TRAINING
def hook_after_accumulation(call):
    model, log = _model(), []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: (log.append(p.grad.sum()), setattr(p, "grad", None)))
    for _ in range(2):
        call(model, inputs()).sum().backward()
    return log, gradients(model)


@TRAINING
def optimizer_in_a_hook(call):
    model = _model()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def stepped(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(stepped)
    for _ in range(2):
        call(model, inputs()).sum().backward()
    return model


@TRAINING
def hook_registered_in_the_call(call):
    log = []

    def hooked(x):
        y = x * 2
        y.register_hook(lambda gradient: log.append(gradient.sum()))
        return y.sin()

    x = inputs().requires_grad_()
    call(hooked, x).sum().backward()
    return x, log


@TRAINING
def hook_on_a_leaf_registered_in_the_call(call):
    log, weight = [], torch.ones(4, requires_grad=True)

    def hooked(x):
        weight.register_hook(lambda gradient: log.append(gradient.sum()))
        return x * weight

    call(hooked, inputs()).sum().backward()
    return weight, log


@TRAINING
def module_hook_registered_in_the_call(call):
    model, log = _model(), []

    def hooked(x):
        handle = model[0].register_forward_hook(lambda module, args, out: log.append(out.shape))
        out = model(x)
        handle.remove()
        return out

    return [call(hooked, inputs()) for _ in range(2)], log


@TRAINING
def global_module_hooks(call):
    log = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: log.append(type(module).__name__))
    try:
        return call(_model(), inputs()), log
    finally:
        handle.remove()


@TRAINING
def activations_kept_by_hooks(call):
    model, kept = _model(), {}
    for name, layer in model.named_children():
        layer.register_forward_hook(lambda module, args, out, name=name: kept.__setitem__(name, out))
    out = call(model, inputs())
    (out.sum() + kept["0"].square().sum()).backward()
    return out, kept, gradients(model)


@TRAINING
def gradients_retained(call):
    kept = []

    def retained(x):
        y = x * 2
        y.retain_grad()
        kept.append(y)
        return (y * y).sum()

    x = inputs().requires_grad_()
    call(retained, x).backward()
    return x, kept[-1].grad, len(kept)


@TRAINING
def gradient_penalty(call):
    model = _model()

    def penalty(x):
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return gradient.norm()

    loss = call(penalty, inputs())
    loss.backward()
    return loss, gradients(model)


@TRAINING
def double_backward_outside(call):
    x = inputs().requires_grad_()
    y = call(lambda x: x.tanh() * x, x)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return y, first, second


@TRAINING
def inner_loop_of_meta_learning(call):
    model = nn.Linear(4, 2)

    def adapted(x, y):
        weights = dict(model.named_parameters())
        loss = functional.mse_loss(torch.func.functional_call(model, weights, (x,)), y)
        slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        faster = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), slopes, strict=True)}
        return functional.mse_loss(torch.func.functional_call(model, faster, (x,)), y)

    call(adapted, inputs(), inputs(2, 2)).backward()
    return gradients(model)


@TRAINING
def checkpointed(call):
    model = _model()

    def run(x):
        return checkpoint(model, x, use_reentrant=False)

    x = inputs().requires_grad_()
    call(run, x).sum().backward()
    return x, gradients(model)


@TRAINING
def checkpointed_with_draws(call):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    x = inputs().requires_grad_()
    call(lambda x: checkpoint(model, x, use_reentrant=False), x).sum().backward()
    return x, gradients(model), torch.rand(1)


@TRAINING
def checkpointed_reentrantly(call):
    model = _model()
    x = inputs().requires_grad_()
    call(lambda x: checkpoint(model, x, use_reentrant=True), x).sum().backward()
    return x, gradients(model)


@TRAINING
def checkpointed_in_segments(call):
    model = _model()
    x = inputs().requires_grad_()
    call(lambda x: checkpoint_sequential(model, 2, x, use_reentrant=False), x).sum().backward()
    return x, gradients(model)


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.scale = 2
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return ctx.scale * x * gradient


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.log.append(gradient.sum())
        return -gradient, None


class _InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class _Straight(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.round(), x > 0

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient


class _Once(torch.autograd.Function):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return gradient * 3

    @staticmethod
    def forward(ctx, x):
        return x * 3


@TRAINING
def functions_of_the_users(call):
    x = inputs().requires_grad_()
    call(lambda x: _Square.apply(x.sin()) + _Once.apply(x), x).sum().backward()
    return x


@TRAINING
def function_that_logs_in_backward(call):
    x, log = inputs().requires_grad_(), []
    call(lambda x: _Reversal.apply(x, log) * 2, x).sum().backward()
    return x, log


@TRAINING
def function_that_writes(call):
    x = inputs().requires_grad_()
    call(lambda x: _InPlace.apply(x * 1), x).sum().backward()
    return x


@TRAINING
def function_with_two_results(call):
    x = inputs().requires_grad_()
    out, positive = call(lambda x: _Straight.apply(x), x)
    out.sum().backward()
    return out, positive, x


@TRAINING
def backward_with_the_graph_kept(call):
    x = inputs().requires_grad_()

    def twice(x):
        y = x.square().sum()
        y.backward(retain_graph=True)
        return y

    y = call(twice, x)
    y.backward()
    return x


@TRAINING
def backward_from_a_graph_of_before(call):
    x = inputs().requires_grad_()
    hidden = x.square()
    y = call(lambda h: h.sin() * 2, hidden)
    y.sum().backward()
    return x, hidden


@TRAINING
def backward_inside_from_a_graph_of_before(call):
    x = inputs().requires_grad_()
    hidden = x.square()

    def inside(h):
        loss = h.sin().sum()
        loss.backward()
        return loss.detach()

    return call(inside, hidden), x


@TRAINING
def writes_into_a_graph_of_before(call):
    x = inputs().requires_grad_()
    hidden = x * 2

    def write(h):
        h.mul_(3)
        return h.sum()

    call(write, hidden).backward()
    return x, hidden


@TRAINING
def writes_into_a_captured_graph_of_before(call):
    x = inputs().requires_grad_()
    hidden = x * 2

    def write(y):
        hidden.add_(y)
        return hidden.sum()

    call(write, inputs()).backward()
    return x, hidden
