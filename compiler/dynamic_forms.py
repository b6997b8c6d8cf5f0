"""The forms of one graph with dynamic sizes: libraries, each for the sizes of which its assumptions hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .base.events import FellBack, record
from .base.locks import ForkedLock
from .codegen.host_call import Compiled
from .symbolic.symbolic_sizes import FUNCTIONS, Assumption, assumptions

MOST_FORMS = 8  # libraries of one graph for different sizes; sizes beyond them run op by op


@dataclass(slots=True, eq=False)
class DynamicForms:
    """What is compiled of one graph: (whether the sizes fit, what to run), newest last.

    compile: makes a form, given what each symbol is in the call.  names: the symbols, in the order of the last inputs.
    """

    compile: Callable[[Mapping[str, float]], Compiled]
    op_by_op: Compiled
    names: list[str]
    forms: list[tuple[Callable[..., object], Compiled]] = field(default_factory=list)
    lock: ForkedLock = field(default_factory=ForkedLock)

    def prepared(self, sizes: Mapping[str, float]) -> Compiled:
        """Compile for these sizes and return the callable for all."""
        self._form([sizes[name] for name in self.names])
        count = len(self.names)

        def call(*inputs: object) -> tuple[object, ...]:
            sizes = inputs[-count:]
            for fits, run in self.forms:
                if fits(*sizes):
                    return run(*inputs)
            with self.lock:
                run = self._form([size for size in sizes if isinstance(size, int | float)])
            return run(*inputs)

        return call

    def _form(self, sizes: Sequence[float]) -> Compiled:
        for fits, run in self.forms:  # another thread may have been faster
            if fits(*sizes):
                return run
        if len(self.forms) >= MOST_FORMS:
            record(FellBack("graph", f"{MOST_FORMS} libraries for different sizes are in use"))
            return self.op_by_op
        with assumptions() as assumed:
            run = self.compile(dict(zip(self.names, sizes, strict=True)))
        for each in assumed:
            if each.is_equality:
                record(FellBack("dynamic size", f"kernels are built for {each.text}"))
        self.forms.append((condition(self.names, list(assumed)), run))
        return run


def condition(names: Sequence[str], assumed: Sequence[Assumption]) -> Callable[..., object]:
    """Return a function of dynamic sizes, in order, that says whether all assumptions about their names hold."""
    text = " and ".join(f"({each.text})" for each in assumed) or "True"
    holds: Callable[..., object] = eval(f"lambda {', '.join(names)}: {text}", {**FUNCTIONS, "math": math})
    return holds
