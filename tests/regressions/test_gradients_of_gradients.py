"""A Hessian of a compiled function was zero: its gradients did not lead back to what they depend on."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported
from support.torch_release import SAVED_TENSORS_ARE_READ_ONE_BY_ONE


def program(x, y):
    return (x * y).sin() + x.exp()


@pytest.fixture(params=["aot_eager", "inductor"])
def compiled(request):
    return plumbline.compile(program, backend=request.param)


def inputs():
    return torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)


def test_a_hessian_is_eagers(compiled):
    x, y = inputs()
    mine, expected = (
        torch.autograd.functional.hessian(lambda x, call=call: call(x, y).sum(), x) for call in (compiled, program)
    )
    torch.testing.assert_close(mine, expected)


@pytest.mark.parametrize("which", [0, 1, "both", "intermediate", "tangent"])
def test_gradients_lead_back_to_what_they_depend_on(which, compiled):
    x, y = inputs()
    between = x * 2
    tangent = torch.ones(3, requires_grad=True)
    asked = {0: [x], 1: [y], "both": [x, y], "intermediate": [between], "tangent": [tangent]}[which]
    mine, expected = (
        torch.autograd.grad(
            torch.autograd.grad(call(between, y), x, tangent, create_graph=True)[0].sum(), asked, retain_graph=True
        )
        for call in (compiled, program)
    )
    torch.testing.assert_close(mine, expected)


def test_a_gradient_penalty_after_a_break(compiled):
    del compiled

    def penalised(x, weight):
        hidden = torch.tanh(x @ weight)
        positive = hidden[hidden > 0]  # of a size that only the data knows
        (gradient,) = torch.autograd.grad((hidden * hidden).sum(), hidden, create_graph=True)
        return gradient.norm() + positive.numel()

    found = []
    for call in (penalised, plumbline.compile(penalised, backend="aot_eager")):
        torch.manual_seed(0)
        x, weight = torch.randn(4, 3), torch.randn(3, 3, requires_grad=True)
        call(x, weight).backward()
        found.append(weight.grad)
    torch.testing.assert_close(found[1], found[0])


def test_results_that_share_an_input_given_as_its_view(compiled):
    x = torch.randn(3, requires_grad=True)
    mine, expected = (
        torch.autograd.functional.hessian(lambda x, call=call: call(x, x.view(3)).sum(), x)
        for call in (compiled, program)
    )
    torch.testing.assert_close(mine, expected)


def test_sizes_that_change():
    compiled = plumbline.compile(lambda x, n: (x * n).sin() * x.shape[0], backend="aot_eager", dynamic=True)
    for size, number in ((3, 2), (4, 5), (5, 7)):
        x = torch.randn(size, requires_grad=True)
        mine = torch.autograd.functional.hessian(lambda x, number=number: compiled(x, number).sum(), x)
        torch.testing.assert_close(mine, torch.diag(-((x * number).sin()) * number**2 * size).detach())


@pytest.mark.parametrize("state", ["as it was", "written to", "gone"])
def test_inputs_that_changed_or_are_gone_are_refused(state):
    def shifted(x, shift):
        return (x + shift).exp()

    compiled = plumbline.compile(shifted, backend="aot_eager")
    x, shift = torch.randn(3, requires_grad=True), torch.ones(3)
    value = compiled(x, shift)
    if state == "gone":
        del shift
    elif state == "written to":
        shift.add_(1)
    (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    if state == "as it was":
        gradient.sum().backward()
        torch.testing.assert_close(x.grad, value.detach())
        return
    with pytest.raises(Unsupported, match="gradient of a compiled graph's gradient"):
        gradient.sum().backward()


def test_what_cannot_run_twice_is_refused():
    def twice(x, total):
        total.add_(1)
        return x.exp() * total

    x = torch.randn(3, requires_grad=True)
    compiled = plumbline.compile(twice, backend="aot_eager")
    (gradient,) = torch.autograd.grad(compiled(x, torch.zeros(3)).sum(), x, create_graph=True)
    with pytest.raises(Unsupported, match="gradient of a compiled graph's gradient"):
        gradient.sum().backward()


def test_one_pass_with_create_graph_is_eagers(compiled):
    x, y = inputs()
    (gradient,) = torch.autograd.grad(compiled(x, y).sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad(program(x, y).sum(), x)
    torch.testing.assert_close(gradient, expected)
    other = torch.randn(3, requires_grad=True)
    ((one,), (none,)) = (
        torch.autograd.grad((gradient.detach() * other).sum(), other),
        torch.autograd.grad((gradient * other).sum(), other, retain_graph=True)[:1],
    )
    torch.testing.assert_close(one, none)


def two_independent(x, y, z):
    return x.sin(), (y * 2).exp_() * z


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_inputs_of_other_results_may_be_gone(backend):
    """Neither the inputs nor the results of the second part are needed again, and one of them was even written to."""

    def second_derivative(call):
        x, y, z = (torch.full((3,), 0.5, requires_grad=True) for _ in range(3))
        first, other = call(x, y, z)
        with torch.no_grad():
            z.add_(1)
        del y, z, other
        (gradient,) = torch.autograd.grad(first, x, torch.ones(3), create_graph=True)
        return torch.autograd.grad(gradient.sum(), x)[0]

    compiled = plumbline.compile(two_independent, backend=backend)
    if not SAVED_TENSORS_ARE_READ_ONE_BY_ONE:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            second_derivative(compiled)
        return
    torch.testing.assert_close(second_derivative(compiled), second_derivative(two_independent))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_an_input_that_backward_keeps_is_not_gone(backend):
    """Code between two compiled parts hands on a tensor that nobody else holds."""

    def second_derivative(call):
        x, y = (torch.full((3,), 0.5, requires_grad=True) for _ in range(2))
        (gradient,) = torch.autograd.grad(call(x * 2, y).sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.sum(), (x, y))

    compiled = plumbline.compile(lambda x, y: x.sin() * y, backend=backend)
    torch.testing.assert_close(second_derivative(compiled), second_derivative(lambda x, y: x.sin() * y))


def test_what_cannot_run_again_is_refused_although_a_result_was_overwritten():
    x = torch.ones(3, requires_grad=True)
    y = torch.ones(3, requires_grad=True)
    compiled = plumbline.compile(lambda x, y, n: ((x * 2).exp() + n.add_(1), y.exp().exp()), backend="aot_eager")
    first, second = compiled(x, y, torch.zeros(3))
    with torch.no_grad():
        second.add_(1)
    refusal = (
        pytest.raises(Unsupported, match="gradient of a compiled graph's gradient")
        if SAVED_TENSORS_ARE_READ_ONE_BY_ONE
        else pytest.raises(RuntimeError, match="modified by an inplace operation")
    )
    with refusal:
        torch.autograd.grad(first.sum(), x, create_graph=True)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_draws_are_repeated(backend):
    """A penalty on the gradients of a critic with dropout; what is drawn after it is what eager draws."""

    def program(x):
        return (torch.nn.functional.dropout(x, 0.5) * x + torch.nn.functional.rrelu(x, training=True)).sin()

    def penalty(call):
        torch.manual_seed(5)
        x = torch.linspace(-2, 2, 32).requires_grad_()
        result = call(x)
        torch.rand(3)
        (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.pow(2).sum(), x)[0], torch.rand(3)

    torch.testing.assert_close(penalty(plumbline.compile(program, backend=backend)), penalty(program))


WRITES = {
    "beside the result": (lambda count, x: (count[:2].fill_(2.0), x**3)[1], True),
    "of what the result reads": (lambda count, x: x**3 * count.add_(1), False),
    "of the result": (lambda count, x: count.copy_((y := x**3).detach()) is None or y, False),
    "beside a result that draws": (lambda count, x: (count.add_(1), torch.dropout(x**3, 0.5, True))[1], False),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(("program", "runs"), WRITES.values(), ids=WRITES)
def test_a_write_is_not_done_twice(program, runs, backend):
    def penalised(call):
        count, x = torch.zeros(3), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        (gradient,) = torch.autograd.grad(call(count, x).sum(), x, create_graph=True)
        gradient.square().sum().backward()
        return count, x.grad

    call = plumbline.compile(program, backend=backend)
    if runs:
        torch.testing.assert_close(penalised(call), penalised(program))
    else:
        with pytest.raises(Unsupported, match="gradient of a compiled graph's gradient"):
            penalised(call)
