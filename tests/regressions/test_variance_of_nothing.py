"""Found by `sweep operators`: a variance of no elements was 0 with a negative correction, nan in eager."""

import pytest
import torch

import plumbline


def variances(x):
    return torch.var(x, dim=None, correction=-5), torch.std(x, 0, correction=-1), torch.var_mean(x, 0, correction=-2)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_variance_of_no_elements_is_nan(backend: str) -> None:
    x = torch.empty(0, 3)
    torch.testing.assert_close(
        plumbline.compile(variances, backend=backend)(x), variances(x), rtol=0, atol=0, equal_nan=True
    )
