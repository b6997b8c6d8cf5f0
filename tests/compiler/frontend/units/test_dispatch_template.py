"""What stands for a compiled function where a call is small: the user's function, called as if nobody stood between."""

import weakref

import numpy as np
import pytest

from plumbline.compiler.frontend.units.dispatch_template import make_template
from plumbline.compiler.frontend.units.small_calls import SmallCalls


class Dispatched:
    """A unit without specialisations, whose calls with a first array of at most 3 elements are small."""

    name = "stub"

    def __init__(self, *more):
        self.runs = []
        self.small = SmallCalls()
        self.small.add((np.ones(3), *more), 3)

    def miss(self, args):
        return "missed"


def entry_of(function, *more, keywords=()):
    defaults = len(function.__defaults__ or ())
    make = make_template(Dispatched(*more), tuple, function.__code__, defaults, keywords, lambda function: function)
    return make(function.__closure__ or (), function)


def test_only_the_frame_of_the_user_holds_the_arguments():
    seen = []

    def drops(x):
        watch = weakref.ref(x)
        del x
        seen.append(watch())

    entry_of(drops)(np.ones(3))
    assert seen == [None]
    assert entry_of(drops)(np.ones(4)) == "missed"


def test_arguments_keep_their_places():
    def places(x, a, /, b, *, c, d):
        return a, b, c, d

    entry = entry_of(places, 1.0, 2.0, 3.0, 4.0)
    assert entry(np.ones(3), 1.0, b=2.0, d=4.0, c=3.0) == (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize("function", [lambda *x: x, lambda x, **more: x, lambda: None])
def test_functions_of_any_number_of_arguments_are_never_small(function):
    arguments = (np.ones(3),) if function.__code__.co_varnames else ()
    assert entry_of(function)(*arguments) == "missed"


def test_an_error_leaves_from_the_users_line():
    def fails(x):
        raise ValueError(x.size)

    with pytest.raises(ValueError, match="3") as caught:
        entry_of(fails)(np.ones(3))
    assert caught.traceback[-1].path.name == "test_dispatch_template.py"
