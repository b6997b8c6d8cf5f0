"""Programs are drawn from numbers alone, are Python, and mostly run to their end in plain Python."""

import ast
from collections import Counter

from plumbline.fuzz.python_programs import python_trial
from plumbline.fuzz.python_programs.object_zoo import ZOO
from plumbline.fuzz.python_programs.program_source import FEATURES, draw_program
from plumbline.fuzz.python_programs.python_program import CALL, check_python_program

COUNT = 60


def test_the_same_number_gives_the_same_text():
    assert [draw_program(number) for number in range(5)] == [draw_program(number) for number in range(5)]
    assert len({draw_program(number) for number in range(COUNT)}) == COUNT


def test_every_program_is_python_and_calls_step_three_times():
    for number in range(COUNT):
        program = draw_program(number)
        check_python_program(program)
        assert sum(CALL in statement for statement in program.history) >= 3


def test_every_feature_makes_programs():
    for feature in FEATURES:
        program = draw_program(1, (feature.name,))
        ast.parse(program.module)
    assert len(ZOO) >= 60


def test_every_feature_has_a_name_of_its_own_and_definitions_that_do_not_meet():
    names = [feature.name for feature in FEATURES]
    assert len(set(names)) == len(names) >= 95
    defined: dict[str, str] = {}
    for feature in FEATURES:
        for statement in ast.parse(feature.setup).body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name != "_":
                first = defined.setdefault(statement.name, feature.setup)
                assert first == feature.setup, (statement.name, feature.name)


def test_most_calls_return():
    outcomes: Counter[str] = Counter()
    for number in range(COUNT):
        try:
            records = python_trial.play(draw_program(number), lambda step: step, lambda function: function, 3.0)
        except python_trial.TooSlow:
            outcomes["does not end"] += 1
            continue
        outcomes.update(record.observed[0][0] for record in records or ())
    assert outcomes["returns"] > 2 * outcomes["raises"]
    assert outcomes["raises"] > 0
    assert outcomes["does not end"] <= 2
