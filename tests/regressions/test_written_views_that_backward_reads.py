"""A result that is a view of what backward reads shares its version: a write to it ends the backward, as in eager.

Results were given a counter of their own where the graph makes them by a view, and backward read what the program had
written: a wrong gradient, and no error.
"""

import itertools

import pytest
import torch

import plumbline

READ = {
    "softmax": lambda x: torch.softmax(x, 0),
    "exp": torch.exp,
    "tanh": torch.tanh,
    "sqrt of sum": lambda x: (x * x + 1).sqrt(),
    "product": lambda x: (x + 1) * (x + 2),
}
SEEN = {
    "itself": lambda v: v,
    "view": lambda v: v.view(-1),
    "unsqueeze, select": lambda v: v[None][0],
    "transpose": lambda v: v.t(),
    "expand_as": lambda v: v.expand_as(v),
    "part": lambda v: v[1:],
    "both": lambda v: (v.view(-1), v.sum()),
    "the base of what is read": lambda v: (v, v.t() @ v),
}


def gradient(run, size):
    """Return the gradient, or the start of the error, after a write to the first result."""
    x = torch.linspace(0.2, 1.7, size * size).view(size, size).requires_grad_()
    results = run(x)
    results = results if isinstance(results, tuple) else (results,)
    with torch.no_grad():
        results[0].mul_(3)
    try:
        sum((result * result.detach()).sum() for result in results).backward()
    except RuntimeError as error:
        return str(error)[:25]
    return x.grad


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("read", READ)
def test_a_write_is_seen(read, backend):
    for seen, size in itertools.product(SEEN, (2, 5)):

        def program(x, seen=SEEN[seen]):
            return seen(READ[read](x))

        eager, mine = gradient(program, size), gradient(plumbline.compile(program, backend=backend), size)
        if isinstance(eager, str) or isinstance(mine, str):
            assert mine == eager, (seen, size)
        else:
            torch.testing.assert_close(mine, eager)
