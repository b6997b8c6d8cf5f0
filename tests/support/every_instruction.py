"""Continue each sample function from each of its instructions and hold the end against the whole run.

`python tests/support/every_instruction.py` prints {"python": ..., "stops": ..., "wrong": [...]}: it needs nothing but
the standard library and `plumbline.compiler.bytecode`, so that any interpreter can run it.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plumbline.compiler.bytecode.instruction import decode, encode_exception_table, exception_table
from plumbline.compiler.bytecode.liveness import live_locals
from plumbline.compiler.bytecode.resume_code import make_resume_function
from support.frame_states import State, continuation, stop_at
from support.sample_functions import SAMPLES


def outcome(run: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    """Return what a run gives or raises, in words, with what it left in its arguments."""
    try:
        ended = ("returns", run())
    except Exception as error:
        ended = ("raises", (type(error).__name__, str(error)))
    return repr((ended, [arg for arg in args if isinstance(arg, list)]))


def has_keyword_names(state: State) -> bool:
    """Return whether KW_NAMES has run and its CALL has not: names that neither stack nor slots hold (to 3.12)."""
    before = [i.name for i in state.decoded.instructions[max(state.index - 2, 0) : state.index]]
    return before[-1:] == ["KW_NAMES"] or before == ["KW_NAMES", "PRECALL"]


def wrong_continuations(name: str) -> tuple[int, list[str]]:
    """Return at how many instructions the sample was stopped, and where going on ended otherwise."""
    function, make = SAMPLES[name]
    whole = make()
    expected = outcome(lambda: function(*whole), whole)
    stops, wrong = 0, []
    for only_live in (True, False):
        nth, got_there = 0, True
        while got_there:
            nth += 1

            def met(state: State, args: tuple[Any, ...], only_live: bool = only_live) -> None:
                if has_keyword_names(state):
                    return
                names = set(state.slots)
                if only_live:
                    names &= live_locals(state.decoded)[state.index]
                layout, values = continuation(state, names)
                resume = make_resume_function(state.decoded, layout, function.__globals__)
                found = outcome(lambda: resume(values), args)
                if found != expected:
                    instruction = state.decoded.instructions[state.index]
                    wrong.append(f"{name} at {instruction.index} {instruction.name}: {found} is not {expected}")

            got_there = stop_at(function, make, nth, met)
            stops += got_there
    return stops, wrong


def wrong_tables(name: str) -> list[str]:
    """Return what is not as it should be in the decoded form of a sample and of the code inside it."""
    found = []
    codes = [SAMPLES[name][0].__code__]
    for code in codes:
        codes += [inner for inner in code.co_consts if hasattr(inner, "co_code")]
        rows = exception_table(code.co_exceptiontable)
        if encode_exception_table(rows) != code.co_exceptiontable:
            found.append(f"{code.co_name}: the exception table does not come back")
        decoded = decode(code)
        offsets = {instruction.offset for instruction in decoded.instructions}
        if not {row[2] for row in rows} <= offsets:
            found.append(f"{code.co_name}: a handler starts inside an instruction")
        if code.co_exceptiontable and not decoded.handlers:
            found.append(f"{code.co_name}: handlers are lost")
    return found


if __name__ == "__main__":
    report: dict[str, Any] = {"python": list(sys.version_info[:2]), "stops": 0, "wrong": []}
    for sample_name in sys.argv[1:] or SAMPLES:
        count, problems = wrong_continuations(sample_name)
        report["stops"] += count
        report["wrong"] += problems + wrong_tables(sample_name)
    json.dump(report, sys.stdout)
