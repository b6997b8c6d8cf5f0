"""The marker `compile_budget`: how much compiling a test may take before it fails."""

from collections.abc import Mapping

import pytest

from plumbline.compiler.base.errors import UserError

from ..judge_access import CompileStatistics

LIMITS = ("graphs", "breaks", "recompiles", "seconds")


def check_budget(item: pytest.Item, mark: pytest.Mark) -> None:
    """Raise UserError for limits that are none."""
    hint = "write @pytest.mark.compile_budget(graphs=1, breaks=0, recompiles=2, seconds=10.0)"
    if mark.args or not mark.kwargs.keys() & set(LIMITS):
        raise UserError("compile_budget takes limits by name", where=item.nodeid, hint=hint)
    for name in LIMITS:
        limit = mark.kwargs.get(name, 0)
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit < 0:
            raise UserError(f"compile_budget has {name}={limit!r}", where=item.nodeid, hint=hint)


def over_budget(limits: Mapping[str, object], statistics: CompileStatistics) -> str:
    """Return what of a budget is exceeded as a sentence, "" where nothing is."""
    spent: dict[str, float] = {
        "graphs": statistics.graphs,
        "breaks": len(statistics.breaks),
        "recompiles": statistics.recompiles,
        "seconds": statistics.compile_seconds,
    }
    over = [
        f"{spent[name]:.3g} {name}, at most {limit:.3g}"
        for name in LIMITS
        if isinstance(limit := limits.get(name), (int, float)) and spent[name] > limit
    ]
    reasons = f" ({'; '.join(statistics.breaks[:3])})" if over and statistics.breaks else ""
    return "; ".join(over) + reasons
