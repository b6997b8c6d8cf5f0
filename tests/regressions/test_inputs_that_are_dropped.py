"""What a capturing call was given lived on until the garbage collector ran: a capture is a cycle of its parts."""

import gc
import subprocess
import sys
import weakref

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported


class Holder:
    """An object with a tensor."""

    def __init__(self):
        self.weight = torch.ones(3)


def tensors(*shape, grad=False):
    return lambda: [torch.randn(shape, requires_grad=grad)]


def bad_index():
    return [torch.randn(4, 5), torch.tensor([7])]


def straight(x):
    return x.sin() * 2


def broken(x):
    y = x.sin()
    print(end="")
    return y * x


def on_data(x):
    return x * 2 if x.sum() > -1e9 else x


def raising(x):
    x = x + 1
    raise ValueError("by the program")


def raising_its_input(x):
    try:
        raise ValueError(x)
    except ValueError as error:
        return error.args[0] * 2


def breaking_in_handler(x):
    try:
        raise ValueError(x)
    except ValueError as error:
        print(end="")
        return error.args[0] * 2


def raising_after_a_break(x):
    y = x + 1
    print(end="")
    raise ValueError(y)


def raising_in_callee(x):
    return raising(x * 2)


def wrong_shapes(x):
    return x @ x


def changing_an_object(holder):
    holder.weight = holder.weight + 1
    return holder.weight


def through_a_generator(x):
    def parts():
        yield x
        yield x * 2

    return sum(parts())


def across_a_generator(x):
    parts = (x * i for i in range(4))
    first = next(parts)
    print(end="")
    return first + sum(parts)


def in_containers(x):
    named, line = {"a": x}, [x, x]
    line.append(line)
    named["self"] = named
    return named["a"] + line[0]


def in_place(x):
    x.add_(1)
    return x.shape[0] * x


def closing_over(x):
    def again(depth):
        return x * depth if depth == 0 else again(depth - 1) + x

    return again(2)


def called(module, x):
    return module(x)


def numbered(x, holder):
    return x * holder.weight.shape[0]


def failing_on_data(x, index):
    y = x * 2
    return y[index]


def failing_on_data_and_caught(x, index):
    try:
        return x[index]
    except IndexError:
        return x + 1


def writing_before_it_fails(x, index):
    x.add_(1)
    try:
        return x[index]
    except IndexError:
        return x * 2


def drawing_before_it_fails(x, index):
    return torch.nn.functional.dropout(x, 0.5)[index]


def failing_after_a_break(x, index):
    y = x * 2
    print(end="")
    return y[index]


def raising_from_another(x):
    y = x * 2
    print(end="")
    try:
        raise KeyError(y)
    except KeyError as error:
        raise ValueError(x) from error


def breaking_in_a_callee(x):
    return broken(x) + x


def breaking_often(x):
    for _ in range(4):
        x = x + 1
        print(end="")
    return x


def leaving_a_generator(x):
    def parts():
        try:
            yield x
            yield x + 1
        finally:
            pass

    return next(parts()) * 2


def giving_a_generator(x):
    def parts():
        yield x
        yield x + 1

    made = parts()
    next(made)
    return made


def hooked(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 2)
    return y


class Doubled(torch.autograd.Function):
    """Saves what it is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 + x * 0


def recomputed(x):
    return torch.utils.checkpoint.checkpoint(lambda y: y.sin().cos(), x, use_reentrant=False)


def in_an_object_of_its_own_class(x):
    class Node:
        def __init__(self, value):
            self.value, self.me = value, self

    return Node(x).value + 1


def asserting(x):
    assert x.sum() > 1e9, "never"
    return x + 1


def given_other_data(x, y):
    x.data = y
    return x + 1


def raising_with_an_object(holder):
    holder.weight = holder.weight + 1
    raise ValueError(holder)


def training(module, x):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return x + 1


def under_grad(x):
    return torch.func.grad(lambda y: y.sin().sum())(x)


def suspended(x):
    yield x


CALLS = {
    "straight": (straight, tensors(4, 5)),
    "backward": (straight, tensors(4, 5, grad=True)),
    "break": (broken, tensors(4, 5)),
    "break_and_backward": (broken, tensors(4, 5, grad=True)),
    "branch_on_data": (on_data, tensors(4, 5)),
    "exception": (raising, tensors(4, 5)),
    "exception_of_a_callee": (raising_in_callee, tensors(4, 5)),
    "exception_after_a_break": (raising_after_a_break, tensors(4, 5)),
    "exception_with_its_input": (raising_its_input, tensors(4, 5)),
    "break_in_a_handler": (breaking_in_handler, tensors(4, 5)),
    "failing_operation": (wrong_shapes, tensors(4, 5)),
    "object": (changing_an_object, lambda: [Holder()]),
    "generator": (through_a_generator, tensors(4, 5)),
    "generator_across_a_break": (across_a_generator, tensors(4, 5)),
    "containers_in_themselves": (in_containers, tensors(4, 5)),
    "input_written": (in_place, tensors(4, 5)),
    "closure": (closing_over, tensors(4, 5)),
    "module": (called, lambda: [torch.nn.Linear(5, 5), torch.randn(3, 5)]),
    "tensor_and_object": (numbered, lambda: [torch.randn(3), Holder()]),
    "failure_on_data": (failing_on_data, bad_index),
    "failure_on_data_caught": (failing_on_data_and_caught, bad_index),
    "failure_after_a_write": (writing_before_it_fails, bad_index),
    "failure_after_a_draw": (drawing_before_it_fails, bad_index),
    "failure_after_a_break": (failing_after_a_break, bad_index),
    "exception_from_another": (raising_from_another, tensors(4, 5)),
    "break_in_a_callee": (breaking_in_a_callee, tensors(4, 5, grad=True)),
    "several_breaks": (breaking_often, tensors(4, 5)),
    "generator_left": (leaving_a_generator, tensors(4, 5)),
    "generator_given_back": (giving_a_generator, tensors(4, 5)),
    "hook": (hooked, tensors(4, 5, grad=True)),
    "autograd_function": (lambda x: Doubled.apply(x) + 1, tensors(4, 5, grad=True)),
    "checkpoint": (recomputed, tensors(4, 5, grad=True)),
    "object_of_a_class_made_here": (in_an_object_of_its_own_class, tensors(4, 5)),
    "assertion": (asserting, tensors(4, 5)),
    "other_data": (given_other_data, lambda: [torch.ones(3), torch.ones(4)]),
    "exception_with_an_object": (raising_with_an_object, lambda: [Holder()]),
    "training_step": (training, lambda: [torch.nn.Linear(5, 5), torch.randn(3, 5)]),
    "transform": (under_grad, tensors(4)),
    "generator_function": (suspended, tensors(4)),
}
FORMS = {
    "eager": {"backend": "eager"},
    "aot_eager": {"backend": "aot_eager"},
    "inductor": {"backend": "inductor"},
    "dynamic": {"backend": "aot_eager", "dynamic": True},
}


def parts_of(value):
    """Return the tensors that an input holds."""
    if isinstance(value, torch.nn.Module):
        return list(value.parameters())
    return [value.weight] if isinstance(value, Holder) else []


def drop(run, make):
    """Call, take gradients where there are any, and return whatever of the inputs lives on."""
    given = make()
    seen = [weakref.ref(value) for value in (*given, *(part for value in given for part in parts_of(value)))]
    try:
        result = run(*given)
        if isinstance(result, torch.Tensor) and result.requires_grad:
            result.sum().backward()
        del result
    except (AssertionError, IndexError, RuntimeError, ValueError, Unsupported):
        pass
    del given
    return [type(value) for ref in seen if (value := ref()) is not None]


@pytest.fixture(autouse=True)
def no_collector():
    for backend in ("eager", "aot_eager"):  # what is imported for the first capture and the first trace
        drop(plumbline.compile(straight, backend=backend), tensors(2))
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("form", ["eager", "aot_eager", "dynamic", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", CALLS)
def test_inputs_of_a_capture(name, form):
    body, make = CALLS[name]
    run = plumbline.compile(body, **FORMS[form])
    assert drop(run, make) == []
    assert drop(run, make) == []


@pytest.mark.parametrize("name", ["straight", "break", "branch_on_data", "exception", "input_written", "closure"])
def test_inputs_of_a_capture_for_other_sizes(name):
    run = plumbline.compile(CALLS[name][0], backend="aot_eager")
    for rows in (4, 6, 9):
        assert drop(run, tensors(rows, 5)) == []


def test_inputs_beyond_the_recompile_limit():
    run = plumbline.compile(straight, backend="eager", dynamic=False, recompile_limit=1)
    for rows in (2, 3, 4):
        assert drop(run, tensors(rows)) == []


def test_inputs_where_a_full_graph_breaks():
    run = plumbline.compile(broken, backend="eager", fullgraph=True)
    assert drop(run, tensors(4)) == []


def test_inputs_where_the_backend_fails():
    def refuse(graph, inputs):
        raise RuntimeError("no")

    run = plumbline.compile(straight, backend=refuse)
    assert drop(run, tensors(4)) == []
    assert drop(run, tensors(4)) == []


@pytest.mark.parametrize("name", ["straight", "backward", "break"])
def test_inputs_after_an_error_of_ours(name, monkeypatch):
    def fail(graph, inputs, options):
        raise AssertionError("ours")

    monkeypatch.setitem(plumbline.compiler.backends._BACKENDS, "inductor", fail)
    body, make = CALLS[name]
    run = plumbline.compile(body, backend="inductor", options={"strict": False})
    assert drop(run, make) == []


@pytest.mark.parametrize("name", ["straight", "backward", "break", "object", "exception"])
def test_inputs_after_an_error_of_ours_while_capturing(name, monkeypatch):
    def fail(*arguments):
        raise AssertionError("ours")

    monkeypatch.setattr(plumbline.compiler.frontend.specialise.SpecialisationWriter, "specialise", fail)
    body, make = CALLS[name]
    run = plumbline.compile(body, backend="eager", options={"strict": False})
    assert drop(run, make) == []
    assert drop(run, make) == []


def test_inputs_of_compiled_modules():
    module = plumbline.compile(torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.ReLU()), backend="eager")
    assert drop(module, tensors(3, 5)) == []
    assert drop(module, tensors(3, 5, grad=True)) == []


FIRST = """
import gc, weakref, torch, plumbline
gc.disable()
run = plumbline.compile(lambda x: x + 1, backend="eager")
x = torch.ones(3)
seen = weakref.ref(x)
run(x)
del x
assert seen() is None
"""


def test_inputs_of_the_first_capture_of_a_process():
    """Torch imports modules then, and the import errors that some of them swallow hold the frames below them."""
    subprocess.run([sys.executable, "-c", FIRST], check=True, timeout=300)
