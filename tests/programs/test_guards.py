"""What a specialisation depends on: each kind of change that matters compiles anew, unread state does not."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
SETTINGS = {"k": 2.0, "unread": 1, "deep": {"x": [1, 2]}, "f": torch.sin}
NUMBER = 2.0


@dataclass
class Config:
    scale: float = 2.0
    unread: int = 0
    sizes: list = field(default_factory=lambda: [1, 2])


class Layer:
    gain = 2.0

    def __init__(self, k=1.0):
        self.k, self.unread = k, 0

    def go(self, x):
        return x * self.k * self.gain


class Other(Layer):
    def go(self, x):
        return x + self.k


def helper(x):
    return x * 2


def stranger(x):
    return x * 5


def setting(**changes):
    """Return a maker that changes the global settings and gives a tensor."""

    def make():
        SETTINGS.update(changes)
        return (A.clone(),)

    return make


def with_global(name, value):
    def make():
        globals()[name] = value
        return (A.clone(),)

    return make


def strided():
    return (torch.arange(6.0).reshape(3, 2).T,)


def parameter():
    return (torch.nn.Parameter(A.clone()),)


def again(*arguments):
    return lambda: arguments


@program(A, then=((lambda: (B.clone(),), False), (lambda: (A + 100,), False)))
def values_of_tensors_are_not_guarded(a):
    return a * 2


@program(A, changed=lambda: (A.double(),), then=((lambda: (A.clone(),), False),))
def dtype_is_guarded(a):
    return a * 2


@program(A, changed=lambda: (torch.ones(2, 3, 1),))
def rank_is_guarded(a):
    return a + a.dim()


@program(A, changed=lambda: (A.clone().requires_grad_(),))
def requires_grad_is_guarded(a):
    return a * 2


@program(A, changed=strided)
def strides_are_guarded(a):
    return a * a.stride(0)


@program(A, changed=parameter)
def parameter_is_another_type(a):
    return a * (3 if isinstance(a, torch.nn.Parameter) else 2)


@program(A, 2, changed=lambda: (A.clone(), 2.0), then=((lambda: (A.clone(), 2), False),))
def type_of_a_number_is_guarded(a, k):
    return a * k


@program(A, True, changed=lambda: (A.clone(), False))
def flag_is_guarded(a, flag):
    return a * 2 if flag else a * 3


@program(A, "x", changed=lambda: (A.clone(), "xy"))
def string_is_guarded(a, s):
    return a * len(s)


@program(A, 5, then=((lambda: (A.clone(), 6), False), (lambda: (A.clone(), "text"), False)))
def unread_argument_is_not_guarded(a, unread):
    return a * 2


@program(make=lambda: (A.clone(), [1, 2]), changed=lambda: (A.clone(), [1, 2, 3]))
def length_of_a_list_is_guarded(a, xs):
    return a * len(xs)


@program(make=lambda: (A.clone(), [1, 2]), changed=lambda: (A.clone(), [1, 3]))
def items_of_a_list_are_guarded(a, xs):
    return a * xs[1]


@program(make=lambda: (A.clone(), [1, 2]), then=((lambda: (A.clone(), [9, 2]), False),))
def unread_items_are_not_guarded(a, xs):
    return a * xs[1]


@program(make=lambda: (A.clone(), (1, 2)), changed=lambda: (A.clone(), [1, 2]))
def type_of_a_container_is_guarded(a, xs):
    return a * len(xs), isinstance(xs, tuple)


@program(make=lambda: ({"x": A.clone(), "k": 1},), changed=lambda: ({"x": A.clone(), "k": 2},))
def dict_value_is_guarded(d):
    return d["x"] * d["k"]


@program(make=lambda: ({"x": A.clone(), "k": 1},), then=((lambda: ({"x": A.clone(), "k": 2, "new": 3},), False),))
def unread_dict_values_and_keys_are_not_guarded(d):
    return d["x"] * 2


@program(make=lambda: ({"x": A.clone()},), changed=lambda: ({"x": A.clone(), "y": 1},))
def absence_of_a_key_is_guarded(d):
    return d["x"] * (2 if "y" in d else 3)


@program(make=lambda: ({"x": 1, "y": A.clone()},), changed=lambda: ({"y": A.clone(), "x": 1},))
def order_of_keys_is_guarded_when_iterated(d):
    return [k for k in d], d["y"] + 1


@program(make=lambda: (A.clone(), OrderedDict(x=1)), changed=lambda: (A.clone(), {"x": 1}))
def type_of_a_dict_is_guarded(a, d):
    return a * d["x"], type(d).__name__


@program(
    make=lambda: (A.clone(), Config()),
    changed=lambda: (A.clone(), Config(3.0)),
    then=((lambda: (A.clone(), Config(2.0, unread=7, sizes=[5])), False),),
)
def attributes_are_guarded_when_read(a, c):
    return a * c.scale


@program(make=lambda: (A.clone(), Config()), changed=lambda: (A.clone(), Config(sizes=[1, 5])))
def nested_attributes_are_guarded(a, c):
    return a * c.sizes[1]


@program(make=lambda: (A.clone(), Layer()), changed=lambda: (A.clone(), Other()))
def class_of_an_object_is_guarded(a, layer):
    return layer.go(a)


def layer_with_own_gain():
    layer = Layer()
    layer.gain = 7.0
    return A.clone(), layer


@program(make=lambda: (A.clone(), Layer()), changed=layer_with_own_gain)
def class_attribute_hidden_by_an_instance(a, layer):
    return layer.go(a)


def layer_class_with_another_gain():
    Layer.gain = 9.0
    return A.clone(), Layer()


def layer_class_as_before():
    Layer.gain = 2.0
    return A.clone(), Layer()


@program(make=layer_class_as_before, changed=layer_class_with_another_gain)
def class_attribute_is_guarded(a, layer):
    return layer.go(a)


def layer_with_another_method():
    layer = Layer()
    layer.go = lambda x: x - 1
    return A.clone(), layer


@program(make=lambda: (A.clone(), Layer()), changed=layer_with_another_method)
def method_hidden_by_an_instance(a, layer):
    return layer.go(a)


def config_without_scale():
    c = Config()
    del c.scale
    return A.clone(), c


@program(make=lambda: (A.clone(), Config(3.0)), changed=config_without_scale)
def presence_of_an_attribute_is_guarded(a, c):
    return a * (c.__dict__["scale"] if "scale" in c.__dict__ else 10.0)


@program(make=setting(k=2.0), then=((setting(unread=2), False), (setting(k=3.0), True), (setting(k=2.0), False)))
def global_dict_entry_is_guarded(a):
    return a * SETTINGS["k"]


@program(make=setting(f=torch.sin), changed=setting(f=torch.cos))
def global_function_in_a_dict_is_guarded(a):
    return SETTINGS["f"](a)


@program(make=setting(deep={"x": [1, 2]}), changed=setting(deep={"x": [1, 3]}))
def deep_global_is_guarded(a):
    return a * SETTINGS["deep"]["x"][1]


@program(make=with_global("NUMBER", 2.0), changed=with_global("NUMBER", 3.0))
def global_number_is_guarded(a):
    return a * NUMBER


@program(make=with_global("helper", helper), changed=with_global("helper", stranger))
def global_function_is_guarded(a):
    return helper(a)


@program(make=lambda: (A.clone(), 3.0), changed=lambda: (A.clone(), 4.0))
def closure_argument_is_guarded(a, k):
    def f(x):
        return x * k

    return f(a)


def cell_of(k):
    def f(x):
        return x * k

    return f


@program(
    make=lambda: (A.clone(), cell_of(2.0)),
    changed=lambda: (A.clone(), cell_of(3.0)),
    then=((lambda: (A.clone(), cell_of(2.0)), False),),
)
def cell_content_of_an_argument_is_guarded(a, f):
    return f(a)


def with_default(k):
    def f(x, by=k):
        return x * by

    return f


@program(make=lambda: (A.clone(), with_default(2.0)), changed=lambda: (A.clone(), with_default(3.0)))
def defaults_of_an_argument_are_guarded(a, f):
    return f(a)


def default_dtype(dtype):
    """Change what the arguments are made under; the runner compares the default afterwards too."""

    def make():
        return (A.clone(), dtype)

    return make


@program(make=default_dtype(torch.float32), changed=default_dtype(torch.float64))
def dtype_argument_is_guarded(a, dtype):
    return a.to(dtype) + torch.ones(3, dtype=dtype)


@program(make=lambda: (A.clone(), torch.device("cpu")), changed=lambda: (A.clone(), torch.device("meta")))
def device_argument_is_guarded(a, device):
    return torch.ones(3, device=device).device, a + 1


@program(make=lambda: (lambda a: (a, a))(A.clone()), changed=lambda: (A.clone(), A.clone()))
def identity_of_arguments_is_guarded_when_asked(a, b):
    return a + 1 if a is b else a + b


@program(make=lambda: (A.clone(), A.clone()), changed=lambda: (lambda a: (a, a))(A.clone()))
def aliasing_matters_under_mutation(a, b):
    a.mul_(2)
    return b + 1


@program(make=lambda: (A.clone(), B.clone()), changed=lambda: (lambda a: (a, a[:1]))(A.clone()))
def overlap_matters_under_mutation(a, b):
    a.mul_(2)
    return b + 1


@program(make=lambda: ([A.clone()], [B.clone()]), changed=lambda: (lambda xs: (xs, xs))([A.clone()]))
def shared_lists_matter_under_mutation(xs, ys):
    xs.append(1)
    return ys[0] * len(ys)


@program(A, None, changed=lambda: (A.clone(), B.clone()), then=((lambda: (A.clone(), None), False),), graphs=0)
def none_is_guarded(a, mask):
    return a if mask is None else a * mask


@program(A, math.nan, then=((lambda: (A.clone(), math.nan), False),))
def nan_does_not_compile_every_time(a, x):
    return a * (0 if x != x else 1), a + 1


@program(A, 0.0, changed=lambda: (A.clone(), -0.0))
def sign_of_zero_is_a_difference(a, x):
    return a * math.copysign(1.0, x)


@program(A, 1, changed=lambda: (A.clone(), True))
def true_is_not_one(a, x):
    return a * 2 if x is True else a * 3


@program(make=lambda: (A.clone(), (1, (2, "x"))), changed=lambda: (A.clone(), (1, (2, "y"))))
def nested_tuple_is_guarded(a, t):
    return a * t[1][0], t[1][1] + "!"


@program(make=lambda: (A.clone(), {1, 2}), changed=lambda: (A.clone(), {1, 3}))
def set_is_guarded(a, s):
    return a * (2 if 2 in s else 5)


@program(make=lambda: (A.clone(), slice(0, 1)), changed=lambda: (A.clone(), slice(0, 2)))
def slice_argument_is_guarded(a, s):
    return a[s] + 1


@program(make=lambda: (A.clone(), range(3)), changed=lambda: (A.clone(), range(4)))
def range_argument_is_guarded(a, r):
    return a * len(r) + sum(r)


@program(make=lambda: (A.clone(), torch.relu), changed=lambda: (A.clone(), torch.tanh))
def torch_function_argument_is_guarded(a, f):
    return f(a)


@program(make=lambda: (A.clone(), Layer), changed=lambda: (A.clone(), Other))
def class_argument_is_guarded(a, kind):
    return kind(3.0).go(a)


def linear():
    torch.manual_seed(0)
    return (torch.nn.Linear(3, 3),)


@program(make=linear, then=((linear, False),), graphs=0)
def another_module_of_the_same_kind(m):
    return m.in_features, m.weight.shape


@program(
    A,
    0,
    recompile_limit=3,
    then=(
        (lambda: (A.clone(), "b"), True),
        (lambda: (A.clone(), "c"), True),
        (lambda: (A.clone(), "d"), True),
        (lambda: (A.clone(), "e"), False),
        (lambda: (A.clone(), "b"), False),
    ),
)
def recompile_limit_then_eager(a, k):
    return a * len(str(k)) + (1 if k == "b" else 2)


@corpus.parametrize()
def test_program(program):
    check(program)
