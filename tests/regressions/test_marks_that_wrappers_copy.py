"""`functools.wraps` copies the marks of a function to its wrapper, which was then taken for the function."""

import functools

import pytest
import torch

import plumbline


def hundredfold(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args) * 100

    return wrapper


def increased(x):
    return x + 1


MARKED = {
    "disable": plumbline.disable,
    "disable, this frame only": plumbline.disable(recursive=False),
    "compile": functools.partial(plumbline.compile, backend="eager"),
    "torch's disable": torch._disable_dynamo,
    "torch's disable, this frame only": torch._disable_dynamo(recursive=False),
    "torch's public disable": torch.compiler.disable,
    "torch's public disable, this frame only": torch.compiler.disable(recursive=False),
    "assume_constant_result": plumbline.assume_constant_result,
    "allow_in_graph": plumbline.allow_in_graph,
    "nested_compile_region": torch.compiler.nested_compile_region,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("mark", MARKED)
def test_the_wrapper_runs(mark, backend):
    def own(x):
        return x + 1

    wrapper = hundredfold(MARKED[mark](own))
    assert plumbline.compile(lambda x: wrapper(x), backend=backend)(torch.ones(1)).item() == 200
    twice = hundredfold(wrapper)
    assert plumbline.compile(lambda x: twice(x), backend=backend)(torch.ones(1)).item() == 20000


@pytest.mark.parametrize("outer", MARKED)
@pytest.mark.parametrize("inner", MARKED)
def test_a_wrapper_may_have_a_mark_of_its_own(inner, outer):
    def own(x):
        return x + 1

    made = MARKED[outer](hundredfold(MARKED[inner](own)))
    expected = made(torch.ones(1)).item()
    assert plumbline.compile(lambda x: made(x), backend="eager")(torch.ones(1)).item() == expected


def test_what_is_done_to_a_wrapper_is_not_done_to_the_function():
    for mark in (plumbline.disable, functools.partial(plumbline.compile, backend="eager")):
        for inner in (plumbline.disable, functools.partial(plumbline.compile, backend="eager")):
            assert mark(hundredfold(inner(increased)))(torch.ones(1)).item() == 200


def test_a_wrapper_of_a_constant_has_its_effects():
    calls = []

    @plumbline.assume_constant_result
    def constant():
        return 5

    @functools.wraps(constant)
    def wrapper():
        calls.append(1)
        return constant()

    compiled = plumbline.compile(lambda x: x + wrapper(), backend="eager")
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [6, 6, 6]
    assert len(calls) == 3


@pytest.mark.parametrize("function", [plumbline.graph_break, plumbline.is_compiling])
def test_a_function_in_the_name_of_a_control(function):
    wrapper = functools.wraps(function)(lambda: 5)
    assert plumbline.compile(lambda x: x + wrapper(), backend="eager")(torch.ones(1)).item() == 6
