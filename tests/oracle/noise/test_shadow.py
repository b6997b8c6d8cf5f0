import copy
import warnings

import pytest
import torch
import torch.nn.functional as nnf

from plumbline.oracle.noise.shadow import ShadowRun


def follow(function, *inputs, **options):
    with ShadowRun(**options) as run:
        result = function(*inputs)
    return run, result


def exactly(run, tensor, expected):
    """Assert that the exact lane holds the float64 value `expected`."""
    assert torch.equal(run.lanes_of(tensor).exact, expected), (run.lanes_of(tensor).exact, expected)


X = torch.tensor([0.1, 0.7, -1.3, 2.5])
D = X.double()


# ---------------------------------------------------------------- the exact lane


def test_the_run_itself_is_eager():
    x = torch.randn(6, 6)
    _, result = follow(lambda v: nnf.gelu(v @ v).softmax(-1), x, replicas=3, rounded=2)
    assert torch.equal(result, nnf.gelu(x @ x).softmax(-1))


def test_exact_lane_is_the_program_in_float64():
    run, result = follow(lambda v: (v * 3 + v.exp()).sum(), X)
    exactly(run, result, (D * 3 + D.exp()).sum())
    assert run.lanes_of(result).exact.dtype == torch.float64


def test_integers_and_booleans_are_followed_in_their_own_dtype():
    run, (above, place, whole) = follow(lambda v: (v * v > 0.5, (v * v).argmax(), (v * 10).long()), X)
    for value, expected in ((above, D * D > 0.5), (place, (D * D).argmax()), (whole, (D * 10).long())):
        assert run.lanes_of(value).exact.dtype == value.dtype
        exactly(run, value, expected)


def test_dtype_arguments_widen_and_integer_division_is_float64():
    run, (mean, quotient) = follow(
        lambda v: (v.half().mean(dtype=torch.float32), torch.arange(1, 4) / torch.tensor([3, 3, 7])), X
    )
    exactly(run, mean, D.mean())
    exactly(run, quotient, torch.arange(1, 4).double() / torch.tensor([3, 3, 7]))


def test_writes_to_an_argument_are_followed_through_its_aliases():
    x = X.clone()
    alias = x[1:]
    run, _ = follow(lambda v: v.exp_().add_(1), x)
    exactly(run, alias, (D.exp() + 1)[1:])


def test_out_arguments_and_foreach_are_followed():
    out = torch.empty(4)
    run, _ = follow(lambda v: torch.mul(v, 1.7, out=out), X)
    exactly(run, out, D * 1.7)
    a, b = X.clone(), X.clone()
    run, _ = follow(lambda p, q: torch._foreach_add_([p, q], [p * 0.3, q * 0.7]), a, b)
    exactly(run, b, D + D * 0.7)


def test_an_untouched_tensor_is_itself():
    run, _ = follow(lambda v: v + 1, X, replicas=2)
    lanes = run.lanes_of(torch.ones(2))
    assert not lanes.known
    assert lanes.replicas.shape == (2, 2)
    assert run.lanes_of(X).known


# ---------------------------------------------------------------- transforms and modes


def test_gradients_inside_the_run_have_lanes():
    leaf = X.clone().requires_grad_()

    def program(v):
        loss = nnf.silu(v * v).sum()
        return torch.autograd.grad(loss, v)[0]

    run, gradient = follow(program, leaf, replicas=4)
    double = D.clone().requires_grad_()
    (expected,) = torch.autograd.grad(nnf.silu(double * double).sum(), double)
    assert torch.allclose(run.lanes_of(gradient).exact, expected, rtol=1e-12)
    assert run.lanes_of(gradient).replicas.std(0).max() > 0


def test_backward_accumulates_into_grad():
    leaf = X.clone().requires_grad_()

    def program(v):
        (v * 1.1).sum().backward()
        (v * v).sum().backward()
        return v.grad

    run, grad = follow(program, leaf)
    assert torch.allclose(run.lanes_of(grad).exact, 1.1 + 2 * D, rtol=1e-15)


def test_gradients_that_stand_for_zeros_are_followed():
    leaf = X.clone().requires_grad_()

    def program(v):
        return torch.autograd.grad(v.to(torch.complex64).sgn().abs().sum(), v)[0]

    run, gradient = follow(program, leaf, replicas=2)
    assert run.lanes_of(gradient).exact.shape == gradient.shape


def test_ties_of_a_maximum_survive_noise_in_its_gradient():
    leaf = torch.tensor([1.0, 3.0, 3.0, 2.0], requires_grad=True)
    for program in (
        lambda v: v.exp().amax(),
        lambda v: torch.linalg.vector_norm(v.exp(), float("inf")),
        lambda v: v.exp().new_zeros(1).scatter_reduce(0, torch.zeros(4, dtype=torch.long), v.exp(), "amax"),
    ):
        run, gradient = follow(lambda v, p=program: torch.autograd.grad(p(v).sum(), v)[0], leaf, replicas=4)
        assert torch.isfinite(run.lanes_of(gradient).replicas).all()


def test_noise_does_not_push_an_exact_argument_out_of_the_domain():
    run, result = follow(lambda v: torch.acos(v), torch.tensor([1.0, -1.0]), replicas=16)
    assert torch.isfinite(run.lanes_of(result).replicas).all()


def test_functional_transforms_are_followed():
    per_row = torch.func.vmap(torch.func.grad(lambda v: (v.sin() * 0.1).sum()))
    run, result = follow(per_row, X.view(2, 2))
    exactly(run, result, per_row(X.view(2, 2).double()))


@pytest.mark.parametrize(
    "context", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)]
)
def test_ambient_modes_reach_the_real_run_and_not_the_lanes(context):
    w = torch.randn(4, 4)

    def program(v):
        with context():
            y = v.view(1, 4) @ w
            y += 1
        return y

    run, result = follow(program, X, replicas=2)
    assert result.dtype == program(X).dtype
    exactly(run, result, D.view(1, 4) @ w.double() + 1)


def test_default_dtype_warnings_and_generators_stay_untouched():
    torch.manual_seed(5)
    follow(lambda v: torch.rand(3) + v[:3], X, replicas=8, rounded=4)
    state = torch.get_rng_state()
    torch.manual_seed(5)
    torch.rand(3)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_default_dtype() == torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        follow(lambda v: v.std(), torch.ones(3), replicas=2)


def test_an_error_of_the_program_is_the_programs():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), ShadowRun():
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert torch.get_default_dtype() == torch.float32


# ---------------------------------------------------------------- rounded lanes


def test_rounded_lanes_hold_the_declared_dtype():
    x = torch.rand(200).half()
    run, result = follow(lambda v: v.exp().sin(), x, rounded=4)
    rounded = run.lanes_of(result).rounded
    assert torch.equal(rounded.half().double(), rounded)
    assert (rounded == result.double()).double().mean() > 0.98
    assert (run.lanes_of(result).exact != result.double()).double().mean() > 0.3


# ---------------------------------------------------------------- what cannot be followed


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_an_operator_without_float64_kernel_is_named():
    with ShadowRun(replicas=2) as run:
        q = torch.quantize_per_tensor(X, 0.1, 0, torch.quint8)
        result = q.dequantize()
    assert run.untrusted
    assert torch.equal(run.lanes_of(result).exact, result.double())


def test_a_custom_operator_runs_once_and_is_named():
    calls = []

    @torch.library.custom_op("plumbline_test::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * 2

    run, result = follow(counted, X, replicas=4)
    assert len(calls) == 1
    assert any("counted" in reason for reason in run.untrusted)
    exactly(run, result, result.double())


def test_control_flow_on_a_rounding_decision_is_reported():
    x = torch.full((1,), 0.3)

    def program(v, offset):
        return v * 2 if bool(((v + 0.1) - 0.1 + offset >= v).any()) else v * 3

    assert follow(program, x, 0.0, replicas=8)[0].unstable_control_flow
    assert not follow(program, x, 0.5, replicas=8)[0].unstable_control_flow


def test_a_shape_decided_by_rounding_is_reported():
    x = torch.full((64,), 0.3)
    run, result = follow(lambda v: v[(v + 0.1) - 0.1 >= v], x, replicas=8)
    assert run.unstable_control_flow
    exactly(run, result, result.double())


def test_training_updates_parameters_and_statistics_in_the_lanes():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 1))
    twin = copy.deepcopy(model).double()
    x = torch.randn(16, 6)

    def step(network, v):
        optimiser = torch.optim.AdamW(network.parameters(), lr=0.01)
        network(v).square().mean().backward()
        optimiser.step()

    run, _ = follow(lambda v: step(model, v), x, replicas=2)
    step(twin, x.double())
    assert not run.untrusted
    # a first Adam step is lr * g / |g|: where g is tiny (the bias before a batch norm), it is rounding's
    for name in ("0.weight", "1.running_var", "3.weight"):
        lanes = run.lanes_of(model.state_dict()[name])
        assert torch.allclose(lanes.exact, twin.state_dict()[name], rtol=1e-6)


def test_a_neighbour_carries_the_noise_of_its_argument():
    """Every lane took eager's bytes, so that an ulp of a variance was seventeen times the noise of its neighbour."""
    from plumbline.oracle import check

    x = torch.randn(65, generator=torch.Generator().manual_seed(0))

    def program(x):
        variance = torch.var(x)
        return torch.nextafter(variance, variance)

    def other(x):
        variance = torch.var(x)
        return torch.nextafter(variance, variance + 1)

    assert not check(program, (x,), compiled=other).failed
    assert check(program, (x,), compiled=lambda x: program(x) * (1 + 2e-6)).failed
    assert check(lambda x: torch.nextafter(x, x + 1), (x,), compiled=lambda x: x.clone()).failed
