"""Sound programs that the judge once broke or called wrong: both sides are the same function."""

import functools
import os
import subprocess
import sys
import threading
import time
import uuid
import weakref

import pytest
import torch
from torch.overrides import TorchFunctionMode

from plumbline.oracle import VerdictKind, check, judge
from plumbline.oracle.judge_options import JudgeOptions

X = torch.linspace(-2, 2, 8).reshape(2, 4)
ONES = torch.ones(3)
SOUND = {}


def sound(function):
    SOUND[function.__name__] = function
    return function


def judged(function, *args, **kwargs):
    """Judge a function against itself."""
    return check(function, args, kwargs, compiled=function)


@torch.library.custom_op("plumbline_sound::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Wrapped(torch.Tensor):
    """A tensor that has no memory of its own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, _types, args=(), kwargs=None):
        plain = [one.inner if isinstance(one, Wrapped) else one for one in args]
        result = function(*plain, **(kwargs or {}))
        return Wrapped(result) if isinstance(result, torch.Tensor) else result


@sound
def truncated_backpropagation():
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.hidden = torch.nn.Linear(4, 4), None

        def forward(self, x):
            past = 0 if self.hidden is None else self.hidden
            self.hidden = torch.tanh(self.linear(x) + past)
            return self.hidden

    module = Recurrent()
    verdicts = [judged(module, X) for _ in range(3)]
    module.hidden.sum().backward()
    assert module.linear.weight.grad is not None
    return verdicts[-1]


@sound
def cache_of_keys():
    weight, keys = torch.randn(4, 4, requires_grad=True), []

    def step(x):
        keys.append(x @ weight)
        return torch.stack(keys).sum(0)

    verdicts = [judged(step, X) for _ in range(3)]
    torch.stack(keys).sum().backward()
    assert len(keys) == 3
    return verdicts[-1]


def _named(name):
    namespace = {}
    exec(f"def {name}(x, {name}): {name}.add_(x); return {name} * 1", namespace)
    state = torch.zeros(3)
    verdict = judged(namespace[name], ONES, state)
    assert state.tolist() == [1, 1, 1]
    return verdict


@sound
def argument_with_the_functions_name():
    return _named("state")


@sound
def argument_named_reference():
    return _named("reference")


@sound
def argument_named_compiled():
    return _named("compiled")


@sound
def custom_operator():
    return judged(lambda x: twice(x) + 1, ONES)


@sound
def operator_overload_in_a_closure():
    operator = torch.ops.aten.add.Tensor
    return judged(lambda x: operator(x, x), ONES)


@sound
def graph_module():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x.sin() * 2

    return judged(torch.fx.symbolic_trace(Net()), ONES)


@sound
def lazy_linear():
    return judged(torch.nn.LazyLinear(3), X)


@sound
def nested_argument():
    return judged(lambda n: n * 2, torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]))


@sound
def nested_result():
    return judged(lambda a, b: torch.nested.nested_tensor([a, b]), torch.ones(2, 3), torch.ones(4, 3))


@sound
def jagged_argument():
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    return judged(lambda n: n * 2, torch.nested.nested_tensor(parts, layout=torch.jagged))


@sound
def sparse_argument():
    return judged(lambda x: x * 2, torch.eye(3).to_sparse())


@sound
def sparse_result():
    return judged(lambda x: x.to_sparse(), torch.eye(3))


@sound
def sparse_gradient():
    return judged(torch.nn.Embedding(5, 3, sparse=True), torch.tensor([1, 2]))


@sound
def wrapped_argument():
    return judged(lambda x: x * 2, Wrapped(ONES))


@sound
def wrapped_result():
    return judged(lambda x: Wrapped(x * 2), ONES)


@sound
def floats_of_eight_bits():
    return judged(lambda x: x.to(torch.float8_e4m3fn), X)


@sound
def floats_of_eight_bits_given():
    return judged(lambda x: x.float() * 2, X.to(torch.float8_e5m2))


@sound
def meta_argument():
    return judged(lambda x: x * 2, torch.ones(3, device="meta"))


@sound
def module_that_times_itself():
    class Timed(torch.nn.Module):
        def forward(self, x):
            self.seconds = time.perf_counter()
            return x * 2

    return judged(Timed(), ONES)


@sound
def unique_name():
    return judged(lambda x: (x * 2, str(uuid.uuid4())), ONES)


@sound
def time_of_day():
    return judged(lambda x: (x * 2, time.time()), ONES)


@sound
def memory_that_nobody_wrote():
    return judged(lambda x: torch.empty(1000), ONES)


@sound
def number_of_an_object():
    return judged(lambda x: (x, id(x * 1)), ONES)


@sound
def detached_in_place():
    return judged(lambda x: x.detach_() * 2, torch.ones(3, requires_grad=True) * 2)


@sound
def autocast_for_good():
    try:
        return judged(lambda x: (torch.set_autocast_enabled("cpu", True), x * 2)[1], ONES)
    finally:
        torch.set_autocast_enabled("cpu", False)


@sound
def cached_function_with_an_effect():
    log = []

    @functools.lru_cache
    def cached(number):
        log.append(number)
        return number * 2

    return judged(lambda x: x * cached(3), ONES)


@sound
def local_of_a_thread():
    local = threading.local()
    local.count = 0

    def counted(x):
        local.count += 1
        return x * local.count

    return judged(counted, ONES)


@sound
def memory_of_a_thread_that_is_used_again():
    local = threading.local()
    local.memory = torch.zeros(3)

    def reused(x):
        return local.memory.add_(x)

    return judged(reused, ONES)


@sound
def counter_by_weak_key():
    key = torch.nn.Linear(1, 1)
    counts = weakref.WeakKeyDictionary({key: 0})

    def counted(x):
        counts[key] += 1
        return x * counts[key]

    return judged(counted, ONES)


@sound
def generator_as_argument():
    return judged(lambda items: next(items) * 2, (ONES for _ in range(3)))


@sound
def hook_that_counts():
    log, weight = [], torch.randn(3, requires_grad=True)
    weight.register_hook(lambda gradient: log.append(1))
    verdict = judged(lambda x: x * weight, ONES)
    assert log == []
    return verdict


@sound
def address_of_an_argument():
    return judged(lambda x: (x * 2, x.data_ptr()), ONES)


@sound
def printing_and_warning():
    return judged(lambda x: (print("seen"), x * 2)[1], ONES)


@sound
def environment_that_a_compiler_might_set():
    def count(x):
        os.environ["CCACHE_STEPS"] = os.environ.get("CCACHE_STEPS", "") + "a"
        return x * len(os.environ["CCACHE_STEPS"])

    try:
        verdict = judged(count, ONES)
        assert os.environ["CCACHE_STEPS"] == "a"
        return verdict
    finally:
        del os.environ["CCACHE_STEPS"]


@sound
def hook_registered_on_a_leaf():
    log, weight = [], torch.ones(3, requires_grad=True)

    def hooked(x):
        weight.register_hook(lambda gradient: log.append("hook"))
        weight.register_post_accumulate_grad_hook(lambda leaf: log.append("accumulated"))
        return x * weight

    check(hooked, (ONES,), compiled=hooked)
    weight.sum().backward()
    assert log == ["hook", "accumulated"]
    return judged(hooked, ONES)


@sound
def call_inside_a_transform():
    verdicts = []
    torch.func.vmap(lambda x: (verdicts.append(judged(torch.sin, x)), x)[1])(X)
    return verdicts[0]


@sound
def result_with_gaps_in_memory():
    return judged(lambda x: (x * 2)[:1, ::2][0, :1], torch.ones(4, 6, dtype=torch.float16))


@sound
def state_in_code_made_of_text():
    space = {"__name__": "made", "counts": [0], "torch": torch}
    exec(compile("def step(x):\n    counts[0] += 1\n    return x * counts[0]\n", "<made of text>", "exec"), space)
    verdict = judged(space["step"], ONES)
    assert space["counts"] == [1]
    return verdict


@sound
def dictionary_by_tensors_that_round():
    weight = torch.zeros(50, dtype=torch.bfloat16)
    state = {weight: None}

    def nearly(x, scale):
        weight.add_(x / 3 * scale)
        state[weight] = (weight * 2).sum()

    return check(
        lambda x: nearly(x, 3),
        (torch.linspace(1, 2, 50, dtype=torch.bfloat16) / 7,),
        compiled=lambda x: nearly(x * 3, 1),
    )


class Counted(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def test_a_subclass_sees_the_calls_of_one_run():
    x = ONES.as_subclass(Counted)
    Counted.calls = 0
    verdict = judged(lambda x: (x * 2).sin(), x)
    assert (verdict.kind, Counted.calls) == (VerdictKind.EQUAL, 2)
    verdict = check(lambda x: x * 2, (x,), compiled=lambda x: (x + x) * 1)
    assert verdict.kind is VerdictKind.WRONG  # it counts another number of calls
    assert "calls" in verdict.worst.where


def test_a_mode_sees_the_calls_of_one_run_and_its_state_is_the_users():
    names = []

    class Noted(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            names.append(function.__name__)
            return function(*args, **(kwargs or {}))

    with Noted():
        verdict = judged(lambda x: (x * 2).sin(), ONES)
    assert verdict.kind is VerdictKind.EQUAL
    assert names[-2:] == ["mul", "sin"]
    assert set(names) == {"mul", "sin"}  # of every run: the mode is no argument, so nobody sets it back


@sound
def addresses_that_a_compiler_leaves_in_the_environment():
    def compiled(x):
        os.environ["_TORCHINDUCTOR_ADDRESS"] = str(time.perf_counter())
        return x * 2

    os.environ["_TORCHINDUCTOR_ADDRESS"] = "of an earlier compile"
    try:
        return check(lambda x: x * 2, (ONES,), compiled=compiled)
    finally:
        del os.environ["_TORCHINDUCTOR_ADDRESS"]


@sound
def backward_into_the_history_of_an_argument():
    leaf = ONES.clone().requires_grad_()

    def program(x):
        (x * x).sum().backward()
        return leaf.grad.clone()

    return judged(program, leaf * 2)


@sound
def gradient_of_a_leaf_before_the_call():
    leaf = ONES.clone().requires_grad_()

    def program(x):
        return torch.autograd.grad((x * x).sum(), leaf, retain_graph=True)

    return judged(program, leaf.exp())


@pytest.mark.parametrize("name", SOUND)
def test_it_is_not_called_wrong(name):
    verdict = SOUND[name]()
    assert not verdict.failed, str(verdict)
    assert verdict.kind is not VerdictKind.JUDGE_FAILED, str(verdict)


def _asks(x):
    return x * 2 if not torch.compiler.is_compiling() else x * 3


def _refuses(x):
    if not torch.compiler.is_compiling() and x.sum() > 0:
        raise ValueError("no")
    return x * 2


def _asks_and_is_wrong(x):
    return x * 2 if not torch.compiler.is_compiling() else x * 3


@pytest.mark.parametrize("program", [_asks, _refuses])
def test_a_program_that_asks_whether_it_is_compiled(program):
    verdict = check(program, (ONES,), compiler="plumbline", backend="aot_eager")
    assert verdict.kind is VerdictKind.DESIGN
    assert f"{program.__code__.co_filename}:{program.__code__.co_firstlineno + 1}" in verdict.sentence


def test_eager_may_be_told_that_it_is_compiled():
    told = JudgeOptions(told_compiled=True)
    assert check(_asks, (ONES,), compiler="plumbline", backend="aot_eager", options=told).kind is VerdictKind.EQUAL
    assert check(_asks, (ONES,), compiled=lambda x: x * 2, options=told).kind is VerdictKind.WRONG


def test_asking_excuses_no_fault():
    assert check(_asks_and_is_wrong, (ONES,), compiled=lambda x: x * 4).kind is VerdictKind.WRONG


def _broken(*_):
    raise RuntimeError("a fault of the judge's")


def test_an_error_inside_the_judge_does_not_touch_the_call(monkeypatch, tmp_path):
    monkeypatch.setenv("PLUMBLINE_BUNDLE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(judge, "gradient_findings", _broken)
    state = torch.zeros(3)
    verdict = check(lambda x, s: s.add_(x), (ONES, state), compiled=lambda x, s: s.add_(x))
    assert verdict.kind is VerdictKind.JUDGE_FAILED
    assert "a fault of the judge's" in verdict.sentence
    assert not verdict.failed
    assert state.tolist() == [1, 1, 1]
    (bundle,) = tmp_path.iterdir()
    assert str(bundle) in verdict.notes[0]
    about = (bundle / "error.txt").read_text()
    assert "the call ran compiled, unjudged" in about
    assert "in _broken" in about
    assert "s.add_(x)" in (bundle / "function.py").read_text()
    assert "Tensor (3,) torch.float32" in (bundle / "call.txt").read_text()


def test_an_error_inside_the_judge_hides_nothing_found_before(monkeypatch):
    monkeypatch.setattr(judge, "live_findings", _broken)
    verdict = check(lambda x: x * 2, (ONES,), compiled=lambda x: x * 3)
    assert verdict.kind is VerdictKind.WRONG
    assert VerdictKind.JUDGE_FAILED in {finding.kind for finding in verdict.findings}


def test_a_warning_that_torch_gives_once_a_process_is_no_note():
    program = """
import torch
from plumbline.oracle import check
quantised = lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
verdict = check(quantised, (torch.ones(3),), compiled=quantised)
print(verdict.kind.value, verdict.notes)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "EQUAL ()"
