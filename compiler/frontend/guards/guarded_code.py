"""The callable of a specialisation: its guards by the evaluator in C and its body in Python, or both in Python."""

import re
from collections.abc import Callable

from ...base.bisecting.applications import gate_for
from ...base.options import Options
from ...base.origin import Origin
from ...values.guard import Guard
from .generated_function import MISS, Names, assemble, function_text
from .guard_evaluator import evaluator_type, native_evaluator
from .guard_table import guard_table

_NAME = re.compile(r"\b_[a-z]\d+\b")


def guarded_function(
    name: str,
    parameters: list[str],
    guards: tuple[Guard, ...],
    checks: list[str],
    body: list[str],
    names: Names,
    origin: Origin | None,
    module: dict[str, object],
    options: Options,
) -> tuple[Callable[..., object], str]:
    """Return name(*parameters) -> what the body returns, or MISS; and the Python text of a function that does the same.

    checks: the guards as statements; the body may use what they fetched.  In C the body is a function of the
    arguments and fetched values that it names.
    """
    if not options.guards_in_c or evaluator_type(options) is None:
        return assemble(name, parameters, checks, body, names, origin, module)
    gate = gate_for(options.bisect, "guards")
    place = origin.place() if origin is not None else ""
    if gate is not None and not gate.allows("guards", f"checked the guards of {name} in C", place=place):
        return assemble(name, parameters, checks, body, names, origin, module)
    table = guard_table(guards, parameters, gate)
    slots = {parameter: slot for slot, parameter in enumerate(parameters)}
    slots |= {name: table.places[source] for source, name in names.fetched.items() if source in table.places}
    named = set(_NAME.findall("\n".join(body)))
    used = [name for name in slots if name in named]
    function, _ = assemble(name, used, [], body, names, origin, module)
    run = native_evaluator(table, tuple(slots[name] for name in used), function, MISS, options)
    assert run is not None
    return run, function_text(name, parameters, checks, body, names)
