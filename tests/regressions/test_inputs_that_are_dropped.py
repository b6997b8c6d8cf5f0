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
    "transform": (under_grad, tensors(4)),
    "generator_function": (suspended, tensors(4)),
}
FORMS = {
    "eager": {"backend": "eager"},
    "inductor": {"backend": "inductor"},
    "dynamic": {"backend": "aot_eager", "dynamic": True},
}


def drop(run, make):
    """Call, take gradients where there are any, and return whatever of the inputs lives on."""
    given = make()
    seen = [weakref.ref(value) for value in given]
    try:
        result = run(*given)
        if isinstance(result, torch.Tensor) and result.requires_grad:
            result.sum().backward()
        del result
    except (RuntimeError, ValueError, Unsupported):
        pass
    del given
    return [type(value) for ref in seen if (value := ref()) is not None]


@pytest.fixture(autouse=True)
def no_collector():
    drop(plumbline.compile(straight, backend="eager"), tensors(2))  # what torch imports for the first capture
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("form", FORMS)
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
