"""Copies of a call's inputs are what the inputs are, and a run on them changes nothing outside."""

import torch

from plumbline.compiler.comparison.private_inputs import GeneratorStates, leaving_no_trace, private_inputs


def test_strides_sharing_and_leaves_are_kept():
    base = torch.arange(24.0).reshape(4, 6)
    leaf = torch.ones(3, requires_grad=True)
    grown = leaf * 2
    arguments = (base.t(), base[1:3], 5, leaf, grown, base.t(), torch.ones(1).expand(4))
    copies = private_inputs(arguments)
    for copy, original in zip(copies.arguments, arguments, strict=True):
        if isinstance(original, torch.Tensor):
            assert copy.stride() == original.stride()
            assert (copy.requires_grad, copy.is_leaf) == (original.requires_grad, original.is_leaf)
            assert torch.equal(copy, original)
            assert copy.untyped_storage().data_ptr() != original.untyped_storage().data_ptr()
    first, second = copies.arguments[:2]
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    assert len(copies.leaves) == 2
    first.zero_()
    assert bool((second == 0).all())
    assert base[1, 1] == 7
    gradients = torch.autograd.grad((copies.arguments[3] * copies.arguments[4]).sum(), copies.leaves)
    assert torch.equal(gradients[0], torch.full((3,), 2.0))
    assert torch.equal(gradients[1], torch.ones(3))


def test_modes_generators_and_hooks_stay():
    calls = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: calls.append(t) or t, lambda t: t):
        state = torch.get_rng_state()
        with leaving_no_trace(GeneratorStates.now(())):
            torch.rand(3)
            torch.ones(3, requires_grad=True).exp()
            torch.set_grad_enabled(False)
        assert torch.is_grad_enabled()
        assert torch.equal(torch.get_rng_state(), state)
    assert calls == []
