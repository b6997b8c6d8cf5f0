"""An element is no finding where eager's own is off by more than half as much: few replicas take a rare branch."""

import pytest
import torch

from plumbline.oracle.numeric.noise_units import measured


@pytest.mark.parametrize(("eager_units", "units", "is_found"), [(6.0, 9.9, False), (6.0, 14.0, True), (1.0, 9.9, True)])
def test_one_element(eager_units, units, is_found):
    generator = torch.Generator().manual_seed(0)
    exact = torch.ones(400, dtype=torch.float64)
    replicas = exact + 1e-4 * torch.randn(8, 400, generator=generator, dtype=torch.float64)
    eager, actual = exact.float(), exact.float()
    unit = float(measured(actual, eager, exact, replicas)[0].sigma[7])
    eager[7] += eager_units * unit
    actual[7] += units * unit
    assert (measured(actual, eager, exact, replicas)[1].t_element > 1) is is_found
