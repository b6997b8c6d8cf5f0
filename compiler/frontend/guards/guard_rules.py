"""The kinds of guards: one written list of rows, and what is asked of them."""

from ...values.guard import Guard, GuardKind
from ...values.source import Inject
from .answer_rules import ANSWER_RULES
from .container_rules import CONTAINER_RULES
from .object_rules import OBJECT_RULES
from .rule import CheckTexts, GuardRule
from .tensor_rules import TENSOR_RULES

GUARD_RULES: tuple[GuardRule, ...] = (*OBJECT_RULES, *CONTAINER_RULES, *ANSWER_RULES, *TENSOR_RULES)
RULE_OF_KIND: dict[GuardKind, GuardRule] = {rule.kind: rule for rule in GUARD_RULES}


def check_text(guard: Guard, value: str, others: tuple[str, ...], inject: Inject) -> str:
    """Return a Python expression that is true if the guard holds; value, others: the names of what it looks at."""
    return RULE_OF_KIND[guard.kind].check(guard, CheckTexts(value, others, inject))


def guard_words(guard: Guard) -> str:
    """Return the condition for people."""
    return RULE_OF_KIND[guard.kind].words(guard)


def expected_words(guard: Guard) -> str:
    """Return what a guard expects."""
    return RULE_OF_KIND[guard.kind].expected(guard)


def actual_words(guard: Guard, value: object, others: tuple[object, ...]) -> str:
    """Return what there is instead, in the form of what is expected."""
    words = RULE_OF_KIND[guard.kind].actual(guard, value, others)
    return words if words != expected_words(guard) else f"another {words}"
