import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.minifier.reduce.engine import reduce
from plumbline.minifier.reduce.problem import Budget, Problem, QueriesExhausted, Questions, Together


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


def foreseeing(problem):
    """`drop_each`, which says what it would attempt."""
    place = 0
    while place < len(problem.current):
        text = problem.current
        problem.foresee(text[:after] + text[after + 1 :] for after in range(place, len(text)))
        if not problem.attempt(text[:place] + text[place + 1 :]):
            place += 1


def reduced(start, fails, count, budget=None):
    """Reduce by `foreseeing` with a test of so many texts at once; return the problem and what was asked together."""
    groups = []

    def ask_all(texts):
        groups.append(list(texts))
        return [fails(text) for text in texts]

    together = Together(ask_all, count) if count > 1 else None
    asked = Questions(fails, bool, lambda text: "!" not in text, lambda text: text, together)
    problem = Problem(start, asked, len, budget)
    reduce(problem, ((foreseeing,),))
    return problem, groups


@given(st.text("ab!XY", min_size=1, max_size=12), st.integers(2, 5))
def test_what_is_asked_together_leads_to_the_same_result(start, count):
    def fails(text):
        return text.count("X") >= min(1, start.count("X")) and len(text) % 3 != 1

    alone, _ = reduced(start, fails, 1)
    together, groups = reduced(start, fails, count)
    assert together.current == alone.current
    assert all(1 < len(group) <= count for group in groups)
    texts = [text for group in groups for text in group]
    assert len(texts) == len(set(texts))  # none twice
    assert not any("!" in text for text in texts)


def test_what_is_asked_together_counts_and_ends_with_the_budget():
    problem, groups = reduced("abcdefghX", lambda text: len(text) == 9, 4, Budget(queries=6))
    assert [len(group) for group in groups] == [4, 2]
    assert problem.queries == 6
