"""Texts of errors differed from those of Python: of torch.Size, of arguments that are positional only."""

import pytest

from support.played_programs import difference_of

PROGRAMS = {
    "attributes that are not there": r"""
import functools, math
import numpy as np
def f(): pass
part = functools.partial(f)
def tell(fn):
    try:
        fn()
    except Exception as e:
        return type(e).__name__ + ': ' + str(e)
def step(x):
    log = []
    log.append(tell(lambda: x.shape.a))
    log.append(tell(lambda: f.nothing))
    log.append(tell(lambda: part.nothing))
    log.append(tell(lambda: np.add.nothing))
    log.append(tell(lambda: [].append.nothing))
    log.append(tell(lambda: 'a'.join.nothing))
    log.append(tell(lambda: math.sin.nothing))
    log.append(tell(lambda: len.nothing))
    log.append(tell(lambda: (lambda: 0).nothing))
    log.append(tell(lambda: {}.keys().nothing))
    log.append(tell(lambda: iter([]).nothing))
    log.append(tell(lambda: range(3).nothing))
    log.append(tell(lambda: slice(3).nothing))
    log.append(tell(lambda: x.dtype.nothing))
    log.append(tell(lambda: x.device.nothing))
    log.append(tell(lambda: x.nothing))
    log.append(tell(lambda: torch.nothing))
    log.append(tell(lambda: torch.relu.nothing))
    log.append(tell(lambda: x.add.nothing))
    log.append(tell(lambda: (i for i in [1]).nothing))
    log.append(tell(lambda: ValueError('a').nothing))
    log.append(tell(lambda: int.nothing))
    log.append(tell(lambda: (1).nothing))
    log.append(tell(lambda: None.nothing))
    log.append(tell(lambda: {1}.nothing))
    log.append(tell(lambda: (1,).nothing))
    log.append(tell(lambda: tell.__code__.nothing))
    log.append(tell(lambda: object().nothing))
    log.append(tell(lambda: type.nothing))
    log.append(tell(lambda: Exception.nothing))
    log.append(tell(lambda: staticmethod(f).nothing))
    log.append(tell(lambda: property(f).nothing))
    log.append(tell(lambda: map(f, []).nothing))
    log.append(tell(lambda: zip([]).nothing))
    log.append(tell(lambda: enumerate([]).nothing))
    log.append(tell(lambda: reversed([]).nothing))
    log.append(tell(lambda: np.float64(1).nothing))
    log.append(tell(lambda: np.ones(2).nothing))
    log.append(tell(lambda: np.nothing))
    log.append(tell(lambda: super(int, 3).nothing))
    return x * 2, log
""",
    "attributes that cannot be set": r"""
import functools, math
import numpy as np
def f(): pass
part = functools.partial(f)
def tell(fn):
    try:
        fn()
    except Exception as e:
        return type(e).__name__ + ': ' + str(e)
def step(x):
    log = []
    log.append(tell(lambda: setattr([], 'a', 1)))
    log.append(tell(lambda: setattr(len, 'a', 1)))
    log.append(tell(lambda: setattr(1, 'a', 1)))
    log.append(tell(lambda: setattr(x.shape, 'a', 1)))
    log.append(tell(lambda: setattr([].append, 'a', 1)))
    log.append(tell(lambda: setattr(int, 'a', 1)))
    log.append(tell(lambda: setattr('s', 'join', 1)))
    log.append(tell(lambda: delattr([], 'a')))
    log.append(tell(lambda: delattr(f, 'a')))
    log.append(tell(lambda: delattr(len, 'a')))
    log.append(tell(lambda: delattr(x, 'aa')))
    log.append(tell(lambda: setattr(x.dtype, 'a', 1)))
    log.append(tell(lambda: setattr(np.add, 'a', 1)))
    log.append(tell(lambda: setattr((i for i in [1]), 'a', 1)))
    log.append(tell(lambda: setattr(f, '__name__', 1)))
    log.append(tell(lambda: setattr(f, '__code__', 1)))
    return x * 2, log
""",
    "operations that fail": r"""
import collections, functools, math
import numpy as np
P = collections.namedtuple('P', 'a b')
def tell(fn):
    try:
        return repr(fn())
    except Exception as e:
        return type(e).__name__ + ': ' + str(e)
def step(x):
    log = []
    m = x.max(0)
    for g in (
        lambda: m.nothing, lambda: P(1, 2).nothing, lambda: x.shape + 1, lambda: x.shape['a'],
        lambda: x.shape[7], lambda: x.shape.index(9), lambda: x.shape < 3, lambda: x.shape(),
        lambda: len(x.dtype),
        lambda: torch.Size([1]).numel(1), lambda: hash([]), lambda: {}['a'], lambda: [].remove(1),
        lambda: (1,).index(3), lambda: 'a'.index('b'), lambda: int('x'), lambda: [1] + (2,), lambda: {1} + {2},
        lambda: -'a', lambda: len(3), lambda: iter(3), lambda: next([]), lambda: {}.pop('a'),
        lambda: set().pop(), lambda: [].pop(), lambda: ''.join([1]), lambda: sorted([1, 'a']),
        lambda: sum(['a']), lambda: max([]), lambda: min(1), lambda: zip(1), lambda: map(), lambda: dict([1]),
        lambda: dict([(1, 2, 3)]), lambda: float('z'), lambda: complex('q'), lambda: chr(-1),
        lambda: ord('ab'), lambda: range('a'), lambda: range(1, 2, 0), lambda: slice(), lambda: 'a' * 'b',
        lambda: 1 << -1, lambda: 1 // 0, lambda: 1.0 % 0, lambda: 0 ** -1, lambda: math.sqrt(-1),
        lambda: math.log(0), lambda: math.factorial(-1), lambda: '%d' % 'a', lambda: '{} {}'.format(1),
        lambda: '{a}'.format(), lambda: format(1, 'q'), lambda: isinstance(1, 2), lambda: issubclass(1, int),
        lambda: getattr(1, 2), lambda: setattr(1, 'a', 2), lambda: type('A', (), 3), lambda: type(1, 2),
        lambda: super().x, lambda: abs('a'), lambda: round('a'), lambda: divmod(1, 0), lambda: pow(2, -1, 4),
        lambda: bytes([256]), lambda: bytearray(-1), lambda: memoryview(3), lambda: 'a'.encode('nope'),
        lambda: b'\xff'.decode(), lambda: int.from_bytes('a', 'big'), lambda: (3).to_bytes(0, 'big'),
        lambda: [1, 2][5], lambda: (1, 2)['a'], lambda: [1][1.0], lambda: {[]: 1}, lambda: {1: 2}[3],
        lambda: [*3], lambda: {**3}, lambda: tell(*3), lambda: tell(**3), lambda: tell(), lambda: tell(1, 2),
        lambda: tell(a=1), lambda: (lambda a, *, b: 0)(1), lambda: (lambda a, /: 0)(a=1),
        lambda: collections.deque([1], 0)[0], lambda: collections.deque(maxlen=-1),
        lambda: collections.Counter(3), lambda: collections.OrderedDict(a=1).move_to_end('b'),
        lambda: functools.reduce(lambda a, b: a, []), lambda: P(1), lambda: P(1, 2, 3),
        lambda: P(1, 2)._replace(c=1), lambda: P._make([1])):
        log.append(tell(g))
    return x * 2, log
""",
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_does_as_plain_python_does(name):
    assert difference_of(PROGRAMS[name]) == ""


def test_a_method_of_tensors_that_is_written_in_python():
    assert not difference_of(
        """
def step(x):
    words = []
    for ask in (iter, len, abs):
        try:
            ask(x.norm)
        except TypeError as error:
            words.append(str(error))
    return x + 1, words
"""
    )
