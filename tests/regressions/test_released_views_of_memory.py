"""A loop over a released memoryview raised the SystemError of `iter`, and not the ValueError of Python's loop."""

import pytest
import torch

import plumbline


def in_a_comprehension(view):
    return [each for each in view]  # noqa: C416 - the loop is what is tested


def in_a_loop(view):
    for each in view:
        print(each)


def by_iter(view):
    return list(iter(view))


def unpacked(view):
    first, *_ = view
    return first


@pytest.mark.parametrize("use", [in_a_comprehension, in_a_loop, by_iter, unpacked])
@pytest.mark.parametrize("released", [True, False])
def test_released_views(use, released):
    def program(x):
        view = memoryview(bytearray(b"abcd"))
        if released:
            view.release()
        try:
            given = use(view)
        except (ValueError, SystemError) as error:
            given = type(error), str(error)
        return (x + 1).sum().item(), given

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager")(x) == program(x)


def test_released_views_many_times():  # Python's own shortcuts, taken from the eighth call on, do not look for errors
    for _ in range(12):
        scope = {"view": memoryview(b"abcd")}
        exec("def step():\n    [1 for each in view]\n    with view:\n        pass", scope)
        compiled = plumbline.compile(scope["step"], backend="eager")
        compiled()
        with pytest.raises(ValueError, match="operation forbidden on released memoryview object"):
            compiled()
