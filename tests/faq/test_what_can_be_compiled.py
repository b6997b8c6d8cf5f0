"""What `compile` and `disable` take; and that what comes back is still what it was: names, signatures, keys."""

import asyncio
import copy
import functools
import inspect
import io
import pickle

import pytest
import torch
from torch import nn

import plumbline
from plumbline.compiler.base.errors import Unsupported, UserError
from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, RanEagerly, recording

compile_eagerly = functools.partial(plumbline.compile, backend="eager")
ONES = torch.ones(2)


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


@compile_eagerly
def at_the_top(x):
    """Add one."""
    return x + 1


def plus_one(x):
    return x + 1


def watched(run):
    plumbline.reset()  # what an earlier call has captured of the same code would do
    with recording() as events:
        result = run()
    assert not [event for event in events if isinstance(event, CompilerFailed)]
    return (
        result,
        [e.function for e in events if isinstance(e, Captured)],
        [e.reason for e in events if isinstance(e, Broke | RanEagerly)],
    )


# --- functions that stop and go on --------------------------------------------------------------------------------


def test_generator_function_stays_one_with_the_reason_on_record():
    def numbers(x):
        for step in range(2):
            yield x + step

    compiled, graphs, reasons = watched(lambda: compile_eagerly(numbers))
    assert inspect.isgeneratorfunction(compiled)
    assert [value.sum().item() for value in compiled(ONES)] == [2, 4]
    assert (graphs, reasons) == ([], ["generator"])


def test_coroutine_function_gives_a_coroutine():
    @compile_eagerly
    async def later(x):
        await asyncio.sleep(0)
        return x + 1

    assert inspect.iscoroutinefunction(later)
    assert torch.equal(asyncio.run(later(ONES)), ONES + 1)


def test_asynchronous_generator_function():
    @compile_eagerly
    async def numbers(x):
        yield x + 1

    async def collect():
        return [value async for value in numbers(ONES)]

    assert inspect.isasyncgenfunction(numbers)
    assert torch.equal(asyncio.run(collect())[0], ONES + 1)


def test_a_full_graph_of_a_generator_is_refused_with_its_line():
    def numbers(x):
        yield x

    with pytest.raises(Unsupported, match=r"test_what_can_be_compiled.py:\d+: .*compile the function it calls"):
        compile_eagerly(numbers, fullgraph=True)


def test_coroutine_that_calls_a_compiled_function():
    step = compile_eagerly(plus_one)

    async def later(x):
        return step(x)

    result, graphs, _ = watched(lambda: asyncio.run(later(ONES)))
    assert torch.equal(result, ONES + 1)
    assert graphs == ["plus_one"]


# --- callables that are no plain functions ------------------------------------------------------------------------


def test_builtins_and_torchs_own_functions():
    assert compile_eagerly(max)(1, 2) == 2
    assert compile_eagerly(len)([1, 2]) == 2
    result, graphs, _ = watched(lambda: compile_eagerly(torch.sin)(ONES))
    assert torch.equal(result, torch.sin(ONES))
    assert graphs == ["sin"]


def test_partial_of_a_function_and_of_a_module():
    part = compile_eagerly(functools.partial(torch.add, alpha=2))
    assert torch.equal(part(ONES, ONES), torch.full((2,), 3.0))
    linear = nn.Linear(2, 2)
    part = compile_eagerly(functools.partial(linear, input=ONES))
    assert torch.equal(part(), linear(ONES))


def test_method_of_an_object_and_compiled_twice():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def scaled(self, x):
            return x * self.factor

    once = compile_eagerly(Scale(3).scaled)
    twice = compile_eagerly(once)
    assert torch.equal(once(ONES), ONES * 3)
    assert torch.equal(twice(ONES), ONES * 3)
    assert twice.__self__ is once.__self__


def test_callable_object_sees_its_changes():
    class Scale:
        factor = 2

        def __call__(self, x):
            return x * self.factor

    scale = Scale()
    compiled = compile_eagerly(scale)
    assert torch.equal(compiled(ONES), ONES * 2)
    scale.factor = 5
    assert torch.equal(compiled(ONES), ONES * 5)


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_static_and_class_methods_and_properties_in_either_order(order):
    def both(descriptor):
        if order == "inside":
            return lambda function: descriptor(compile_eagerly(function))
        return lambda function: compile_eagerly(descriptor(function))

    class Kinds:
        step = 2.0

        @both(staticmethod)
        def static(x):  # noqa: N805 - it is made a static method above
            return x + 1

        @both(classmethod)
        def of_class(cls, x):  # noqa: N805 - and this one a class method
            return x + cls.step

        @both(property)
        def own(self):
            return ONES * self.step

    kinds = Kinds()
    result, graphs, _ = watched(lambda: (kinds.static(ONES), Kinds.static(ONES), kinds.of_class(ONES), kinds.own))
    assert [value[0].item() for value in result] == [2, 2, 3, 2]
    assert set(graphs) == {"static", "of_class", "own"}


@pytest.mark.parametrize("kind", [nn.Linear, dict, type("Plain", (), {})])
def test_a_class_is_refused_in_one_line(kind):
    with pytest.raises(UserError, match=f"the class {kind.__name__} cannot be compiled; compile an instance"):
        compile_eagerly(kind)


@pytest.mark.parametrize("thing", [3, "text", None.__class__, [1]], ids=["number", "text", "class", "list"])
def test_what_cannot_be_called_is_refused(thing):
    with pytest.raises(UserError, match="cannot be compiled"):
        compile_eagerly(thing)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_and_traced_code_runs_as_it_is():
    linear = nn.Linear(2, 2)
    for made in (torch.jit.script(plus_one), torch.jit.trace(plus_one, (ONES,))):
        assert torch.equal(compile_eagerly(made)(ONES), ONES + 1)
    assert torch.equal(compile_eagerly(torch.jit.script(linear))(ONES), linear(ONES))


def test_what_stock_compiled_is_compiled_from_its_original():
    result, graphs, breaks = watched(lambda: compile_eagerly(torch.compile(plus_one, backend="eager"))(ONES))
    assert torch.equal(result, ONES + 1)
    assert (graphs, breaks) == (["plus_one"], [])


# --- what comes back is still what it was -------------------------------------------------------------------------


def test_name_docs_signature_annotations_and_original():
    def f(a: int, /, b=2, *rest, key: float = 3.0, **others) -> int:
        """Docs."""
        return a

    compiled = compile_eagerly(f)
    assert inspect.signature(compiled) == inspect.signature(f)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        assert getattr(compiled, name) == getattr(f, name)
    assert compiled.__wrapped__ is f
    assert inspect.unwrap(compiled) is f


def test_compiling_twice_is_compiling_once():
    assert compile_eagerly(compile_eagerly(plus_one)).__wrapped__ is plus_one


def test_decorated_function_of_a_module_pickles_by_name():
    assert pickle.loads(pickle.dumps(at_the_top)) is at_the_top
    assert copy.deepcopy(at_the_top) is at_the_top


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)

    def forward(self, x):
        return self.first(x).relu()

    def count(self):
        return 3


def test_module_keys_attributes_and_kinds():
    net = Net()
    compiled = compile_eagerly(net)
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert dict(compiled.named_parameters()).keys() == dict(net.named_parameters()).keys()
    assert compiled.count() == 3
    assert compiled.first is net.first
    assert isinstance(compiled, nn.Module)
    assert list(nn.Sequential(compiled, nn.ReLU()).state_dict()) == ["0.first.weight", "0.first.bias"]


def test_module_pickles_saves_and_copies_as_the_original():
    compiled = compile_eagerly(Net())
    for made in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled), copy.copy(compiled)):
        assert torch.equal(made(ONES), compiled(ONES))
    file = io.BytesIO()
    torch.save(compiled.state_dict(), file)
    file.seek(0)
    other = Net()
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(ONES), compiled(ONES))


def test_containers_stay_containers():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    compiled = compile_eagerly(net)
    assert compiled[0] is net[0]
    assert len(compiled) == 2
    assert list(compiled) == list(net)
    assert bool(compiled)
    compiled[1] = nn.Tanh()
    assert torch.equal(compiled(ONES), net[0](ONES).tanh())
    assert copy.deepcopy(compiled)[0].weight is not net[0].weight
    plain = compile_eagerly(Net())
    assert not hasattr(plain, "__len__")
    with pytest.raises(TypeError):
        iter(plain)


def test_torchs_method_compile_is_answered_plainly():
    with pytest.raises(UserError, match="already compiled"):
        compile_eagerly(Net()).compile()


def test_module_in_place_by_its_forward():
    net = Net()
    expected = net(ONES)
    net.forward = compile_eagerly(net.forward)
    result, graphs, _ = watched(lambda: net(ONES))
    assert torch.equal(result, expected)
    assert graphs == ["forward"]
    assert list(net.state_dict()) == ["first.weight", "first.bias"]


def test_module_in_the_place_of_a_submodule():
    net = nn.Sequential(Net(), nn.ReLU())
    expected = net(ONES)
    net[0] = compile_eagerly(net[0])
    assert torch.equal(net(ONES), expected)
    assert list(net.state_dict()) == ["0.first.weight", "0.first.bias"]


def test_method_of_a_class_decorated_once_for_all_objects():
    class Block(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        @compile_eagerly
        def forward(self, x):
            return x * self.factor

    assert [Block(factor)(ONES)[0].item() for factor in (2, 3, 2)] == [2, 3, 2]


# --- disable takes as much ----------------------------------------------------------------------------------------


def runs_uncompiled(make, expected):
    """Hold that what `make` returns runs as it is where compiled code calls it."""
    called = make()
    result, _, reasons = watched(lambda: compile_eagerly(lambda x: called(x * 2) * 2)(ONES))
    assert torch.equal(result, expected)
    assert reasons == ["disabled"]


@pytest.mark.parametrize("form", ["plain", "call", "recursive"])
def test_disable_with_and_without_parentheses(form):
    forms = {"plain": plumbline.disable, "call": plumbline.disable(), "recursive": plumbline.disable(recursive=True)}
    runs_uncompiled(lambda: forms[form](plus_one), ONES * 6)


def test_disable_of_methods_objects_partials_builtins_and_modules():
    class Plus:
        def __call__(self, x):
            return x + 1

        @plumbline.disable
        def decorated(self, x):
            return x + 1

        @plumbline.disable()
        @staticmethod
        def static(x):
            return x + 1

        @classmethod
        @plumbline.disable
        def of_class(cls, x):
            return x + 1

        def plain(self, x):
            return x + 1

    plus = Plus()
    linear = nn.Linear(2, 2)
    runs_uncompiled(lambda: plumbline.disable(Plus()), ONES * 6)
    runs_uncompiled(lambda: plus.decorated, ONES * 6)
    runs_uncompiled(lambda: plus.static, ONES * 6)
    runs_uncompiled(lambda: plus.of_class, ONES * 6)
    runs_uncompiled(lambda: plumbline.disable(plus.plain), ONES * 6)
    runs_uncompiled(lambda: plumbline.disable(functools.partial(torch.add, ONES)), ONES * 6)
    runs_uncompiled(lambda: plumbline.disable(torch.sin), torch.sin(ONES * 2) * 2)
    runs_uncompiled(lambda: plumbline.disable(linear), linear(ONES * 2) * 2)


def test_disable_of_a_class_marks_the_class_itself():
    @plumbline.disable
    class Doubled:
        def __init__(self, x):
            self.x = x * 2

        def read(self):
            return self.x

    assert isinstance(Doubled, type)
    result, _, reasons = watched(lambda: compile_eagerly(lambda x: Doubled(x).read() * 2)(ONES))
    assert torch.equal(result, ONES * 4)
    assert "disabled" in reasons

    @plumbline.disable
    class Block(nn.Module):
        def forward(self, x):
            return x + 1

    runs_uncompiled(Block, ONES * 6)


def test_disable_of_what_cannot_be_called_is_refused():
    with pytest.raises(UserError, match="cannot be applied to int"):
        plumbline.disable(3)


@pytest.mark.parametrize("disable", [plumbline.disable, torch.compiler.disable])
def test_the_mark_put_on_last_holds(disable):
    result, graphs, _ = watched(lambda: compile_eagerly(disable(plus_one))(ONES))
    assert (result[0].item(), graphs) == (2, ["plus_one"])
    result, graphs, _ = watched(lambda: plumbline.disable(compile_eagerly(plus_one))(ONES))
    assert (result[0].item(), graphs) == (2, [])


def test_assume_constant_result_is_called_at_capture_alone():
    calls = []

    class Table:
        def __init__(self, size):
            self.size = size

        @plumbline.assume_constant_result
        def width(self):
            calls.append(self.size)
            return {"width": self.size}

    @compile_eagerly(fullgraph=True)
    def f(x, table):
        return x * table.width()["width"]

    small, large = Table(2), Table(3)
    assert [f(ONES, table)[0].item() for table in (small, large, small, small)] == [2, 3, 2, 2]
    assert calls == [2, 3]


def test_assume_constant_result_of_torch_with_a_tensor_runs_in_between():
    @torch.compiler.assume_constant_result
    def largest(x):
        return x.max().item()

    assert compile_eagerly(lambda x: x * largest(x))(torch.tensor([1.0, 3.0])).tolist() == [3, 9]
    with pytest.raises(UserError, match="cannot be applied to int"):
        plumbline.assume_constant_result(3)
