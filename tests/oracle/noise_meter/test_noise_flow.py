"""The flow of noise: what the operators round, carried to an output by derivatives, is its whole measured error."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from plumbline.oracle import NoiseMeter, measure_noise

# Smooth operators of one or two matrices [6, 6]: what rounding does to them is linear but for its square.
ONE = {
    "exp": lambda x: torch.exp(x * 0.1),
    "tanh": torch.tanh,
    "softmax": lambda x: torch.softmax(x, 1),
    "log": lambda x: torch.log(x.square() + 1),
    "norm": lambda x: functional.layer_norm(x, (6,)),
    "mean": lambda x: x - x.mean(0),
    "cumsum": lambda x: x.cumsum(1) * 0.3,
    "transpose": lambda x: x.T,
    "roll": lambda x: x.roll(1, 0),
    "shift": lambda x: (x + 1000) - 1000,
    "silu": functional.silu,
    "sort": lambda x: x.flip(0)[:, [5, 0, 3, 3, 1, 2]],
    "row": lambda x: x[2].expand(6, 6) * 0.7 + x,
    "in place": lambda x: x.clone().mul_(1.7).add_(0.3),
    "slice": lambda x: x.clone().index_add_(0, torch.tensor([1, 1, 4]), x[:3]),
    "half": lambda x: x.to(torch.bfloat16).float(),
}
TWO = {
    "add": torch.add,
    "mul": torch.mul,
    "matmul": lambda x, y: x @ y * 0.3,
    "div": lambda x, y: x / (y.square() + 1),
    "linear": lambda x, y: functional.linear(x, y) * 0.2,
    "copy": lambda x, y: torch.cat([x[:3], y[3:]]).contiguous(),
}
STEPS = st.lists(
    st.tuples(st.sampled_from([*ONE, *TWO]), st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12
)
SMOOTH = STEPS.filter(lambda steps: all(name != "half" for name, _, _ in steps))


def played(steps, x):
    """Return the last of the values that the steps make, each from earlier ones."""
    values = [x]
    for name, first, second in steps:
        left, right = values[first % len(values)], values[second % len(values)]
        values.append(ONE[name](left) if name in ONE else TWO[name](left, right))
    return values[-1]


def start():
    return torch.randn(6, 6, generator=torch.Generator().manual_seed(0))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SMOOTH)
def test_roundings_add_up_to_the_measured_error(steps):
    (output,) = measure_noise(played, steps, start()).outputs
    if output.lines:
        assert output.explained == pytest.approx(1, rel=1e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(STEPS)
def test_what_lines_introduce_adds_up_to_the_whole(steps):
    (output,) = measure_noise(played, steps, start()).outputs
    if output.lines:
        assert sum(line.introduced for line in output.lines) == pytest.approx(1, rel=1e-8)
        assert sum(line.weight for line in output.lines) == pytest.approx(1, rel=1e-8)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(SMOOTH)
def test_the_error_is_that_against_the_program_in_float64(steps):
    (output,) = measure_noise(played, steps, start()).outputs
    real, exact = played(steps, start()).double(), played(steps, start().double())
    assert output.error == pytest.approx(float((real - exact).norm() / exact.norm()), rel=1e-6, abs=1e-14)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(SMOOTH)
def test_roundings_add_up_in_gradients(steps):
    report = NoiseMeter(gradients=True).measure(lambda x: played(steps, x).square().sum(), start().requires_grad_())
    for output in report.outputs:
        if output.lines:
            assert output.explained == pytest.approx(1, rel=1e-6), output.path


def test_an_operator_without_a_derivative_introduces_what_passes():
    def program(x):
        y = x * 1.1
        return (
            torch.nextafter(y, torch.zeros(6))
            if x.numel() < 6
            else torch.ops.aten._cdist_forward(y, y + 0.3, 3.0, None)
        )

    (output,) = measure_noise(program, start()).outputs
    assert sum(line.introduced for line in output.lines) == pytest.approx(1, rel=1e-8)


@pytest.mark.parametrize("norm", [lambda: nn.BatchNorm2d(4), lambda: nn.GroupNorm(2, 4)], ids=["batch", "group"])
def test_saved_statistics_carry_noise_of_their_own(norm):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), norm(), nn.GELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))
    report = NoiseMeter(gradients=True, traced=20).measure(model, torch.randn(5, 2, 6, 6))
    assert len(report.outputs) > 4
    for output in report.outputs:
        if output.lines and output.digits > 1:  # before a batch norm, a bias has no gradient but rounding
            assert output.explained == pytest.approx(1, rel=1e-6), output.path


def test_a_recurrent_layer_and_attention():
    torch.manual_seed(0)
    layer, attention = nn.LSTM(4, 8, batch_first=True), nn.MultiheadAttention(8, 2, batch_first=True)

    def program(x):
        hidden, _ = layer(x)
        return attention(hidden, hidden, hidden)[0].square().sum()

    for output in NoiseMeter(gradients=True, traced=20).measure(program, torch.randn(2, 3, 4)).outputs:
        if output.lines:
            assert output.explained == pytest.approx(1, rel=1e-5), output.path


def test_noise_of_complex_numbers():
    def program(x):
        waves = torch.fft.fft(x.to(torch.complex64) * (0.3 + 0.7j))
        return (
            (waves.conj() * waves).real.sqrt(),
            torch.view_as_real(waves),
            (waves * 1.1).angle(),
            torch.fft.hfft2(waves),
        )

    for output in measure_noise(program, start()).outputs:
        assert output.explained == pytest.approx(1, rel=1e-6)
