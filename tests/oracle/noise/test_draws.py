"""Random operators in a shadow run: every lane takes what eager drew."""

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


def test_rrelu_draws_in_training_only():
    """Outside training its noise is memory that nobody has written, which the lanes once read."""
    torch.manual_seed(0)
    for options, slopes in ((), (11 / 48, 11 / 48)), ((0.25, 0.5), (0.375, 0.375)), ((0.25, 0.5, True), (0.25, 0.5)):
        run, result = follow(lambda v, options=options: nnf.rrelu(v, *options), X)
        exact = run.lanes_of(result).exact
        assert torch.equal(exact[X > 0], D[X > 0])
        assert slopes[0] <= (exact / D)[X <= 0].item() <= slopes[1] + 1e-9
        assert torch.allclose(exact, result.double(), rtol=1e-6)
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
