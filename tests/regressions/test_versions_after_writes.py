"""How often an input was written to counts in its `_version` as in plain Python."""

import pytest
import torch

from plumbline.compiler import api

BACKENDS = ["eager", "aot_eager", "inductor"]


def augmented(x):
    x[:] += 1


def twice(x):
    x.add_(1)
    x[0].mul_(2)
    x.view(-1).zero_()


def uncounted(x):
    x.data.add_(1)
    x.data.mul_(2)


def once(x):
    x.add_(1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [augmented, twice, uncounted, once])
def test_versions(backend, function):
    versions = []
    for run in (function, api.compile(function, backend=backend)):
        x = torch.ones(3)
        found = []
        for _ in range(2):
            run(x)
            found.append(x._version)
        versions.append(found)
    assert versions[0] == versions[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_written_twice_and_differentiated(backend):
    def function(x, w):
        y = (w * 2).sin()
        x.add_(y).mul_(w)
        return x * w

    gradients = []
    for run in (function, api.compile(function, backend=backend)):
        w = torch.ones(3, requires_grad=True)
        x = torch.ones(3)
        run(x, w).sum().backward()
        gradients.append((w.grad, x._version))
    torch.testing.assert_close(gradients[1][0], gradients[0][0])
    assert gradients[1][1] == gradients[0][1]
