"""The forms of one graph with dynamic sizes: libraries, each for the sizes of which its assumptions hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import fx

from .base.events import FellBack, record
from .base.locks import ForkedLock
from .codegen.host_call import Compiled
from .graph.dynamic_sizes import size_placeholders, size_values
from .graph.graph_interpreter import interpreted
from .graph.owned_inputs import let_spend, spending
from .stored.graph_store import describe, description_of
from .symbolic.scaled_sizes import FUNCTIONS
from .symbolic.symbolic_sizes import Assumption, assumptions

CompileForm = Callable[[Mapping[str, float]], Compiled]
MOST_FORMS = 8  # libraries of one graph for different sizes; sizes beyond them run op by op


def compile_for_sizes(gm: fx.GraphModule, compile_form: CompileForm) -> Compiled:
    """Compile a graph for the sizes of its example; the callable compiles further forms as other sizes need them.

    compile_form: makes a form, given what each symbol is in the call; nothing is where the graph has no dynamic sizes,
    and the only form serves every call.
    """
    example = size_values(size_placeholders(gm.graph))
    if not example:
        return compile_form({})
    forms = DynamicForms(compile_form, interpreted(gm), list(example))
    first = forms.add(list(example.values()))
    count = len(example)

    def form_of(sizes: Sequence[object]) -> Compiled:
        for fits, run in forms.forms:
            if fits(*sizes):
                return run
        with forms.lock:
            return forms.add([size for size in sizes if isinstance(size, int | float)])

    def call(*inputs: object) -> tuple[object, ...]:
        return form_of(inputs[-count:])(*inputs)

    def spend(given: list[object]) -> object:
        run = form_of(given[-count:])
        spend_form = spending(run)
        return run(*given) if spend_form is None else spend_form(given)

    let_spend(call, spend)
    describe(call, lambda: replace(description_of(first), condition=forms.texts[0], names=tuple(example)))
    return call


@dataclass(slots=True, eq=False)
class DynamicForms:
    """What is compiled of one graph.

    forms: (whether the sizes fit, what to run), newest last.  names: the symbols, in the order of the inputs.
    texts: for each form the condition on the sizes, in words of Python.
    """

    compile_form: CompileForm
    interpreted: Compiled
    names: list[str]
    forms: list[tuple[Callable[..., object], Compiled]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lock: ForkedLock = field(default_factory=ForkedLock)

    def add(self, sizes: Sequence[float]) -> Compiled:
        """Return the form for these sizes, compiled if no form serves them."""
        for fits, run in self.forms:  # another thread may have been faster
            if fits(*sizes):
                return run
        if len(self.forms) >= MOST_FORMS:
            record(FellBack("graph", f"{MOST_FORMS} libraries for different sizes are in use"))
            return self.interpreted
        with assumptions() as assumed:
            run = self.compile_form(dict(zip(self.names, sizes, strict=True)))
        for each in assumed:
            if each.is_equality:
                record(FellBack("dynamic size", f"kernels are built for {each.text}"))
        text = condition_text(list(assumed))
        self.texts.append(text)
        self.forms.append((condition(self.names, text), run))
        return run


def condition_text(assumed: Sequence[Assumption]) -> str:
    """Return the Python text that says whether all assumptions hold."""
    return " and ".join(f"({each.text})" for each in assumed) or "True"


def condition(names: Sequence[str], text: str) -> Callable[..., object]:
    """Return a function of dynamic sizes, in order, that says whether a condition on their names holds."""
    holds: Callable[..., object] = eval(f"lambda {', '.join(names)}: {text}", {**FUNCTIONS, "math": math})
    return holds
