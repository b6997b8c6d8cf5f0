"""What an instance has of its class without being bound to it was given as a method of the instance.

So `parameter.__new__` was a function of C, and `[].__new__.__self__` the list. Methods of tensors were named as they
were looked up, but torch has several names for one function.
"""

import types

import pytest
import torch

import plumbline

OBJECTS = {
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "tensor": torch.ones(2),
    "list": [1],
    "tuple": (1,),
    "dict": {1: 2},
    "set": {1},
    "text": "ab",
    "bytes": b"ab",
    "int": 5,
    "float": 5.5,
    "iterator": iter([1]),
}
OF_EVERY_KIND = {"__new__", "__init_subclass__", "__subclasshook__", "__class_getitem__"}
NAMES = {kind: sorted(OF_EVERY_KIND & set(dir(each))) for kind, each in OBJECTS.items()}
NAMES["parameter"] += [
    "__torch_function__",
    "__torch_dispatch__",
    "_make_subclass",
    "__abs__",
    "__rtruediv__",
    "__pow__",
]
NAMES["tensor"] += ["__torch_function__", "__ipow__", "__pos__", "__deepcopy__"]
NAMES["dict"] += ["fromkeys", "get"]
NAMES["text"] += ["maketrans", "upper"]
NAMES["bytes"] += ["fromhex"]
NAMES["int"] += ["from_bytes", "__trunc__"]
NAMES["float"] += ["fromhex"]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_what_the_class_has(kind, name):
    owner = OBJECTS[kind]

    def program(x):
        found = getattr(owner, name)
        owned = getattr(found, "__self__", "nothing")
        return x + 1, type(found), owned is owner, type(owned), getattr(found, "__name__", None)

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager")(x)[1:] == program(x)[1:]


def test_a_parameter_made_of_a_parameter():
    def program(x):
        parameter = torch.nn.Parameter(x)
        made = parameter.__new__(torch.nn.Parameter, x * 2)
        return isinstance(parameter.__new__, types.FunctionType), type(made), made.detach()

    x = torch.ones(2)
    given, expected = plumbline.compile(program, backend="eager")(x), program(x)
    assert given[:2] == expected[:2]
    assert torch.equal(given[2], expected[2])
