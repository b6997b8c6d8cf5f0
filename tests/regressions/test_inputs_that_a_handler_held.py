"""An exception that was raised again by a call under its handler held the inputs of the call, in a cycle."""

from support.played_programs import difference_of

_MODULE = """
import contextlib, weakref
class Plain:
    pass
kept = Plain()
weakref.finalize(kept, int)
@contextlib.contextmanager
def managed():
    try:
        yield
    except ValueError:
        raise
def step(x, thing=None):
    with contextlib.ExitStack() as stack:
        try:
            with managed():
                raise ValueError
        except ValueError:
            pass
"""


def test_inputs_end_with_the_call():
    assert not difference_of(_MODULE, ("given = x0 + 1", "watched = reference(given)", "step(given)", "del given"))
