"""`module.name = 1` where a submodule, parameter or buffer took that name since the last call: torch refuses it."""

import pytest
import torch

import plumbline

TAKEN = {
    "module": lambda net: setattr(net, "extra", torch.nn.Identity()),
    "parameter": lambda net: net.register_parameter("extra", torch.nn.Parameter(torch.ones(1))),
    "buffer": lambda net: net.register_buffer("extra", torch.ones(1)),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_the_second_call_is_refused_as_in_plain_python(kind):
    def outcomes(wrap):
        net = torch.nn.Module()

        def step(x):
            net.extra = 1
            return x + 1

        call = wrap(step)
        results = [call(torch.ones(1)).item()]
        del net.extra
        TAKEN[kind](net)
        try:
            results.append(call(torch.ones(1)).item())
        except TypeError as error:
            results.append(str(error))
        return results

    assert outcomes(lambda step: plumbline.compile(step, backend="eager")) == outcomes(lambda step: step)
