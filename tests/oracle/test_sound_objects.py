"""Sound programs whose objects the judge once failed to see or to put back: both sides are the same function."""

import contextlib
import gc
import threading
import weakref

import pytest
import torch
from torch.compiler import is_dynamo_compiling

from plumbline.oracle import VerdictKind, check
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions

ONES = torch.ones(3)
ASKED = []


class _Answer:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        ASKED.append(self.value)
        return bool(self.value)

    def __lt__(self, other):
        ASKED.append(other)
        return True


class _Counting(type):
    def __len__(cls):
        ASKED.append(cls.__name__)
        return len(ASKED)


class _Counted(metaclass=_Counting):
    pass


def judged(function, *args):
    """Judge a function against itself."""
    return check(function, args, compiled=function).kind


def test_what_operators_of_a_class_write_to_is_put_back():
    ASKED.clear()

    def step(x):
        return x * (2 if _Answer(1) else 3) + (_Answer(2) < 5)

    assert judged(step, ONES) is VerdictKind.EQUAL
    assert ASKED == [1, 5]


def test_what_operators_of_a_metaclass_write_to_is_put_back():
    ASKED.clear()
    assert judged(lambda x: x * len(_Counted), ONES) is VerdictKind.EQUAL
    assert ASKED == ["_Counted"]


def test_attributes_of_tensors_are_put_back():
    noted, before = torch.ones(3), torch.ones(3, requires_grad=True) * 2
    before.label = 5

    def step(x, h):
        noted.count = getattr(noted, "count", 0) + 1
        h.seen = getattr(h, "seen", 0) + 1
        return x * noted.count + h.label + h.seen

    assert [judged(step, ONES, before) for _ in range(2)] == [VerdictKind.EQUAL] * 2
    assert (noted.count, before.seen) == (2, 2)


def test_an_attribute_of_a_tensor_that_is_lost_is_found():
    def marked(x):
        x.mark = 4
        return x * 2

    def marked_otherwise(x):
        x.mark = 5
        return x * 2

    for start in (lambda: ONES.clone(), lambda: ONES.clone().requires_grad_() * 1):
        for wrong in (marked_otherwise, lambda x: x * 2):
            verdict = check(marked, (start(),), compiled=wrong)
            assert verdict.kind is VerdictKind.WRONG
            assert "x.mark" in verdict.sentence


def test_a_program_that_varies_from_its_live_run_on(tmp_path):
    counted = str(tmp_path / "runs")  # not in reach of the judge: it stays as the runs leave it

    def lucky(x):
        with open(counted, "a") as file:
            file.write("run ")
        with open(counted) as file:
            runs = len(file.read().split())
        return x * (runs if runs > 2 else 1)

    assert judged(lucky, ONES) is VerdictKind.NO_REFERENCE


def test_an_argument_and_a_view_of_it_share_memory_in_every_run():
    def write(x, view):
        x.unsafe_split(1)[0].sub_(5)  # a write that autograd does not refuse
        return view.sum() * x

    x = torch.linspace(1, 2, 6).reshape(2, 3).clone().requires_grad_()
    assert judged(write, x, x.unsqueeze(0)) is VerdictKind.EQUAL
    assert check(write, (x, x[:1]), compiled=lambda a, b: write(a, b.clone())).kind is VerdictKind.WRONG
    x = torch.linspace(1, 2, 6).reshape(2, 3).requires_grad_()  # itself a view: autograd would record a write to `view`
    assert judged(write, x, x.unsqueeze(0)) is VerdictKind.NO_REFERENCE
    assert x[0].tolist() == pytest.approx([-4.0, -3.8, -3.6])


def test_an_error_of_autograd_is_eagers_own():
    x = torch.ones(2, 4, requires_grad=True)
    assert judged(lambda x, view: view.mul_(2), x, x[:, ::2]) is VerdictKind.EAGER_FAILED


def test_marks_of_torch_on_its_own_functions_are_none_of_the_programs():
    model = torch.nn.Linear(3, 3)

    def checkpointed(x):
        return torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)

    def without(x):  # as a compiler does, which never runs the function that torch marks at its first call
        return model(x)

    assert check(checkpointed, (ONES,), compiled=without).kind is VerdictKind.EQUAL


def test_a_reentrant_checkpoint_has_no_gradients_that_the_judge_can_ask_for():
    def checkpointed(x):
        return torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True)

    x = torch.ones(3, requires_grad=True)
    assert check(checkpointed, (x,), compiled=torch.sin).kind is VerdictKind.NO_REFERENCE
    assert check(checkpointed, (x,), compiled=torch.cos).kind is VerdictKind.WRONG


def test_what_hooks_see_of_gradients_of_gradients_is_not_compared():
    weight, log = torch.ones(3, requires_grad=True), []
    weight.register_hook(lambda gradient: log.append(gradient.sum()))

    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            return gradient * y, gradient * x + 0 * y  # a longer history, and the same numbers

    assert check(lambda x: x * weight, (ONES,), compiled=lambda x: Times.apply(x, weight)).kind is VerdictKind.EQUAL


def test_torchs_optimizers_take_other_formulas_when_they_are_compiled():
    def steps():
        weight = torch.nn.Parameter(torch.linspace(-1, 1, 5))
        weight.grad = torch.linspace(1, 2, 5)
        optimizer = torch.optim.ASGD([weight], lr=0.1)
        for _ in range(3):
            optimizer.step()
        return weight.detach(), optimizer.state[weight]["eta"]

    verdict = check(steps, (), compiler="plumbline", backend="aot_eager")
    assert not verdict.failed
    wrong = check(steps, (), compiled=lambda: tuple(one * 1.01 for one in steps()))
    assert wrong.kind is VerdictKind.WRONG


def _asks_for_dynamo(x):
    return x * 2 if is_dynamo_compiling() else x


def test_a_program_may_ask_whether_dynamo_compiles_it():
    assert check(_asks_for_dynamo, (ONES,), compiler="plumbline", backend="aot_eager").kind is VerdictKind.DESIGN
    assert not is_dynamo_compiling()
    assert check(_asks_for_dynamo, (ONES,), compiled=lambda x: x * 3).kind is VerdictKind.WRONG


def test_a_change_below_rounding_is_judged_as_rounding():
    average, weight = torch.linspace(1, 2, 64).bfloat16(), torch.linspace(1, 2, 64).bfloat16()

    def step(scale):
        average.mul_(scale).add_(weight * (1 - scale))

    def in_higher_precision(scale):
        average.copy_(average.float() * scale + weight.float() * (1 - scale))

    scale = 0.7
    assert check(step, (scale,), compiled=in_higher_precision).kind in (VerdictKind.NOISE, VerdictKind.BETTER)
    average.copy_(weight)
    for wrong in (lambda scale: average.mul_(1.01), lambda scale: average.mul_(1.1)):
        assert check(step, (scale,), compiled=wrong).kind is VerdictKind.WRONG


def test_a_small_write_that_is_lost_is_a_fault_still():
    state = torch.ones(4)
    for step in (2e-6, 1e-3):
        verdict = check(lambda x, step=step: state.add_(step), (ONES,), compiled=lambda x: state)
        assert verdict.kind is VerdictKind.WRONG
        state.fill_(1)


def test_memory_that_a_resize_adds_has_no_numbers():
    def grown(x):
        return x.resize_(500)

    x = torch.ones(3)
    verdict = check(grown, (x,), compiled=lambda x: grown(x)[3:].fill_(7) is not None and x)
    assert verdict.kind is VerdictKind.NO_REFERENCE


def test_what_a_thread_keeps_for_itself_is_put_back():
    local = threading.local()

    def count(x):
        local.count = getattr(local, "count", 0) + 1
        return x * local.count

    assert [judged(count, ONES) for _ in range(2)] == [VerdictKind.EQUAL] * 2
    assert local.count == 2
    assert check(count, (ONES,), compiled=lambda x: x * (local.count + 1)).kind is VerdictKind.WRONG


def test_what_is_held_weakly_is_put_back():
    module, seen, counts = torch.nn.Linear(3, 3), weakref.WeakSet(), weakref.WeakKeyDictionary()
    by_name = weakref.WeakValueDictionary()

    def once(x):
        counts[module] = counts.get(module, 0) + 1
        by_name[f"{len(by_name)}"] = module
        if module in seen:
            return x * counts[module]
        seen.add(module)
        return x * 10 * len(by_name)

    assert [judged(once, ONES) for _ in range(2)] == [VerdictKind.EQUAL] * 2
    assert (len(seen), counts[module], list(by_name)) == (1, 2, ["0", "1"])
    assert check(once, (ONES,), compiled=lambda x: x * (counts[module] + 1)).kind is VerdictKind.WRONG


def _raises(x):
    held = x + 1
    raise TypeError(f"no {held.shape}")


def test_an_exception_keeps_nothing_alive():
    gc.collect()
    gc.disable()
    try:
        given = torch.ones(3)
        watched = weakref.ref(given)
        with contextlib.suppress(TypeError):
            judge_call(_raises, _raises, (given,), {}, JudgeOptions(), {"x": given}).unwrap()
        del given
        assert watched() is None
    finally:
        gc.enable()


class _Ending:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        ENDS.append(self.name)


ENDS = []


def test_finalisers_run_when_the_call_ends_what_they_watch():
    cabinet, low = {"top": _Ending("top"), "low": torch.nn.Identity()}, []
    weakref.finalize(cabinet["low"], low.append, "low")
    ENDS.clear()

    def cleared(x, name):
        local = _Ending("local")
        cabinet.pop(name, None)
        return x * len(ENDS), len(low), local.name

    judgements = [
        judge_call(cleared, cleared, (ONES, name), {}, JudgeOptions(), {"f": cleared, "e": ENDS})
        for name in ("top", "low", "none")
    ]
    kinds = [judgement.verdict.kind for judgement in judgements]
    assert kinds == [VerdictKind.NO_REFERENCE] * 2 + [VerdictKind.EQUAL]
    assert [judgement.unwrap()[0][0].item() for judgement in judgements] == [1, 2, 3]
    assert (ENDS, low) == (["top", "local", "local", "local"], ["low"])


def _opened(log):
    try:
        yield 1
    finally:
        log.append("closed")


@pytest.mark.parametrize("held", [True, False])
def test_what_a_frame_of_an_exception_holds_is_held_in_every_run(held):
    closed = []

    def raises_beside_a_generator(x):
        steps = _opened(closed)
        next(steps)
        raise TypeError(f"no {x.shape}")

    def raises_behind_it(x):
        next(_opened(closed))
        raise TypeError(f"no {x.shape}")

    candidate = raises_beside_a_generator if held else raises_behind_it
    judgement = judge_call(raises_beside_a_generator, candidate, (ONES,), {}, JudgeOptions(), {"closed": closed})
    assert judgement.verdict.failed is not held, str(judgement.verdict)
