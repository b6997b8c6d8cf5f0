"""The gradient of a sign is zeros that no sum records: asked for alone, it did not exist, where eager gives zeros."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "sgn": lambda x: (torch.lerp(x, torch.sgn(x), -1.0), torch.sgn(x)),
    "sgn that both need": lambda x: (lambda sign: (torch.lerp(x, sign, -1.0), sign))(torch.sgn(x)),
    "sgn beside a product": lambda x: (x * 2, torch.sgn(x), x.sin()),
    "sign": lambda x: (x * torch.sign(x), torch.sign(x)),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_result_has_its_gradient(name, dynamic, backend):
    program = PROGRAMS[name]
    compiled = plumbline.compile(program, backend=backend, dynamic=dynamic)
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for place in range(len(program(x))):
        ours, eagers = (
            torch.autograd.grad(call(x)[place].sum(), x, allow_unused=True)[0] for call in (compiled, program)
        )
        assert ours is not None
        torch.testing.assert_close(ours, eagers)
