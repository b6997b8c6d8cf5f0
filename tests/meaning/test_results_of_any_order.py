"""Operators that lay out their result in a way of their own where operands do not lie row by row."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.torch_facts import FakeTensorMode
from plumbline.compiler.graph.shapes.shape_rules import fake_result
from plumbline.compiler.graph.tracer import fake_like

aten = torch.ops.aten
LAYOUTS = [
    ((5, 4), (1, 5)), ((5, 1), (1, 5)), ((1, 4), (1, 1)), ((1, 4), (0, 1)), ((5, 4), (0, 0)), ((5, 4), (8, 2)),
    ((0, 4), (1, 1)), ((5, 0), (3, 7)), ((1, 1), (0, 0)),
]  # fmt: skip
IMAGES = [((2, 4, 3, 4), (48, 1, 16, 4)), ((2, 1, 4, 4), (1, 8, 2, 24)), ((1, 4, 3, 4), (0, 0, 0, 0))]


def calls(x, gradient):
    """Yield calls on a tensor of two dimensions and a gradient of its sizes."""
    rows, columns = x.shape
    yield aten._log_softmax.default, (x, -1, False)
    yield aten._softmax.default, (x, 0, False)
    yield aten.tril.default, (x,)
    yield aten.triu.default, (x, 1)
    yield from ((aten.rot90.default, (x, turns, [0, 1])) for turns in range(4))
    yield aten.native_layer_norm.default, (x, [columns], None, None, 1e-5)
    statistics = (torch.zeros(rows, 1), torch.ones(rows, 1))
    weight = torch.ones(columns)
    yield aten.native_layer_norm_backward.default, (gradient, x, [columns], *statistics, weight, weight, [True] * 3)
    yield aten.hardtanh_backward.default, (gradient, x, -1, 1)
    yield aten.leaky_relu_backward.default, (gradient, x, 0.1, False)
    yield aten.log_sigmoid_backward.default, (gradient, x, x.clone())
    yield aten._prelu_kernel_backward.default, (gradient, x, torch.ones(1, 1))


def image_calls(x):
    yield aten.upsample_bilinear2d.default, (x, [5, 5], True)
    for gradient in (x, x.contiguous()):
        yield (
            aten.native_batch_norm_backward.default,
            (
                *(gradient, x, None, None, None, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
                *(True, 1e-5, [True, False, False]),
            ),
        )
        if x.shape[1] > 1:
            yield aten.glu_backward.default, (gradient[:, :2], x, 1)


def strides(result):
    parts = result if isinstance(result, tuple) else (result,)
    return [part.stride() for part in parts if isinstance(part, torch.Tensor)]


def promised_strides(operator, arguments):
    mode = FakeTensorMode()
    fakes = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in arguments]
    with mode:
        return strides(fake_result(operator, fakes, {}))


@pytest.mark.parametrize(("shape", "steps"), LAYOUTS)
def test_rows_lie_as_was_promised(shape, steps):
    x = torch.zeros(200).as_strided(shape, steps)
    for gradient in (torch.ones(()).expand(shape), torch.ones(shape), torch.ones(shape[::-1]).t()):
        for operator, arguments in calls(x, gradient):
            assert promised_strides(operator, arguments) == strides(operator(*arguments)), operator


@pytest.mark.parametrize(("shape", "steps"), IMAGES)
def test_images_lie_as_was_promised(shape, steps):
    for operator, arguments in image_calls(torch.zeros(200).as_strided(shape, steps)):
        assert promised_strides(operator, arguments) == strides(operator(*arguments)), operator


def test_nothing_is_folded_and_resized():
    """torch's rules divide by what there is none of, or refuse a number that is no truth value."""
    for operator, arguments in (
        (aten.col2im.default, (torch.zeros(0, 6, 9), [5, 5], [2, 3], [1, 2], [1, 2], [2, 2])),
        (aten.upsample_nearest2d.default, (torch.zeros(0, 3, 4, 4), [2, 2])),
    ):
        assert promised_strides(operator, arguments) == strides(operator(*arguments)), operator


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (5, 3)])
def test_compiled_results_of_transposed_rows(shape):
    def program(x):
        return x.log_softmax(-1), x.tril(), torch.nn.functional.layer_norm(x, (x.shape[-1],))

    x = torch.randn(shape).t()
    compiled = plumbline.compile(program, backend="inductor")
    assert [part.stride() for part in compiled(x)] == [part.stride() for part in program(x)]
