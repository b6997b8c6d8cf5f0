"""Shadow memory: views, aliases and writes are followed through storages."""

import torch

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


def test_the_imaginary_part_of_a_conjugate_has_the_lanes_of_the_part():
    def program(v):
        return torch.complex(v, v.sin()).conj().imag, torch.complex(v, v.sin()).conj().imag.clone()

    run, (view, copy) = follow(program, X)
    assert torch.allclose(run.lanes_of(view).exact, -D.sin(), rtol=1e-14)
    assert torch.allclose(run.lanes_of(copy).exact, -D.sin(), rtol=1e-14)


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
