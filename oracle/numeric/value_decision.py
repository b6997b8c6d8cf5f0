"""The decision on one tensor: a kind of verdict, or what must be run before there can be one."""

from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from ..verdict import ErrorStatistics, VerdictKind


class Need(Enum):
    """What more must be run before a tensor can be judged."""

    REPLICAS = "replicas"
    ROUNDED = "rounded"


DecisionKind = TypeVar("DecisionKind", bound="VerdictKind | Need", covariant=True)


class ValueDecision(NamedTuple, Generic[DecisionKind]):
    """One tensor judged: the answer, the distance in numbers where there is one, and a sentence."""

    kind: DecisionKind
    statistics: ErrorStatistics | None
    sentence: str


OpenDecision = ValueDecision[VerdictKind | Need]

FinalDecision = ValueDecision[VerdictKind]
