"""Modules with their state and hooks, optimizers, distributions, subclasses, second gradients, data."""

import torch

from support.planted_kinds.planted_scene import (
    PlantedScene,
    and_then,
    floats,
    instead,
    leaf,
    looked_at,
    on_result,
    planted,
    scene,
)


class Normalised(torch.nn.Module):
    """A layer with buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.seen = 0

    def forward(self, x):
        self.seen += 1
        return self.norm(x)


@planted("modules")
def running_statistics_are_not_kept() -> PlantedScene:
    norm = torch.nn.BatchNorm1d(3)

    def wrong(x):
        return torch.nn.functional.batch_norm(x, None, None, norm.weight, norm.bias, True)

    return scene(norm, instead(wrong), floats(4, 3), seen=lambda y: norm.running_mean.tolist())


@planted("modules")
def running_statistics_are_kept_twice() -> PlantedScene:
    norm = torch.nn.BatchNorm1d(3)
    return scene(norm, and_then(norm), floats(4, 3), seen=lambda y: norm.running_mean.tolist())


@planted("modules")
def batches_are_not_counted() -> PlantedScene:
    norm = torch.nn.BatchNorm1d(3)
    change = and_then(lambda x: norm.num_batches_tracked.sub_(1))
    return scene(norm, change, floats(4, 3), seen=lambda y: norm.num_batches_tracked.item())


@planted("modules")
def a_running_mean_is_replaced_by_another_tensor() -> PlantedScene:
    norm = torch.nn.BatchNorm1d(3)
    held = norm.running_mean

    def change(x):
        norm.running_mean = norm.running_mean.clone()

    return scene(norm, and_then(change), floats(4, 3), seen=lambda y: norm.running_mean is held)


@planted("modules")
def an_attribute_of_a_module_is_not_set() -> PlantedScene:
    module = Normalised()
    return scene(module, instead(lambda x: module.norm(x)), floats(4, 3), seen=lambda y: module.seen)


@planted("modules")
def a_module_is_left_in_evaluation() -> PlantedScene:
    module = torch.nn.Linear(3, 2)
    return scene(module, and_then(lambda x: module.eval()), floats(4, 3), seen=lambda y: module.training)


@planted("modules")
def a_parameter_is_frozen() -> PlantedScene:
    module = torch.nn.Linear(3, 2)
    change = and_then(lambda x: module.weight.requires_grad_(False))
    return scene(module, change, floats(4, 3), seen=lambda y: module.weight.requires_grad)


@planted("modules")
def a_parameter_is_another_object() -> PlantedScene:
    module = torch.nn.Linear(3, 2)
    held = module.weight

    def change(x):
        module.weight = torch.nn.Parameter(module.weight.detach().clone())

    return scene(module, and_then(change), floats(4, 3), seen=lambda y: module.weight is held)


@planted("modules")
def a_forward_hook_is_not_called() -> PlantedScene:
    module, calls = torch.nn.Linear(3, 2), []
    module.register_forward_hook(lambda *given: calls.append(1))
    return scene(module, instead(lambda x: module.forward(x)), floats(4, 3), seen=lambda y: list(calls))


@planted("modules")
def a_forward_hook_is_called_twice() -> PlantedScene:
    module, calls = torch.nn.Linear(3, 2), []
    module.register_forward_hook(lambda *given: calls.append(1))
    return scene(module, and_then(lambda x: calls.append(1)), floats(4, 3), seen=lambda y: list(calls))


@planted("modules")
def what_a_forward_hook_returns_is_ignored() -> PlantedScene:
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 2)
    module.register_forward_hook(lambda one, given, result: result * 2)
    return scene(module, instead(lambda x: module.forward(x)), floats(4, 3))


@planted("modules")
def a_hook_before_forward_is_not_called() -> PlantedScene:
    module, calls = torch.nn.Linear(3, 2), []
    module.register_forward_pre_hook(lambda *given: calls.append(1))
    return scene(module, instead(lambda x: module.forward(x)), floats(4, 3), seen=lambda y: list(calls))


@planted("modules")
def a_backward_hook_is_not_called() -> PlantedScene:
    module, calls = torch.nn.Linear(3, 2), []
    module.register_full_backward_hook(lambda *given: calls.append(1))

    def seen(y):
        y.sum().backward()
        return list(calls)

    return scene(module, instead(lambda x: module.forward(x)), leaf(4, 3), seen=seen)


@planted("modules")
def a_hook_is_left_on_a_module() -> PlantedScene:
    module = torch.nn.Linear(3, 2)
    change = and_then(lambda x: module.register_forward_hook(lambda *given: None))
    return scene(module, change, floats(4, 3), seen=lambda y: len(module._forward_hooks))


@planted("modules")
def a_hook_that_removes_itself_stays() -> PlantedScene:
    module = torch.nn.Linear(3, 2)
    handles = []

    def hook(*given):
        for handle in handles:
            handle.remove()

    handles.append(module.register_forward_hook(hook))
    wrong = instead(lambda x: module.forward(x))
    return scene(module, wrong, floats(4, 3), seen=lambda y: len(module._forward_hooks))


@planted("modules")
def a_submodule_is_not_added() -> PlantedScene:
    module = torch.nn.Module()

    def program(x, module):
        module.add_module("late", torch.nn.Identity())
        return x * 2

    return scene(program, instead(lambda x, m: x * 2), floats(4), module, seen=lambda y: len(list(module.children())))


@planted("modules")
def a_buffer_is_kept_in_the_state_no_more() -> PlantedScene:
    module = torch.nn.Module()
    module.register_buffer("held", torch.zeros(2))

    def change(x, module):
        module.register_buffer("held", module.held, persistent=False)

    return scene(lambda x, module: x * 2, and_then(change), floats(4), module, seen=lambda y: list(module.state_dict()))


@planted("modules")
def tied_weights_are_untied() -> PlantedScene:
    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    second.weight = first.weight
    pair = torch.nn.Sequential(first, second)

    def change(x):
        second.weight = torch.nn.Parameter(first.weight.detach().clone())

    return scene(pair, and_then(change), floats(4, 3), seen=lambda y: second.weight is first.weight)


@planted("modules")
def dropout_drops_in_evaluation() -> PlantedScene:
    module = torch.nn.Dropout(0.5).eval()
    return scene(module, instead(lambda x: torch.nn.functional.dropout(x, 0.5, training=True)), floats(40))


@planted("modules")
def a_hidden_state_is_not_kept() -> PlantedScene:
    class Recurrent(torch.nn.Module):
        """Keeps a state across calls."""

        def __init__(self) -> None:
            super().__init__()
            self.state = torch.zeros(4)

        def forward(self, x):
            self.state = (self.state + x).tanh()
            return self.state * 2

    module = Recurrent()
    wrong = instead(lambda x: (module.state + x).tanh() * 2)
    return scene(module, wrong, floats(4), seen=lambda y: module.state.tolist())


# -- optimizers and schedules ------------------------------------------------------------------------------------------


def stepping(make, change, read) -> PlantedScene:
    """A program that takes one step, and a compiler that does something more."""
    x = leaf(4)
    x.grad = torch.ones(4)
    optimizer = make([x])

    def program(optimizer):
        optimizer.step()

    return scene(program, and_then(change), optimizer, seen=lambda y: read(optimizer, x))


def adam(parameters):
    return torch.optim.Adam(parameters, 0.1)


@planted("optimizers")
def a_step_is_taken_twice() -> PlantedScene:
    return stepping(adam, lambda optimizer: optimizer.step(), lambda optimizer, x: x.tolist())


@planted("optimizers")
def a_step_is_not_counted() -> PlantedScene:
    def change(optimizer):
        for state in optimizer.state.values():
            state["step"].sub_(1)

    return stepping(adam, change, lambda optimizer, x: optimizer.state[x]["step"].item())


@planted("optimizers")
def a_momentum_is_not_kept() -> PlantedScene:
    def change(optimizer):
        for state in optimizer.state.values():
            state["exp_avg"].zero_()

    return stepping(adam, change, lambda optimizer, x: optimizer.state[x]["exp_avg"].tolist())


@planted("optimizers")
def the_state_of_an_optimizer_is_empty() -> PlantedScene:
    return stepping(adam, lambda optimizer: optimizer.state.clear(), lambda optimizer, x: len(optimizer.state))


@planted("optimizers")
def a_rate_is_changed() -> PlantedScene:
    def change(optimizer):
        optimizer.param_groups[0]["lr"] = 0.5

    return stepping(adam, change, lambda optimizer, x: optimizer.param_groups[0]["lr"])


@planted("optimizers")
def gradients_are_set_to_none() -> PlantedScene:
    return stepping(adam, lambda optimizer: optimizer.zero_grad(), lambda optimizer, x: x.grad is None)


@planted("optimizers")
def gradients_are_clipped_in_a_copy() -> PlantedScene:
    x = leaf(4)
    x.grad = torch.full((4,), 10.0)

    def program(x):
        return torch.nn.utils.clip_grad_norm_([x], 1.0)

    def wrong(x):
        return x.grad.norm()

    return scene(program, instead(wrong), x, seen=lambda y: x.grad.tolist())


@planted("optimizers")
def a_schedule_is_stepped_twice() -> PlantedScene:
    optimizer = torch.optim.SGD([leaf(4)], 1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def program(schedule):
        schedule.optimizer.step()
        schedule.step()

    change = and_then(lambda schedule: schedule.step())
    return scene(program, change, schedule, seen=lambda y: optimizer.param_groups[0]["lr"])


@planted("optimizers")
def weights_are_averaged_into_the_wrong_copy() -> PlantedScene:
    module = torch.nn.Linear(2, 2)
    average = torch.optim.swa_utils.AveragedModel(module)

    def program(average):
        average.update_parameters(module)

    return scene(program, instead(lambda average: None), average, seen=lambda y: average.n_averaged.item())


# -- distributions -----------------------------------------------------------------------------------------------------


@planted("distributions")
def a_distribution_has_another_scale() -> PlantedScene:
    def program(x):
        return torch.distributions.Normal(x, torch.ones(4))

    def wrong(x):
        return torch.distributions.Normal(x, torch.ones(4) * 2)

    return scene(program, instead(wrong), floats(4), seen=lambda y: y.scale.tolist())


@planted("distributions")
def a_probability_lacks_its_constant() -> PlantedScene:
    def program(x):
        return torch.distributions.Normal(0.0, 1.0).log_prob(x)

    return scene(program, instead(lambda x: -x * x / 2), floats(4))


@planted("distributions")
def a_sample_has_a_gradient() -> PlantedScene:
    x = leaf(4)

    def program(x):
        return torch.distributions.Normal(x, 1.0).sample()

    def wrong(x):
        return torch.distributions.Normal(x, 1.0).rsample()

    return scene(program, instead(wrong), x, seen=lambda y: y.requires_grad)


@planted("distributions")
def a_check_of_arguments_is_left_out() -> PlantedScene:
    torch.distributions.Distribution.set_default_validate_args(True)

    def program(x):
        return torch.distributions.Normal(x, -torch.ones(4)).mean

    return scene(program, instead(lambda x: x * 1), floats(4))


@planted("distributions")
def two_samples_are_one() -> PlantedScene:
    def program(x):
        one = torch.distributions.Normal(x, 1.0)
        return one.sample(), one.sample()

    def wrong(x):
        one = torch.distributions.Normal(x, 1.0)
        first = one.sample()
        one.sample()
        return first, first.clone()

    return scene(program, instead(wrong), floats(4))


# -- tensor subclasses -------------------------------------------------------------------------------------------------


class NamedTensor(torch.Tensor):
    """A tensor of a class of its own."""


class LoggedTensor(torch.Tensor):
    """A tensor that counts the functions called on it."""

    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.mul:
            LoggedTensor.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


@planted("subclasses")
def a_class_is_lost() -> PlantedScene:
    x = floats(4).as_subclass(NamedTensor)
    return scene(lambda x: x * 2, on_result(lambda y: y.as_subclass(torch.Tensor)), x)


@planted("subclasses")
def a_class_is_made_up() -> PlantedScene:
    return scene(lambda x: x * 2, on_result(lambda y: y.as_subclass(NamedTensor)), floats(4))


@planted("subclasses")
def an_attribute_of_a_subclass_is_lost() -> PlantedScene:
    x = floats(4).as_subclass(NamedTensor)

    def program(x):
        y = x * 2
        y.label = "a"
        return y

    return scene(program, instead(lambda x: x * 2), x, seen=lambda y: getattr(y, "label", None))


@planted("subclasses")
def an_override_is_not_called() -> PlantedScene:
    x = floats(4).as_subclass(LoggedTensor)
    LoggedTensor.calls = 0

    def wrong(x):
        return (x.as_subclass(torch.Tensor) * 2).as_subclass(LoggedTensor)

    return scene(lambda x: x.mul(2), instead(wrong), x, seen=lambda y: LoggedTensor.calls)


@planted("subclasses")
def an_override_is_called_twice() -> PlantedScene:
    x = floats(4).as_subclass(LoggedTensor)
    LoggedTensor.calls = 0
    return scene(lambda x: x.mul(2), and_then(lambda x: x.mul(2)), x, seen=lambda y: LoggedTensor.calls)


@planted("subclasses")
def a_parameter_of_a_subclass_is_written_wrongly() -> PlantedScene:
    x = floats(4).as_subclass(NamedTensor)

    def program(x):
        x.add_(1)

    return scene(program, and_then(lambda x: x.add_(1)), x, seen=lambda y: x.tolist())


# -- second gradients and forward mode ---------------------------------------------------------------------------------


def second_gradient(x):
    def seen(y):
        try:
            (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x, allow_unused=True)
        except RuntimeError as error:
            return type(error).__name__
        return looked_at(second)

    return seen


class CubeOnce(torch.autograd.Function):
    """Its gradient is right and has no history."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = x.detach()
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        return (3 * ctx.kept**2) * gradient


@planted("second gradients")
def a_second_gradient_lacks_a_part() -> PlantedScene:
    x = leaf(4)

    class Cube(torch.autograd.Function):
        """Its second gradient is half of what it should be."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 3 * x * x.detach() * gradient

    return scene(lambda x: x**3, instead(Cube.apply), x, seen=second_gradient(x))


@planted("second gradients")
def a_second_gradient_has_no_history() -> PlantedScene:
    x = leaf(4)

    class Refusing(torch.autograd.Function):
        """Refuses to be differentiated twice."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            return 3 * ctx.saved_tensors[0] ** 2 * gradient

    return scene(lambda x: x**3, instead(Refusing.apply), x, seen=second_gradient(x))


@planted("second gradients")
def a_second_gradient_is_silently_zero() -> PlantedScene:
    x = leaf(4)
    return scene(lambda x: x**3, instead(CubeOnce.apply), x, seen=second_gradient(x))


@planted("second gradients")
def a_gradient_inside_a_call_has_no_history() -> PlantedScene:
    x = leaf(4)

    def program(x):
        return torch.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    def wrong(x):
        return torch.autograd.grad((x**3).sum(), x)[0]

    return scene(program, instead(wrong), x, seen=lambda y: y.requires_grad)


@planted("forward mode")
def a_tangent_is_lost() -> PlantedScene:
    def program(x):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones(4))
            return torch.autograd.forward_ad.unpack_dual(dual.sin()).tangent

    return scene(program, instead(lambda x: None), floats(4))


@planted("forward mode")
def a_tangent_is_doubled() -> PlantedScene:
    def program(x):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones(4))
            return torch.autograd.forward_ad.unpack_dual(dual.sin()).tangent

    return scene(program, on_result(lambda y: y * 2), floats(4))


# -- data --------------------------------------------------------------------------------------------------------------


@planted("data")
def a_loader_gives_its_batches_in_another_order() -> PlantedScene:
    def program(x):
        return list(torch.utils.data.DataLoader(x, batch_size=2))

    return scene(program, on_result(lambda y: y[::-1]), floats(6))


@planted("data")
def a_loader_drops_its_last_batch() -> PlantedScene:
    def program(x):
        return list(torch.utils.data.DataLoader(x, batch_size=4))

    def wrong(x):
        return list(torch.utils.data.DataLoader(x, batch_size=4, drop_last=True))

    return scene(program, instead(wrong), floats(6))


@planted("data")
def a_shuffle_of_a_loader_takes_no_seed() -> PlantedScene:
    def program(x):
        return torch.cat(list(torch.utils.data.DataLoader(x, batch_size=2, shuffle=True)))

    def wrong(x):
        state = torch.get_rng_state()
        y = program(x)
        torch.set_rng_state(state)
        return y

    return scene(program, instead(wrong), floats(6), seen=lambda y: torch.rand(1).item())


@planted("data")
def the_position_of_a_data_set_is_not_kept() -> PlantedScene:
    class Streamed:
        """Gives one row after the other."""

        def __init__(self) -> None:
            self.place = 0

        def next(self, x):
            self.place += 1
            return x[self.place - 1]

    held = Streamed()

    def wrong(x, held):
        return x[held.place]

    return scene(lambda x, held: held.next(x), instead(wrong), floats(4, 2), held, seen=lambda y: held.place)


@planted("data")
def a_split_is_another() -> PlantedScene:
    def program(x):
        return torch.utils.data.random_split(range(6), [2, 4])[0].indices

    return scene(program, on_result(lambda y: y[::-1]), floats(2), seen=lambda y: list(y))
