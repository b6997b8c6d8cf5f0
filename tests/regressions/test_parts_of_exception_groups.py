"""Parts of exception groups were not those of Python.

New groups did not suppress their context, `exceptions` was another tuple at every look, `subgroup` made groups for what
it does not give, and tuples that hold other things than exception classes were taken.
"""

import pytest

from support.played_programs import difference_of

PROGRAM = """
class Deriving(ExceptionGroup):
    def derive(self, members):
        log.append(len(members))
        return Deriving('derived', members)

class Misleading(ExceptionGroup):
    def derive(self, members):
        return 3

class Test:
    def method(self, error):
        return isinstance(error, KeyError)

test = Test()
log = []

def look(group, part):
    inside = getattr(part, 'exceptions', ())
    return (part is group, part and part.__suppress_context__, part and part.__cause__, part and part.__context__,
            getattr(part, '__notes__', None), getattr(part, 'message', None), inside,
            [one is other for one in inside for other in group.exceptions])

def step(x):
    log.clear()
    group = {kind}('a', [ExceptionGroup('b', [KeyError(1), ValueError(2)]), ExceptionGroup('c', [KeyError(3)])])
    {prepare}
    try:
        parts = group.{call}
    except Exception as error:
        return x + 1, error, list(log)
    parts = list(parts) if isinstance(parts, tuple) else [parts]
    again = group.exceptions is group.exceptions
    return x + 1, group.exceptions, group, again, [look(group, part) for part in parts], list(log)
"""
CALLS = (
    "split(ValueError)", "split(KeyError)", "split(TypeError)", "split((KeyError, TypeError))", "split(())",
    "split((len,))", "split(int)", "split(lambda error: isinstance(error, KeyError))", "split(ExceptionGroup)",
    "subgroup(ValueError)", "subgroup(lambda error: isinstance(error, ValueError))", "subgroup(test.method)",
    "derive([ValueError(1)])",
)  # fmt: skip
RAISED = """try:
        try:
            raise LookupError(5)
        except LookupError as error:
            raise group from error
    except ExceptionGroup as error:
        group = error"""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("kind", "prepare"),
    [
        ("ExceptionGroup", "pass"),
        ("ExceptionGroup", RAISED),
        ("Deriving", RAISED),
        ("Misleading", "group.args = (1, 2)"),
    ],
    ids=["new", "raised", "deriving", "misleading"],
)
def test_parts_are_those_of_python(kind, prepare, call):
    program = PROGRAM.replace("{kind}", kind).replace("{prepare}", prepare).replace("{call}", call)
    assert difference_of(program, ("r0 = step(x0)",)) == ""


@pytest.mark.parametrize("call", ["split(KeyError)", "subgroup(ValueError)", "split(TypeError)"])
def test_groups_from_outside_are_taken_apart(call):
    program = (
        """
    group = ExceptionGroup('a', [KeyError(1), ValueError(2)])
    group.add_note('note')
    try:
        raise group from TypeError(3)
    except ExceptionGroup:
        pass
    """.replace("\n    ", "\n")
        + PROGRAM[PROGRAM.index("def look") : PROGRAM.index("def step")]
    )
    program += f"""
def step(x):
    parts = group.{call}
    return x + 1, [look(group, part) for part in (list(parts) if isinstance(parts, tuple) else [parts])]
"""
    assert difference_of(program) == ""
