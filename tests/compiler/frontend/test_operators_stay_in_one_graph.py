"""A call of an operator is one graph, with sizes known: those that break it are listed, each with a reason."""

import itertools
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import plumbline
from plumbline.compiler.base.errors import Unsupported
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS
from support.torch_release import since_release

PARTS = 4
_TABLE = tomllib.loads((Path(__file__).parent / "operators_that_break.toml").read_text())
_WHOLE = [row["whole_since"] for row in _TABLE.values() if "whole_since" in row]
LISTED = {name for row in _TABLE.values() for name in row["operators"]}
LISTED -= {name for each in _WHOLE if since_release(each["release"]) for name in each["operators"]}


def unseeded(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """Call an operator without a seed of its own: setting one is a break, and no part of the operator."""
    return operator(*args, **kwargs)


def as_own_code(operator: Any) -> Any:
    """Return a function of torch's tests as code of a program: what torch's own packages hold is not captured."""
    if not isinstance(operator, types.FunctionType) or not operator.__module__.startswith("torch.testing"):
        return operator
    names = {**operator.__globals__, "__name__": __name__, "wrapper_set_seed": unseeded}
    own = types.FunctionType(operator.__code__, names, operator.__name__, operator.__defaults__, operator.__closure__)
    own.__kwdefaults__ = operator.__kwdefaults__
    own.__module__ = __name__
    return own


def rank(sample: Any) -> int:
    tensors = [x for x in pytree.tree_leaves((sample.input, sample.args)) if isinstance(x, torch.Tensor)]
    return max((x.dim() for x in tensors), default=0)


def breaks(info: Any) -> bool:
    samples = list(itertools.islice(info.sample_inputs("cpu", torch.float32), 6))
    for sample in sorted(samples, key=rank, reverse=True)[:2]:
        operator, kwargs = as_own_code(info.op), sample.kwargs

        def call(first: Any, *args: Any, operator: Any = operator, kwargs: Any = kwargs) -> Any:
            return operator(first, *args, **kwargs)

        try:
            plumbline.compile(call, backend="eager", fullgraph=True)(sample.input, *sample.args)
        except Unsupported:
            return True
        except Exception:  # as eager refuses the sample
            continue
    return False


@pytest.mark.parametrize("part", range(PARTS))
def test_only_listed_operators_break_a_graph(part: int) -> None:
    infos = [info for info in OPERATORS.values() if info.supports_dtype(torch.float32, "cpu")]
    chosen = [info for info in infos[part::PARTS] if not info.name.startswith("jiterator")]
    names = {info.full_name: info for info in chosen}
    found = {name for name, info in names.items() if breaks(info)}
    assert found == LISTED & set(names)
