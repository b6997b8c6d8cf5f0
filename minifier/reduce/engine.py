"""The engine: runs passes until none of them finds anything smaller, within a budget."""

from typing import TypeVar

from .problem import Pass, Problem, QueriesExhausted

C = TypeVar("C")
A = TypeVar("A")

MOST_ROUNDS = 8
"""Rounds of passes at most; every round but the last reduces something, so few are needed."""


def reduce(problem: Problem[C, A], groups: tuple[tuple[Pass[C, A], ...], ...]) -> bool:
    """Run each group of passes to its fixed point; return False when the budget ran out first.

    Groups are ordered from what removes most to what only helps the reader; none runs again after a later one.
    """
    try:
        for group in groups:
            for _ in range(MOST_ROUNDS):
                before = problem.current
                problem.run(group)
                if problem.current is before:
                    break
    except QueriesExhausted:
        return False
    return True
