"""A task in a module of its own, which nodes that only pass tasks on do not import."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Far:
    def run(self, bench):
        return __name__
