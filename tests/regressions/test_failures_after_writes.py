"""A graph that wrote, drew or counted and then failed on data left that behind, and its error passed the handlers."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]
every_backend = pytest.mark.parametrize("backend", BACKENDS)


@every_backend
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("first", [1, 7])
def test_a_write_before_a_bad_index(backend, dynamic, first):
    def looks_up(x, index):
        x.add_(1)
        try:
            return x[index]
        except IndexError:
            return "caught"

    compiled = plumbline.compile(looks_up, backend=backend, dynamic=dynamic)
    x = torch.zeros(3)
    for count, place in enumerate((first, 1, 7, 2, 7), start=1):
        result = compiled(x, torch.tensor([place]))
        assert result == "caught" if place == 7 else result.item() == count
        assert torch.equal(x, torch.full((3,), float(count)))
        assert x._version == count


@every_backend
def test_a_value_of_the_wrong_shape(backend):
    def stores(x, values):
        x.mul_(2)
        try:
            x[[0]] = values
        except RuntimeError:
            return "caught"
        return "stored"

    compiled = plumbline.compile(stores, backend=backend)
    x = torch.ones(3, 2)
    assert compiled(x, torch.zeros(1, 5)) == "caught"
    assert torch.equal(x, torch.full((3, 2), 2.0))
    assert compiled(x, torch.zeros(1, 2)) == "stored"


@every_backend
@pytest.mark.parametrize(
    "refused",
    [lambda mask: mask.mul_(3), lambda mask: mask.round(), lambda mask: mask.long().mul_(0.5), torch.Tensor.hypot_],
    ids=["mul_", "round", "mul_ on whole numbers", "hypot_"],
)
def test_dtypes_that_the_kernel_refuses(backend, refused):
    def writes(x, mask):
        x.add_(1)
        try:
            refused(mask, *([mask] if refused is torch.Tensor.hypot_ else []))
        except RuntimeError:
            return "caught"
        return "done"

    compiled = plumbline.compile(writes, backend=backend)
    x, mask = torch.zeros(3), torch.tensor([True, False, True])
    assert compiled(x, mask) == "caught"
    assert torch.equal(x, torch.ones(3))
    assert mask.tolist() == [True, False, True]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.calls = 0

    def forward(self, x, index):
        self.calls += 1
        self.seen += x.shape[0]
        y = self.dropout(self.norm(x))
        self.last = y.detach()
        try:
            return y[index].sum()
        except IndexError:
            self.calls += 100
            return y.sum()


@every_backend
@pytest.mark.parametrize("dynamic", [False, True])
def test_buffers_statistics_and_counters_of_a_module(backend, dynamic):
    torch.manual_seed(3)
    plain, other = Counting(), Counting()
    other.load_state_dict(plain.state_dict())
    compiled = plumbline.compile(other, backend=backend, dynamic=dynamic)
    for step, place in enumerate((1, 99, 2, 99)):
        x = torch.randn(5 + step % 2, 4)
        results = []
        for model in (plain, compiled):
            torch.manual_seed(step)
            loss = model(x, torch.tensor([place]))
            loss.backward()
            results.append((loss.detach(), torch.rand(2)))
        torch.testing.assert_close(*results)
        assert plain.calls == other.calls
        torch.testing.assert_close(plain.last, other.last)
        torch.testing.assert_close(dict(other.named_buffers()), dict(plain.named_buffers()))
        for left, right in zip(plain.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(left.grad, right.grad)


DRAWING = {
    "dropout": functional.dropout,
    "attention": lambda x: functional.scaled_dot_product_attention(
        x.view(1, 4, 3), x.view(1, 4, 3), x.view(1, 4, 3), dropout_p=0.5
    ).view(12),
    "gamma": torch._standard_gamma,
    "random_": lambda x: torch.empty_like(x).random_(5),
    "binomial": lambda x: torch.binomial(torch.full_like(x, 9.0), torch.full_like(x, 0.5)),
    "lstm": nn.LSTM(12, 12, num_layers=2, dropout=0.5),
    "gru": nn.GRU(12, 12, num_layers=2, dropout=0.5),
    "normalize, which draws nothing": lambda x: functional.normalize(x, dim=0),
}


@every_backend
@pytest.mark.parametrize("name", DRAWING)
def test_draws_and_counts_before_a_bad_index(backend, name):
    log, draw = [], DRAWING[name]

    def looks_up(x, index):
        log.append("before")
        drawn = draw(x.view(1, 12))[0].view(12) if isinstance(draw, nn.RNNBase) else draw(x)
        return torch.index_select(drawn, 0, index)

    compiled = plumbline.compile(looks_up, backend=backend)
    x = torch.rand(12) + 0.5
    for function in (looks_up, compiled, compiled):
        torch.manual_seed(1)
        with pytest.raises((IndexError, RuntimeError), match=r"out of range|out of bounds"):
            function(x, torch.tensor([70]))
        after = torch.rand(2)
        torch.manual_seed(1)
        function(x, torch.tensor([7]))
        assert torch.equal(after, torch.rand(2))
    assert log == ["before"] * 6


@every_backend
def test_a_generator_of_its_own(backend):
    def draws(x, index, generator):
        return torch.bernoulli(x, generator=generator)[index]

    compiled = plumbline.compile(draws, backend=backend)
    own, other = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    x = torch.full((6,), 0.5)
    for place in (1, 9, 2, 9):
        for function, generator in ((compiled, own), (draws, other)):
            try:
                function(x, torch.tensor([place]), generator)
            except IndexError:
                assert place == 9
        assert torch.equal(own.get_state(), other.get_state())


@every_backend
def test_an_input_that_takes_a_history(backend):
    """What is undone is the history too: the tensor is what it was, and then what eager makes of it."""

    def scales(x, weight, index):
        x.mul_(weight)
        try:
            return x[index].sum()
        except IndexError:
            return x.sum()

    compiled = plumbline.compile(scales, backend=backend)
    for base in (lambda w: torch.ones(3), lambda w: w * 2, lambda w: torch.ones(4)[1:]):
        found = []
        for function in (scales, compiled, compiled):
            weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
            x = base(weight)
            function(x, weight, torch.tensor([8])).backward()
            found.append((weight.grad, x.detach(), x.requires_grad, x.is_leaf))
        assert found[0][2:] == found[1][2:] == found[2][2:]
        torch.testing.assert_close(found[0][:2], found[1][:2])
        torch.testing.assert_close(found[0][:2], found[2][:2])


@every_backend
def test_data_of_a_parameter_and_a_captured_backward(backend):
    def trains(weight, x, index):
        weight.data.mul_(2)
        loss = (weight * x).sum()
        loss.backward()
        try:
            return (weight.detach() * x)[index]
        except IndexError:
            return "caught"

    compiled = plumbline.compile(trains, backend=backend)
    plain, other = (torch.ones(3, requires_grad=True) for _ in range(2))
    for place in (0, 9, 1, 9):
        x = torch.arange(3.0)
        for function, weight in ((trains, plain), (compiled, other)):
            assert (function(weight, x, torch.tensor([place])) == "caught") is (place == 9)
        torch.testing.assert_close(plain.grad, other.grad)
        torch.testing.assert_close(plain.data, other.data)


@every_backend
def test_an_error_inside_a_captured_backward(backend):
    """The backward of a determinant divides by nothing; anomaly is the program's own matter."""

    def trains(matrix, counter):
        counter.add_(1)
        try:
            torch.linalg.inv(matrix).sum().backward()
        except RuntimeError as error:
            return type(error).__name__
        return "done"

    compiled = plumbline.compile(trains, backend=backend)
    counter = torch.zeros(())
    matrix = torch.eye(2).mul_(2).requires_grad_()
    assert compiled(matrix, counter) == "done"
    assert compiled(torch.zeros(2, 2, requires_grad=True), counter) == "_LinAlgError"
    assert compiled(matrix, counter) == "done"
    assert counter.item() == 3
    assert torch.equal(matrix.grad, torch.full((2, 2), -0.5))


@every_backend
def test_after_breaks_and_in_nested_handlers(backend):
    def part(x, index, log):
        x.add_(1)
        log.append("part")
        try:
            with torch.no_grad():
                return x[index]
        finally:
            log.append("left")

    def whole(x, index, log):
        y = functional.dropout(x * 1.0)
        plumbline.graph_break()
        try:
            z = part(x, index, log)
            plumbline.graph_break()
            return part(x, index + 1, log) + z + y.sum() * 0
        except IndexError as error:
            log.append(str(error)[:5])
            x.mul_(2)
            return torch.rand(1)

    compiled = plumbline.compile(whole, backend=backend)
    for place in (0, 2, 9, 1, 2, 9):
        results = []
        for function in (whole, compiled):
            torch.manual_seed(place)
            x, log = torch.zeros(3), []
            results.append((function(x, torch.tensor([place]), log), x, torch.rand(1), log, torch.is_grad_enabled()))
        assert results[0][3:] == results[1][3:]
        torch.testing.assert_close(results[0][:3], results[1][:3])


@every_backend
def test_a_graph_with_an_assumption(backend):
    def checked(x, index):
        y = functional.dropout(x)
        if not (x > 0).all():
            raise ValueError("negative")
        try:
            return y[index]
        except IndexError:
            return torch.rand(2)

    compiled = plumbline.compile(checked, backend=backend)
    for sign, place in ((1, 1), (1, 9), (-1, 9), (-1, 1), (1, 9)):
        results = []
        for function in (checked, compiled):
            torch.manual_seed(2)
            try:
                result = function(torch.ones(3) * sign, torch.tensor([place]))
            except ValueError as error:
                result = str(error)
            results.append((result, torch.rand(2)))
        if sign < 0:
            assert results[1][0] == "negative"
            results = [result[1] for result in results]
        torch.testing.assert_close(*results)


def test_what_cannot_fail_is_not_saved():
    """An optimizer's step after a loss saves nothing once it has run; statistics before an index are saved."""
    from plumbline.compiler.graph.effects.undo import effects_of

    found = []

    def backend(gm, inputs):
        found.append(effects_of(gm))
        return gm.forward

    weight = torch.ones(3, requires_grad=True)

    def step(x, target):
        loss = functional.cross_entropy((x * weight)[None], target)
        (gradient,) = torch.autograd.grad(loss, [weight])
        with torch.no_grad():
            weight.sub_(gradient)

    plumbline.compile(step, backend=backend)(torch.ones(3), torch.tensor([1]))
    assert found[0].may_fail
    assert len(found[0].written) == 1
    assert found[0].at_risk == ()


def test_an_error_of_a_users_backend_is_still_seen():
    """It is not the program's: nothing runs in its place, and nothing stays changed."""

    def backend(gm, inputs):
        def run(*args):
            gm.forward(*args)
            raise ZeroDivisionError("of the backend")

        return run

    x = torch.zeros(3)
    with pytest.raises(ZeroDivisionError, match="of the backend"):
        plumbline.compile(lambda x: x.add_(1), backend=backend)(x)
    assert torch.equal(x, torch.zeros(3))


@every_backend
def test_strict_shows_the_programs_error_to_its_handlers(backend):
    def looks_up(x, index):
        try:
            return x[index] * 2
        except IndexError:
            return "caught"

    compiled = plumbline.compile(looks_up, backend=backend, options={"strict": True})
    assert compiled(torch.ones(3), torch.tensor([8])) == "caught"


@every_backend
@pytest.mark.parametrize("grad", [False, True])
def test_an_error_of_a_call_whose_result_nobody_reads(backend, grad):
    """The call was dropped as dead code, and the error with it."""

    def checked(x, index):
        x[index]
        torch.linalg.cholesky(torch.eye(2) * (5.5 - index))
        return x * 2

    compiled = plumbline.compile(checked, backend=backend)
    x = torch.ones(8, requires_grad=grad)
    assert compiled(x, torch.tensor([1])).sum() == 16
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([9]))
    with pytest.raises(torch.linalg.LinAlgError):
        compiled(x, torch.tensor([6]))


@every_backend
def test_dynamic_sizes_where_autograd_refuses_the_backward(backend):
    """The refusal was an error of ours: words for it ask for a size by an operator of the script language."""

    def overwrites(x, weight):
        y = x * weight
        x.mul_(2)
        return y.sum()

    compiled = plumbline.compile(overwrites, backend=backend, dynamic=True, options={"strict": True})
    x, weight = torch.ones(2, 3), torch.ones(3, requires_grad=True)
    loss = compiled(x, weight)
    assert torch.equal(x, torch.full((2, 3), 2.0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
