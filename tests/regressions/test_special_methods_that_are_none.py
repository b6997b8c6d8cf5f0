"""A special method that is set to None is called by Python, which refuses; it was taken for one that is absent."""

import pytest

from support.played_programs import difference_of

_BODIES = {
    "plain": "class Unit: pass",
    "child": """
class Base:
    def __add__(self, other): return 1
    __radd__ = __sub__ = __rsub__ = __neg__ = __eq__ = __lt__ = __gt__ = __getitem__ = __add__
    def __neg__(self): return 2
    def __len__(self): return 2
    __hash__ = __bool__ = __call__ = __index__ = __int__ = __next__ = __len__
    def __iter__(self): return iter([1])
    def __contains__(self, item): return True
class Unit(Base): pass
""",
}
_NAMES = """
    __add__ __radd__ __iadd__ __sub__ __rsub__ __mul__ __rmul__ __mod__ __rmod__ __neg__ __eq__ __ne__ __lt__ __gt__
    __le__
    __hash__ __iter__ __contains__ __reversed__ __len__ __bool__ __call__ __next__ __getitem__ __setitem__ __delitem__
    __index__ __int__ __float__ __abs__ __round__ __divmod__ __str__ __repr__ __format__ __enter__ __exit__ __getattr__
    __delattr__ __dir__ __copy__
"""
_STEP = """
import copy
def added(u, v):
    u += v
    return u
def stored(u):
    u[0] = 1
def removed(u):
    del u[0]
def entered(u):
    with u:
        return 1
OPERATIONS = [
    lambda u, v: u + v, lambda u, v: 1 + u, added, lambda u, v: u - v, lambda u, v: 1.5 - u, lambda u, v: u * 2,
    lambda u, v: [1] * u, lambda u, v: u % 2, lambda u, v: "a" % u, lambda u, v: -u, lambda u, v: u == v,
    lambda u, v: u != v, lambda u, v: u < v, lambda u, v: 1 < u, lambda u, v: u <= v, lambda u, v: u in [v],
    lambda u, v: len({u: 1}), lambda u, v: list(u), lambda u, v: 1 in u, lambda u, v: list(reversed(u)),
    lambda u, v: len(u), lambda u, v: bool(u), lambda u, v: 1 if u else 2, lambda u, v: u(), lambda u, v: next(u),
    lambda u, v: u[0], lambda u, v: stored(u), lambda u, v: removed(u), lambda u, v: [1, 2, 3][u], lambda u, v: int(u),
    lambda u, v: float(u), lambda u, v: abs(u), lambda u, v: round(u), lambda u, v: divmod(u, 1),
    lambda u, v: type(str(u)), lambda u, v: type(repr(u)), lambda u, v: type(f"{u}"), lambda u, v: entered(u),
    lambda u, v: u.missing, lambda u, v: delattr(u, "missing"), lambda u, v: len(dir(u)) > 1,
    lambda u, v: type(copy.copy(u)),
]
def words(operation, u, v):
    try:
        answer = operation(u, v)
    except Exception as error:
        return repr(error)
    return type(answer) if isinstance(answer, Unit) else answer
class Other(Unit): pass
def step(x):
    log = []
    for u, v in ((Unit(), Other()), (Other(), Unit())):
        for position in positions:
            log.append(words(OPERATIONS[position], u, v))
    return log
"""


def affected(program: str, name: str) -> list[int]:
    """Return the operations that plain Python answers otherwise where the method is None."""
    logs = []
    for change in ("", f"setattr(Unit, {name!r}, None)"):
        scope: dict[str, object] = {}
        exec(f"{program}\n{change}\nlog = [(words(o, u, v), words(o, v, u)) for o in OPERATIONS]", scope)
        logs.append([repr(answer) for answer in scope["log"]])
    return [place for place, (plain, changed) in enumerate(zip(*logs, strict=True)) if plain != changed]


@pytest.mark.parametrize("name", _NAMES.split())
@pytest.mark.parametrize("body", ["plain", "child"])
def test_none_is_called(name: str, body: str):
    whole = f"{_BODIES[body]}\n{_STEP}\n"
    positions = affected(f"{whole}\nu, v = Unit(), Other()", name)
    program = f"{whole}\nsetattr(Unit, {name!r}, None)\npositions = {positions}\n"
    assert not difference_of(program, ("r0 = step(x0)",))


def test_half_of_two_methods():
    program = f"""
class Unit:
    def __setitem__(self, key, value): pass
    def __getitem__(self, key): return 1
{_STEP}
positions = range(len(OPERATIONS))
"""
    assert not difference_of(program, ("r0 = step(x0)",))


@pytest.mark.parametrize("name", ["__hash__", "__lt__", "__add__", "__len__", "__reversed__", "__bool__"])
def test_tuples(name: str):
    program = f"""
class Unit(tuple): pass
Unit.{name} = None
u = Unit()
def words(operation):
    try:
        return operation()
    except Exception as error:
        return repr(error)
def step(x):
    return [words(lambda: {{u: 1}}), words(lambda: u < u), words(lambda: u + u), words(lambda: len(u)), x + 1,
            words(lambda: list(reversed(u))), words(lambda: bool(u)), words(lambda: [*u]), words(lambda: u < (1,))]
"""
    assert not difference_of(program, ("r0 = step(x0)",))


@pytest.mark.parametrize(
    "name", ["__hash__", "__iter__", "__contains__", "__reversed__", "__lt__", "__gt__", "__len__"]
)
@pytest.mark.parametrize("kind", ["list", "int", "str", "dict"])
def test_subclasses_of_builtin_types(name: str, kind: str):
    program = f"""
class Unit({kind}): pass
class Other(Unit): pass
Unit.{name} = None
pairs = [(Unit(), Other()), (Other(), Unit())]
def words(operation):
    try:
        return operation()
    except Exception as error:
        return repr(error)
def step(x):
    log = []
    for u, v in pairs:
        log += [words(lambda: hash(u) * 0), words(lambda: [*u]), words(lambda: "1" in u), words(lambda: bool(u))]
        log += [words(lambda: u < v), words(lambda: [1, 2][u])]
    return log + [x + 1, words(lambda: list(reversed(pairs[0][0])))]
"""
    assert not difference_of(program, ("r0 = step(x0)",))
