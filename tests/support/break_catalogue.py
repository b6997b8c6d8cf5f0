"""Write docs/graph-breaks.md: `python tests/support/break_catalogue.py`, from the catalogue and its examples.

The catalogue is compiler/values/reasons.py, the examples stand in break_examples.py beside this file.
"""

import ast
import sys
from pathlib import Path

from plumbline.compiler.values.reasons import REASONS, BreakReason

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.break_examples import EXAMPLES, Example

PAGE = Path(__file__).resolve().parents[2] / "docs" / "graph-breaks.md"

# Reasons whose example compiles by itself: what is recorded while it runs is shown, not explained once more.
_COMPILES_BY_ITSELF = frozenset({"exception", "limit", "function-mode", "generator"})

_HEAD = """\
# Graph breaks

<!-- Made by `python tests/support/break_catalogue.py`; a test says when that has to be run again. -->

Capture puts the tensor operations of a function, and of what it calls, into one graph. Where something else has to
happen, the graph ends, plain Python does it, and a new graph begins: a *break*. Where even that is not possible, the
function runs eagerly. The answer is that of eager in each case; what is lost is speed.

`plumbline.explain(f)(*args)` lists the breaks with your lines; so does `PLUMBLINE_LOGS=graph_breaks`, as they happen.
`fullgraph=True` makes the first one an error. Each has a reason with a stable id:

{contents}

Every example on this page is run, and stops for the reason it stands under:

```python
import torch

import plumbline
from plumbline.compiler.base.events import Broke, RanEagerly, recording


def show_reasons(f, *args):
    \"\"\"Say why graphs of f end; of what f compiles itself too.\"\"\"
    with recording() as events:
        f(*args)
    print(*[event.reason for event in events if isinstance(event, Broke | RanEagerly)] or ["none"])
```
"""


def page() -> str:
    """Return the text of the page."""
    contents = "\n".join(f"* [{reason.id}](#{reason.id}): {reason.what}" for reason in REASONS.values())
    parts = [_HEAD.format(contents=contents), *(_section(reason) for reason in REASONS.values())]
    return "\n".join(parts)


def _section(reason: BreakReason) -> str:
    example = EXAMPLES[reason.id]
    rows = [f"## {reason.id}", "", f"{_sentence(reason.what)} {_sentence(reason.why)}", ""]
    if not example.stops:
        rows += [f"No program is known that stops for it on Python 3.11. If you have one: {reason.hint}.", ""]
        return "\n".join(rows)
    by_itself = reason.id in _COMPILES_BY_ITSELF
    rows += _block(example.stops, example, by_itself, reason.id if by_itself else f"...{reason.id}...")
    rows += [f"To avoid it: {reason.hint}.", ""]
    if example.instead:
        rows += _block(example.instead, example, by_itself, "none" if by_itself else "...with 0 graph breaks and...")
    return "\n".join(rows)


def _block(text: str, example: Example, by_itself: bool, output: str) -> list[str]:
    """Return a program that shows what comes of it, and the output that it must have."""
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    show = "show_reasons({}, {})" if by_itself else "print(plumbline.explain({}, {}))"
    rows = ["```python", text.strip("\n"), "", "", show.format(names[-1], example.arguments), "```", ""]
    return [*rows, "```output", *output.splitlines(), "```", ""]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
