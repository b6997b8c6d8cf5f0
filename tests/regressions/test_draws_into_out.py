"""Draws into `out=` of another dtype: they were made in another and converted, also where eager refuses."""

import pytest
import torch

import plumbline

CALLS = {
    "normal_int64": (lambda out: torch.normal(torch.zeros(3), torch.ones(3), out=out), torch.int64, 3),
    "normal_float64": (lambda out: torch.normal(torch.zeros(3), torch.ones(3), out=out), torch.float64, 3),
    "normal": (lambda out: torch.normal(torch.zeros(3), torch.ones(3), out=out) + 1, torch.float32, 3),
    "multinomial_float64": (lambda out: torch.multinomial(torch.ones(4), 2, out=out), torch.float64, 2),
    "multinomial": (lambda out: torch.multinomial(torch.ones(4), 2, out=out), torch.int64, 2),
    "bernoulli_float64": (lambda out: torch.bernoulli(torch.full((4,), 0.5), out=out), torch.float64, 4),
    "rand_float64": (lambda out: torch.rand(4, out=out), torch.float64, 4),
    "rand_resized": (lambda out: torch.rand(4, out=out), torch.float64, 0),
    "randint_float64": (lambda out: torch.randint(0, 9, (4,), out=out), torch.float64, 4),
}


def result_of(function, dtype, size):
    """Return the result or the type of the error, the memory given for it, and the generator's state."""
    torch.manual_seed(0)
    out = torch.zeros(size, dtype=dtype)
    try:
        result = function(out)
    except Exception as error:
        result = type(error)
    return result, out, torch.get_rng_state()


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", CALLS)
def test_draws_are_eagers(name, backend):
    function, dtype, size = CALLS[name]
    result, out, state = result_of(function, dtype, size)
    compiled, compiled_out, compiled_state = result_of(plumbline.compile(function, backend=backend), dtype, size)
    if isinstance(result, type):
        assert compiled is result
    else:
        assert compiled.dtype == result.dtype
        assert torch.equal(compiled, result)
    assert torch.equal(compiled_out, out)
    assert torch.equal(compiled_state, state)
