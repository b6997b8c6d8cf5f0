"""The noise meter: digits that are really lost, at the lines that lose them."""

import math
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from plumbline.oracle import NoiseMeter, measure_noise

FULL = -math.log10(2.0**-24)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def uniform(*shape, seed=0):
    return torch.rand(*shape, generator=generator(seed))


def only(report):
    (output,) = report.outputs
    return output


def by_source(output):
    return {line.source: line for line in output.lines}


def test_a_program_that_only_moves_numbers_keeps_all_digits():
    output = only(measure_noise(lambda x: x[::2].flip(0).clone() * 2, uniform(10)))
    assert (output.digits, output.units, output.error, output.lines) == (output.digits_of_dtype, 0.0, 0.0, ())


def test_cancellation_is_told_from_the_rounding_that_it_shows():
    def shifted(x):
        y = x + 1e8
        return y - 1e8

    output = only(measure_noise(shifted, uniform(10)))
    lines = by_source(output)
    assert output.digits == 0
    add, subtract = lines["y = x + 1e8"], lines["return y - 1e8"]
    assert add.introduced == pytest.approx(1)
    assert add.lost < 0.1
    assert add.does == "introduces"
    assert subtract.introduced == pytest.approx(0, abs=1e-6)
    assert subtract.passing == pytest.approx(1)
    assert subtract.lost > 7
    assert subtract.amplification > 1e7
    assert subtract.does.startswith("amplifies")
    assert output.lines[0] is subtract


def test_one_minus_cosine_loses_what_its_condition_says():
    x = torch.full((1000,), 1e-2) * (1 + uniform(1000))
    output = only(measure_noise(lambda x: 1 - torch.cos(x), x))
    assert 2 < output.digits < 4
    assert output.lines[0].amplification == pytest.approx(float((2 / (x.double() ** 2)).mean()), rel=1)


def test_variance_by_the_mean_of_squares():
    def variance(x):
        square = (x * x).mean()
        mean = x.mean() ** 2
        return square - mean

    output = only(measure_noise(variance, 100 + uniform(1000)))
    truth = (100 + uniform(1000)).double().var(correction=0)
    assert output.exact == pytest.approx(float(truth), rel=1e-9)
    assert output.lines[0].source == "return square - mean"
    assert output.lines[0].lost > 3
    assert by_source(output)["square = (x * x).mean()"].operators == ("mul", "mean")


def test_a_compensated_sum_keeps_what_a_naive_one_loses():
    def naive(x):
        total = x.new_zeros(())
        for value in x:
            total = total + value
        return total

    def compensated(x):
        total, rest = x.new_zeros(()), x.new_zeros(())
        for value in x:
            part = value - rest
            new = total + part
            rest = (new - total) - part
            total = new
        return total

    x = uniform(2000)
    first, second = only(measure_noise(naive, x)), only(measure_noise(compensated, x))
    assert first.units > 2
    assert second.units <= 1
    assert by_source(first)["total = total + value"].calls == 2000


def test_the_line_is_the_users_and_modules_have_their_path():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)
            self.rest = nn.Sequential(nn.GELU(), nn.LayerNorm(8))

        def forward(self, x):
            return self.rest(self.first(x))

    torch.manual_seed(0)
    output = only(measure_noise(Block(), uniform(4, 8)))
    assert {line.module for line in output.lines} == {"Block.first", "Block.rest.0", "Block.rest.1"}
    assert {line.source for line in output.lines} == {"return self.rest(self.first(x))"}
    assert {line.file for line in output.lines} == {__file__}


def test_gradients_are_outputs_and_backward_lines_are_those_of_the_forward():
    torch.manual_seed(0)
    model = nn.Linear(8, 4)

    def loss(x):
        hidden = model(x).exp()
        return hidden.sum().log()

    report = NoiseMeter(gradients=True).measure(loss, uniform(5, 8).requires_grad_())
    paths = [output.path for output in report.outputs]
    assert paths[1:3] == ["gradient of model.weight", "gradient of model.bias"]
    assert paths[3:] == ["gradient of argument[0]"]
    weight = report.outputs[1]
    assert any(line.backward and line.source == "hidden = model(x).exp()" for line in weight.lines)
    assert model.weight.grad is None


def test_a_backward_inside_the_program_is_measured():
    torch.manual_seed(0)
    model = nn.Linear(8, 4)

    def step(model, x):
        loss = model(x).square().mean()
        loss.backward()
        return loss

    report = measure_noise(step, model, uniform(5, 8))
    assert [output.path for output in report.outputs] == ["output", "gradient of weight", "gradient of bias"]
    assert all(output.explained == pytest.approx(1, rel=1e-6) for output in report.outputs)


def test_low_precision_and_autocast_name_the_casts():
    torch.manual_seed(0)
    model = nn.Linear(64, 64)

    def program(x):
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model(x)
        return hidden.float().sum(1)

    output = only(measure_noise(program, uniform(16, 64)))
    line = by_source(output)["hidden = model(x)"]
    assert "to_copy" in line.operators
    assert line.weight > 0.9
    assert output.digits < 4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_has_fewer_digits_to_lose(dtype):
    output = only(measure_noise(lambda x: (x * x).sum(0), uniform(64, 8).to(dtype)))
    assert output.digits_of_dtype < 4
    assert output.explained == pytest.approx(1, rel=0.05)


def test_writes_in_place_and_views_are_followed():
    def program(x):
        table = torch.zeros(4, 6)
        table[1:3].copy_(x.exp())
        row = table[2]
        row.mul_(3.1)
        table[:, 1] += row[0]
        table[0] = table[2].expand(4, 6)[3]
        return table.T, row

    report = measure_noise(program, uniform(2, 6))
    assert len(report.outputs) == 2
    for output in report.outputs:
        assert 0 < output.error < 1e-6
        assert output.explained == pytest.approx(1, rel=1e-6)


def test_overlapping_reads_add_up():
    def program(x):
        windows = x.exp().unfold(0, 4, 1)
        return (windows * 0.3).sum(1).as_strided((3, 5), (1, 1)) + 0

    output = only(measure_noise(program, uniform(20)))
    assert output.explained == pytest.approx(1, rel=1e-6)
    assert sum(line.introduced for line in output.lines) == pytest.approx(1, rel=1e-9)


def test_a_write_around_torch_is_seen():
    def program(x):
        y = x.exp()
        y.numpy()[:] = 2.0
        return y * 3.0

    assert only(measure_noise(program, uniform(5))).error == 0.0


def test_rounding_that_takes_another_branch_is_told():
    def program(x):
        y = x * 3.3 / 3.3
        return torch.where(y >= x, y, y + 1)

    output = only(measure_noise(program, uniform(1000)))
    line = output.lines[0]
    assert line.source == "return torch.where(y >= x, y, y + 1)"
    assert "another branch" in line.does
    assert output.explained < 0.1


def test_overflow_is_told_at_its_line():
    def program(x):
        big = torch.exp(x)
        return torch.log(big)

    output = only(measure_noise(program, torch.tensor([1.0, 100.0])))
    assert output.digits == 0
    assert output.not_finite == 1
    assert by_source(output)["big = torch.exp(x)"].overflows == 1


def test_an_overflow_beside_rounding_is_counted_once():
    def program(x):
        big = torch.exp(x)
        return big / 3

    output = only(measure_noise(program, torch.tensor([0.3, 1.7, 2.9, 100.0])))
    line = by_source(output)["big = torch.exp(x)"]
    assert line.weight > 0
    assert line.overflows == 1


def test_dropout_takes_the_programs_draw():
    torch.manual_seed(0)
    output = only(measure_noise(lambda x: functional.dropout(x.exp(), 0.5) + 0.1, uniform(100)))
    assert output.digits > 7
    assert output.explained == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_programs_without_gradients(mode):
    with mode():
        output = only(measure_noise(lambda x: x.exp().sum(), uniform(100)))
    assert output.explained == pytest.approx(1, rel=1e-6)


def test_the_program_runs_once_and_as_it_does_alone():
    calls = []

    def program(x):
        calls.append(1)
        return torch.randn(3) + x.sin()

    torch.manual_seed(0)
    alone = program(uniform(3))
    torch.manual_seed(0)
    report = measure_noise(program, uniform(3))
    assert len(calls) == 2
    assert torch.equal(report.result, alone)


def test_what_cannot_be_followed_is_said():
    report = measure_noise(lambda x: x * x.exp().sum().item(), uniform(3))
    assert "a number is read from a tensor" in report.untrusted[0]


def test_operators_in_float64_count_as_exact_and_that_is_said():
    report = measure_noise(lambda x: x.exp().double().log(), uniform(3))
    assert report.untrusted == ("operators in float64 count as exact",)
    assert 0 < only(report).error < 1e-6
    assert measure_noise(lambda x: x.exp().double(), uniform(3)).untrusted == ()


def test_the_meter_is_not_heard_or_seen():
    class Counting(TorchFunctionMode):
        seen = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen += 1
            return func(*args, **(kwargs or {}))

    def program(x):
        return (x.to(torch.complex64) * 1j).real.exp().sum()

    with warnings.catch_warnings(), Counting() as alone:
        warnings.simplefilter("error")
        program(uniform(3))
    with warnings.catch_warnings(), Counting() as measured:
        warnings.simplefilter("error")
        measure_noise(program, uniform(3))
    assert measured.seen == alone.seen
    assert torch.get_default_dtype() == torch.float32


def test_results_of_any_form_have_their_path():
    report = measure_noise(lambda x: {"a": [x.sin(), 1], "b": (x.int(), x.cos())}, uniform(3))
    assert [output.path for output in report.outputs] == ["output['a'][0]", "output['b'][1]"]


def test_only_the_worst_outputs_are_traced():
    report = NoiseMeter(traced=1).measure(lambda x: (x.exp(), (x + 100) - 100), uniform(3))
    assert [bool(output.lines) for output in report.outputs] == [False, True]
    assert report.worst is report.outputs[1]


def test_an_error_of_the_program_is_raised():
    with pytest.raises(ZeroDivisionError):
        measure_noise(lambda: 1 / 0)
