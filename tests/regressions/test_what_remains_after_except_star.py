"""What `except*` clauses raise together: one error was wrapped, parts raised anew were merged, a context was set."""

import hypothesis
import torch
from hypothesis import strategies

import plumbline
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.tensor([1.0, 2.0])


class Own(ExceptionGroup):
    def derive(self, members):
        return Own(self.message, members)


def nested(note=None):
    group = ExceptionGroup("a", [ExceptionGroup("i", [TypeError("t"), KeyError(1)]), ValueError(2)])
    if note:
        group.add_note(note)
    return group


def shown(error, depth=0):
    if error is None or depth > 2:
        return None
    members = [shown(one, depth) for one in error.exceptions] if isinstance(error, BaseExceptionGroup) else None
    chain = shown(error.__context__, depth + 1), shown(error.__cause__, depth + 1)
    return repr(error), members, error.__suppress_context__, getattr(error, "__notes__", None), chain


@program(A)
def one_error_of_a_clause(x):
    try:
        try:
            raise nested()
        except* (TypeError, KeyError, ValueError):
            raise IndexError(1)  # noqa: B904  # its context is looked at
    except IndexError as error:
        return x * 2, shown(error)


@program(A)
def an_error_inside_a_nested_try(x):
    try:
        try:
            raise nested()
        except* TypeError:
            try:
                raise Own("b", [TypeError("t"), KeyError(3)])
            except* TypeError:
                missing  # noqa: B018, F821  # it raises
    except ExceptionGroup as error:
        return x * 2, shown(error)


@program(A)
def a_part_that_is_raised_anew(x):
    try:
        try:
            raise nested("noted")
        except* TypeError as part:
            raise part
        except* KeyError:
            raise
    except ExceptionGroup as error:
        return x * 2, shown(error)


@program(A)
def a_clause_that_takes_nothing(x):
    group, taken = nested(), []
    try:
        raise group
    except* IndexError:
        pass
    except* Exception as error:
        taken.append(error is group)
    return x * 2, taken


@corpus.parametrize()
def test_program(program):
    check(program)


RAISED = [
    "nested()",
    "nested('noted')",
    "nested() from KeyError('c')",
    "Own('b', [TypeError('t'), ValueError(1)])",
    "TypeError(1)",
]
KINDS = ["TypeError", "KeyError", "(TypeError, ValueError)", "Exception"]
BODIES = [
    "pass",
    "raise",
    "raise part",
    "raise KeyError(5)",
    "raise part from None",
    "raise ValueError(3) from part",
    "raise part.exceptions[0]",
    "part.add_note('n')\n            raise",
    "raise nested()",
    """try:
                raise Own("b", [TypeError("t"), ValueError(1)])
            except* TypeError:
                missing""",
    """try:
                raise part
            except* TypeError:
                raise
            except* KeyError as f:
                raise f""",
    """try:
                raise TypeError("q")
            except* TypeError as f:
                raise f""",
]
CLAUSES = strategies.lists(
    strategies.tuples(strategies.sampled_from(KINDS), strategies.sampled_from(BODIES)), min_size=1, max_size=3
)


@hypothesis.settings(max_examples=40)
@hypothesis.given(strategies.sampled_from(RAISED), CLAUSES)
def test_random_clauses(raised, clauses):
    handlers = "".join(
        f"        except* {kind} as e:\n            log.append(shown(e))\n            {body}\n"
        for kind, body in clauses
    )
    source = f"""
def run():
    log = []
    try:
        try:
            raise {raised}
{handlers}    except BaseException as error:
        log.append(shown(error))
    return log
"""
    names = {"nested": nested, "Own": Own, "shown": shown}
    exec(source, names)
    assert plumbline.compile(names["run"], backend="eager")() == names["run"]()
