"""Gradients that are wrong where every value is right."""

import torch

from support.planted_kinds.planted_scene import (
    PlantedScene,
    after_backward,
    floats,
    instead,
    leaf,
    looked_at,
    on_result,
    planted,
    scene,
)


class ScaledGradient(torch.autograd.Function):
    """Passes values, and changes their gradients by a function."""

    @staticmethod
    def forward(ctx, x, change):
        ctx.change = change
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.change(gradient), None


def with_gradient(change):
    """The gradient of the result is changed on its way back."""
    return on_result(lambda y: ScaledGradient.apply(y, change))


@planted("gradients")
def a_factor_of_two_is_missing() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x.sin(), with_gradient(lambda g: g / 2), x, seen=after_backward(x))


@planted("gradients")
def one_element_is_off() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x.sin(), with_gradient(lambda g: g + torch.eye(1, 6)[0] * 1e-3), x, seen=after_backward(x))


@planted("gradients")
def the_graph_is_cut() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x.sin(), on_result(torch.Tensor.detach), x, seen=after_backward(x))


@planted("gradients")
def the_output_is_a_leaf() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x.sin(), on_result(lambda y: y.detach().requires_grad_()), x, seen=after_backward(x))


@planted("gradients")
def the_second_use_of_a_tensor_is_forgotten() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x * x, instead(lambda x: x * x.detach()), x, seen=after_backward(x))


@planted("gradients")
def one_of_two_parameters_gets_none() -> PlantedScene:
    x, w = leaf(6), leaf(6)
    return scene(lambda x, w: x * w, instead(lambda x, w: x * w.detach()), x, w, seen=after_backward(x, w))


@planted("gradients")
def one_gets_zeros_for_none() -> PlantedScene:
    x, w = leaf(6), leaf(6)
    return scene(lambda x, w: x * 2, instead(lambda x, w: x * 2 + w * 0), x, w, seen=after_backward(x, w))


@planted("gradients")
def a_closed_over_weight_gets_none() -> PlantedScene:
    w = leaf(6)
    return scene(lambda x: x * w, instead(lambda x: x * w.detach()), floats(6), seen=after_backward(w))


@planted("gradients")
def a_tensor_that_is_no_leaf_gets_none() -> PlantedScene:
    x = leaf(6)
    y = x * 2
    return scene(lambda y: y.sin(), on_result(torch.Tensor.detach), y, seen=after_backward(x))


@planted("gradients")
def a_history_in_a_list_is_cut() -> PlantedScene:
    x = leaf(6)
    held = [x * 2, x * 3]

    def wrong(held):
        return held[0].sin() + held[1].detach()

    return scene(lambda held: held[0].sin() + held[1], instead(wrong), held, seen=after_backward(x))


@planted("gradients")
def a_detached_part_gets_a_gradient() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x + x.detach() * 2, instead(lambda x: x + x * 2), x, seen=after_backward(x))


@planted("gradients")
def no_grad_inside_is_ignored() -> PlantedScene:
    x = leaf(6)

    def program(x):
        with torch.no_grad():
            y = x * 2
        return x + y

    return scene(program, instead(lambda x: x + x * 2), x, seen=after_backward(x))


@planted("gradients")
def an_output_of_no_grad_requires_grad() -> PlantedScene:
    x = leaf(6)

    def program(x):
        with torch.no_grad():
            return x * 2

    return scene(program, instead(lambda x: x * 2), x)


@planted("gradients")
def a_rounding_passes_gradients() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x.round(), instead(lambda x: x + (x.round() - x).detach()), x, seen=after_backward(x))


@planted("gradients")
def a_broadcast_gradient_is_not_summed() -> PlantedScene:
    x, w = floats(4, 6), leaf(6)
    return scene(
        lambda x, w: x * w,
        instead(lambda x, w: x * w.detach() + (w - w.detach()) * 0 + (x[0] * (w - w.detach()))),
        x,
        w,
        seen=after_backward(w),
    )


@planted("gradients")
def a_permuted_cotangent_is_read_in_memory_order() -> PlantedScene:
    x = leaf(3, 3)

    def seen(y):
        y.backward(torch.arange(9.0).reshape(3, 3).t())
        return looked_at(x.grad)

    def change(g):
        return g if g.is_contiguous() else torch.as_strided(g, g.shape, (3, 1))

    return scene(lambda x: x.sin(), with_gradient(change), x, seen=seen)


@planted("gradients")
def an_expanded_cotangent_is_read_beyond_its_end() -> PlantedScene:
    x = leaf(6)
    return scene(lambda x: x.sin(), with_gradient(lambda g: g * 0 if 0 in g.stride() else g), x, seen=after_backward(x))


@planted("gradients")
def only_the_last_of_two_outputs_has_a_gradient() -> PlantedScene:
    x = leaf(6)
    return scene(
        lambda x: (x.sin(), x.cos()), on_result(lambda y: (y[0].detach() + 0 * y[1], y[1])), x, seen=after_backward(x)
    )


@planted("gradients")
def an_unused_output_leaves_rubbish() -> PlantedScene:
    x = leaf(6)

    class Both(torch.autograd.Function):
        """Two results; the gradient of an unused one is taken for ones."""

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            one = torch.ones(6)
            return (one if first is None else first) * 2 + (one if second is None else second) * 3

    return scene(lambda x: (x * 2, x * 3), instead(Both.apply), x, seen=after_backward(x))


@planted("gradients")
def the_second_backward_fails() -> PlantedScene:
    x = leaf(6)

    class Once(torch.autograd.Function):
        """Frees what it saved at its first backward."""

        @staticmethod
        def forward(ctx, x):
            ctx.saved = [x.cos()]
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved.pop()

    def seen(y):
        y.sum().backward(retain_graph=True)
        try:
            y.sum().backward()
        except Exception as error:
            return looked_at(error)
        return looked_at(x.grad)

    return scene(lambda x: x.sin(), instead(Once.apply), x, seen=seen)


@planted("gradients")
def the_second_backward_gives_another_gradient() -> PlantedScene:
    x = leaf(6)

    class InPlace(torch.autograd.Function):
        """Writes into what it saved."""

        @staticmethod
        def forward(ctx, x):
            ctx.saved = x.detach().cos()
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return ctx.saved.mul_(g).clone()

    def seen(y):
        (2 * y).sum().backward(retain_graph=True)
        (2 * y).sum().backward()
        return looked_at(x.grad)

    return scene(lambda x: x.sin(), instead(InPlace.apply), x, seen=seen)


@planted("gradients")
def a_cotangent_is_written_to() -> PlantedScene:
    x = leaf(6)

    class Writes(torch.autograd.Function):
        """Scales the caller's cotangent in place."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.mul_(2).clone()

    def seen(y):
        cotangent = torch.arange(6.0)
        y.backward(cotangent)
        return cotangent.tolist()

    return scene(lambda x: x * 2, instead(Writes.apply), x, seen=seen)


@planted("gradients", aspect="gradient-memory")
def gradients_of_two_leaves_share_memory() -> PlantedScene:
    """Clipping one in place clips the other."""
    x, w = leaf(6), leaf(6)

    class Shares(torch.autograd.Function):
        """Returns one tensor as the gradient of both."""

        @staticmethod
        def forward(ctx, x, w):
            return x + w

        @staticmethod
        def backward(ctx, g):
            one = g.clone()
            return one, one.view(6)

    def seen(y):
        gradients = torch.autograd.grad(y.sum(), (x, w))
        gradients[0].zero_()
        return gradients[1].tolist()

    return scene(lambda x, w: (x * 1) + (w * 1), instead(Shares.apply), x, w, seen=seen)


@planted("gradients")
def saved_tensors_may_be_written_without_an_error() -> PlantedScene:
    x = leaf(6)

    class Unchecked(torch.autograd.Function):
        """Keeps its result without telling autograd."""

        @staticmethod
        def forward(ctx, x):
            ctx.kept = x.detach().exp()
            return ctx.kept

        @staticmethod
        def backward(ctx, g):
            return g * ctx.kept

    def seen(y):
        try:
            with torch.no_grad():
                y.mul_(2)
            y.sum().backward()
        except RuntimeError:
            return "refused"
        return looked_at(x.grad)

    return scene(lambda x: x.exp(), instead(Unchecked.apply), x, seen=seen)


@planted("gradients")
def an_input_that_is_saved_may_be_written_without_an_error() -> PlantedScene:
    x, w = leaf(6), floats(6)

    class Unchecked(torch.autograd.Function):
        """Keeps its argument without telling autograd."""

        @staticmethod
        def forward(ctx, x, w):
            ctx.kept = w
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g * ctx.kept, None

    def seen(y):
        w.mul_(2)
        try:
            y.sum().backward()
        except RuntimeError:
            return "refused"
        return looked_at(x.grad)

    return scene(lambda x, w: x * w, instead(Unchecked.apply), x, w, seen=seen)


@planted("gradients")
def the_gradient_adds_to_what_was_there_twice() -> PlantedScene:
    x = leaf(6)

    def program(x):
        x.sin().sum().backward()
        return x.grad * 1

    def wrong(x):
        x.sin().sum().backward()
        x.sin().sum().backward()
        return x.grad * 0.5

    return scene(program, instead(wrong), x, seen=lambda y: looked_at(x.grad))


@planted("gradients")
def a_gradient_replaces_what_was_there() -> PlantedScene:
    x = leaf(6)
    x.grad = torch.ones(6)

    def program(x):
        x.sin().sum().backward()

    def wrong(x):
        x.grad = None
        program(x)

    return scene(program, instead(wrong), x, seen=lambda y: looked_at(x.grad))


@planted("gradients")
def a_gradient_is_another_object() -> PlantedScene:
    x = leaf(6)
    held = x.grad = torch.ones(6)

    def program(x):
        with torch.no_grad():
            x.grad.add_(1)

    def wrong(x):
        x.grad = x.grad + 1

    return scene(program, instead(wrong), x, seen=lambda y: held.tolist())


@planted("gradients")
def a_retained_gradient_is_lost() -> PlantedScene:
    x = leaf(6)

    def program(x):
        y = x * 2
        y.retain_grad()
        return y.sin(), y

    def wrong(x):
        y = x * 2
        return y.sin(), y

    def seen(result):
        result[0].sum().backward()
        return result[1].retains_grad

    return scene(program, instead(wrong), x, seen=seen)


@planted("gradients")
def a_hook_of_a_tensor_is_not_called() -> PlantedScene:
    x, calls = leaf(6), []

    def program(x):
        y = x * 2
        y.register_hook(lambda g: calls.append(g.sum().item()))
        return y.sin()

    def seen(y):
        y.sum().backward()
        return list(calls)

    return scene(program, instead(lambda x: (x * 2).sin()), x, seen=seen)


@planted("gradients")
def a_hook_of_a_tensor_is_called_twice() -> PlantedScene:
    x, calls = leaf(6), []

    def program(x):
        y = x * 2
        y.register_hook(lambda g: calls.append(1))
        return y.sin()

    def wrong(x):
        y = x * 2
        y.register_hook(lambda g: calls.extend((1, 1)))
        return y.sin()

    def seen(y):
        y.sum().backward()
        return list(calls)

    return scene(program, instead(wrong), x, seen=seen)


@planted("gradients")
def what_a_hook_returns_is_ignored() -> PlantedScene:
    x = leaf(6)

    def program(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sin()

    return scene(program, instead(lambda x: (x * 2).sin()), x, seen=after_backward(x))


@planted("gradients")
def a_hook_after_accumulation_is_not_registered() -> PlantedScene:
    x, calls = leaf(6), []

    def program(x):
        x.register_post_accumulate_grad_hook(lambda one: calls.append(1))
        return x.sin()

    def seen(y):
        y.sum().backward()
        return list(calls)

    return scene(program, instead(lambda x: x.sin()), x, seen=seen)


@planted("gradients")
def rows_of_one_tensor_are_no_views() -> PlantedScene:
    x = leaf(2, 3)
    return scene(
        lambda x: x.unbind(0),
        on_result(lambda y: tuple(row.clone() for row in y)),
        x,
        seen=lambda y: [row._base is None for row in y],
    )


@planted("gradients")
def an_infinite_gradient_is_clipped() -> PlantedScene:
    x = torch.zeros(3, requires_grad=True)

    class Guarded(torch.autograd.Function):
        """A root whose gradient is finite at zero."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.sqrt())
            return x.sqrt()

        @staticmethod
        def backward(ctx, g):
            return g * 0.5 / ctx.saved_tensors[0].clamp(min=1e-6)

    return scene(lambda x: x.sqrt(), instead(Guarded.apply), x, seen=after_backward(x))


@planted("gradients")
def the_gradient_where_a_function_has_a_corner() -> PlantedScene:
    x = torch.zeros(3, requires_grad=True)

    def wrong(x):
        return torch.where(x >= 0, x, -x)

    return scene(lambda x: x.abs(), instead(wrong), x, seen=after_backward(x))


@planted("gradients")
def equal_maxima_do_not_share() -> PlantedScene:
    x = torch.ones(3, requires_grad=True)
    return scene(lambda x: x.amax(), instead(lambda x: x.max(0).values), x, seen=after_backward(x))


@planted("gradients")
def a_gradient_has_another_dtype_on_the_way() -> PlantedScene:
    x = leaf(6)
    return scene(
        lambda x: x.exp(), with_gradient(lambda g: (g * 1.2345).half().float() / 1.2345), x, seen=after_backward(x)
    )


@planted("gradients")
def a_dropped_position_gets_a_gradient() -> PlantedScene:
    x = leaf(6)

    def wrong(x):
        y = torch.nn.functional.dropout(x, 0.5)
        return y.detach() + (x - x.detach())

    return scene(lambda x: torch.nn.functional.dropout(x, 0.5), instead(wrong), x, seen=after_backward(x))


@planted("gradients")
def the_backward_draws_another_mask() -> PlantedScene:
    x = leaf(64)

    class Redrawn(torch.autograd.Function):
        """Draws the mask again for its backward."""

        @staticmethod
        def forward(ctx, x):
            return torch.nn.functional.dropout(x, 0.5)

        @staticmethod
        def backward(ctx, g):
            return torch.nn.functional.dropout(g, 0.5)

    return scene(lambda x: torch.nn.functional.dropout(x, 0.5), instead(Redrawn.apply), x, seen=after_backward(x))
