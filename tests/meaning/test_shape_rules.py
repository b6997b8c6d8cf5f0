"""What a trace says of results, against the kernels: dtypes and shapes of the normalisation operators on the CPU."""

import itertools

import pytest
import torch
from torch.utils._pytree import tree_leaves

from plumbline.compiler.base.torch_facts import FakeTensorMode
from plumbline.compiler.graph.shapes.shape_rules import _RULES, fake_result
from plumbline.compiler.graph.tracer import fake_like
from support.torch_release import since_release

aten = torch.ops.aten
HALVES = [torch.bfloat16, torch.float16]
# The first tested release whose own rule is right: the correction serves older ones, and goes with the last of them.
MENDED_IN = {aten._weight_norm_interface.default: "2.15"}
DTYPES = [*itertools.product(HALVES, [None, torch.float32]), (torch.float32, None), (torch.float64, None)]


def calls(dtype: torch.dtype, parameters: torch.dtype):
    """Yield (operator, arguments), with parameters and without, with statistics of the parameters' dtype."""
    x = torch.rand(4, 6, 5).to(dtype)
    mean, variance = torch.rand(2, 6).to(parameters)
    for weight in (torch.rand(6).to(parameters), None):
        for training in (True, False):
            arguments = (x, weight, weight, mean, variance, training, 0.1, 1e-5)
            for operator in (aten.native_batch_norm, aten._native_batch_norm_legit):
                yield operator.default, arguments
            yield aten._native_batch_norm_legit_functional.default, arguments
        yield aten._native_batch_norm_legit.no_stats, (x, weight, weight, True, 0.1, 1e-5)
        if weight is not None:  # else torch's rule raises
            yield aten._batch_norm_no_update.default, (x, weight, weight, mean, variance, 0.1, 1e-5)
            yield aten._batch_norm_with_update.default, (x, weight, weight, mean, variance, 0.1, 1e-5)
            yield aten._batch_norm_with_update_functional.default, (x, weight, weight, mean, variance, 0.1, 1e-5)
        yield aten.native_group_norm.default, (x, weight, weight, 4, 6, 5, 3, 1e-5)
        last = None if weight is None else weight[:5]
        yield aten.native_layer_norm.default, (x, [5], last, last, 1e-5)
    weight = torch.rand(6).to(parameters)
    _, center, scale = aten.native_group_norm(x, weight, weight, 4, 6, 5, 3, 1e-5)
    backward = (x, x, center, scale, weight, 4, 6, 5, 3, [True] * 3)
    yield aten.native_group_norm_backward.default, backward
    yield aten._weight_norm_interface.default, (x[0], x[0, :, :1].contiguous(), 0)


def promise(operator, arguments):
    mode = FakeTensorMode()
    fakes = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in arguments]
    with mode:
        return [(value.dtype, value.shape) for value in tree_leaves(fake_result(operator, fakes, {}))]


@pytest.mark.parametrize(("dtype", "parameters"), DTYPES, ids=str)
def test_results_are_what_was_promised(dtype: torch.dtype, parameters: torch.dtype | None) -> None:
    seen = set()
    for operator, arguments in calls(dtype, parameters or dtype):
        real = tree_leaves(operator(*[a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]))
        assert promise(operator, arguments) == [(value.dtype, value.shape) for value in real], operator
        seen.add(operator)
    assert seen == set(_RULES)


def test_torch_still_needs_each_correction() -> None:
    needless = set(_RULES)
    for dtype, parameters in itertools.product(HALVES, [*HALVES, torch.float32]):
        if parameters not in (dtype, torch.float32):
            continue
        for operator, arguments in calls(dtype, parameters):
            mode = FakeTensorMode()
            fakes = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in arguments]
            with mode:
                plain = [value.dtype for value in tree_leaves(operator(*fakes))]
            if plain != [found for found, _ in promise(operator, arguments)]:
                needless.discard(operator)
    assert needless == {operator for operator, release in MENDED_IN.items() if since_release(release)}


@pytest.mark.parametrize("dtypes", itertools.product([torch.float16, torch.float32, torch.float64], repeat=2))
def test_huber_loss_has_the_dtype_of_its_input(dtypes):
    x, target = (torch.ones(3, dtype=dtype) for dtype in dtypes)
    arguments = (x, target, 0, 1.0)
    assert promise(aten.huber_loss.default, arguments) == [(aten.huber_loss.default(*arguments).dtype, x.shape)]
