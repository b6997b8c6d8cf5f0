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


def test_views_share_their_shadow():
    def program(v):
        base = v * 1.1
        view = base.view(2, 2).t()
        view.mul_(3)
        base[1:3] += 0.1
        return base, view, base.detach()[::2]

    run, (base, view, strided) = follow(program, X)
    expected = D * 1.1
    expected.view(2, 2).t().mul_(3)
    expected[1:3] += 0.1
    exactly(run, base, expected)
    exactly(run, view, expected.view(2, 2).t())
    exactly(run, strided, expected[::2])


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


def test_expanded_and_overlapping_inputs_keep_their_values():
    x = torch.tensor([0.1]).expand(3)
    run, result = follow(lambda v: v * 3, x)
    exactly(run, result, torch.tensor([0.1]).double().expand(3) * 3)


def test_a_view_as_another_dtype_falls_back_to_bytes():
    run, (bits, again) = follow(
        lambda v: ((v * 1.1).view(torch.int32), (v * 1.1).view(torch.int32).view(torch.float32) * 2), X
    )
    exactly(run, bits, (X * 1.1).view(torch.int32))
    assert torch.allclose(run.lanes_of(again).exact, D * 2.2)


def test_a_write_through_another_dtype_is_taken_from_the_bytes():
    def program(v):
        y = v * 1.1
        y.view(torch.int32).add_(1)
        return y

    run, y = follow(program, X)
    exactly(run, y, y.double())


def test_writes_behind_the_run_are_noticed_only_where_they_fell():
    def program(v):
        y = v * 1.1
        y.numpy()[2] = 5.0
        return y, y * 1

    run, (_, z) = follow(program, X)
    expected = D * 1.1
    expected[2] = 5.0
    exactly(run, z, expected)


def test_complex_numbers_and_their_real_views_share_a_shadow():
    def program(v):
        c = torch.complex(v, v * 0.1)
        torch.view_as_real(c)[..., 1] *= 3
        return c, c.conj() * c, torch.view_as_real(c)

    run, (c, square, pairs) = follow(program, X)
    expected = torch.complex(D, D * 0.1 * 3)
    assert torch.allclose(run.lanes_of(c).exact, expected, rtol=1e-14)
    assert torch.allclose(run.lanes_of(square).exact, expected.conj() * expected, rtol=1e-14)
    assert torch.allclose(run.lanes_of(pairs).exact, torch.view_as_real(expected), rtol=1e-14)


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


# ---------------------------------------------------------------- noise


def spread(function, *inputs):
    run, result = follow(function, *inputs, replicas=32)
    lanes = run.lanes_of(result)
    return ((lanes.replicas.double() - lanes.exact.double()).abs() / lanes.exact.double().abs().clamp(min=1e-300)).amax(
        0
    )


@pytest.mark.parametrize(
    ("dtype", "u"), [(torch.float32, 2**-24), (torch.float16, 2**-11), (torch.bfloat16, 2**-8), (torch.float64, 2**-53)]
)
def test_one_operator_is_shaken_by_about_one_roundoff(dtype, u):
    relative = spread(torch.exp, X.to(dtype))
    assert (relative > 0.5 * u).all()
    assert (relative < 8 * u).all()  # up to 1 + 2.5 (the condition of exp), and float64's own rounding


def test_moves_and_selections_of_exact_inputs_stay_exact():
    def program(v):
        return torch.cat([v.relu(), v.flip(0), v.clamp(-1, 1), v.sort().values, v.abs(), -v, v[[2, 0]]])

    assert (spread(program, X) == 0).all()


def test_discontinuous_operators_take_exact_inputs_exactly():
    a, b = torch.tensor([1.0, 3.0]), torch.tensor([0.1, 0.3])
    for program in (
        lambda: torch.floor_divide(a, b),
        lambda: torch.remainder(a, 1.0),
        lambda: torch.div(a, b, rounding_mode="floor"),
        lambda: a >= 1.0,
        lambda: a.floor(),
        lambda: torch.fmod(a, b),
        lambda: a.argmax(),
    ):
        assert (spread(program) == 0).all()
    run, result = follow(torch.floor_divide, a, b, replicas=8)
    assert run.lanes_of(result).exact[0] == 9


def test_comparisons_of_computed_values_split_the_replicas():
    x = torch.full((64,), 0.3)
    run, result = follow(lambda v: (v + 0.1) - 0.1 >= v, x, replicas=8)
    lanes = run.lanes_of(result).replicas
    assert lanes.any()
    assert not lanes.all()


def test_small_integers_are_summed_and_multiplied_without_noise():
    x = torch.arange(12.0).view(3, 4)
    for program in (
        lambda v: v + 1,
        lambda v: v.sum(0),
        lambda v: v @ v.T,
        lambda v: v * 2 - 3,
        lambda v: v.cumsum(1),
        lambda v: (v > 3).float().sum(),
    ):
        assert (spread(program, x) == 0).all()
    assert (spread(lambda v: v.exp() + 1, x)[1:] > 0).all()


def test_cancellation_inside_a_composite_shows():
    x = torch.randn(4, 64)
    calm = spread(lambda v: nnf.layer_norm(v, (64,)), x).median()
    cancelling = spread(lambda v: nnf.layer_norm(v, (64,)), x + 1000).median()
    assert cancelling > 100 * calm


def test_long_sums_are_shaken_more_than_short_ones():
    def absolute(x):
        run, result = follow(torch.sum, x - x.flip(0), replicas=32)
        return run.lanes_of(result).replicas.abs().amax()  # the exact sum is 0

    assert absolute(torch.rand(100000)) > 1000 * absolute(torch.rand(10))


def test_rounded_lanes_hold_the_declared_dtype():
    x = torch.rand(200).half()
    run, result = follow(lambda v: v.exp().sin(), x, rounded=4)
    rounded = run.lanes_of(result).rounded
    assert torch.equal(rounded.half().double(), rounded)
    assert (rounded == result.double()).double().mean() > 0.98
    assert (run.lanes_of(result).exact != result.double()).double().mean() > 0.3


def test_one_seed_gives_one_noise():
    lanes = [run.lanes_of(y) for run, y in (follow(torch.exp, X, replicas=4, seed=s) for s in (1, 1, 2))]
    assert torch.equal(lanes[0].replicas, lanes[1].replicas)
    assert not torch.equal(lanes[0].replicas, lanes[2].replicas)


# ---------------------------------------------------------------- scalars


def test_scalars_are_taken_as_eager_takes_them():
    h = X.half()
    tenth = float(torch.tensor(0.3).half())
    run, (kept, cast, filled) = follow(
        lambda v: (v * 0.3, torch.fmod(v, 0.3), v.masked_fill(v > 1, 0.3)), torch.tensor([300.0, 2.5, 8.25]).half()
    )
    y = torch.tensor([300.0, 2.5, 8.25]).double()
    exactly(run, kept, y * 0.3)
    exactly(run, cast, torch.fmod(y, tenth))
    exactly(run, filled, torch.full((3,), tenth).double())
    run, above = follow(lambda v: v >= 0.1, torch.tensor([0.1]))
    assert run.lanes_of(above).exact.all()
    assert h.dtype == torch.float16


# ---------------------------------------------------------------- random numbers


def test_dropout_takes_eagers_mask():
    torch.manual_seed(0)
    x = torch.rand(1000) + 0.1
    for program in (lambda v: nnf.dropout(v.exp(), 0.3), lambda v: torch.native_dropout(v.exp(), 0.3, True)[0]):
        run, result = follow(program, x, replicas=2)
        lanes = run.lanes_of(result)
        assert torch.equal(lanes.exact == 0, result == 0)
        assert torch.allclose(lanes.exact, result.double(), rtol=1e-6)
        assert not torch.equal(lanes.exact, result.double())
        assert not run.untrusted


def test_pure_draws_are_every_lanes_draws():
    def program():
        return (
            torch.rand(5),
            torch.randn(5),
            torch.empty(5).uniform_(),
            torch.randint(0, 9, (5,)),
            torch.rand(5).bernoulli(),
        )

    run, draws = follow(program, replicas=2)
    for drawn in draws:
        exactly(run, drawn, drawn.double() if drawn.is_floating_point() else drawn)
        assert (run.lanes_of(drawn).replicas == run.lanes_of(drawn).exact).all()
    assert not run.untrusted


def test_a_normal_draw_with_computed_mean_moves_with_it():
    torch.manual_seed(1)
    run, drawn = follow(lambda v: torch.normal(v.exp(), 0.5), X)
    torch.manual_seed(1)
    standard = (torch.normal(X.exp(), 0.5).double() - X.exp().double()) / 0.5
    assert torch.allclose(run.lanes_of(drawn).exact, D.exp() + 0.5 * standard, rtol=1e-12)


# ---------------------------------------------------------------- what cannot be followed


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_an_operator_without_float64_kernel_is_named():
    with ShadowRun(replicas=2) as run:
        q = torch.quantize_per_tensor(X, 0.1, 0, torch.quint8)
        result = q.dequantize()
    assert run.untrusted
    assert torch.equal(run.lanes_of(result).exact, result.double())


def test_a_diagnosis_names_the_operator_that_is_another_function_in_float64():
    x = torch.tensor([1.0, float("inf")])
    run, _ = follow(lambda v: torch.nan_to_num(v * 2).add_(1).exp(), x, diagnose=True)
    assert [s.split(":")[0] for s in run.suspects] == ["aten.nan_to_num.default"]
    calm, _ = follow(lambda v: torch.softmax(v.half() @ v.half()[:, None], -1), torch.randn(3, 3)[0], diagnose=True)
    assert not calm.suspects


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


@pytest.mark.parametrize("both", [False, True])
def test_lstm_and_its_gradients_are_followed(both):
    torch.manual_seed(0)
    layers = torch.nn.LSTM(3, 4, 2, bidirectional=both)
    x = torch.randn(5, 2, 3)

    def program(v):
        out, (h, c) = layers(v)
        loss = (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)).sum() + h.sum() * c.sum()
        return out, *torch.autograd.grad(loss, list(layers.parameters()))

    run, results = follow(program, x, replicas=4)
    assert not run.untrusted
    lanes = [run.lanes_of(result) for result in results]
    layers.double()
    for lane, expected in zip(lanes, program(x.double()), strict=True):
        assert torch.allclose(lane.exact, expected, rtol=1e-9, atol=1e-12)
        assert lane.replicas.std(0).max() > 0


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


def test_as_strided_counts_in_the_storage_of_a_strided_input():
    base = torch.arange(10.0)
    with ShadowRun(replicas=2) as run:
        x = base[::2]
        x.add_(1)
        y = torch.as_strided_copy(x, (3,), (2,))
        z = torch.as_strided_copy(base[1:], (3,), (2,), 1)
    assert not run.untrusted
    for real in (y, z):
        assert torch.equal(run.lanes_of(real).exact, real.double())
