"""What the noise meter says: for every output its digits, and for every line of the program what it does to them."""

import dataclasses
import json
import math
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LineNoise:
    """One line of the program and one output.

    file, line, source, function: where; line 0 stands for code outside the program's text.
    module: path of the module it ran in.  backward: the gradient of the line.  operators, calls: what ran there.
    introduced: share of the output's noise that is rounded here; over all lines these add up to 1, and one may be
    negative, where errors happen to cancel.  weight: its size, as a share of the sizes of all lines.
    passing: the share that passes through a result of this line.
    digits_before, digits_after: digits of the least exact operand and of the result, in the call that loses most.
    amplification: how many times the relative error grows there, before the line's own rounding; 1 is unchanged.
    roundings: own rounding there, by norm, in units in the last place.  overflows: elements that are not finite, and
    are in exact arithmetic on finite operands.  jumps: share of the output's noise that comes of another branch, which
    rounding takes here.  first: number of the first of its operators that has to do with the noise.
    """

    file: str
    line: int
    function: str
    source: str
    module: str
    backward: bool
    operators: tuple[str, ...]
    calls: int
    introduced: float
    weight: float
    passing: float
    digits_before: float
    digits_after: float
    amplification: float
    roundings: float
    overflows: int
    jumps: float
    first: int

    @property
    def lost(self) -> float:
        """Return how many digits the line loses."""
        return max(0.0, self.digits_before - self.digits_after)

    @property
    def does(self) -> str:
        """Return what the line does to the noise, in words."""
        words = []
        if self.overflows:
            words.append("overflows")
        if abs(self.jumps) >= _NOTABLE:
            words.append("another branch")
        if self.weight >= _NOTABLE and abs(self.introduced - self.jumps) >= _NOTABLE:
            words.append("introduces")
        if self.amplification >= _AMPLIFIES and abs(self.passing) >= _NOTABLE:
            words.append(f"amplifies {self.amplification:.2g}x")
        return ", ".join(words) or "-"


_NOTABLE, _AMPLIFIES = 0.05, 3.0


@dataclass(frozen=True, slots=True)
class CoursePoint:
    """One operator on the way to an output: its number and line, digits of its result, share of the noise in it."""

    number: int
    line: int
    digits: float
    passing: float


@dataclass(frozen=True, slots=True)
class OutputNoise:
    """One output, and the lines that have to do with its noise, those that lose most digits first.

    digits: decimal digits that are right, by norm, of the `digits_of_dtype` that its dtype has.
    units: largest error of an element in units in the last place of that element, computed or exact, whichever is
    larger, so that all digits lost are 1 / eps; worst_index, computed, exact: there.
    error: norm of the error relative to that of the exact output.
    not_finite: elements that are not finite, and are in exact arithmetic.
    course: the operators on the way to it, in the order in which they ran.
    explained: sum of the lines' roundings, propagated to the output by derivatives, as a share of its measured error;
    1 but where rounding takes another branch; None where the lines were not traced.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    digits: float
    digits_of_dtype: float
    error: float
    units: float
    worst_index: tuple[int, ...] | None
    computed: float | None
    exact: float | None
    not_finite: int
    lines: tuple[LineNoise, ...]
    course: tuple[CoursePoint, ...]
    explained: float | None


MOST_LINES = 12
"""Lines that a table has at most; the others have next to nothing to do with the noise."""


def where_of(line: LineNoise) -> str:
    """Return file and line of a line in short, its module, and whether it is a backward."""
    place = f"{os.path.basename(line.file)}:{line.line}" if line.line else "(no line of yours)"
    place += f" {line.module}" if line.module else ""
    return f"{place} backward" if line.backward else place


def shortened(text: str, length: int) -> str:
    """Return a text of at most that many characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def title_of(output: OutputNoise) -> str:
    """Return what an output keeps of its digits, in one line."""
    form = f"{output.dtype}[{', '.join(map(str, output.shape))}]"
    text = f"{output.path}: {form} keeps {output.digits:.1f} of {output.digits_of_dtype:.1f} digits"
    if output.not_finite:
        some = f"{output.not_finite} elements" if output.not_finite > 1 else "1 element"
        text += f"; {some} that should be finite {'are' if output.not_finite > 1 else 'is'} not"
    if output.worst_index is not None and output.computed is not None and output.exact is not None:
        text += f"; worst at {list(output.worst_index)}: {output.computed:.9g}, exactly {output.exact:.9g}"
        text += f", {output.units:.3g} units in the last place"
    return text


def report_text(report: "NoiseReport", lines: int = MOST_LINES) -> str:
    """Return the tables of a report as text, and what could not be followed."""
    blocks = [_table(output, lines) for output in report.outputs]
    if not blocks:
        blocks = ["no output of floating-point numbers"]
    return "\n\n".join(blocks + [f"not followed: {reason}" for reason in report.untrusted[:MOST_LINES]])


def _table(output: OutputNoise, most: int) -> str:
    rows = [
        line
        for line in output.lines
        if line.overflows or line.weight >= 0.005 or (line.lost >= 0.05 and abs(line.passing) >= 0.005)
    ]
    text = [title_of(output)]
    wide = max((len(where_of(line)) for line in rows[:most]), default=0)
    words = max((len(line.does) for line in rows[:most]), default=0)
    if rows:
        head = f"  {'lost':>5} {'kept':>5} {'adds':>5} {'passes':>6}  {'line':<{wide}}  "
        text.append(f"{head}{'what it does':<{max(12, words)}}  source")
    for line in rows[:most]:
        passing = min(1.0, abs(line.passing))
        cells = f"{line.lost:5.1f} {line.digits_after:5.1f} {line.weight:5.0%} {passing:6.0%}"
        times = f" ({line.calls} operators)" if line.calls > 1 else ""
        text.append(
            f"  {cells}  {where_of(line):<{wide}}  {line.does:<{max(12, words)}}  {shortened(line.source, 72)}{times}"
        )
    if len(rows) > most:
        text.append(f"  ... and {len(rows) - most} lines more")
    return "\n".join(text)


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """The noise of one call.

    program: name of the function.  result: what it returned.  untrusted: what could not be followed, and why.
    """

    program: str
    outputs: tuple[OutputNoise, ...]
    untrusted: tuple[str, ...]
    result: Any = dataclasses.field(repr=False, compare=False)

    @property
    def worst(self) -> OutputNoise | None:
        """Return the output that keeps the smallest part of its digits, None without outputs of floats."""
        return min(self.outputs, key=lambda output: output.digits / output.digits_of_dtype, default=None)

    def to_json(self) -> str:
        """Return everything but the result as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the result as plain data."""
        outputs = [dataclasses.asdict(output) for output in self.outputs]
        for output, data in zip(self.outputs, outputs, strict=True):
            for line, entry in zip(output.lines, data["lines"], strict=True):
                entry["does"], entry["lost"] = line.does, line.lost
        data = {"program": self.program, "outputs": outputs, "untrusted": list(self.untrusted)}
        return _without_infinities(data)  # type: ignore[no-any-return]  # a dictionary stays one

    def __str__(self) -> str:
        """Return the report as a table for each output."""
        return report_text(self)


def _without_infinities(value: Any) -> Any:
    """Return plain data with None for what JSON cannot say."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    return [_without_infinities(item) for item in value] if isinstance(value, list | tuple) else value
