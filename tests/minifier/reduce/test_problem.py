import pytest

from plumbline.minifier.reduce.engine import reduce
from plumbline.minifier.reduce.problem import Budget, Problem, QueriesExhausted, Questions


def text_problem(start: str, fails, budget=None):
    """Shrink a text: the engine knows nothing of graphs."""
    asked = []

    def ask(text):
        asked.append(text)
        return fails(text)

    questions = Questions(ask=ask, accepts=bool, valid=lambda text: "!" not in text, key=lambda text: text)
    return Problem(start, questions, len, budget), asked


def drop_each(problem):
    for place in range(len(problem.current)):
        if problem.attempt(problem.current[:place] + problem.current[place + 1 :]):
            return


def test_engine_runs_passes_to_their_fixed_point():
    problem, _ = text_problem("abXcdYe", lambda text: "X" in text and "Y" in text)
    assert reduce(problem, ((drop_each,),))
    assert problem.current == "XY" or len(problem.current) > 2  # bounded rounds
    for _ in range(3):
        reduce(problem, ((drop_each,),))
    assert problem.current == "XY"


def test_no_candidate_is_asked_twice_and_each_question_counts():
    problem, asked = text_problem("aXb", lambda text: "X" in text)
    assert problem.fails("X")
    assert problem.fails("X")
    assert not problem.fails("a")
    assert asked == ["X", "a"]
    assert (problem.queries, problem.repeated) == (2, 1)


def test_an_invalid_candidate_costs_no_query_and_is_never_adopted():
    problem, asked = text_problem("aX", lambda text: True)
    assert not problem.attempt("!X")
    assert (problem.current, problem.queries, asked) == ("aX", 0, [])


def test_the_current_candidate_is_not_adopted_again():
    problem, _ = text_problem("aX", lambda text: True)
    assert not problem.attempt("aX")


def test_the_budget_ends_the_reduction_with_the_best_so_far():
    problem, _ = text_problem("abcdefX", lambda text: "X" in text, Budget(queries=2))
    assert not reduce(problem, ((drop_each,),))
    assert "X" in problem.current
    assert len(problem.current) < 7
    with pytest.raises(QueriesExhausted):
        problem.fails("something new")


def test_the_log_names_passes_that_changed_something():
    problem, _ = text_problem("aX", lambda text: "X" in text)
    reduce(problem, ((drop_each,),))
    assert [(step.name, step.size) for step in problem.log] == [("drop_each", 1)]
