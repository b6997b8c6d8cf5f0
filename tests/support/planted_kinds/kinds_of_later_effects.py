"""Effects that show later: in an earlier result, in the backward; and what a call says."""

import gc
import io
import logging
import sys
import warnings

import torch

from support.planted_kinds.planted_scene import (
    PlantedScene,
    Program,
    after_backward,
    and_then,
    floats,
    instead,
    leaf,
    looked_at,
    on_result,
    planted,
    scene,
)

# -- later effects -----------------------------------------------------------------------------------------------------


@planted("later effects")
def the_next_call_writes_into_an_earlier_result() -> PlantedScene:
    def compiler(program: Program) -> Program:
        buffer = torch.zeros(4)

        def wrong(x):
            return buffer.copy_(program(x)).view(4)

        return wrong

    calls = [(floats(4),), (floats(4) + 1,)]
    return scene(lambda x: x * 2, compiler, calls=calls, seen=lambda first, second: first.tolist())


@planted("later effects")
def every_third_call_writes_into_all_earlier_results() -> PlantedScene:
    def compiler(program: Program) -> Program:
        kept: list[torch.Tensor] = []

        def wrong(x):
            if len(kept) % 3 == 2:
                for one in kept:
                    one.zero_()
            kept.append(program(x))
            return kept[-1]

        return wrong

    calls = [(floats(4) + k,) for k in range(3)]
    return scene(lambda x: x * 2, compiler, calls=calls, seen=lambda first, *others: first.tolist())


@planted("later effects")
def two_buffers_are_used_in_turn() -> PlantedScene:
    """A result lives until the call after the next."""

    def compiler(program: Program) -> Program:
        buffers, turn = [torch.zeros(4), torch.zeros(4)], [0]

        def wrong(x):
            turn[0] += 1
            return buffers[turn[0] % 2].copy_(program(x)).view(4)

        return wrong

    calls = [(floats(4) + k,) for k in range(3)]
    return scene(lambda x: x * 2, compiler, calls=calls, seen=lambda first, *others: first.tolist())


@planted("later effects")
def a_ring_of_seven_buffers_is_used() -> PlantedScene:
    """Longer than what a judge runs for one call."""

    def compiler(program: Program) -> Program:
        buffers, turn = [torch.zeros(4) for _ in range(7)], [0]

        def wrong(x):
            turn[0] += 1
            return buffers[turn[0] % 7].copy_(program(x)).view(4)

        return wrong

    calls = [(floats(4) + k,) for k in range(9)]
    return scene(lambda x: x * 2, compiler, calls=calls, seen=lambda first, *others: first.tolist())


@planted("later effects")
def a_saved_tensor_is_overwritten_by_the_next_call() -> PlantedScene:
    x = leaf(4)

    def compiler(program: Program) -> Program:
        buffer = torch.zeros(4)

        class Kept(torch.autograd.Function):
            """Saves in memory that the next call uses again."""

            @staticmethod
            def forward(ctx, x):
                ctx.kept = buffer.copy_(x.detach().cos())
                return x.sin()

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.kept

        return Kept.apply

    def seen(first, second):
        return looked_at(torch.autograd.grad(first.sum(), x)[0])

    return scene(lambda x: x.sin(), compiler, calls=[(x,), (leaf(4).detach() + 1,)], seen=seen)


@planted("later effects")
def the_next_call_writes_into_an_earlier_argument() -> PlantedScene:
    first = floats(4)

    def compiler(program: Program) -> Program:
        kept: list[torch.Tensor] = []

        def wrong(x):
            if kept:
                kept[0].add_(1)
            kept[:] = [x]
            return program(x)

        return wrong

    calls = [(first,), (floats(4) + 1,)]
    return scene(lambda x: x * 2, compiler, calls=calls, seen=lambda *results: first.tolist())


@planted("later effects")
def a_backward_writes_into_the_result() -> PlantedScene:
    x = leaf(4)

    class Writes(torch.autograd.Function):
        """Uses the memory of its result."""

        @staticmethod
        def forward(ctx, x):
            result = x.detach() * 1.0
            ctx.memory = result.numpy()
            return result

        @staticmethod
        def backward(ctx, gradient):
            ctx.memory[:] = 0
            return gradient.clone()

    def seen(y):
        y.sum().backward()
        return y.tolist()

    return scene(lambda x: x * 1.0, instead(Writes.apply), x, seen=seen)


@planted("later effects")
def a_backward_writes_into_an_argument() -> PlantedScene:
    x, w = leaf(4), floats(4)

    class Writes(torch.autograd.Function):
        """Writes into what it was given."""

        @staticmethod
        def forward(ctx, x, w):
            ctx.w = w
            return x * w

        @staticmethod
        def backward(ctx, gradient):
            result = gradient * ctx.w
            ctx.w.zero_()
            return result, None

    def seen(y):
        y.sum().backward()
        return w.tolist()

    return scene(lambda x, w: x * w, instead(Writes.apply), x, w, seen=seen)


@planted("later effects")
def a_backward_leaves_grad_mode_off() -> PlantedScene:
    x = leaf(4)

    def hooked(y):
        y.register_hook(lambda g: (torch.use_deterministic_algorithms(True), g)[1])
        return y

    def seen(y):
        y.sum().backward()
        return torch.are_deterministic_algorithms_enabled()

    return scene(lambda x: x * 2, on_result(hooked), x, seen=seen)


@planted("later effects")
def a_backward_draws_random_numbers() -> PlantedScene:
    x = leaf(4)

    def hooked(y):
        y.register_hook(lambda g: (torch.rand(1), g)[1])
        return y

    def seen(y):
        y.sum().backward()
        return torch.rand(1).item()

    return scene(lambda x: x * 2, on_result(hooked), x, seen=seen)


@planted("later effects")
def a_collection_of_garbage_writes_into_a_result() -> PlantedScene:
    class Finaliser:
        """Writes when it is collected."""

        def __init__(self, held) -> None:
            self.held, self.circle = held, self

        def __del__(self):
            self.held.zero_()

    def wrong(y):
        Finaliser(y)
        return y

    def seen(y):
        gc.collect()
        return y.tolist()

    return scene(lambda x: x * 2, on_result(wrong), floats(4), seen=seen)


# -- what is said ------------------------------------------------------------------------------------------------------


def warn(text):
    def program(x):
        warnings.warn(text, UserWarning, stacklevel=1)
        return x * 2

    return program


@planted("spoken", aspect="spoken")
def a_warning_is_lost() -> PlantedScene:
    def seen(y):
        return list(shown)

    shown: list[str] = []
    warnings.showwarning = lambda message, *others, **more: shown.append(str(message))
    warnings.simplefilter("always")
    return scene(warn("careful"), instead(lambda x: x * 2), floats(4), seen=seen)


@planted("spoken", aspect="spoken")
def a_warning_has_another_text() -> PlantedScene:
    def seen(y):
        return list(shown)

    shown: list[str] = []
    warnings.showwarning = lambda message, *others, **more: shown.append(str(message))
    warnings.simplefilter("always")
    return scene(warn("careful"), instead(warn("careless")), floats(4), seen=seen)


@planted("spoken", aspect="spoken")
def a_printed_line_is_lost() -> PlantedScene:
    sink = io.StringIO()

    def program(x):
        sys.stdout.write("seen\n")
        return x * 2

    def compiler(program):
        return lambda x: x * 2

    def seen(y):
        return sink.getvalue()

    one = scene(program, compiler, floats(4), seen=seen)
    sys.stdout = sink
    return one


@planted("spoken", aspect="spoken")
def a_printed_line_is_doubled() -> PlantedScene:
    sink = io.StringIO()

    def program(x):
        sys.stdout.write("seen\n")
        return x * 2

    one = scene(program, and_then(lambda x: sys.stdout.write("seen\n")), floats(4), seen=lambda y: sink.getvalue())
    sys.stdout = sink
    return one


@planted("spoken", aspect="spoken")
def a_record_of_a_log_is_lost() -> PlantedScene:
    logger = logging.getLogger("a.speaking.kind")
    logger.setLevel(logging.INFO)
    records: list[str] = []

    class Keeper(logging.Handler):
        """Keeps texts."""

        def emit(self, record):
            records.append(record.getMessage())

    logger.handlers[:] = [Keeper()]

    def program(x):
        logger.info("seen")
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: list(records))


@planted("spoken", aspect="gradient-strides")
def a_gradient_has_other_strides() -> PlantedScene:
    x = leaf(3, 4)

    class Transposed(torch.autograd.Function):
        """Lays its gradient out the other way."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return (gradient * 2).t().contiguous().t()

    def seen(y):
        return torch.autograd.grad(y.sum(), x)[0].stride()

    return scene(lambda x: x * 2, instead(Transposed.apply), x, seen=seen)


@planted("spoken", aspect="filled-gradients")
def an_unused_gradient_is_zero() -> PlantedScene:
    x, w = leaf(4), leaf(4)
    return scene(
        lambda x, w: (x * 2, w * 2), instead(lambda x, w: (x * 2 + w * 0, w * 2)), x, w, seen=after_backward(w)
    )
