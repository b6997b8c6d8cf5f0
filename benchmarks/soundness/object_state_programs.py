"""Programs that keep state in objects of Python: contexts, classes, functions, files, arrays."""

import contextlib
import contextvars
import copy
import functools
import io
import os
import pickle
import time
import types
import uuid
import warnings

import numpy
import torch
from torch import nn

from .registry import Registry, inputs

OBJECT_STATE = Registry()


@OBJECT_STATE
def context_variables(call):
    scale = contextvars.ContextVar("scale", default=1)

    def scaled(x):
        token = scale.set(scale.get() + 1)
        try:
            return x * scale.get()
        finally:
            scale.reset(token)

    return [call(scaled, inputs()) for _ in range(2)], scale.get()


@OBJECT_STATE
def context_variable_left_set(call):
    depth = contextvars.ContextVar("depth", default=0)

    def deeper(x):
        depth.set(depth.get() + 1)
        return x * depth.get()

    return [call(deeper, inputs()) for _ in range(2)], depth.get()


@OBJECT_STATE
def context_manager_of_the_users(call):
    entered = []

    @contextlib.contextmanager
    def noted(name):
        entered.append(name)
        try:
            yield len(entered)
        finally:
            entered.append(f"end of {name}")

    def inside(x):
        with noted("a") as n, noted("b"):
            return x * n

    return [call(inside, inputs()) for _ in range(2)], entered


@OBJECT_STATE
def exit_stack_kept(call):
    stack, log = contextlib.ExitStack(), []

    def push(x):
        stack.callback(log.append, "closed")
        return x + 1

    outs = [call(push, inputs()) for _ in range(2)]
    stack.close()
    return outs, log


@OBJECT_STATE
def environment_variables(call):
    def noted(x):
        os.environ["SOUNDNESS_STEP"] = str(int(os.environ.get("SOUNDNESS_STEP", "0")) + 1)
        return x * int(os.environ["SOUNDNESS_STEP"])

    return [call(noted, inputs()) for _ in range(2)], os.environ["SOUNDNESS_STEP"]


@OBJECT_STATE
def environment_variable_of_a_compiler(call):
    def noted(x):
        os.environ["TORCH_SOUNDNESS"] = os.environ.get("TORCH_SOUNDNESS", "") + "a"
        return x * len(os.environ["TORCH_SOUNDNESS"])

    try:
        return [call(noted, inputs()) for _ in range(2)], os.environ["TORCH_SOUNDNESS"]
    finally:
        os.environ.pop("TORCH_SOUNDNESS", None)


@OBJECT_STATE
def environment_variable_of_the_program_alone(call):
    def noted(x):
        os.environ["CCACHE_STEP"] = str(int(os.environ.get("CCACHE_STEP", "0")) + 1)
        return x * int(os.environ["CCACHE_STEP"])

    try:
        return [call(noted, inputs()) for _ in range(2)], os.environ["CCACHE_STEP"]
    finally:
        os.environ.pop("CCACHE_STEP", None)


@OBJECT_STATE
def written_file(call):
    file = io.StringIO()

    def logged(x):
        file.write(f"{float(x.sum()):.3f}\n")
        return x * 2

    return [call(logged, inputs()) for _ in range(2)], file.getvalue()


@OBJECT_STATE
def warnings_and_prints(call):
    def noisy(x):
        warnings.warn("careful", stacklevel=1)
        print("seen", end="")
        return x * 2

    with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(io.StringIO()) as printed:
        warnings.simplefilter("always")
        out = call(noisy, inputs())
    return out, [str(one.message) for one in said if "careful" in str(one.message)], printed.getvalue()


@OBJECT_STATE
def recorded_warnings_inside(call):
    def quiet(x):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warnings.warn("inside", stacklevel=1)
        return x * len(said)

    return call(quiet, inputs())


@OBJECT_STATE
def copies_and_pickles(call):
    module = nn.Linear(4, 4)

    def copied(x):
        twin = copy.deepcopy(module)
        with torch.no_grad():
            twin.weight.mul_(2)
        again = pickle.loads(pickle.dumps(x.detach()))
        return twin(x) + again, twin

    return call(copied, inputs()), module


@OBJECT_STATE
def saved_and_loaded(call):
    module = nn.Linear(4, 4)

    def reloaded(x):
        memory = io.BytesIO()
        torch.save(module.state_dict(), memory)
        memory.seek(0)
        module.load_state_dict(torch.load(memory))
        return module(x)

    out = call(reloaded, inputs())
    out.sum().backward()
    return out, module


@OBJECT_STATE
def time_and_names(call):
    def stamped(x):
        return x * 2, time.time() > 0, len(str(uuid.uuid4())), id(x) != 0

    return call(stamped, inputs())


@OBJECT_STATE
def class_attribute_counts(call):
    class Layer(nn.Module):
        made = 0
        instances: list = []

        def __init__(self):
            super().__init__()
            type(self).made += 1
            Layer.instances.append(self)

        def forward(self, x):
            Layer.made += 10
            return x * self.made

    layer = Layer()
    return [call(layer, inputs()) for _ in range(2)], Layer.made, len(Layer.instances)


@OBJECT_STATE
def objects_made_in_the_call(call):
    class Meter:
        count = 0

        def __init__(self):
            Meter.count += 1
            self.number = Meter.count
            self.values = []

    meters = {}

    def measure(x, name):
        meter = meters.setdefault(name, Meter())
        meter.values.append(x.mean())
        return x / meter.number

    return [call(measure, inputs(), name) for name in "aba"], [m.values for m in meters.values()], Meter.count


@OBJECT_STATE
def function_attributes(call):
    def step(x):
        step.calls = getattr(step, "calls", 0) + 1
        return x * step.calls

    return [call(step, inputs()) for _ in range(3)], step.calls


@OBJECT_STATE
def default_argument_as_a_cache(call):
    def step(x, seen=[]):
        seen.append(x.sum())
        return torch.stack(seen)

    return [call(step, inputs()) for _ in range(3)]


@OBJECT_STATE
def partial_with_state(call):
    state = torch.zeros(4)
    step = functools.partial(lambda scale, state, x: state.add_(x.sum(0) * scale) * 1, 2.0, state)
    return [call(step, inputs()) for _ in range(2)], state


@OBJECT_STATE
def single_dispatch_and_descriptors(call):
    @functools.singledispatch
    def show(value):
        return value * 2

    @show.register
    def _(value: list):
        return sum(show(one) for one in value)

    class Scale:
        def __get__(self, owner, kind):
            owner.reads += 1
            return owner.reads

    class Model:
        scale = Scale()
        reads = 0

        def __call__(self, x):
            return show([x, x]) * self.scale

    model = Model()
    return [call(model, inputs()) for _ in range(2)], model.reads


@OBJECT_STATE
def module_replaced_in_forward(call):
    class Switching(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            out = self.layer(x)
            self.layer = nn.Identity()
            return out

    module = Switching()
    return [call(module, inputs()) for _ in range(2)], module


@OBJECT_STATE
def method_replaced_in_forward(call):
    class Once(nn.Module):
        def forward(self, x):
            self.helper = types.MethodType(lambda self, y: y + 1, self)
            return self.helper(x)

    module = Once()
    return [call(module, inputs()) for _ in range(2)]


@OBJECT_STATE
def tensors_swapped_and_resized(call):
    def swap(x, y):
        x.data = y.data * 2
        y.resize_(2, 2)
        return x + 1

    x, y = inputs(), inputs()
    return call(swap, x, y), x, y


@OBJECT_STATE
def bytearray_and_arrays(call):
    raw, array = bytearray(4), numpy.zeros(4)

    def write(x):
        raw[0] += 1
        array[:] += x.float().sum(0).numpy()
        return torch.from_numpy(array) * raw[0]

    return [call(write, inputs()) for _ in range(2)], bytes(raw), array


@OBJECT_STATE
def array_that_shares_memory(call):
    array = numpy.arange(4.0)
    shared = torch.from_numpy(array)

    def write(x):
        shared.add_(x.sum(0))
        return array * 2, shared.numpy()

    return [call(write, inputs()) for _ in range(2)], array


@OBJECT_STATE
def numpy_in_and_out(call):
    def mixed(x, array):
        y = torch.from_numpy(array).to(x.dtype) + x
        return y.float().numpy(), numpy.asarray(3.5), numpy.float32(2) * float(x.sum()), array.tolist()

    return call(mixed, inputs(), numpy.arange(4.0, dtype=numpy.float32))


@OBJECT_STATE
def arrays_of_objects_and_records(call):
    def made(x):
        record = numpy.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
        return numpy.array(["a", "b"]), record, numpy.array([None, 1], dtype=object), x

    return call(made, inputs())
