"""The written list of rules: complete, and no two of them answer for the same callable."""

import ast
import builtins
import collections
import datetime
import functools
import importlib
import itertools
import operator
import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import torch
from torch.autograd import Function

import plumbline.compiler.values
from plumbline.compiler.values.rule_tables import CALL_RULES, calls, wraps_type
from plumbline.compiler.values.rules import CALL_FAMILIES, RULE_MODULES, call_rule
from plumbline.compiler.values.torch.autograd_functions import native_apply_rule

FOLDER = Path(plumbline.compiler.values.__path__[0])
REGISTERING = {
    "calls",
    "constructs",
    "string_method",
    "tensor_attribute",
    "tensor_method",
    "tensor_setter",
    "wraps_type",
}
MODULES = (
    "bisect builtins collections copy datetime enum functools heapq inspect itertools json logging math numpy "
    "numpy.linalg numpy.random operator os os.path random re statistics string textwrap threading time torch "
    "torch.distributed.distributed_c10d torch.distributed._functional_collectives "
    "torch.autograd torch.compiler torch.fft torch.func torch.jit torch.linalg torch.nn.functional torch.nn.init "
    "torch.onnx torch.random torch.special torch.utils.checkpoint types typing"
).split()
CLASSES = (
    *(kind for kind in vars(builtins).values() if isinstance(kind, type)),
    collections.Counter,
    collections.OrderedDict,
    collections.defaultdict,
    collections.deque,
    datetime.date,
    datetime.datetime,
    itertools.chain,
    torch.Tensor,
    torch.Size,
    torch.dtype,
    torch.device,
    numpy.ndarray,
    numpy.float32,
)


@functools.singledispatch
def dispatching(value):
    return value


def made_by_hand() -> Iterator[object]:
    """Yield callables that no namespace holds."""
    yield itertools.chain.from_iterable
    yield dict.fromkeys
    yield collections.OrderedDict.fromkeys
    yield dispatching.dispatch
    yield Iterator.__subclasses__
    yield from (torch.func.vmap(torch.sin), torch.func.grad(torch.sum), torch.func.jacrev(torch.sin))
    pattern = re.compile("a")
    yield from (pattern.match, pattern.finditer, pattern.scanner, pattern.sub)
    yield from ((1).bit_length, "a".join, b"a".decode, (1, 2).index, frozenset().union, int.mro)
    yield torch.compiler.allow_in_graph(lambda x: x)
    yield torch.compiler.assume_constant_result(lambda: 1)
    yield importlib.import_module("torch._higher_order_ops.map").map
    yield torch.Tensor.shape.__get__
    yield Function.apply
    yield random.Random.uniform
    yield mark_static
    yield DynamoConfigPatchProxy.__enter__


def mark_static(tensor, dimension=None):
    """Stand for stock's mark, which is known by its module and name."""


class DynamoConfigPatchProxy:
    """Stands for stock's block of settings, which is known by module and name of its two ends."""

    def __enter__(self):
        """Do nothing."""


mark_static.__module__ = DynamoConfigPatchProxy.__enter__.__module__ = "torch._dynamo.decorators"


def callables() -> dict[int, object]:
    """Return every callable that programs are likely to name, by id."""
    spaces = [vars(importlib.import_module(name)) for name in MODULES]
    spaces += [vars(kind) for kind in CLASSES]
    named = [value for space in spaces for value in space.values() if callable(value)]
    return {id(value): value for value in (*named, *made_by_hand())}


CALLABLES = callables()


def test_no_two_families_answer_for_one_callable():
    assert len(CALLABLES) > 3000
    answering = {
        repr(function): [family.__name__ for family in CALL_FAMILIES if family(function) is not None]
        for function in CALLABLES.values()
    }
    assert {name: families for name, families in answering.items() if len(families) > 1} == {}


@pytest.mark.parametrize("family", CALL_FAMILIES, ids=lambda family: family.__name__)
def test_every_family_answers_for_something(family):
    in_python = family is native_apply_rule and isinstance(vars(Function)["apply"], classmethod)
    if in_python:  # torch has its `apply` in Python here; tests/regressions/test_apply_written_in_c.py has one in C
        return
    assert any(family(function) is not None for function in CALLABLES.values())


def registers(path: Path) -> bool:
    """Return whether a file enters rules in a table: it calls one of the registering functions as it is imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return bool(used & REGISTERING)


def test_every_module_that_registers_is_in_the_list():
    listed = {Path(module.__file__).resolve() for module in RULE_MODULES}
    registering = {path.resolve() for path in FOLDER.rglob("*.py") if registers(path)}
    families = {FOLDER / "library" / name for name in ("single_dispatch.py", "twin_calls.py")}
    assert listed == registering | {path.resolve() for path in families}


def test_a_second_rule_for_one_callable_is_refused():
    with pytest.raises(AssertionError):
        calls(operator.not_)(lambda ctx, args, kwargs: args[0])
    with pytest.raises(AssertionError):
        wraps_type(list)(lambda ctx, value, source: None)


def test_table_comes_before_families():
    assert call_rule(operator.not_) is CALL_RULES[id(operator.not_)][1]
    assert call_rule(object()) is None
