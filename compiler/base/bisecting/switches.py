"""Which applications of the compiler are switched off: the text of the option `bisect`, read once.

    off:    fusion:12    pass    lowering:3-7,reuse:#1f2e3d4c
    on:     +fusion:12               of the fusions the twelfth only; other kinds as always
            -all,+lowering           lowerings only
    rules:  lowering:@aten.relu.default   all that this rule decided

An application is one use of one of the `KINDS`: one node that is lowered, two loops that are joined.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from ..errors import UserError


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of application: what one of them is, what happens instead where it is off, and where it is decided."""

    name: str
    one: str
    instead: str
    file: str


# In the order of the pipeline: what is later cannot mend what an earlier one did wrong.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("capture", "a function is captured", "it runs as plain Python", "frontend/units/unit.py"),
        Kind("guards", "guards of a specialisation are checked in C", "in Python", "frontend/guards/guarded_code.py"),
        Kind("guard", "one guard has steps in C", "its own Python check is called", "frontend/guards/guard_table.py"),
        Kind("autograd", "a captured graph is traced to ATen", "it runs as captured", "autograd/compile.py"),
        Kind("decomposition", "a call is taken apart while tracing", "it stays whole", "graph/tracer.py"),
        Kind("pass", "a graph pass runs on a graph", "it is skipped", "graph/passes.py"),
        Kind("recompute", "backward computes a value again", "forward saves it", "autograd/partition.py"),
        Kind("native", "an ATen graph becomes native code", "its calls go to ATen one by one", "native.py"),
        Kind("lowering", "a call becomes a loop", "ATen is called", "lowering/lower.py"),
        Kind("loop-pass", "a scheduling pass runs on a graph", "it is skipped", "schedule/schedule.py"),
        Kind("inlining", "a tensor is computed where it is read", "it is kept in memory", "schedule/schedule.py"),
        Kind("fusion", "two loops are joined", "they stay two kernels", "schedule/fusion.py"),
        Kind("kernel", "a loop runs as C", "the interpreter of loops runs it", "codegen/c_kernel.py"),
        Kind("reuse", "a tensor takes memory that another had", "memory of its own", "schedule/memory_plan.py"),
        Kind(
            "stash",
            "a kernel keeps values for its next pass",
            "it computes them again",
            "codegen/kernel_plan.py",
        ),
        Kind("threads", "threads share a kernel", "one thread runs it", "codegen/kernel_plan.py"),
        Kind("vector", "a kernel computes in vectors", "one element at a time", "codegen/kernel_shape.py"),
    )
}
LIST = "list"
"""The text that switches nothing off and has every application on record."""

# What cannot be switched off one by one, and why; `verify="run"` names these, and `autograd` leaves all of them out.
REQUIRED: dict[str, str] = {
    "the trace": "without it there is no ATen graph",
    "functionalisation": "every later stage takes a graph without writes",
    "the cut into forward and backward": "autograd asks for two functions; what is computed again is `recompute`",
    "operators that PyTorch itself always takes apart": "they have no kernel of their own",
    "the order of kernels and the Python around them": "there has to be one; `native` leaves them out",
    "kernels of graphs with dynamic sizes": "the interpreter of loops needs numbers; `native` leaves them out",
}
ALL = "all"
_ITEM = re.compile(r"([+-]?)([a-z-]+?)(?::(?:(\d+)(?:(-)(\d*))?|#([0-9a-f]{8})|@([^,]+)))?")


@dataclass(frozen=True, slots=True)
class SwitchItem:
    """Some applications: of a kind, from one number to another, or the one with a key, or those of a rule.

    No bounds: all of them.
    """

    on: bool
    kind: str
    first: int = 0
    last: int | None = None
    key: str = ""
    rule: str = ""

    def has(self, kind: str, number: int, key: str, rule: str) -> bool:
        """Return whether an application is meant."""
        if self.kind not in (kind, ALL):
            return False
        if self.key or self.rule:
            return key == self.key if self.key else rule == self.rule
        return number >= self.first and (self.last is None or number <= self.last)


@dataclass(frozen=True, slots=True)
class Switches:
    """What a text switches: `allows` says of each application whether it is on."""

    items: tuple[SwitchItem, ...]

    def allows(self, kind: str, number: int, key: str, rule: str = "") -> bool:
        """Return whether an application is on.

        Where items name applications of its kind that are on (`+`), no other of them is; else all are on but those
        that an item switches off.
        """
        on = [item for item in self.items if item.on and item.kind in (kind, ALL)]
        if on:
            return any(item.has(kind, number, key, rule) for item in on)
        return not any(item.has(kind, number, key, rule) for item in self.items)


@lru_cache(maxsize=64)
def read_switches(text: str) -> Switches:
    """Return what a text switches; raises UserError for one that cannot be read or names no kind."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return Switches(tuple(_item(part, text) for part in parts if part != LIST))


def _item(part: str, text: str) -> SwitchItem:
    match = _ITEM.fullmatch(part)
    if match is None or match[2] not in (*KINDS, ALL):
        hint = f"write a kind, kind:number, kind:from-to, kind:#key or kind:@rule; kinds are {', '.join((*KINDS, ALL))}"
        raise UserError(f"option bisect cannot be {text!r}", why=f"{part!r} names no application", hint=hint)
    sign, kind, first, dash, last, key, rule = match.groups()
    if first is None:
        return SwitchItem(sign == "+", kind, key=key or "", rule=rule or "")
    until = (int(last) if last else None) if dash else int(first)
    return SwitchItem(sign == "+", kind, int(first), until)
