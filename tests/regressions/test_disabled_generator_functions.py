"""A generator function whose own frame alone is disabled was put through a unit: its generator lost its kind."""

import contextlib

import pytest
import torch

import plumbline

DISABLES = {"ours": plumbline.disable(recursive=False), "torch's": torch._disable_dynamo(recursive=False)}
BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])


def compiled(function, backend="eager"):
    return plumbline.compile(function, backend=backend, options={"strict": True})


@BACKENDS
@pytest.mark.parametrize("disable", DISABLES.values(), ids=DISABLES)
def test_a_context_manager(disable, backend):
    log = []

    @contextlib.contextmanager
    @disable
    def block():
        log.append("in")
        try:
            yield 3
        finally:
            log.append("out")

    def function(x):
        with block() as number:
            y = x * number
        return y + 1

    assert compiled(function, backend)(torch.ones(1)).item() == 4
    assert log == ["in", "out"]


@BACKENDS
@pytest.mark.parametrize("disable", DISABLES.values(), ids=DISABLES)
def test_a_generator(disable, backend):
    @disable
    def numbers(x):
        yield x
        yield x + 1

    assert compiled(lambda x: sum(numbers(x)) * 2, backend)(torch.ones(1)).item() == 6


@BACKENDS
@pytest.mark.parametrize("disable", DISABLES.values(), ids=DISABLES)
def test_a_module_that_enters_a_block_of_its_own(disable, backend):
    class Parallel(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = torch.nn.Linear(1, 1)
            self.depth = 0

        @contextlib.contextmanager
        @disable
        def inside(self):
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1

        @disable
        def before(self, x):
            return x * 2

        def forward(self, x):
            with self.inside():
                return self.module(self.before(x)), self.depth

    module = Parallel()
    expected, depth = module(torch.ones(1, 1))
    result, inside = compiled(module, backend)(torch.ones(1, 1))
    assert torch.equal(result, expected)
    assert (inside, module.depth) == (depth, 0)


@pytest.mark.parametrize("start", ["a", 0.5, None, [1]])
def test_counting_from_what_is_not_a_number(start):
    def function(x):
        try:
            return list(enumerate([x], start))
        except TypeError as error:
            return str(error), x + 1

    assert compiled(function)(torch.ones(1)) == function(torch.ones(1))
    with pytest.raises(TypeError):
        compiled(lambda x: list(enumerate(x, start)))(torch.ones(2))
