"""Known faults put into the compiler: each is found by a few programs of fixed numbers, which are right without it."""

import pytest

from plumbline.compiler.frontend import skip_rules
from plumbline.compiler.frontend.context.guard_list import GuardList
from plumbline.compiler.frontend.opcodes import data
from plumbline.compiler.graph.effects.undo import Undoing
from plumbline.compiler.values import rule_tables
from plumbline.compiler.values.constant import Constant
from plumbline.compiler.values.guard import GuardKind
from plumbline.compiler.values.python.containers.lists import ListValue
from plumbline.fuzz.python_programs.program_source import draw_program
from plumbline.fuzz.python_programs.python_trial import try_python_program
from plumbline.oracle.harness.known_compilers import find_compiler

BUDGET = 40


def writes_are_not_undone(patch):
    patch.setattr(Undoing, "__call__", lambda self, *inputs: self.run(*inputs))


def lists_have_every_attribute(patch):
    function, rule = rule_tables.CALL_RULES[id(hasattr)]

    def wrong(ctx, args, kwargs):
        return Constant(True) if isinstance(ctx.realize(args[0]), ListValue) else rule(ctx, args, kwargs)

    patch.setitem(rule_tables.CALL_RULES, id(hasattr), (function, wrong))


def marks_are_copied_by_wraps(patch):
    patch.setattr(skip_rules, "own_mark", lambda function, name: getattr(function, "__dict__", {}).get(name))


def ascii_is_made_of_the_repr(patch):
    right = data._converted

    def wrong(frame, value, conversion):
        answer = right(frame, value, conversion)
        return Constant(ascii(answer.constant())) if conversion == 3 else answer

    patch.setattr(data, "_converted", wrong)


def constants_are_not_guarded(patch):
    right = GuardList.add

    def wrong(self, source, kind, expected, others=()):
        if kind is not GuardKind.EQUALS:
            right(self, source, kind, expected, others)

    patch.setattr(GuardList, "add", wrong)


def an_error_of_ours_is_handled(patch):
    def wrong(*_):
        raise KeyError("planted")

    patch.setattr(ListValue, "length", wrong)


PLANTS = {
    writes_are_not_undone: ("failing_operations", 9),
    lists_have_every_attribute: ("comprehensions", 23),
    marks_are_copied_by_wraps: ("marks", 2),
    ascii_is_made_of_the_repr: ("text_of_tensors", 9),
    constants_are_not_guarded: ("namespaces", 2),
    an_error_of_ours_is_handled: ("namespaces", 7),
}
"""Fault -> the feature whose programs show it, and the first number that is tried, from which it is a few away."""


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_found_within_a_small_budget(plant, monkeypatch):
    compiler = find_compiler("plumbline", "eager")
    feature, first = PLANTS[plant]
    for number in range(first, first + BUDGET):
        program = draw_program(number, (feature,))
        with monkeypatch.context() as patch:
            plant(patch)
            trial = try_python_program(program, compiler, "eager")
        if trial.signature is not None:
            right = try_python_program(program, compiler, "eager")
            if right.signature is None:
                return
    pytest.fail(f"not found by {BUDGET} programs")
