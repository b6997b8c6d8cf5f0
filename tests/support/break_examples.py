"""A smallest program for each reason for which capture stops, and what to write instead.

docs/graph-breaks.md is made of these by `python tests/support/break_catalogue.py`; a test of the documents runs each.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """Programs as text. stops: defines a function that stops; instead: one that does not, empty where none is needed.

    arguments: what both are called with, after the function itself.  Without `stops`, no program is known.
    """

    stops: str
    instead: str = ""
    arguments: str = "torch.tensor([3.0, -1.0, 2.0])"


EXAMPLES: dict[str, Example] = {
    "data-dependent-branch": Example(
        """
def halved_if_large(x):
    if x.sum() > 1:
        return x / 2
    return x
""",
        """
def halved_if_large(x):
    return torch.where(x.sum() > 1, x / 2, x)
""",
    ),
    "data-dependent-value": Example(
        """
def relative(x):
    return x / float(x.max())
""",
        """
def relative(x):
    return x / x.max()
""",
    ),
    "data-dependent-shape": Example(
        """
def sum_of_positive(x):
    return x[x > 0].sum()
""",
        """
def sum_of_positive(x):
    return torch.where(x > 0, x, 0).sum()
""",
    ),
    "unknown-callee": Example(
        """
import zlib


def with_checksum(x, name):
    return x * (zlib.crc32(name) % 7)
""",
        """
def with_checksum(x, name, checksum=zlib.crc32(b"layer")):
    return x * (checksum % 7)
""",
        'torch.ones(3), b"layer"',
    ),
    "distributed-wrapper": Example(
        """
from torch import distributed

distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
distributed.destroy_process_group()  # the example sends no gradients


def loss(x):
    return model(x * 2).sum()
""",
    ),
    "argument-not-known": Example(
        """
import itertools


def first_of(x):
    return x * sum(itertools.islice([1, 2, 3], x.argmax()))
""",
        """
import itertools


def first_of(x):
    return x * sum(itertools.islice([1, 2, 3], 2))
""",
    ),
    "construction": Example(
        """
import datetime


def in_seconds(x):
    return x * datetime.timedelta(minutes=2).total_seconds()
""",
        """
import datetime

STEP = datetime.timedelta(minutes=2).total_seconds()


def in_seconds(x):
    return x * STEP
""",
    ),
    "copy": Example(
        """
import copy


def shifted(x):
    return copy.copy(x).add_(1)
""",
        """
def shifted(x):
    return x.clone().add_(1)
""",
    ),
    "function-transform": Example(
        """
ROWS = []


def row_sines(x):
    def sine(row):
        ROWS.append(row)
        return row.sin()

    return torch.func.vmap(sine)(x)
""",
        """
ROWS = []


def row_sines(x):
    ROWS.append(x)
    return torch.func.vmap(torch.sin)(x)
""",
    ),
    "torch-call-form": Example(
        """
RELU = torch.nn.ReLU()


def positive(x):
    return torch.func.functional_call(RELU, {}, (x,), strict=True)
""",
        """
RELU = torch.nn.ReLU()


def positive(x):
    return torch.func.functional_call(RELU, {}, (x,))
""",
    ),
    "torch-setting": Example(
        """
def plus_ones(x):
    torch.set_default_device(x.device)
    ones = torch.ones(3)
    torch.set_default_device(None)
    return x + ones
""",
        """
def plus_ones(x):
    with torch.device(x.device):
        return x + torch.ones(3)
""",
    ),
    "side-effect-call": Example(
        """
def noisy(x):
    y = x * 2
    print("halfway")
    return y + 1
""",
        """
def quiet(x):
    y = x * 2
    return y + 1
""",
    ),
    "disabled": Example(
        """
@plumbline.disable
def kept_out(x):
    return x + 1


def caller(x):
    return kept_out(x * 2) * 3
""",
        """
def let_in(x):
    return x + 1


def caller(x):
    return let_in(x * 2) * 3
""",
    ),
    "explicit-break": Example(
        """
def two_graphs(x):
    y = torch.sin(x)
    plumbline.graph_break()
    return torch.cos(y)
""",
        """
def one_graph(x):
    return torch.cos(torch.sin(x))
""",
    ),
    "callee-breaks": Example(
        """
class Scale:
    @property
    def factor(self):
        print("read")
        return 2


scale = Scale()


def scaled(x):
    return x * scale.factor
""",
        """
class QuietScale:
    factor = 2


quiet_scale = QuietScale()


def scaled(x):
    return x * quiet_scale.factor
""",
    ),
    "operation-failed": Example(
        """
def seven_or_as_it_is(x):
    try:
        return x.view(7)
    except RuntimeError:
        return x
""",
        """
def seven_or_as_it_is(x):
    return x.view(7) if x.numel() == 7 else x
""",
    ),
    "unsupported-tensor": Example(
        """
identity = torch.eye(3).to_sparse()


def product(x):
    return torch.mv(identity, x)
""",
        """
identity = torch.eye(3)


def product(x):
    return torch.mv(identity, x)
""",
    ),
    "tensor-state": Example(
        """
def where_it_lies(x):
    y = x * 2
    return y, y.data_ptr()
""",
        """
def doubled(x):
    return x * 2
""",
    ),
    "autograd-call": Example(
        """
weight = torch.ones(3, requires_grad=True)
doubled_weight = weight * 2


def loss_and_backward(x):
    loss = (doubled_weight * x).sum()
    loss.backward()
    return loss
""",
        """
def loss_and_backward(x):
    loss = (weight * 2 * x).sum()
    loss.backward()
    return loss
""",
    ),
    "backward-state": Example(
        """
settings = {"strength": 0.5}


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -settings["strength"] * gradient


def reversed_gradient(x):
    return Reversed.apply(x) * 2
""",
        """
class ReversedBy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


def reversed_gradient(x):
    return ReversedBy.apply(x, settings["strength"]) * 2
""",
        "torch.tensor([3.0, -1.0, 2.0], requires_grad=True)",
    ),
    "unsupported-object": Example(
        """
import threading

lock = threading.Lock()


def locked(x):
    with lock:
        return x * 2
""",
        """
def unlocked(x):
    return x * 2
""",
    ),
    "unsupported-operation": Example(
        """
import array

SCALES = array.array("d", [1.0, 2.0])


def scaled(x):
    return x * len(SCALES)
""",
        """
SCALES = [1.0, 2.0]


def scaled(x):
    return x * len(SCALES)
""",
    ),
    "builtin-method": Example(
        """
def times_size(x):
    numbers = [1, 2]
    return x * numbers.__sizeof__()
""",
        """
def times_size(x):
    numbers = [1, 2]
    return x * len(numbers)
""",
    ),
    "attribute": Example(
        """
import functools


@functools.lru_cache(maxsize=8)
def weight(number):
    return number * 2


def weighted(x):
    return x * weight(weight.cache_parameters()["maxsize"])
""",
        """
import functools

LARGEST = 8


@functools.lru_cache(maxsize=LARGEST)
def weight(number):
    return number * 2


def weighted(x):
    return x * weight(LARGEST)
""",
    ),
    "class-definition": Example(
        """
class Settings:
    pass


def doubled(x):
    Settings.__len__ = lambda self: 2
    return x * 2
""",
        """
class Settings:
    def __len__(self):
        return 2


def doubled(x):
    return x * len(Settings())
""",
    ),
    "text": Example(
        """
def labelled(x):
    return x * 2, f"mean {x.mean()}"
""",
        """
def with_mean(x):
    return x * 2, x.mean()
""",
    ),
    "identity-number": Example(
        """
def first_made(x):
    y = x.sin()
    return x if id(x) < id(y) else y
""",
        """
def first_made(x):
    y = x.sin()
    return x if x is not y else y
""",
    ),
    "cannot-rebuild": Example(
        """
import itertools


def with_numbers(x):
    numbers, _ = itertools.tee([1, 2])
    return x.sin(), numbers
""",
        """
def with_numbers(x):
    return x.sin(), [1, 2]
""",
    ),
    "frame-access": Example(
        """
import sys


def named_by_caller(x):
    return x * len(sys._getframe(1).f_code.co_name)
""",
        """
def named_by_caller(x, name="caller"):
    return x * len(name)
""",
    ),
    "unsupported-bytecode": Example(""),
    "cannot-resume": Example(
        """
import functools


def weighted(x):
    @functools.lru_cache
    def weight(number):
        return number * 2

    y = x * weight(3)
    print("halfway")
    return y + weight(3)
""",
        """
def weighted(x):
    weight = 3 * 2
    return x * weight + weight
""",
    ),
    "exception": Example(
        """
def checked(x):
    if x.dim() != 2:
        raise ValueError("a matrix is needed")
    return x * 2


def call_checked(x):
    try:
        return plumbline.compile(checked, backend="eager")(x)
    except ValueError as error:
        return str(error)
""",
    ),
    "limit": Example(
        """
@plumbline.config.patch(instruction_limit=1000)
def counted(x):
    def loop(x):
        for number in range(1000):
            x = x + number
        return x

    return plumbline.compile(loop, backend="eager")(x)
""",
        """
def summed(x):
    return x + torch.arange(1000).sum()
""",
    ),
    "random-state": Example(
        """
import random


def jittered(x):
    factors = [0.9, 1.0, 1.1]
    random.shuffle(factors)
    return x * factors[0]
""",
        """
import random


def jittered(x):
    return x * random.choice([0.9, 1.0, 1.1])
""",
    ),
    "numpy": Example(
        """
import numpy as np


def fitted(x):
    return x * float(np.poly1d([1, 2])(3))
""",
        """
def fitted(x):
    return x * (1 * 3 + 2)
""",
    ),
    "function-mode": Example(
        """
import sys

from torch.overrides import TorchFunctionMode


class Watching(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        print(function, file=sys.stderr)
        return function(*args, **(kwargs or {}))


doubled = plumbline.compile(lambda x: x * 2, backend="eager")


def watched(x):
    with Watching():
        return doubled(x)
""",
    ),
    "generator": Example(
        """
def steps(x):
    for number in range(3):
        yield x * number


def list_of_steps(x):
    return list(plumbline.compile(steps, backend="eager")(x))
""",
        """
def step(x, number):
    return x * number


def list_of_steps(x):
    compiled = plumbline.compile(step, backend="eager")
    return [compiled(x, number) for number in range(3)]
""",
    ),
}
