"""Our own compiler with one operator lowered as another: a compiler under test that engines can send to workers."""

from plumbline.oracle.harness.mutants import MutantCompiler
from plumbline.oracle.harness.operator_mutants import operator_faults
from plumbline.oracle.harness.own_compiler import OwnCompiler


class WrongOperator(MutantCompiler):
    """fault: a name of operator_faults(), such as `tanh-as-sin`."""

    def __init__(self, fault):
        super().__init__(OwnCompiler(), operator_faults()[fault])
        self.name = "planted"

    def __reduce__(self):
        return WrongOperator, (self.fault.name,)
